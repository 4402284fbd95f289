"""Rerankers from more lists than memory: encoded lists in a folder, and training on them.

Lists are judged as they are encoded: a shard has the features of hypotheses and what each costs, not their texts. So
the metric, the good hypotheses and the signs of weights belong to the folder; C and the norm to training. The methods
that minimize a convex objective (max-margin, lp7, lp8) train on a folder; the others search over the hypotheses of all
lists in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from maxmargin import _threads
from maxmargin.datasets import DataBlock, DataSource, Examples, Recipe, ShardedDataset
from maxmargin.encoders.base import Encoder
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.common.sharding import require_kind
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.forms import as_lists
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.training import Judged, RerankerSettings, model_of, selected
from maxmargin.tasks.reranking.tuning.base import Method
from maxmargin.tasks.reranking.tuning.max_margin import MaxMargin
from maxmargin.tasks.reranking.tuning.methods import method_named

Judge = Callable[[NBestLists, Any], Judged]
"""Judges the hypotheses of lists by what a source gives beside them."""


class ListSource(DataSource):
    """Lists that come in blocks and have what they are judged by.

    Args:
        blocks: the blocks, as often as they are iterated over.
        split: divides a block into lists and what goes to the :data:`Judge` with them.
    """

    def __init__(self, blocks: Iterable[NBestLists], split: Callable[[NBestLists], tuple[NBestLists, Any]]) -> None:
        self._blocks, self._split = blocks, split
        self._iterator: Iterator[NBestLists] | None = None

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        if self._iterator is None:
            self._iterator = iter(self._blocks)
        found = next(self._iterator, None)
        if found is None:
            return None
        lists, judged_by = self._split(found)
        return DataBlock(lists, judged_by, size=len(lists))

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._iterator = None


class RerankingRecipe(Recipe):
    """How judged lists become examples: features of hypotheses, costs, and good ones.

    Args:
        settings: encoder, method and signs are used.
        judge: judges the hypotheses.
        judged_by: a word for how, such as the name of a metric.
    """

    def __init__(self, settings: RerankerSettings, judge: Judge, judged_by: str) -> None:
        self._how, self._judge, self._judged_by = settings, judge, judged_by
        self._method = convex(settings.variants[0]).unscaled()

    @property
    def settings(self) -> str:
        """Encoder, signs, and which hypotheses are good."""
        how, method = self._how, self._method
        which = f"{method.formulation!r}, margin={method.margin!r}, levels={method.levels}, within={method.within}"
        signs = f"positive={how.positive}, negative={how.negative}"
        encoder = how.encoder
        names = "normalize", "length", "ngrams", "phrases", "min_lists"
        features = ", ".join(f"{name}={getattr(encoder, name)!r}" for name in names)
        return f"RerankingEncoder({features}), {signs}, formulation={which}, judged by {self._judged_by}"

    def learn(self, blocks: Iterable[tuple[Any, Any]]) -> Encoder:
        """See :meth:`RerankingEncoder.learn_blocks`."""
        fitted = self._how.encoder.learn_blocks(blocks)
        self._how.signs(fitted.names, fitted.n_weights)
        return fitted

    def examples(self, encoder: Encoder, block: DataBlock) -> Examples:
        """Judge lists, and encode them."""
        assert isinstance(encoder, RerankingEncoder)
        lists = as_lists(block.X)
        judged = self._judge(lists, block.y)
        signs = self._how.signs(encoder.names, encoder.n_weights)
        found, _ = self._method.examples(judged.tuning_lists(encoder.rows(lists), signs))
        return replace(found, encoder=encoder)


def convex(method: Method) -> MaxMargin:
    """The method, if it can be tuned on a dataset; ValueError otherwise."""
    if not isinstance(method, MaxMargin):
        raise ValueError(
            f"{method.name} searches over the hypotheses of all lists in memory; take max-margin, lp7 or lp8, or train "
            "without a dataset"
        )
    return method


def described(settings: RerankerSettings) -> dict[str, Any]:
    """What training has to know of how a dataset was made, as plain JSON values; for :func:`dataset_settings`."""
    method = convex(settings.variants[0])
    names = "formulation", "margin", "levels", "within"
    chosen = {"method": method.name, **{name: getattr(method, name) for name in names}}
    return {"tuning": chosen, "positive": list(settings.positive), "negative": list(settings.negative)}


def dataset_settings(
    dataset: ShardedDataset, *, norm: str | None, C: Sequence[float] | None, **settings: Any
) -> RerankerSettings:
    """The settings of training on a dataset with metadata of :func:`described`.

    Args:
        dataset: the dataset.
        norm: of the weights; None for that of the method.
        C: strengths; None for those of the method and norm.
        settings: others.
    """
    try:
        how = dict(dataset.metadata["tuning"])
        method = method_named(how.pop("method"), norm=norm, **how)
        positive, negative = (tuple(dataset.metadata[name]) for name in ("positive", "negative"))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{dataset.folder} does not say how lists were judged ({error}); make it anew") from None
    return RerankerSettings(method=method, C=C, positive=positive, negative=negative, folds=0, **settings)


def train_reranker_on(
    dataset: ShardedDataset, settings: RerankerSettings | None = None, *, dev: Judged | None = None
) -> RerankerModel:
    """Train a reranker on a dataset (:meth:`Reranker.build_dataset`, ``rerank shard``).

    Args:
        dataset: the dataset.
        settings: how to train; the method must be that of the dataset, but for ``C`` and the norm.
        dev: lists that choose among several values of C and tell the gain, in memory; without them the middle C is
            taken, and no gain is known.
    """
    settings = settings or RerankerSettings()
    encoder = require_kind(dataset, RerankingEncoder, "lists of hypotheses")
    variants = [convex(one) for one in settings.variants]
    signs = settings.signs(encoder.names, encoder.n_weights)
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        stages.begin("tuning", (len(variants) if dev is not None else 0) + 1)
        parts, chosen = [], []
        if dev is not None:
            held = dev.tuning_lists(encoder.rows(dev.lists), signs)
            rows = []
            for variant in variants:
                tuned = variant.tune_dataset(dataset, signs, seed=settings.random_state)
                if tuned.interrupted:
                    raise KeyboardInterrupt  # it cannot be compared with the others
                rows.append(held.choose(tuned.weights))
                stages.advance()
            parts, chosen = [(dev, dev)], [rows]
        best, report = selected(parts, chosen, variants, settings, from_dev=dev is not None)
        last = replace(variants[best], checkpoint=settings.checkpoint)
        tuned = last.tune_dataset(dataset, signs, seed=settings.random_state)
        stages.advance()
    sizes = {"lists": len(dataset), "hypotheses": dataset.n_parts}
    return model_of(encoder, tuned, replace(report, details=tuned.details), sizes, settings.n_jobs)
