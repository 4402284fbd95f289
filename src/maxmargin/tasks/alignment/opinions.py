"""The translation models that the aligner asks, three of them, for they err in different places.

- *words*: hidden Markov models of whole words that train on what both directions agree on;
- *stems*: the same for words cut after four letters, which pools the forms of a word;
- *cautious*: each direction by itself on stems, with a sparse Dirichlet prior that keeps rare words from collecting
  what others leave over.

The first gives most features their values; the others add columns of their own, the "opinions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.evidence import Evidence
from maxmargin.tasks.alignment.translation import (
    Lexicon,
    Posteriors,
    PreparedBitext,
    Progress,
    Sentences,
    Tables,
    TranslationModel,
    learn,
)
from maxmargin.tasks.alignment.words import Vocabulary, fingerprints

STEM_LETTERS = 4
PRIOR = 0.01

MODELS = ("words", "stems", "cautious")

_OPINION = ("forward", "backward", "product", "geometric mean", "smaller", "larger", "log product")

OPINION_NAMES = tuple(f"{model} {column}" for model in MODELS[1:] for column in _OPINION)
"""Names of the columns of :attr:`Evidence.opinions`."""


@dataclass(frozen=True, eq=False, repr=False)
class BitextModels:
    """What a bitext teaches. Build it with :meth:`learn`.

    Attributes:
        words: models of words, trained on agreement.
        stems: models of stems, trained on agreement.
        cautious: models of stems with a prior, each direction by itself; it shares the lexicon of ``stems``.
        seen: fingerprints of the sentence pairs they were learned from, rising.
    """

    words: TranslationModel
    stems: TranslationModel
    cautious: TranslationModel
    seen: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def learn(
        cls,
        source: Sentences,
        target: Sentences,
        *,
        model1_iterations: int = 5,
        hmm_iterations: int = 5,
        on_iteration: Callable[[str, Progress], None] | None = None,
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
            report = None if on_iteration is None else lambda progress: on_iteration(name, progress)
            return learn(
                bitext,
                model1_iterations=model1_iterations,
                hmm_iterations=hmm_iterations,
                on_iteration=report,
                **settings,
            )

        words = one("words", PreparedBitext(source, target))
        bitext = PreparedBitext(source, target, letters=STEM_LETTERS)
        stems = one("stems", bitext)
        cautious = one("cautious", bitext, agreement=False, prior=PRIOR)
        return cls(words, stems, cautious, np.unique(fingerprints(source, target)))

    def knows(self, source: Sentences, target: Sentences) -> npt.NDArray[np.bool_]:
        """Which sentence pairs were among those it was learned from."""
        return np.isin(fingerprints(source, target), self.seen)

    def __repr__(self) -> str:
        return f"<BitextModels of {self.n_pairs} sentence pairs>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself, as nothing in it ever changes: clones of an aligner share it."""
        return self

    @property
    def n_pairs(self) -> int:
        """From how many sentence pairs they were learned."""
        return self.words.lexicon.n_pairs

    def evidence(
        self,
        source: Sentences,
        target: Sentences,
        *,
        identity: npt.NDArray[np.int32] | None = None,
        user: FloatArray | None = None,
    ) -> Evidence:
        """All that the features of a batch are made of.

        Args:
            source: source sentences.
            target: target sentences, as many.
            identity: for each slot of the lexicon of words the number of a word pair that is told apart, -1 for the
                others; or None.
            user: the user's columns, shape ``(cells, m)``, or None.
        """
        lexicon = self.words.lexicon
        batch = lexicon.batch(source, target)
        slots = lexicon.slots(batch)
        first, main = self.words.posteriors(batch, slots, model="model1"), self.words.posteriors(batch, slots)
        return Evidence(
            source_start=batch.source_start,
            target_start=batch.target_start,
            source_tokens=list(chain.from_iterable(source)),
            target_tokens=list(chain.from_iterable(target)),
            model1_forward=first.forward,
            model1_backward=first.backward,
            hmm_forward=main.forward,
            hmm_backward=main.backward,
            null_source=main.null_source,
            null_target=main.null_target,
            together=at_places(lexicon.together, slots),
            count_source=at_places(lexicon.source.counts, batch.source),
            count_target=at_places(lexicon.target.counts, batch.target),
            n_pairs=lexicon.n_pairs,
            identity=None if identity is None else np.append(identity, np.int32(-1))[slots],
            opinions=self._opinions(source, target),
            user=user,
        )

    def _opinions(self, source: Sentences, target: Sentences) -> FloatArray:
        batch = self.stems.lexicon.batch(source, target)
        slots = self.stems.lexicon.slots(batch)
        return np.concatenate(
            [_columns(model.posteriors(batch, slots)) for model in (self.stems, self.cautious)], axis=1
        )

    def pruned(self, least: float = 1e-4, *, keep: IntArray | None = None) -> tuple[Self, IntArray]:
        """Without word pairs that no model gives at least this probability: smaller, hardly worse.

        Args:
            least: the probability.
            keep: slots of the lexicon of words that stay in any case.

        Returns:
            the smaller models, and where the slots of ``keep`` are in them.
        """
        slots = np.zeros(0, dtype=np.int64) if keep is None else keep
        kept = self.words.likely(least)
        kept[slots] = True
        words = self.words.select(self.words.lexicon.select(kept), kept)
        places = np.asarray((np.cumsum(kept) - 1)[slots], dtype=np.int64)
        kept = self.stems.likely(least) | self.cautious.likely(least)
        lexicon = self.stems.lexicon.select(kept)
        stems, cautious = (model.select(lexicon, kept) for model in (self.stems, self.cautious))
        return type(self)(words, stems, cautious, self.seen), places

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a model file holds."""
        found: dict[str, npt.NDArray[Any]] = {"seen": self.seen}
        for name, lexicon in (("words", self.words.lexicon), ("stems", self.stems.lexicon)):
            for side in ("source", "target"):
                for key, array in getattr(lexicon, side).arrays().items():
                    found[f"{name}.{side}.{key}"] = array
            found |= {f"{name}.{key}": getattr(lexicon, key) for key in ("row_start", "column", "together")}
        for name in MODELS:
            model: TranslationModel = getattr(self, name)
            found |= {f"{name}.links": model.links, f"{name}.jumps": model.jumps}
            for part in ("model1", "hmm"):
                for key, table in getattr(model, part)._asdict().items():
                    found[f"{name}.{part}.{key}"] = table
        return found

    def header(self) -> dict[str, Any]:
        """The numbers that belong to :meth:`arrays`."""
        return {
            "n_pairs": self.n_pairs,
            "stem_letters": self.stems.lexicon.letters,
            "null": [getattr(self, name).null for name in MODELS],
        }

    @classmethod
    def restore(cls, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`header` and :meth:`arrays`; ValueError or KeyError if they make no sense."""
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
        lexica: dict[str, Lexicon] = {}
        for name, cut in (("words", 0), ("stems", letters)):
            source, target = (
                Vocabulary.from_arrays({key: arrays[f"{name}.{side}.{key}"] for key in ("text", "offsets", "counts")})
                for side in ("source", "target")
            )
            start, column, together = (arrays[f"{name}.{key}"] for key in ("row_start", "column", "together"))
            lexica[name] = _checked(Lexicon(source, target, n_pairs, cut, start, column, together))
        models = []
        for name, null in zip(MODELS, nulls, strict=True):
            lexicon = lexica["words" if name == "words" else "stems"]
            model1, hmm = (
                Tables(*(arrays[f"{name}.{part}.{key}"] for key in Tables._fields)) for part in ("model1", "hmm")
            )
            links, jumps = arrays[f"{name}.links"], arrays[f"{name}.jumps"]
            models.append(_fitting(TranslationModel(lexicon, links, model1, hmm, jumps, null)))
        seen = arrays["seen"]
        if seen.dtype != np.int64 or seen.ndim != 1 or (seen[1:] <= seen[:-1]).any():
            raise ValueError("its fingerprints of sentence pairs are damaged")
        return cls(models[0], models[1], models[2], seen)


