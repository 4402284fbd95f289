"""The translation models of the aligner, three of them, as they make different errors.

- *words*: hidden Markov models of whole words, trained by agreement;
- *stems*: the same for words cut after four letters, which pools the forms of a word;
- *variational*: each direction by itself on stems, by variational Bayes with a sparse Dirichlet prior, which keeps rare
  words from collecting links that belong to others (Riley and Gildea 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.translation.cooccurrences import Cooccurrences, PreparedBitext
from maxmargin.tasks.alignment.translation.models import EMIteration, TranslationModel, WordProbabilities, learn
from maxmargin.tasks.alignment.translation.words import IndexedBitext, Sentences, WordVocabulary, fingerprints

STEM_LETTERS = 4
PRIOR = 0.01

MODELS = ("words", "stems", "variational")


@dataclass(frozen=True, eq=False, repr=False)
class BitextModels:
    """Translation models of a bitext. Build it with :meth:`learn`.

    Attributes:
        words: models of words, trained by agreement.
        stems: models of stems, trained by agreement.
        variational: models of stems with a prior, each direction by itself, with the co-occurrences of ``stems``.
        seen: fingerprints of the sentence pairs they were learned from, rising.
    """

    words: TranslationModel
    stems: TranslationModel
    variational: TranslationModel
    seen: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def learn(
        cls,
        source: Sentences,
        target: Sentences,
        *,
        model1_iterations: int = 5,
        hmm_iterations: int = 5,
        on_iteration: Callable[[str, EMIteration], None] | None = None,
    ) -> Self:
        """Learn all models from sentence pairs.

        Args:
            source: source sentences, lists of words.
            target: target sentences, as many.
            model1_iterations: iterations of Model 1 in each model.
            hmm_iterations: iterations of the hidden Markov models in each model.
            on_iteration: called after every iteration with the model's name.
        """

        def one(name: str, bitext: PreparedBitext, **settings: Any) -> TranslationModel:
            report = None if on_iteration is None else partial(on_iteration, name)
            return learn(
                bitext,
                model1_iterations=model1_iterations,
                hmm_iterations=hmm_iterations,
                on_iteration=report,
                **settings,
            )

        indexed = IndexedBitext.of(source, target)
        words = one("words", PreparedBitext(indexed))
        bitext = PreparedBitext(indexed, letters=STEM_LETTERS)
        stems = one("stems", bitext)
        variational = one("variational", bitext, agreement=False, prior=PRIOR)
        return cls(words, stems, variational, np.unique(fingerprints(source, target)))

    def contains(self, source: Sentences, target: Sentences) -> npt.NDArray[np.bool_]:
        """Which sentence pairs the models were learned from."""
        return np.isin(fingerprints(source, target), self.seen)

    def __repr__(self) -> str:
        return f"<BitextModels of {self.n_pairs} sentence pairs>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself, as it is immutable: clones of an aligner share it."""
        return self

    @property
    def n_pairs(self) -> int:
        """Number of sentence pairs they were learned from."""
        return self.words.cooccurrences.n_pairs

    def pruned(self, min_probability: float = 1e-4, *, keep: IntArray | None = None) -> tuple[Self, IntArray]:
        """Smaller models without word pairs of low probability, which hardly changes alignments.

        Args:
            min_probability: entries that have at least this probability in a model are kept.
            keep: entries of ``words`` that are kept in any case.

        Returns:
            the smaller models, and the numbers of the entries ``keep`` in them.
        """
        wanted = np.zeros(0, dtype=np.int64) if keep is None else keep
        kept = self.words.likely(min_probability)
        kept[wanted] = True
        words = self.words.select(self.words.cooccurrences.select(kept), kept)
        numbers = np.asarray((np.cumsum(kept) - 1)[wanted], dtype=np.int64)
        kept = self.stems.likely(min_probability) | self.variational.likely(min_probability)
        cooccurrences = self.stems.cooccurrences.select(kept)
        stems, variational = (model.select(cooccurrences, kept) for model in (self.stems, self.variational))
        return type(self)(words, stems, variational, self.seen), numbers

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model file."""
        found: dict[str, npt.NDArray[Any]] = {"seen": self.seen}
        for name, cooccurrences in (("words", self.words.cooccurrences), ("stems", self.stems.cooccurrences)):
            for side in ("source", "target"):
                for key, array in getattr(cooccurrences, side).arrays().items():
                    found[f"{name}.{side}.{key}"] = array
            found |= {f"{name}.{key}": getattr(cooccurrences, key) for key in ("row_start", "column", "counts")}
        for name in MODELS:
            model: TranslationModel = getattr(self, name)
            found |= {f"{name}.links": model.links, f"{name}.jumps": model.jumps}
            for part in ("model1", "hmm"):
                for key, table in getattr(model, part)._asdict().items():
                    found[f"{name}.{part}.{key}"] = table
        return found

    def header(self) -> dict[str, Any]:
        """The numbers that belong to :meth:`arrays`, as plain values."""
        return {
            "n_pairs": self.n_pairs,
            "stem_letters": self.stems.cooccurrences.letters,
            "null": [getattr(self, name).null for name in MODELS],
        }

    @classmethod
    def restore(cls, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`header` and :meth:`arrays`; ValueError or KeyError if they are damaged."""
        n_pairs, letters, nulls = header["n_pairs"], header["stem_letters"], header["null"]
        for value in (n_pairs, letters):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
                raise ValueError("its counts of pairs and letters must be integers >= 0")
        if (
            not isinstance(nulls, list)
            or len(nulls) != len(MODELS)
            or not all(isinstance(null, float) and 0 <= null < 1 for null in nulls)
        ):
            raise ValueError("its probabilities of the empty word are damaged")
        cooccurrences: dict[str, Cooccurrences] = {}
        for name, cut in (("words", 0), ("stems", letters)):
            source, target = (
                WordVocabulary.from_arrays(
                    {key: arrays[f"{name}.{side}.{key}"] for key in ("text", "offsets", "counts")}
                )
                for side in ("source", "target")
            )
            start, column, counts = (arrays[f"{name}.{key}"] for key in ("row_start", "column", "counts"))
            cooccurrences[name] = _checked(Cooccurrences(source, target, n_pairs, cut, start, column, counts))
        models = []
        for name, null in zip(MODELS, nulls, strict=True):
            shared = cooccurrences["words" if name == "words" else "stems"]
            model1, hmm = (
                WordProbabilities(*(arrays[f"{name}.{part}.{key}"] for key in WordProbabilities._fields))
                for part in ("model1", "hmm")
            )
            links, jumps = arrays[f"{name}.links"], arrays[f"{name}.jumps"]
            models.append(_fitting(TranslationModel(shared, links, model1, hmm, jumps, null)))
        seen = arrays["seen"]
        if seen.dtype != np.int64 or seen.ndim != 1 or (seen[1:] <= seen[:-1]).any():
            raise ValueError("its fingerprints of sentence pairs are damaged")
        return cls(models[0], models[1], models[2], seen)


