"""Inspection of trained taggers: metadata and the strongest weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.model import KIND, TaggerModel, load_tagger


def describe(path: Path) -> dict[str, Any]:
    """Return the metadata of a model file, as plain JSON values."""
    return metadata_of(load_tagger(path))


def constraints_text(layout: WeightLayout) -> str:
    """Return a short description of the transition constraints."""
    if layout.constraints is None:
        return "none"
    return f"{int((~layout.constraints.pairs).sum())} forbidden pairs"


def metadata_of(model: TaggerModel) -> dict[str, Any]:
    """Return the metadata of a tagger, as plain JSON values."""
    layout, extractor = model.layout, model.extractor
    template = getattr(extractor, "template", None)
    file = model.metadata.get("file")
    of_file = {} if not isinstance(file, dict) else {f"trained on {key}": value for key, value in file.items()}
    return {
        "kind": KIND,
        "weights": len(model.weights),
        "nonzero": int(np.count_nonzero(model.weights)),
        **{f"trained {key}": value for key, value in model.metadata.items() if key != "file"},
        **of_file,
        "labels": len(model.labels),
        "order": layout.order,
        "constraints": constraints_text(layout),
        "input": extractor.kind,
        "attributes": extractor.n_attributes,
        "attributes of pairs": extractor.n_edge_attributes,
        "columns needed": [] if template is None else list(template.columns_used),
        "temperature": model.temperature,
    }


def strongest(model: TaggerModel, top: int, labels: Sequence[str] = ()) -> dict[str, Any]:
    """Return the largest and smallest weights: of attributes by label, and of transitions.

    Args:
        model: the tagger.
        top: number of weights of each sign.
        labels: only these labels, and transitions to or from them; empty for all.
    """
    names, layout = [str(one) for one in model.labels], model.layout
    for one in labels:
        if one not in names:
            raise ValueError(f"no label {one!r}; there are {', '.join(names)}")
    k = layout.n_labels
    seen = np.array([not labels or name in labels for name in names], dtype=bool)
    tokens, pairs, rest = layout.split(model.weights)
    order = np.argsort(layout.support.columns, kind="stable")
    bounds = np.searchsorted(layout.support.columns[order], np.arange(k + 1))
    features = layout.support.features
    by_label = []
    for code in np.flatnonzero(seen).tolist():
        own = order[bounds[code] : bounds[code + 1]]

        def attribute(at: int, own: IntArray = own) -> dict[str, Any]:
            return {"attribute": model.extractor.name(int(features[own[at]]))}

        by_label.append({"label": names[code], "weights": len(own), **_extremes(tokens[own], top, attribute)})
    allowed = np.ones((k, k), dtype=bool) if layout.constraints is None else layout.constraints.pairs
    wanted = np.flatnonzero(allowed & (seen[:, None] | seen[None, :]))
    found: dict[str, Any] = {
        "labels": by_label,
        "transitions": _extremes(
            pairs.ravel()[wanted], top, lambda at: {"from": names[wanted[at] // k], "to": names[wanted[at] % k]}
        ),
    }
    if layout.order == 2:
        triples = np.flatnonzero((allowed[:, :, None] & allowed[None, :, :]).ravel())
        found["triples"] = _extremes(
            rest.ravel()[triples],
            top,
            lambda at: {"labels": [names[code] for code in np.unravel_index(triples[at], (k, k, k))]},
        )
    support = layout.edge_support
    if support is not None:
        of_pair = support.columns.astype(np.int64)
        found["attributes of pairs"] = _extremes(
            rest,
            top,
            lambda at: {
                "attribute": model.extractor.edge_name(int(support.features[at])),
                "from": names[of_pair[at] // k],
                "to": names[of_pair[at] % k],
            },
        )
    return found


def _extremes(weights: FloatArray, top: int, named: Callable[[int], dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the largest positive and the smallest negative weights, strongest first."""
    found = {}
    for name, signed in (("positive", -weights), ("negative", weights)):
        few = np.arange(len(signed)) if len(signed) <= top else np.argpartition(signed, top - 1)[:top]
        few = few[signed[few] < 0]
        few = few[np.lexsort((few, signed[few]))]
        found[name] = [{**named(int(at)), "weight": float(weights[at])} for at in few]
    return found
