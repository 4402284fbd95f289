"""Contributions of parts and features to the margin between two outputs of one input.

The rows of ``F'`` are made for the parts alone in which the two outputs differ, a few of many: of a sentence with a
hundred labels some dozens of parts, of an image with thousands of regions those at the changed ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.data.names import ColumnNames, FeatureNamer, Name
from maxmargin.explanation import rivals
from maxmargin.explanation.result import ALONE, ELSEWHERE, GIVEN, RUNNER_UP, Contribution, Explanation
from maxmargin.explanation.rivals import Pair
from maxmargin.structures.base import FloatArray, PointStatus, Structure

FeatureNames = Sequence[str] | Mapping[str, Sequence[str]] | None
"""Names that a user gives to columns of features: of the one matrix of an input, or by the names of its matrices."""


def explain(
    encoder: Encoder,
    weights: FloatArray,
    x: Any,
    *,
    against: Any = None,
    at: int | None = None,
    feature_names: FeatureNames = None,
) -> Explanation:
    """Explain the prediction for one input; see :meth:`maxmargin.Model.explain`."""
    batch = encoder.transform([x])
    return explain_batch(encoder, batch, weights, x, against=against, at=at, feature_names=feature_names)


def explain_batch(
    encoder: Encoder,
    batch: Batch,
    weights: FloatArray,
    x: Any,
    *,
    against: Any = None,
    at: int | None = None,
    compared_with: str | None = None,
    feature_names: FeatureNames = None,
) -> Explanation:
    """Explain the prediction for the one input of a batch.

    Args:
        encoder: has made the batch.
        batch: the encoded input.
        weights: of the model, shape ``(n_weights,)``.
        x: the input, for names.
        against: an output to compare the prediction with; None for the runner-up.
        at: the number of a variable: compare with the best output that differs there; None for anywhere.
        compared_with: what the rival is called; None for the word that suits ``against`` and ``at``.
        feature_names: names of columns of features.
    """
    structure = batch.structure
    if batch.features.n_weights != len(weights):
        raise ValueError(f"the input needs {batch.features.n_weights} weights, the model has {len(weights)}")
    if against is not None and at is not None:
        raise ValueError("give either against, an output, or at, the place where another one differs")
    columns = ColumnNames(feature_names)
    namer = encoder.name_features(batch, x, columns)
    columns.refuse_others()
    scores = batch.features.scores(weights)
    if against is not None:
        found = rivals.best(structure, scores)
        pair = Pair(found.z, encoder.vertex_of(batch, [against], scores), found.status[0] == PointStatus.OK)
        words = GIVEN
    elif at is not None:
        pair, words = rivals.with_other_at(structure, scores, at), ELSEWHERE
    else:
        pair, words = rivals.with_runner_up(encoder, batch, scores), RUNNER_UP
    return Explanation(
        output=_output(encoder, batch, structure, pair.z),
        rival=None if pair.rival is None else _output(encoder, batch, structure, pair.rival),
        compared_with=ALONE if pair.rival is None else compared_with or words,
        score=_score(scores, pair.z),
        rival_score=None if pair.rival is None else _score(scores, pair.rival),
        exact=bool(pair.exact),
        **_contributions(encoder, batch, weights, x, pair, namer),
    )


def _output(encoder: Encoder, batch: Batch, structure: Structure, z: FloatArray) -> Any:
    return encoder.decode(batch, structure.decode(z))[0]


def _score(scores: FloatArray, z: FloatArray) -> float:
    """``scores'z`` correctly rounded, where scores of parts that are not there may be infinite."""
    own = np.flatnonzero(z)
    return _sum((scores[own] * z[own]).tolist())


def _sum(terms: Sequence[float]) -> float:
    """The correctly rounded sum; ValueError if it, or a partial sum, is too large for a float."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):  # the latter where infinities cancel
        raise ValueError(rivals.NOT_FINITE) from None


def _contributions(
    encoder: Encoder, batch: Batch, weights: FloatArray, x: Any, pair: Pair, namer: FeatureNamer
) -> dict[str, Any]:
    """The parts in which the outputs differ, and what their features contribute."""
    change = pair.z if pair.rival is None else pair.z - pair.rival
    parts = np.flatnonzero(change)
    rows = batch.features.part_rows(parts)
    name_part = encoder.name_parts(batch, x)
    starts = batch.structure.starts
    block = np.searchsorted(starts, parts, side="right") - 1
    found: list[Contribution] = []
    changed: list[tuple[Name, float]] = []
    for row, part in enumerate(parts.tolist()):
        own = slice(rows.indptr[row], rows.indptr[row + 1])
        used, values = rows.indices[own], rows.data[own]
        terms = (weights[used] * values * change[part]).tolist()
        name = name_part[block[row]](part - starts[block[row]])
        changed.append((name, float(change[part])))
        summed: dict[Name, list[float]] = {}
        features = zip(namer(part, used.tolist()), used.tolist(), values.tolist(), terms, strict=True)
        for (feature, as_one), weight, value, term in features:
            if as_one:
                summed.setdefault(feature, []).append(term)
            elif term != 0.0:
                found.append(Contribution(name, feature, float(weights[weight]), value, float(change[part]), term))
        for feature, own_terms in summed.items():
            if (total := _sum(own_terms)) != 0.0:
                found.append(Contribution(name, feature, None, None, float(change[part]), total))
    if not math.isfinite(_sum([abs(one.contribution) for one in found])):  # then no sum of some of them overflows
        raise ValueError(rivals.NOT_FINITE)
    found.sort(key=lambda one: -abs(one.contribution))
    return {"parts": tuple(changed), "contributions": tuple(found)}