def _checked(cooccurrences: Cooccurrences) -> Cooccurrences:
    """Co-occurrences whose entries can be searched, or ValueError."""
    start, column, counts = cooccurrences.row_start, cooccurrences.column, cooccurrences.counts
    if (
        start.dtype != np.int64
        or start.shape != (len(cooccurrences.source) + 1,)
        or start[0] != 0
        or (np.diff(start) < 0).any()
        or column.dtype != np.int32
        or column.shape != (int(start[-1]),)
        or counts.dtype != np.int32
        or counts.shape != column.shape
        or (len(column) and (column.min() < 0 or column.max() >= len(cooccurrences.target) or counts.min() < 0))
    ):
        raise ValueError("its co-occurrences are damaged")
    rising = np.diff(column) > 0
    rising[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < len(column))] - 1] = True
    if not rising.all():
        raise ValueError("its co-occurrences are not in order")
    return cooccurrences


def _fitting(model: TranslationModel) -> TranslationModel:
    """A model whose arrays have the right shapes and hold probabilities, or ValueError."""
    n_entries = model.cooccurrences.n_entries
    shapes = (n_entries, 2), (len(model.cooccurrences.target),), (len(model.cooccurrences.source),)
    for probabilities in (model.model1, model.hmm):
        for table, shape in zip(probabilities, shapes, strict=True):
            good = table.dtype == np.float32 and table.shape == shape and np.isfinite(table).all()
            if not good or (table < 0).any() or (table > 1.001).any():
                raise ValueError("its probabilities are damaged")
    jumps = model.jumps
    if jumps.dtype != np.float64 or jumps.ndim != 2 or len(jumps) != 2 or jumps.shape[1] % 2 != 1 or jumps.size < 6:
        raise ValueError("its jumps are damaged")
    if not np.isfinite(jumps).all() or (jumps < 1e-30).any() or (jumps > 1.001).any():
        raise ValueError("its jumps are damaged")
    links = model.links
    if links.dtype != np.float32 or links.shape != (n_entries,) or not np.isfinite(links).all() or (links < 0).any():
        raise ValueError("its counts of links are damaged")
    return replace(model, jumps=np.ascontiguousarray(jumps))
