"""A trained tagger: predictions, lists of the best, margins and probabilities, and its file.

It needs NumPy, SciPy's sparse matrices and the kernels, nothing that learns, so that a command that only predicts
starts quickly; :class:`~maxmargin.tasks.tagging.tagger.SequenceTagger` trains it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads, model_file
from maxmargin._version import __version__
from maxmargin.features.supported import Support
from maxmargin.model_file import ModelFileError
from maxmargin.packing import checks
from maxmargin.packing.labels import distinct, label_from_json, label_to_json
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.structures.legality import Legality
from maxmargin.tasks.tagging.extraction import EXTRACTORS, Extractor, TokenRows
from maxmargin.tasks.tagging.layout import WeightLayout

KIND = "sequence tagging"
LOADER = "maxmargin.tasks.tagging.load_tagger"
"""What an error names where a file of this kind is loaded as another."""

Codes = npt.NDArray[np.int32]
UNKNOWN = -1
"""The code of a label that is not known."""


@dataclass(frozen=True, eq=False)
class TaggerModel:
    """What training ends with.

    Attributes:
        labels: all labels, in the order of their codes.
        extractor: how inputs become attributes.
        layout: what the weights mean.
        weights: shape ``(layout.n_weights,)``.
        temperature: what scores are divided by for probabilities; None where none was fitted (then 1).
        facts: how it was trained, as JSON values.
        n_jobs: threads of predictions, as scikit-learn reads it.
    """

    labels: tuple[Hashable, ...]
    extractor: Extractor
    layout: WeightLayout
    weights: FloatArray
    temperature: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """The code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    # Predictions as users write them: lists per sentence.

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Hashable]]:
        """The best labels of each sentence; ``known`` holds labels that must be taken, None elsewhere.

        A sentence of a length for which no label sequence keeps the rules is labelled without them, here and in the
        other predictions.
        """
        rows = self.extractor.rows(X)
        return self._by_sentence(self.best(rows, self.known_codes(known, rows.lengths)), rows.lengths)

    def k_best(self, X: Any, k: int, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Any]]:
        """The ``k`` best labellings of each sentence with their scores, best first; fewer where there are fewer."""
        k = checks.integer(k, "k", at_least=1)
        rows = self.extractor.rows(X)
        return list(self.ranked(rows, k, self.known_codes(known, rows.lengths)))

    def predict_proba(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[FloatArray]:
        """The probability of each label at each token, a ``(length, n_labels)`` array per sentence.

        Marginals of ``p(y) ~ exp(score(y) / temperature)`` over the legal label sequences.
        """
        rows = self.extractor.rows(X)
        flat = self.marginals(rows, self.known_codes(known, rows.lengths))
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def margins(self, X: Any) -> list[FloatArray]:
        """By how much the best labelling beats the best one with another label at a token, an array per sentence."""
        rows = self.extractor.rows(X)
        _, flat = self.best_with_margins(rows)
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def _by_sentence(self, codes: Codes, lengths: IntArray) -> list[list[Hashable]]:
        names = np.empty(len(self.labels), dtype=object)
        names[:] = self.labels
        flat = names[codes].tolist()
        return [flat[first:last] for first, last in pairwise([0, *np.cumsum(lengths).tolist()])]

    def known_codes(self, known: Sequence[Sequence[Any]] | None, lengths: IntArray) -> Codes | None:
        """Labels to be taken as codes, :data:`UNKNOWN` where there are none."""
        if known is None:
            return None
        if isinstance(known, (str, bytes, dict)) or not hasattr(known, "__len__"):
            raise ValueError(f"known must be a list of lists of labels, got {type(known).__name__}")
        if len(known) != len(lengths):
            raise ValueError(f"known has {len(known)} sentences where there are {len(lengths)}")
        flat: list[int] = []
        for i, (labels, length) in enumerate(zip(known, lengths.tolist(), strict=True)):
            if isinstance(labels, (str, bytes, dict, set)) or not hasattr(labels, "__len__"):
                raise ValueError(f"sentence {i}: known must be a list of labels, got {type(labels).__name__}")
            if len(labels) != length:
                raise ValueError(f"sentence {i}: known has {len(labels)} entries for {length} tokens; use None to skip")
            for j, label in enumerate(labels):
                try:
                    code = UNKNOWN if label is None else self.codes.get(label)
                except TypeError:  # not hashable, or a tuple that holds something that is not
                    code = None
                if code is None:
                    raise ValueError(f"sentence {i}, token {j}: {label!r} is no label of this model")
                flat.append(code)
        return np.array(flat, dtype=np.int32)

    # Predictions of rows, flat over all sentences, piece by piece.

    # Where no label sequence of a sentence's length is legal, the rules are left out for that sentence.

    def best(self, rows: TokenRows, known: Codes | None = None) -> Codes:
        """Codes of the best labels, shape ``(n_tokens,)``."""
        found = np.empty(int(rows.lengths.sum()), dtype=np.int32)
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known):
                labelling = self._labelling(self.layout, rows, examples, scores)
                codes = labelling.labels
                for some, at in self._lawless(labelling.status, rows, examples, known):
                    again = self._labelling(self._without_rules, rows, some, scores[at])
                    self._check(again.status, some)
                    codes[at] = again.labels
                found[tokens] = codes
        return found

    def best_with_margins(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Codes of the best labels, and by how much each beats the best labelling with another label there.

        Infinite where no other label is legal.
        """
        codes = self.best(rows, known)
        margins = np.empty(len(codes))
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known):
                most = self._max_marginals(self.layout, rows, examples, scores)
                own = codes[tokens]
                best = most[np.arange(len(own)), own]
                if not np.isfinite(best).all():
                    status = np.zeros(len(examples), dtype=np.int8)
                    sentence = np.repeat(np.arange(len(examples)), rows.lengths[examples])
                    status[sentence[~np.isfinite(best)]] = PointStatus.ABSENT
                    for some, at in self._lawless(status, rows, examples, known):
                        most[at] = self._max_marginals(self._without_rules, rows, some, scores[at])
                    best = most[np.arange(len(own)), own]
                most[np.arange(len(own)), own] = -np.inf
                margins[tokens] = np.maximum(best - most.max(axis=1, initial=-np.inf), 0.0)
        return codes, margins

    def marginals(self, rows: TokenRows, known: Codes | None = None, temperature: float | None = None) -> FloatArray:
        """Probabilities of labels at tokens, shape ``(n_tokens, n_labels)``."""
        k, heat = self.layout.n_labels, temperature or self.temperature or 1.0
        found = np.empty((int(rows.lengths.sum()), k))
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known, packed=True):
                structure = self.layout.structure(rows.lengths[examples])
                points = structure.entropic(self._packed(rows, examples, scores) / heat)
                shares = points.z[: scores.size].reshape(-1, k)
                for some, at in self._lawless(points.status, rows, examples, known):
                    structure = self._without_rules.structure(rows.lengths[some])
                    again = structure.entropic(self._packed(rows, some, scores[at]) / heat)
                    self._check(again.status, some)
                    shares[at] = again.z[: len(at) * k].reshape(-1, k)
                found[tokens] = shares
        return found

    def ranked(self, rows: TokenRows, k: int, known: Codes | None = None) -> Iterator[list[Any]]:
        """For each sentence its ``k`` best labellings: lists of labels with their scores."""
        with _threads.threads(self.n_jobs):
            for examples, _, scores in self._node_scores(rows, known, packed=True, copies=max(k, 1)):
                status, lists = self._ranked(self.layout, rows, examples, scores, k)
                for some, at in self._lawless(status, rows, examples, known):
                    status, others = self._ranked(self._without_rules, rows, some, scores[at], k)
                    self._check(status, some)
                    for i, ranks in zip(some.tolist(), others, strict=True):
                        lists[i - int(examples[0])] = ranks
                yield from lists

    @cached_property
    def _without_rules(self) -> WeightLayout:
        return replace(self.layout, legal=None)

    def _labelling(self, layout: WeightLayout, rows: TokenRows, examples: IntArray, scores: FloatArray) -> Any:
        """The best labels of sentences."""
        structure: Any = layout.structure(rows.lengths[examples])
        return structure.labels(*self._shared(rows, examples, scores))

    def _max_marginals(
        self, layout: WeightLayout, rows: TokenRows, examples: IntArray, scores: FloatArray
    ) -> FloatArray:
        """The score of the best labelling with each label at each token."""
        structure: Any = layout.structure(rows.lengths[examples])
        found: FloatArray = structure.max_marginals(*self._shared(rows, examples, scores))
        return found

    def _ranked(
        self, layout: WeightLayout, rows: TokenRows, examples: IntArray, scores: FloatArray, k: int
    ) -> tuple[npt.NDArray[np.int8], list[list[Any]]]:
        """Whether sentences have labellings, and the ``k`` best of each."""
        structure = layout.structure(rows.lengths[examples])
        ranks = structure.k_best(self._packed(rows, examples, scores), k)
        decoded = [structure.decode(points.z) for points in ranks]
        return ranks[0].status, [
            [
                ([self.labels[code] for code in labels[i].tolist()], float(points.value[i]))
                for labels, points in zip(decoded, ranks, strict=True)
                if points.status[i] <= PointStatus.INEXACT
            ]
            for i in range(len(examples))
        ]

    def _lawless(
        self, status: npt.NDArray[np.int8], rows: TokenRows, examples: IntArray, known: Codes | None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """The sentences of a piece that have no legal labelling, if any, and the places of their tokens in it.

        ValueError where labels that are known are to blame, and where scores are not finite.
        """
        absent = status == PointStatus.ABSENT
        if known is not None and absent.any():
            given = np.append(0, np.cumsum(known >= 0))[rows.offsets]
            absent &= given[examples + 1] == given[examples]
        self._check(np.where(absent, np.int8(0), status), examples)
        if absent.any():
            some, first = examples[absent], int(rows.offsets[examples[0]])
            yield some, ranges(rows.offsets[some] - first, rows.offsets[some + 1] - first)

    def _node_scores(
        self, rows: TokenRows, known: Codes | None, *, packed: bool = False, copies: int = 1
    ) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Piece by piece: numbers of its sentences, its tokens, and their scores ``(n_tokens, n_labels)``."""
        k, offsets = self.layout.n_labels, rows.offsets
        features = self.layout.token_features(rows)
        weights = self.layout.split(self.weights)[0]
        wide = k * copies if not packed else copies * (k + k ** (self.layout.order + 1))
        if self.layout.edge_support is not None:
            wide = copies * (k + k**2)
        for examples in self.layout.pieces(rows.lengths, wide):
            tokens = slice(int(offsets[examples[0]]), int(offsets[examples[-1] + 1]))
            scores = np.empty((tokens.stop - tokens.start, k))
            features.select(examples).write_scores(weights, scores.reshape(-1))
            if known is not None:
                given = known[tokens]
                at = np.flatnonzero(given >= 0)
                own = scores[at, given[at]]
                scores[at] = -np.inf
                scores[at, given[at]] = own
            yield examples, tokens, scores

    def _shared(self, rows: TokenRows, examples: IntArray, scores: FloatArray) -> tuple[FloatArray, ...]:
        """Scores of tokens, of transitions and of triples; all in one where pairs of labels see the input."""
        if self.layout.edge_support is not None:
            return (self._packed(rows, examples, scores),)
        _, pairs, rest = self.layout.split(self.weights)
        return (scores.ravel(), pairs, rest) if self.layout.order == 2 else (scores.ravel(), pairs)

    def _packed(self, rows: TokenRows, examples: IntArray, scores: FloatArray) -> FloatArray:
        """The scores of all parts of a piece."""
        _, pairs, rest = self.layout.split(self.weights)
        parts = [scores.reshape(-1)]
        if self.layout.edge_support is not None:
            assert rows.edges is not None
            whole = self.layout.edge_features(rows).select(examples)
            parts.append(whole.scores(np.concatenate([pairs.reshape(-1), rest])))
        else:
            parts.append(np.tile(pairs.reshape(-1), len(examples)))
            if self.layout.order == 2:
                parts.append(np.tile(rest.reshape(-1), len(examples)))
        return np.concatenate(parts)

    def _check(self, status: npt.NDArray[np.int8], examples: IntArray) -> None:
        wrong = np.flatnonzero(status > PointStatus.INEXACT)
        if not wrong.size:
            return
        i = int(examples[wrong[0]])
        if status[wrong[0]] == PointStatus.ABSENT:
            raise ValueError(f"sentence {i}: no legal labelling has the labels that are known; correct them")
        raise ValueError(f"sentence {i}: scores are not finite; scale the features down")

    # The file.

    def save(self, path: str | Path) -> None:
        """Write a file, which is replaced only when complete; see docs/model-format.md."""
        layout, legal = self.layout, self.layout.legal
        supports = {"support": layout.support, "edge_support": layout.edge_support}
        header = {
            "kind": KIND,
            "loader": LOADER,
            "library": __version__,
            "labels": [label_to_json(label) for label in self.labels],
            "input": self.extractor.kind,
            **self.extractor.header(),
            "order": layout.order,
            "legal": legal is not None,
            "edges": layout.edge_support is not None,
            "temperature": self.temperature,
            "facts": self.facts,
        }
        arrays = {"weights": self.weights, **self.extractor.arrays()}
        for name, support in supports.items():
            if support is not None:
                arrays |= {f"{name}_starts": support.starts, f"{name}_columns": support.columns}
        if legal is not None:
            arrays |= {f"legal_{name}": getattr(legal, name).astype(np.uint8) for name in ("pairs", "first", "last")}
        model_file.write(path, header, arrays)


def load_tagger(path: str | Path, *, n_jobs: int | None = None) -> TaggerModel:
    """Read a tagger that was saved; ModelFileError where the file is not one, OSError where it cannot be read."""
    header, arrays = model_file.read(path)
    try:
        return replace(_restored(header, arrays), n_jobs=n_jobs)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(
            f"{path} cannot be loaded: {reason}; give a file written by save() or by tag train"
        ) from None


def _restored(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> TaggerModel:
    if header.get("kind") != KIND:
        raise ValueError(f"it holds a model of kind {header.get('kind')!r}, not {KIND!r}")
    if header["input"] not in EXTRACTORS:
        raise ValueError(f"it takes inputs of kind {header['input']!r}, which this version does not know")
    if not isinstance(header["labels"], list) or not isinstance(header["facts"], dict):
        raise ValueError("its header is damaged")
    labels = distinct([label_from_json(label) for label in header["labels"]])
    extractor = EXTRACTORS[header["input"]].restore(header, arrays)
    k, order = len(labels), header["order"]
    if not all(isinstance(header[name], bool) for name in ("legal", "edges")):
        raise ValueError("its header is damaged")
    if type(order) is not int or order not in (1, 2):
        raise ValueError("its order is damaged")
    legal = None
    if header["legal"]:
        flags = [arrays[f"legal_{name}"] for name in ("pairs", "first", "last")]
        if any(array.dtype != np.uint8 or (array > 1).any() for array in flags):
            raise ValueError("its rules are damaged")
        legal = Legality(*(array.astype(bool) for array in flags))
        if legal.n_labels != k:
            raise ValueError("its rules are for another number of labels")
    if header["edges"] != extractor.sees_pairs:
        raise ValueError("its edge features are damaged")
    edges = _support("edge_support", arrays, k**2, extractor.n_edge_attributes) if header["edges"] else None
    layout = WeightLayout(k, order, legal, _support("support", arrays, k, extractor.n_attributes), edges)
    weights, heat = arrays["weights"], header["temperature"]
    if weights.dtype != np.float64 or weights.shape != (layout.n_weights,) or not np.isfinite(weights).all():
        raise ValueError(f"it needs {layout.n_weights} finite weights, it has shape {weights.shape}")
    if heat is not None and (not isinstance(heat, (int, float)) or isinstance(heat, bool) or not 0 < heat < np.inf):
        raise ValueError("its temperature is damaged")
    return TaggerModel(labels, extractor, layout, weights, heat, header["facts"])


def _support(name: str, arrays: dict[str, npt.NDArray[Any]], m: int, n_features: int) -> Support:
    starts, columns = arrays[f"{name}_starts"], arrays[f"{name}_columns"]
    if starts.dtype != np.int32 or columns.dtype != np.int32 or starts.shape != (n_features + 1,):
        raise ValueError(f"its {name} does not fit its {n_features} attributes")
    support = Support(starts, columns, m)
    if support.compiled is None:  # which checks the arrays
        raise ValueError(f"its {name} is damaged")
    return support