def _checked(lexicon: Lexicon) -> Lexicon:
    """A lexicon whose lists can be searched, or ValueError."""
    start, column, together = lexicon.row_start, lexicon.column, lexicon.together
    if (
        start.dtype != np.int64
        or start.shape != (len(lexicon.source) + 1,)
        or start[0] != 0
        or (np.diff(start) < 0).any()
        or column.dtype != np.int32
        or column.shape != (int(start[-1]),)
        or together.dtype != np.int32
        or together.shape != column.shape
        or (len(column) and (column.min() < 0 or column.max() >= len(lexicon.target) or together.min() < 0))
    ):
        raise ValueError("its lexicon is damaged")
    rising = np.diff(column) > 0
    rising[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < len(column))] - 1] = True
    if not rising.all():
        raise ValueError("its lexicon is not in order")
    return lexicon


def _fitting(model: TranslationModel) -> TranslationModel:
    """A model whose tables fit its lexicon and hold probabilities, or ValueError."""
    n_slots = model.lexicon.n_slots
    shapes = (n_slots, 2), (len(model.lexicon.target),), (len(model.lexicon.source),)
    for tables in (model.model1, model.hmm):
        for table, shape in zip(tables, shapes, strict=True):
            good = table.dtype == np.float32 and table.shape == shape and np.isfinite(table).all()
            if not good or (table < 0).any() or (table > 1.001).any():
                raise ValueError("its probabilities are damaged")
    jumps = model.jumps
    if jumps.dtype != np.float64 or jumps.ndim != 2 or len(jumps) != 2 or jumps.shape[1] % 2 != 1 or jumps.size < 6:
        raise ValueError("its jumps are damaged")
    if not np.isfinite(jumps).all() or (jumps < 1e-30).any() or (jumps > 1.001).any():
        raise ValueError("its jumps are damaged")
    links = model.links
    if links.dtype != np.float32 or links.shape != (n_slots,) or not np.isfinite(links).all() or (links < 0).any():
        raise ValueError("its counts of links are damaged")
    return replace(model, jumps=np.ascontiguousarray(jumps))


def _columns(posteriors: Posteriors) -> FloatArray:
    """One model's columns, shape ``(cells, 7)``."""
    p, q = posteriors.forward, posteriors.backward
    product = p * q
    return np.stack(
        [p, q, product, np.sqrt(product), np.minimum(p, q), np.maximum(p, q), np.log10(product + 1e-9) / 9 + 1], axis=1
    )


def at_places(counts: npt.NDArray[Any], places: npt.NDArray[Any]) -> FloatArray:
    """Counts at places, such as slots or numbers of words, 0 at place -1."""
    return np.asarray(np.append(counts, 0)[places], dtype=np.float64)
