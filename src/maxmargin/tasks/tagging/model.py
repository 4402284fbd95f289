"""A trained tagger: predictions, k-best lists, margins and probabilities, and its file.

It imports neither training nor scikit-learn, so that commands that only predict start quickly;
:class:`~maxmargin.tasks.tagging.estimator.SequenceTagger` trains it.
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

from maxmargin import model_file
from maxmargin._version import __version__
from maxmargin.encoders import checks
from maxmargin.encoders.labels import distinct, label_from_json, label_to_json
from maxmargin.features.supported import Support
from maxmargin.model_file import ModelFileError
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.tasks.tagging.decoding import Decoder
from maxmargin.tasks.tagging.encoder.extraction import EXTRACTORS, Extractor, TokenRows
from maxmargin.tasks.tagging.encoder.gold import UNKNOWN
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.io.table import Codes

KIND = "sequence tagging"
LOADER = "maxmargin.tasks.tagging.load_tagger"
"""The loader that errors name when a file of this kind is loaded as another."""


@dataclass(frozen=True, eq=False)
class TaggerModel:
    """A trained tagger.

    Attributes:
        labels: all labels, in the order of their codes.
        extractor: turns inputs into attributes.
        layout: meaning of the weights.
        weights: shape ``(layout.n_weights,)``.
        temperature: divides scores for probabilities; None if none was fitted (then 1).
        metadata: how it was trained, as JSON values.
        n_jobs: threads of predictions, as in scikit-learn.
    """

    labels: tuple[Hashable, ...]
    extractor: Extractor
    layout: WeightLayout
    weights: FloatArray
    temperature: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """Code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def decoder(self) -> Decoder:
        """Finds labels of rows by the weights."""
        return Decoder(self.layout, self.weights, self.n_jobs)

    # Predictions as users write them: lists per sentence.

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Hashable]]:
        """Return the best labels of each sentence; ``known`` holds labels that must be taken, None elsewhere.

        If no label sequence of a sentence's length satisfies the constraints, they are dropped for that sentence, here
        and in the other predictions.
        """
        rows = self.extractor.rows(X)
        return self._by_sentence(self.best(rows, self.known_codes(known, rows.lengths)), rows.lengths)

    def k_best(self, X: Any, k: int, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Any]]:
        """Return the ``k`` best labelings of each sentence with their scores, best first, or all if there are fewer."""
        k = checks.integer(k, "k", at_least=1)
        rows = self.extractor.rows(X)
        return list(self.ranked(rows, k, self.known_codes(known, rows.lengths)))

    def predict_proba(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[FloatArray]:
        """Return the probability of each label at each token, a ``(length, n_labels)`` array per sentence.

        These are the marginals of ``p(y) ~ exp(score(y) / temperature)`` over the allowed label sequences.
        """
        rows = self.extractor.rows(X)
        flat = self.marginals(rows, self.known_codes(known, rows.lengths))
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def margins(self, X: Any) -> list[FloatArray]:
        """Return, for each token, the margin of the best labeling over the best with another label there."""
        rows = self.extractor.rows(X)
        _, flat = self.best_with_margins(rows)
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def _by_sentence(self, codes: Codes, lengths: IntArray) -> list[list[Hashable]]:
        names = np.empty(len(self.labels), dtype=object)
        names[:] = self.labels
        flat = names[codes].tolist()
        return [flat[first:last] for first, last in pairwise([0, *np.cumsum(lengths).tolist()])]

    def known_codes(self, known: Sequence[Sequence[Any]] | None, lengths: IntArray) -> Codes | None:
        """Return the codes of given labels, :data:`UNKNOWN` elsewhere."""
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
                    raise ValueError(f"sentence {i}, token {j}: {label!r} is not a label of this model")
                flat.append(code)
        return np.array(flat, dtype=np.int32)

    # Predictions of rows, flat over all sentences.

    def best(self, rows: TokenRows, known: Codes | None = None) -> Codes:
        """Return the codes of the best labels, shape ``(n_tokens,)``."""
        return self.decoder.best(rows, known)

    def best_with_margins(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Return the codes of the best labels and their margins; see :meth:`Decoder.best_with_margins`."""
        return self.decoder.best_with_margins(rows, known)

    def marginals(self, rows: TokenRows, known: Codes | None = None, temperature: float | None = None) -> FloatArray:
        """Return the probabilities of labels at tokens, shape ``(n_tokens, n_labels)``."""
        return self.decoder.marginals(rows, known, temperature or self.temperature or 1.0)

    def ranked(self, rows: TokenRows, k: int, known: Codes | None = None) -> Iterator[list[Any]]:
        """Yield the ``k`` best labelings of each sentence: lists of labels with their scores."""
        names = self.labels
        for ranks in self.decoder.ranked(rows, k, known):
            yield [([names[code] for code in codes], score) for codes, score in ranks]

    # The file.

    def save(self, path: str | Path) -> None:
        """Write a file, which is replaced only when complete; see docs/model-format.md."""
        layout, constraints = self.layout, self.layout.constraints
        supports = {"support": layout.support, "edge_support": layout.edge_support}
        header = {
            "kind": KIND,
            "loader": LOADER,
            "library": __version__,
            "labels": [label_to_json(label) for label in self.labels],
            "input": self.extractor.kind,
            **self.extractor.header(),
            "order": layout.order,
            "constraints": constraints is not None,
            "edges": layout.edge_support is not None,
            "temperature": self.temperature,
            "metadata": self.metadata,
        }
        arrays = {"weights": self.weights, **self.extractor.arrays()}
        for name, support in supports.items():
            if support is not None:
                arrays |= {f"{name}_starts": support.starts, f"{name}_columns": support.columns}
        if constraints is not None:
            arrays |= {
                f"legal_{name}": getattr(constraints, name).astype(np.uint8) for name in ("pairs", "first", "last")
            }
        model_file.write(path, header, arrays)


def load_tagger(path: str | Path, *, n_jobs: int | None = None) -> TaggerModel:
    """Load a saved tagger; ModelFileError if the file is not one, OSError if it cannot be read."""
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
    if not isinstance(header["labels"], list) or not isinstance(header["metadata"], dict):
        raise ValueError("its header is damaged")
    labels = distinct([label_from_json(label) for label in header["labels"]])
    extractor = EXTRACTORS[header["input"]].restore(header, arrays)
    k, order = len(labels), header["order"]
    if not all(isinstance(header[name], bool) for name in ("constraints", "edges")):
        raise ValueError("its header is damaged")
    if type(order) is not int or order not in (1, 2):
        raise ValueError("its order is damaged")
    constraints = None
    if header["constraints"]:
        flags = [arrays[f"legal_{name}"] for name in ("pairs", "first", "last")]
        if any(array.dtype != np.uint8 or (array > 1).any() for array in flags):
            raise ValueError("its constraints are damaged")
        constraints = TransitionConstraints(*(array.astype(bool) for array in flags))
        if constraints.n_labels != k:
            raise ValueError("its constraints are for another number of labels")
    if header["edges"] != extractor.sees_pairs:
        raise ValueError("its edge features are damaged")
    edges = _support("edge_support", arrays, k**2, extractor.n_edge_attributes) if header["edges"] else None
    layout = WeightLayout(k, order, constraints, _support("support", arrays, k, extractor.n_attributes), edges)
    weights, heat = arrays["weights"], header["temperature"]
    if weights.dtype != np.float64 or weights.shape != (layout.n_weights,) or not np.isfinite(weights).all():
        raise ValueError(f"it needs {layout.n_weights} finite weights, it has shape {weights.shape}")
    if heat is not None and (not isinstance(heat, (int, float)) or isinstance(heat, bool) or not 0 < heat < np.inf):
        raise ValueError("its temperature is damaged")
    return TaggerModel(labels, extractor, layout, weights, heat, header["metadata"])


def _support(name: str, arrays: dict[str, npt.NDArray[Any]], m: int, n_features: int) -> Support:
    starts, columns = arrays[f"{name}_starts"], arrays[f"{name}_columns"]
    if starts.dtype != np.int32 or columns.dtype != np.int32 or starts.shape != (n_features + 1,):
        raise ValueError(f"its {name} does not fit its {n_features} attributes")
    support = Support(starts, columns, m)
    if support.compiled is None:  # which checks the arrays
        raise ValueError(f"its {name} is damaged")
    return support
