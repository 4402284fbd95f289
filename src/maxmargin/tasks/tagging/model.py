"""A trained tagger: predictions, k-best lists, margins, probabilities and the strongest weights.

It imports neither training nor scikit-learn, so that commands that only predict start quickly;
:func:`~maxmargin.tasks.tagging.training.train_tagger` trains it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin._messages import quoted, shown
from maxmargin.encoders.data import checks
from maxmargin.explanation.compute import explain_batch
from maxmargin.explanation.result import Explanation
from maxmargin.models.base import Metric, Model, Training
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.tasks.common.tokens.table import AttributeText, Codes, TokenTable
from maxmargin.tasks.common.weights import strongest_weights
from maxmargin.tasks.tagging.encoder.decoder import Decoder
from maxmargin.tasks.tagging.encoder.extraction import Extractor, TokenRows, read_whole
from maxmargin.tasks.tagging.encoder.labels.gold import UNKNOWN, GoldLabels
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.names import words_of

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.dev import DevSentences
    from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder


@dataclass(frozen=True)
class TrainingLog:
    """The certificates of the run that the weights are from, under the names that sklearn-crfsuite gives its log.

    Attributes:
        iterations: a dictionary per certificate: ``num`` (the pass), ``time`` (seconds so far), ``loss`` (the
            objective), ``gap`` (the relative duality gap), ``feature_norm`` and, with dev data, ``dev_score``.
        training_seconds: seconds of the run.
    """

    iterations: list[dict[str, float]]
    training_seconds: float

    @classmethod
    def of(cls, training: Training) -> TrainingLog:
        """Return the log of a run."""
        scores = dict(training.dev_scores)
        iterations = [
            {
                "num": record.iteration,
                "time": record.seconds,
                "loss": record.primal,
                "gap": record.certificate.relative_gap,
                "feature_norm": record.norm,
                **({"dev_score": scores[record.iteration]} if record.iteration in scores else {}),
            }
            for record in training.solution.history
        ]
        return cls(iterations, training.solution.seconds)

    @property
    def last_iteration(self) -> dict[str, float]:
        """The last of the iterations."""
        return self.iterations[-1]


@dataclass(frozen=True, eq=False)
class TaggerModel(Model):
    """A trained tagger; its attributes are those of :class:`maxmargin.Model`."""

    encoder: TaggingEncoder

    def __post_init__(self) -> None:
        if not self.calibration.get("temperature", 1.0) > 0:
            raise ValueError("its temperature is not positive")

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """All labels, in the order of their codes."""
        return self.encoder.classes or ()

    @property
    def extractor(self) -> Extractor:
        """Turns inputs into attributes."""
        return self.encoder.extractor

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of each token that predictions use, ``("word",)``; None if tokens have attributes or matrices."""
        return self.extractor.columns

    @property
    def reach(self) -> int:
        """How many sentences before and after one its labels depend on: 0, but 20 where a template has mentions."""
        return self.extractor.reach

    @property
    def weight_layout(self) -> WeightLayout:
        """Meaning of the weights."""
        return self.encoder.weight_layout

    @property
    def temperature(self) -> float | None:
        """Divides scores for probabilities; None if none was fitted (then 1)."""
        return self.calibration.get("temperature")

    @property
    def calibrated_on(self) -> str | None:
        """What the temperature was fitted on, "dev data" or "folds"; None if probabilities are not calibrated."""
        if self.temperature is None:
            return None
        return str(self.metadata.get("calibrated_on") or "dev data")

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """Code of each label."""
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def decoder(self) -> Decoder:
        """Finds labels of rows by the weights."""
        return Decoder(self.weight_layout, self.weights, self.n_jobs)

    def rows(self, X: Any) -> TokenRows:
        """Return the attributes of sentences that the model knows."""
        with _threads.threads(self.n_jobs):
            return self.extractor.rows(read_whole(X))

    def in_context(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield each block of a text with all that its attributes depend on, for :meth:`rows_in_context`."""
        return self.extractor.in_context(map(read_whole, blocks))

    def rows_in_context(self, block: Any) -> TokenRows:
        """Return the attributes of a block of a text, as if all its sentences were given at once."""
        with _threads.threads(self.n_jobs):
            return self.extractor.rows_in_context(block)

    # Predictions as users write them: lists per sentence.

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Hashable]]:
        """Return the best labels of each sentence; ``known`` holds labels that must be taken, None elsewhere.

        If no label sequence of a sentence's length satisfies the constraints, they are dropped for that sentence, here
        and in the other predictions.
        """
        rows = self.rows(X)
        return self.encoder.named(self.best(rows, self.known_codes(known, rows.lengths)), rows.offsets)

    def predict_iter(self, sentences: Iterable[Any], *, size: int = 256) -> Iterator[list[Hashable]]:
        """Yield the best labels of each sentence of any iterable, such as a generator, in constant memory.

        Args:
            sentences: the sentences, as :meth:`predict` takes them.
            size: number of sentences that are read and labeled at a time.
        """
        size, rest = _checks.integer("size", size, least=1), iter(sentences)
        for block in self.in_context(iter(lambda: list(islice(rest, size)), [])):
            rows = self.rows_in_context(block)
            yield from self.encoder.named(self.best(rows), rows.offsets)

    def predict_single(self, sentence: Any) -> list[Hashable]:
        """Return the best labels of one sentence."""
        return self.predict([sentence])[0]

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """Return the probabilities as dictionaries, one per token, as sklearn-crfsuite does."""
        names = self.labels
        return [[dict(zip(names, row, strict=True)) for row in found.tolist()] for found in self.predict_proba(X)]

    def predict_marginals_single(self, sentence: Any) -> list[dict[Hashable, float]]:
        """Return :meth:`predict_marginals` of one sentence."""
        return self.predict_marginals([sentence])[0]

    def k_best(self, X: Any, k: int, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Any]]:
        """Return the ``k`` best labelings of each sentence with their scores, best first, or all if there are fewer."""
        k = _checks.integer("k", k, least=1)
        rows = self.rows(X)
        return list(self.ranked(rows, k, self.known_codes(known, rows.lengths)))

    def explain(
        self,
        x: Any,
        *,
        against: Any = None,
        at: int | None = None,
        feature_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """Explain the labels of one sentence: what attributes and transitions contribute to their margin over others.

        Args:
            x: a sentence, as :meth:`predict_single` takes it.
            against: other labels, for example the gold ones; None for the runner-up.
            at: instead, the number of a token, from 0: the best labels that differ there. Names count tokens from 1.
            feature_names: names of the columns, where inputs are matrices.
        """
        rows = self.rows(x if isinstance(x, (TokenTable, AttributeText)) else [x])
        if len(rows.lengths) != 1:
            raise ValueError(f"explain takes one sentence, got {len(rows.lengths)}")
        words = words_of(x, self.encoder.extractor)
        return self.explain_rows(rows, 0, words, against=against, at=at, feature_names=feature_names)

    def explain_rows(
        self,
        rows: TokenRows,
        sentence: int,
        words: Sequence[str],
        *,
        against: Any = None,
        at: int | None = None,
        feature_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """:meth:`explain` one of several sentences, whose attributes are there; ``words`` are its own."""
        if not rows.lengths[sentence]:
            raise ValueError("a sentence without tokens has no labels to explain; give one with tokens")
        encoder = self.encoder
        with _threads.threads(self.n_jobs):
            batch = encoder.batch_of(rows).select(np.array([sentence]))
            if batch.structure.predict(self._scores(batch)).status[0] == PointStatus.ABSENT:
                # As in predictions, constraints that no labeling satisfies are dropped.
                layout = replace(encoder.weight_layout, constraints=None)
                encoder = replace(encoder, weight_layout=layout)
                batch = encoder.batch_of(rows).select(np.array([sentence]))
            return explain_batch(
                encoder, batch, self.weights, list(words), against=against, at=at, feature_names=feature_names
            )

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of the best labeling of each sentence."""
        return np.array([ranks[0][1] for ranks in self.ranked(self.rows(X), 1)])

    def predict_proba(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[FloatArray]:
        """Return the probability of each label at each token, a ``(length, n_labels)`` array per sentence.

        These are the marginals of ``p(y) ~ exp(score(y) / temperature)`` over the allowed label sequences. Warns if
        no temperature was fitted (:attr:`calibrated_on`).
        """
        if self.temperature is None:
            warnings.warn(
                "probabilities are not calibrated: the tagger was trained without dev data, and without folds or with "
                "too few sentences for them",
                UserWarning,
                stacklevel=callers_level(),
            )
        rows = self.rows(X)
        flat = self.marginals(rows, self.known_codes(known, rows.lengths))
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def margins(self, X: Any) -> list[FloatArray]:
        """Return, for each token, the margin of the best labeling over the best with another label there."""
        rows = self.rows(X)
        _, flat = self.best_with_margins(rows)
        return np.split(flat, rows.offsets[1:-1]) if len(rows.lengths) else []

    def known_codes(self, known: Sequence[Sequence[Any]] | None, lengths: IntArray) -> Codes | None:
        """Return the codes of given labels, :data:`UNKNOWN` elsewhere."""
        if known is None:
            return None
        known = _checks.listed("known", known, "a list of lists of labels")
        if len(known) != len(lengths):
            raise ValueError(f"known has {len(known)} sentences where there are {len(lengths)}")
        flat: list[int] = []
        for i, (labels, length) in enumerate(zip(known, lengths.tolist(), strict=True)):
            labels = _checks.listed(f"sentence {i}: known", labels, "a list of labels")
            if len(labels) != length:
                raise ValueError(f"sentence {i}: known has {len(labels)} entries for {length} tokens; use None to skip")
            for j, label in enumerate(labels):
                try:
                    code = UNKNOWN if label is None else self.codes.get(label)
                except Exception:  # not hashable, or a tuple that holds something that is not
                    code = None
                if code is None:
                    raise ValueError(f"sentence {i}, token {j}: {quoted(label)} is not a label of this model")
                flat.append(code)
        return np.array(flat, dtype=np.int32)

    # Predictions of rows, flat over all sentences.

    def best(self, rows: TokenRows, known: Codes | None = None) -> Codes:
        """Return the codes of the best labels, shape ``(n_tokens,)``."""
        return self.decoder.best(rows, known)

    def best_with_margins(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Return the codes of the best labels and their margins; see :meth:`Decoder.best_with_margins`."""
        return self.decoder.best_with_margins(rows, known)

    def best_with_probabilities(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Return the codes of the best labels and their probabilities, both of shape ``(n_tokens,)``."""
        return self.decoder.best_with_probabilities(rows, known, self.temperature or 1.0)

    def marginals(self, rows: TokenRows, known: Codes | None = None, temperature: float | None = None) -> FloatArray:
        """Return the probabilities of labels at tokens, shape ``(n_tokens, n_labels)``."""
        return self.decoder.marginals(rows, known, temperature or self.temperature or 1.0)

    def ranked(self, rows: TokenRows, k: int, known: Codes | None = None) -> Iterator[list[Any]]:
        """Yield the ``k`` best labelings of each sentence: lists of labels with their scores."""
        names = self.labels
        for ranks in self.decoder.ranked(rows, k, known):
            yield [([names[code] for code in codes], score) for codes, score in ranks]

    def scorer(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, metric: Metric | str | None = None
    ) -> DevSentences:
        """Return the function of models that is their score on sentences which are encoded once.

        Labels that training has not seen count as errors.

        Args:
            X: sentences.
            y: their labels.
            sample_weight: weight of each sentence.
            metric: "accuracy", "f1" (of chunks), "sentence_accuracy", "auto" (F1 if the labels look like chunks), or a
                function of gold and predicted labels; None for accuracy.
        """
        from maxmargin.tasks.tagging.dev import DevSentences  # predictions do without it

        rows = self.rows(X)
        given = GoldLabels.parse(y, self.encoder.unknown)
        given.check_lengths(rows.lengths)
        if (given.numbers < 0).any():
            raise ValueError("labels are unknown; leave such sentences out")
        names = (*self.labels, *(name for name in given.names if name not in self.codes))
        codes = given.codes(names).astype(np.int64)
        return DevSentences(rows, codes, names, metric or "accuracy", checks.weights(sample_weight, len(rows.lengths)))

    # Inspection.

    @property
    def attributes_(self) -> list[str]:
        """All attributes, in the order of their numbers."""
        return [self.extractor.name(number) for number in range(self.extractor.n_attributes)]

    @property
    def state_features_(self) -> dict[tuple[str, Hashable], float]:
        """Weights of pairs of an attribute and a label, except those that are 0."""
        support, names, labels = self.weight_layout.support, self.attributes_, self.labels
        weights = self.weight_layout.split(self.weights)[0]
        at = np.flatnonzero(weights)
        pairs = zip(support.features[at].tolist(), support.columns[at].tolist(), weights[at].tolist(), strict=True)
        return {(names[f], labels[c]): w for f, c, w in pairs}

    @property
    def transition_features_(self) -> dict[tuple[Hashable, Hashable], float]:
        """Weights of allowed transitions between labels; with segments, between their types."""
        layout, pairs = self.weight_layout, self.weight_layout.split(self.weights)[1]
        names: Sequence[Hashable] = self.labels if layout.chunks is None else layout.chunks.types
        allowed = layout.allowed_pairs
        return {(a, b): float(pairs[i, j]) for i, a in enumerate(names) for j, b in enumerate(names) if allowed[i, j]}

    @property
    def training_log_(self) -> TrainingLog | None:
        """How training went, certificate by certificate; None for a model from a file."""
        return None if self.training is None else TrainingLog.of(self.training)

    def describe(self) -> dict[str, Any]:
        """Return a summary of the model, as plain JSON values."""
        found = super().describe()
        file = found.pop("trained_file", None)
        return found | ({f"trained_on_{key}": value for key, value in file.items()} if isinstance(file, dict) else {})

    def strongest(self, top: int = 10, labels: Sequence[str] = ()) -> dict[str, Any]:
        """Return the strongest weights of each label and of transitions.

        Args:
            top: number of weights of each sign.
            labels: only these labels, and transitions to or from them; empty for all.
        """
        names, layout = [str(one) for one in self.labels], self.weight_layout
        for one in labels:
            if one not in names:
                raise ValueError(f"no label {shown(one)}; there are {', '.join(names)}")
        k = layout.n_labels
        seen = np.array([not labels or name in labels for name in names], dtype=bool)
        tokens, pairs, rest = layout.split(self.weights)
        order = np.argsort(layout.support.columns, kind="stable")
        bounds = np.searchsorted(layout.support.columns[order], np.arange(k + 1))
        features = layout.support.features
        by_label = []
        for code in np.flatnonzero(seen).tolist():
            own = order[bounds[code] : bounds[code + 1]]

            def attribute(at: int, own: IntArray = own) -> dict[str, Any]:
                return {"attribute": self.extractor.name(int(features[own[at]]))}

            by_label.append(
                {"label": names[code], "weights": len(own), **strongest_weights(tokens[own], top, attribute)}
            )
        allowed = layout.allowed_pairs
        ends: list[str] = names
        about: Any = seen
        if layout.chunks is not None:
            states = layout.chunks.states
            ends, about = list(layout.chunks.types), (seen[states] & (states >= 0)).any(axis=1)
        m = len(ends)
        wanted = np.flatnonzero(allowed & (about[:, None] | about[None, :]))
        found: dict[str, Any] = {
            "labels": by_label,
            "transitions": strongest_weights(
                pairs.ravel()[wanted], top, lambda at: {"from": ends[wanted[at] // m], "to": ends[wanted[at] % m]}
            ),
        }
        if layout.segment_support is not None and self.extractor.segments is not None:
            known, columns = self.extractor.segments.names, layout.segment_support
            at_types = np.flatnonzero(about[columns.columns])
            found["segments"] = strongest_weights(
                rest[at_types],
                top,
                lambda at: {
                    "attribute": known.name(int(columns.features[at_types[at]])),
                    "type": ends[columns.columns[at_types[at]]],
                },
            )
        if layout.order == 2:
            triples = np.flatnonzero((allowed[:, :, None] & allowed[None, :, :]).ravel())
            found["triples"] = strongest_weights(
                rest.ravel()[triples],
                top,
                lambda at: {"labels": [names[code] for code in np.unravel_index(triples[at], (k, k, k))]},
            )
        support = layout.edge_support
        if support is not None:
            of_pair = support.columns.astype(np.int64)
            found["attributes_of_pairs"] = strongest_weights(
                rest,
                top,
                lambda at: {
                    "attribute": self.extractor.edge_name(int(support.features[at])),
                    "from": names[of_pair[at] // k],
                    "to": names[of_pair[at] % k],
                },
            )
        return found
