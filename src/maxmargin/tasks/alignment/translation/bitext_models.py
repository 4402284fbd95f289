"""The translation models of the aligner, three of them, as they make different errors.

- *words*: hidden Markov models of whole words, trained by agreement;
- *stems*: the same for words cut after four letters, which pools the forms of a word;
- *variational*: each direction by itself on stems, by variational Bayes with a sparse Dirichlet prior, which keeps rare
  words from collecting links that belong to others (Riley and Gildea 2012). In large bitexts it starts from Model 1 of
  the stems.

Models of large bitexts have probabilities for some of the word pairs that co-occur: see
:func:`~maxmargin.tasks.alignment.translation.models.learn`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._callers import callers_level
from maxmargin._digest import digest
from maxmargin._vectors import rises
from maxmargin.execution import Executor
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.translation.cooccurrences import Cooccurrences, PreparedBitext
from maxmargin.tasks.alignment.translation.models import EMIteration, TranslationModel, WordProbabilities, learn
from maxmargin.tasks.alignment.translation.passes import BitextPasses
from maxmargin.tasks.alignment.translation.saved_tables import SavedTables
from maxmargin.tasks.alignment.translation.words import IndexedBitext, Sentences, WordVocabulary, fingerprints

STEM_LETTERS = 4
PRIOR = 0.01

MODELS = ("words", "stems", "variational")


def _saved(checkpoint: Checkpoint, name: str) -> Checkpoint:
    """The checkpoint of one of the models."""
    return checkpoint.beside(f"-{MODELS.index(name)}")


def remove_saved(checkpoint: Checkpoint) -> None:
    """Remove the files of all models."""
    for name in MODELS:
        _saved(checkpoint, name).remove()


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
        executor: Executor | None = None,
        on_iteration: Callable[[str, EMIteration], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn all models from sentence pairs.

        Args:
            source: source sentences, lists of words.
            target: target sentences, as many.
            model1_iterations: iterations of Model 1 in each model.
            hmm_iterations: iterations of the hidden Markov models in each model.
            executor: where the work of expectation steps is done; None for this process.
            on_iteration: called after every iteration with the model's name.
            checkpoint: where the tables are saved after every iteration; learning resumes from these files.
        """
        passes = BitextPasses.of(IndexedBitext.of(source, target), executor)
        seen = fingerprints(source, target)
        return cls.of(passes, seen, model1_iterations, hmm_iterations, on_iteration, checkpoint)

    @classmethod
    def of(
        cls,
        passes: BitextPasses,
        seen: IntArray,
        model1_iterations: int = 5,
        hmm_iterations: int = 5,
        on_iteration: Callable[[str, EMIteration], None] | None = None,
        checkpoint: Checkpoint | None = None,
        *,
        words_only: bool = False,
    ) -> Self:
        """Learn all models by passes over a bitext, which are closed; ``seen`` are the fingerprints of its pairs.

        With ``words_only`` the models of words stand for the others, too: enough for links of hidden Markov models.
        """
        text = digest(seen, model1_iterations, hmm_iterations, passes.layout)

        def one(name: str, bitext: PreparedBitext, **settings: Any) -> TranslationModel:
            report = None if on_iteration is None else partial(on_iteration, name)
            settings |= {"model1_iterations": model1_iterations, "hmm_iterations": hmm_iterations}
            if checkpoint is None:
                return learn(bitext, on_iteration=report, **settings)
            with SavedTables(_saved(checkpoint, name), f"{name} {text}") as saved:
                return learn(bitext, on_iteration=report, saved=saved, **settings)

        try:
            words = one("words", _fitting(passes, 0))
            if words_only:
                return cls(words, words, words, np.unique(seen))
            bitext = _fitting(passes, STEM_LETTERS)
            stems = one("stems", bitext)
            start = stems if bitext.is_large else None
            variational = one("variational", bitext, agreement=False, prior=PRIOR, start=start)
        finally:
            passes.close()
        return cls(words, stems, variational, np.unique(seen))

    @property
    def words_only(self) -> bool:
        """Whether there are models of words alone."""
        return self.stems is self.words

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
        numbers = np.searchsorted(np.flatnonzero(kept), wanted)
        kept = self.stems.likely(min_probability) | self.variational.likely(min_probability)
        cooccurrences = self.stems.cooccurrences.select(kept)
        stems, variational = (model.select(cooccurrences, kept) for model in (self.stems, self.variational))
        return type(self)(words, stems, variational, self.seen), numbers

    def state(self) -> dict[str, Any]:
        """The arrays and numbers of a model file."""
        found: dict[str, Any] = {
            "n_pairs": self.n_pairs,
            "stem_letters": self.stems.cooccurrences.letters,
            "null": [getattr(self, name).null for name in MODELS],
            "seen": self.seen,
        }
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

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`state`; ValueError or KeyError if it is damaged."""
        n_pairs, letters, nulls, seen = (state[key] for key in ("n_pairs", "stem_letters", "null", "seen"))
        for value in (n_pairs, letters):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
                raise ValueError("its counts of pairs and letters must be integers >= 0")
        probable = isinstance(nulls, list) and all(isinstance(null, float) and 0 <= null < 1 for null in nulls)
        if not probable or len(nulls) != len(MODELS):
            raise ValueError("its probabilities of the empty word are damaged")
        if seen.dtype != np.int64 or seen.ndim != 1 or (seen[1:] <= seen[:-1]).any():
            raise ValueError("its fingerprints of sentence pairs are damaged")
        words = _cooccurrences(state, "words", 0, n_pairs)
        stems = _cooccurrences(state, "stems", letters, n_pairs)
        return cls(
            _model(state, "words", words, nulls[0]),
            _model(state, "stems", stems, nulls[1]),
            _model(state, "variational", stems, nulls[2]),
            seen,
        )


def _fitting(passes: BitextPasses, letters: int) -> PreparedBitext:
    """The bitext with its co-occurrences; a warning if some had to be dropped."""
    bitext = PreparedBitext(passes, letters=letters)
    if bitext.least:
        warnings.warn(
            f"the {'stems' if letters else 'words'} of the bitext have more than the {passes.max_entries:,} "
            f"co-occurrences that fit into memory: those with (pairs with both words) / sqrt(occurrences of one x "
            f"occurrences of the other) below {bitext.least:.2g} were dropped, {bitext.cooccurrences.n_entries:,} are "
            "left; max_entries (--max-entries) sets the limit",
            UserWarning,
            stacklevel=callers_level(),
        )
    return bitext


def _array(state: Mapping[str, Any], name: str, dtype: Any, shape: tuple[int, ...], most: float = np.inf) -> Any:
    """An array of a file that has this type and shape and finite numbers from 0 to ``most``, or ValueError."""
    found = state[name]
    good = found.dtype == dtype and found.shape == shape and np.isfinite(found).all()
    if not good or (found < 0).any() or (found > most).any():
        raise ValueError(f"its array {name} is damaged")
    return found


def _cooccurrences(state: Mapping[str, Any], name: str, letters: int, n_pairs: int) -> Cooccurrences:
    """Co-occurrences whose entries can be searched, or ValueError."""
    source, target = (
        WordVocabulary.from_arrays({key: state[f"{name}.{side}.{key}"] for key in ("text", "offsets", "counts")})
        for side in ("source", "target")
    )
    start = _array(state, f"{name}.row_start", np.int64, (len(source) + 1,))
    column = _array(state, f"{name}.column", np.int32, (int(start[-1]),), len(target) - 1)
    counts = _array(state, f"{name}.counts", np.int32, column.shape)
    rising = column[1:] > column[:-1]
    rising[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < len(column))] - 1] = True
    if start[0] != 0 or not rises(start) or not rising.all():
        raise ValueError("its co-occurrences are not in order")
    return Cooccurrences(source, target, n_pairs, letters, start, column, counts)


def _model(state: Mapping[str, Any], name: str, cooccurrences: Cooccurrences, null: float) -> TranslationModel:
    """A model whose arrays have the right shapes and hold probabilities, or ValueError."""
    n_entries = cooccurrences.n_entries
    shapes = (n_entries, 2), (len(cooccurrences.target),), (len(cooccurrences.source),)
    model1, hmm = (
        WordProbabilities(
            *(
                _array(state, f"{name}.{part}.{key}", np.float32, shape, 1.001)
                for key, shape in zip(WordProbabilities._fields, shapes, strict=True)
            )
        )
        for part in ("model1", "hmm")
    )
    links = _array(state, f"{name}.links", np.float32, (n_entries,))
    jumps = _array(state, f"{name}.jumps", np.float64, (2, *state[f"{name}.jumps"].shape[1:]), 1.001)
    if jumps.ndim != 2 or jumps.shape[1] % 2 != 1 or jumps.size < 6 or (jumps < 1e-30).any():
        raise ValueError("its jumps are damaged")
    return TranslationModel(cooccurrences, links, model1, hmm, np.ascontiguousarray(jumps), null)
