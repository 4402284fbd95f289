"""A trained aligner: links, confidences, a baseline, and its file.

It imports neither training nor scikit-learn, so that commands that only predict start quickly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin.encoders.data import checks
from maxmargin.explanation.compute import explain_batch
from maxmargin.explanation.result import RUNNER_UP, Explanation
from maxmargin.models.base import Metric, Model, Training
from maxmargin.structures._arrays import pieces
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.confidence import CALIBRATED, Calibration
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links, indexed, linked_shares, links_of
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch
from maxmargin.tasks.alignment.io.compact import CompactPairs
from maxmargin.tasks.alignment.io.links import Prediction
from maxmargin.tasks.alignment.io.sentences import as_pairs, as_references, sizes_of
from maxmargin.tasks.alignment.metrics.scores import Scores, evaluate
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.alignment.translation.known import UnknownWordsWarning, doubt
from maxmargin.tasks.alignment.translation.lexicon import Lexicon, LexiconEntry
from maxmargin.tasks.alignment.translation.sharded_bitext import ShardedBitext
from maxmargin.tasks.common.progress import Stages

Found = TypeVar("Found")

_PIECE = 200_000
"""Number of cells that are predicted at a time."""


@dataclass(frozen=True, eq=False)
class AlignerTraining(Training):
    """How the training of an aligner went; not part of a model file.

    Attributes:
        choices: the settings that were tried, each with its AER on held-out pairs.
        held_out: scores of the held-out pairs at the settings used; None if there were none.
    """

    choices: tuple[tuple[dict[str, float], float], ...] = ()
    held_out: Scores | None = None


@dataclass(frozen=True, eq=False)
class AlignerModel(Model):
    """A trained aligner; inputs are sentence pairs as :meth:`WordAligner.fit` takes them.

    Attributes:
        encoder: turns sentence pairs into matchings; has the translation models.
        calibration: ``slope``, ``intercept`` and ``bend`` of the curve from margins to confidences.
        verbose: whether predictions draw a progress bar on a terminal.
    """

    encoder: AlignmentEncoder
    training: AlignerTraining | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        _ = self.curve  # checked here, so that no damaged file gives a model

    @cached_property
    def curve(self) -> Calibration:
        """The curve from margins to confidences."""
        return Calibration(**self.calibration)

    @property
    def trained(self) -> bool:
        """Whether it has weights; a model whose training was interrupted early has translation models alone."""
        return self.metadata.get("status") not in ("interrupted", "untrained") or bool(self.weights.any())

    @property
    def calibrated(self) -> bool:
        """Whether confidences were calibrated on held-out annotated pairs."""
        return bool(self.calibration) and self.metadata.get("confidences", CALIBRATED) == CALIBRATED

    @property
    def feature_names(self) -> list[str]:
        """A readable name for every weight."""
        return self.encoder.link_model.names

    def predict(self, X: Iterable[Any], *, adapt: bool = True) -> list[IntArray]:
        """The links of each pair, ``(k, 2)`` arrays of positions from 0; none for pairs with an empty side.

        Args:
            X: sentence pairs.
            adapt: whether the translation models adapt to the pairs that were not in the bitext before aligning them
                (see :mod:`~maxmargin.tasks.alignment.translation.adaptation`). Adapted models have seen the pairs, as
                in training, and align them better; but the links of the pairs then depend on each other.
        """

        def best(evidence: Evidence) -> list[IntArray]:
            batch, scores = self._scored(evidence)
            return links_of(evidence, np.flatnonzero(batch.structure.argmax(scores).z[batch.cells] > 0.5))

        return self._each(X, adapt, best)

    def align(self, X: Iterable[Any], *, threshold: float | None = None, adapt: bool = True) -> list[Prediction]:
        """The links of each pair with confidences.

        Args:
            X: sentence pairs.
            threshold: the minimum confidence of a link, in [0, 1]: high for few reliable links, low for more links,
                within the fertility. The scores of links are lowered by the margin of that confidence, and links below
                it are dropped. None for the best alignment, whose links may have any confidence.
            adapt: as in :meth:`predict`.
        """
        least = None if threshold is None else _checks.number("threshold", threshold, least=0, most=1)

        def best(evidence: Evidence) -> Iterable[Prediction]:
            batch, scores = self._scored(evidence)
            confidence = self.curve(batch.structure.margins(scores)[batch.cells])
            if least is not None:
                scores[batch.cells] -= self.curve.margin(least)
            chosen = batch.structure.argmax(scores).z[batch.cells] > 0.5
            cells = np.flatnonzero(chosen if least is None else chosen & (confidence >= least))
            values = np.split(confidence[cells], np.searchsorted(cells, evidence.bitext.grid_start[1:-1]))
            return map(Prediction, links_of(evidence, cells), values)

        return self._each(X, adapt, best)

    def explain(  # type: ignore[override]
        self,
        x: Any,
        *,
        against: Any = None,
        at: tuple[int, int] | None = None,
        adapt: bool = True,
    ) -> Explanation:
        """Explain the links of one sentence pair: what contributes to their margin over other links.

        Args:
            x: a sentence pair.
            against: other links, ``(k, 2)``, or a reference, of which sure links count; None for the runner-up, the
                best alignment with other links.
            at: instead, a link ``(source, target)``: the best alignment that has it if the prediction has not, or has
                it not.
            adapt: as in :meth:`predict`: whether translation models adapt to the pair if it was not in the bitext.
        """
        pairs = self.encoder.parse([x])
        n, m = sizes_of(pairs)[0].tolist()
        if not n or not m:
            raise ValueError("a sentence pair with an empty side has no links to explain; give words on both sides")
        if against is not None and at is not None:
            raise ValueError("give either against, other links, or at, a link that the others have or have not")
        cell = None if at is None else _cell_of(at, n, m)

        def one(evidence: Evidence) -> list[Explanation]:
            self._scored(evidence)  # which refuses a model without weights
            batch = self.encoder.pack(evidence)
            if cell is not None:
                place, words = int(batch.matchings.cells[cell]), None
            else:
                # Outputs that differ in slots alone are the same links: the runner-up differs where it costs least.
                margins = batch.matchings.structure.margins(batch.features.scores(self.weights))[batch.matchings.cells]
                place, words = int(batch.matchings.cells[np.argmin(np.abs(margins))]), RUNNER_UP
            given = {"at": place, "compared_with": words} if against is None else {"against": against}
            return [explain_batch(self.encoder, batch, self.weights, pairs[0], **given)]

        return self._each(pairs, adapt, one)[0]

    def score_pairs(self, X: Iterable[Any], *, adapt: bool = False) -> FloatArray:
        """How well the two sentences of each pair translate each other, in [0, 1], shape ``(n,)``: to filter corpora.

        The share of the words that are linked, in the sentence where it is smaller: a linked word counts as much as
        the confidence of its best link, and words weigh the more the rarer they are. With ``n(w)`` of the ``n`` pairs
        of the bitext that have word ``w``, the weight is the square root of ``ln((n + 1) / (n(w) + 1/2))``. A pair with
        an empty side has 0.

        Args:
            X: sentence pairs.
            adapt: as in :meth:`predict`, but False by default, as models that adapt to wrong pairs take them for right.
        """

        def score(evidence: Evidence) -> Iterable[float]:
            batch, scores = self._scored(evidence)
            cells = np.flatnonzero(batch.structure.argmax(scores).z[batch.cells] > 0.5)
            confidence = self.curve(batch.structure.margins(scores)[batch.cells][cells])
            return map(float, linked_shares(evidence, cells, confidence))

        return np.array(self._each(X, adapt, score), dtype=np.float64)

    def lexicon(
        self,
        *,
        min_probability: float = 0.01,
        top: int | None = None,
        source: str | None = None,
        target: str | None = None,
    ) -> list[LexiconEntry]:
        """Translation probabilities of words; see :meth:`Lexicon.of` for the settings."""
        words = self.encoder.models.words
        return Lexicon.of(words, min_probability=min_probability, top=top, source=source, target=target).entries()

    def updated(self, bitext: Iterable[Any]) -> Self:
        """The same aligner with translation models that have learned from more sentence pairs.

        Pairs that they have seen are skipped. The weights stay: they are of features that mean the same. See
        :mod:`~maxmargin.tasks.alignment.translation.update`. From a :class:`ShardedBitext` they learn file by file, in
        the memory of one file and of the tables, as from updates with one after the other.
        """
        encoder = self.encoder
        with _threads.threads(self.n_jobs):
            if isinstance(bitext, ShardedBitext):
                for some in bitext.parts():
                    encoder = encoder.updated(some)
            else:
                pairs = bitext if isinstance(bitext, CompactPairs) else as_pairs(bitext, "bitext pair")
                encoder = encoder.updated(pairs)
        return replace(self, encoder=encoder)

    def align_hmm(self, X: Iterable[Any], *, method: str = "intersection", adapt: bool = True) -> list[IntArray]:
        """The symmetrized links of the hidden Markov models of words, a baseline that needs no annotations.

        ``method`` is one of :data:`~maxmargin.tasks.alignment.metrics.symmetrization.METHODS`.
        """

        def best(evidence: Evidence) -> list[IntArray]:
            forward, backward = (links_of(evidence, np.flatnonzero(grid)) for grid in best_links(evidence))
            return symmetrize(forward, backward, method)

        return self._each(X, adapt, best)

    def score(self, X: Iterable[Any], y: Sequence[Any], sample_weight: npt.ArrayLike | None = None) -> float:  # type: ignore[override]
        """``1 - AER``."""
        pairs = as_pairs(X)
        counts = evaluate(as_references(y, len(pairs)), self.predict(pairs)).counts
        weight = checks.weights(sample_weight, len(pairs))
        sums = counts.T @ (np.ones(len(pairs)) if weight is None else weight)
        predicted, sure, _, predicted_sure, predicted_possible = sums.tolist()
        return (predicted_sure + predicted_possible) / (predicted + sure) if predicted + sure > 0 else 1.0

    def scorer(
        self,
        X: Iterable[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        metric: Metric | str | None = None,
    ) -> Callable[[Model], float]:
        """A function of aligners: their :meth:`score`, or ``metric``, on sentence pairs."""
        pairs = as_pairs(X)

        def score(model: Model) -> float:
            if callable(metric):
                return float(metric(list(y), model.predict(pairs)))
            return model.score(pairs, y, sample_weight)

        return score

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """Refused: the score of an alignment depends on the pairs that the translation models adapt to."""
        raise ValueError("an aligner has no decision_function; align(X) gives links with confidences")

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """Refused: outputs that differ in their fertility slots alone would be the same alignment."""
        raise ValueError("an aligner has no k_best; align(X, threshold=...) gives more links, with confidences")

    def save(self, path: str | Path, *, min_probability: float = 1e-4) -> None:
        """Write the model to a file, which is replaced only when complete; nothing in it can execute.

        Args:
            path: the file.
            min_probability: word pairs of smaller probability in all translation models are left out; 0 keeps all.
        """
        Model.save(replace(self, encoder=self.encoder.pruned(min_probability)), path)

    def _scored(self, evidence: Evidence) -> tuple[FertilityBatch, FloatArray]:
        """The matchings of pairs and the scores of their parts."""
        if not self.trained:
            raise ValueError(
                "the model has translation models, but no weights, as its training was interrupted; train again with "
                "--reuse and this model, or ask for --method intersection (in Python align_hmm)"
            )
        link_model = self.encoder.link_model
        batch = link_model.batch(evidence)
        return batch, link_model.scores(evidence, batch, self.weights)

    def _each(self, X: Iterable[Any], adapt: bool, align: Callable[[Evidence], Iterable[Found]]) -> list[Found]:
        """The results of ``align``, one per pair, for the evidence of a piece of the pairs at a time."""
        _checks.flag("adapt", adapt)
        pairs = self.encoder.parse(X)
        bitext = indexed(pairs)
        if doubts := doubt(self.encoder.models.words.cooccurrences, bitext):
            warnings.warn(doubts, UnknownWordsWarning, stacklevel=callers_level())
        unseen = self.encoder.unseen(pairs) if adapt else np.zeros(len(pairs), dtype=bool)
        cells = sizes_of(pairs).prod(axis=1)
        found: dict[int, Found] = {}
        with _threads.threads(self.n_jobs), Stages(self.verbose) as stages:
            for is_unseen in (False, True):
                chosen = np.flatnonzero(unseen == is_unseen)
                if not len(chosen):
                    continue
                stages.begin("new pairs" if is_unseen else "aligning", len(chosen))
                translation = self.encoder.translation(bitext.select(chosen) if is_unseen else None)
                for piece in pieces(cells[chosen], _PIECE):
                    numbers = chosen[piece].tolist()
                    some = [pairs[number] for number in numbers]
                    evidence = self.encoder.evidence(some, bitext.select(numbers), translation)
                    found.update(zip(numbers, align(evidence), strict=True))
                    stages.advance(len(numbers))
        return [found[number] for number in range(len(found))]


def _cell_of(at: Any, n: int, m: int) -> int:
    """The cell of a link in the table of a pair of ``n`` and ``m`` words."""
    link = checks.array(at, None, "at", "iu", "a link (source, target), two whole numbers")
    if link.shape != (2,) or (link < 0).any() or link[0] >= n or link[1] >= m:
        raise ValueError(f"at must be a link (source, target) of {n} and {m} words, counted from 0, got {shown(at)}")
    return int(link[0]) * m + int(link[1])
