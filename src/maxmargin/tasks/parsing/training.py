"""Training of parsers: trees of first order, of second order among the candidates of the first, then relations.

Each of them is a large-margin problem of its own. Trees that are not projective are lifted before training.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.datasets import Examples
from maxmargin.model import Model
from maxmargin.solvers import Mira
from maxmargin.structures._arrays import Ragged, offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.parsing.encoder.parsing import ParsingEncoder
from maxmargin.tasks.parsing.encoder.relations import RelationEncoder
from maxmargin.tasks.parsing.encoder.tokens import Nodes
from maxmargin.tasks.parsing.encoder.trees import TreeEncoder, lifted
from maxmargin.tasks.parsing.io.treebank import Treebank
from maxmargin.tasks.parsing.model import ParserModel
from maxmargin.training import Settings, train_examples

PASSES = 10
"""Passes over the sentences, by default."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ParserSettings:
    """How to train a parser.

    Attributes:
        order: 1 for arcs alone, 2 for siblings and grandparents, too.
        bits: features of trees are hashed to ``2^bits`` weights, those of relations to as many columns.
        training: settings of each of the problems; "auto" stands for MIRA, with so many passes as ``max_iter`` says.
        aggressiveness: of MIRA.
    """

    order: int = 2
    bits: int = 22
    training: Settings = field(default_factory=lambda: Settings(C=1.0))
    aggressiveness: float = 0.05

    def __post_init__(self) -> None:
        _checks.integer("order", self.order, least=1, most=2)
        _checks.integer("bits", self.bits, least=3, most=30)
        _checks.positive("aggressiveness", self.aggressiveness)

    def stage(self, name: str, passes: int) -> Settings:
        """Settings of one of the problems."""
        given = replace(self.training, checkpoint=self.training.checkpoint_of(f"-{name}"))
        if given.solver != "auto":
            return given
        return replace(given, solver=Mira(aggressiveness=self.aggressiveness), max_iter=passes)


def train_parser(bank: Treebank, settings: ParserSettings | None = None, *, dev: Treebank | None = None) -> ParserModel:
    """Train a parser on a treebank.

    Args:
        bank: sentences with trees.
        settings: how to train.
        dev: sentences by which the number of passes is chosen, if there are any.

    Returns:
        The model; ``model.training`` is the record of the run of its trees.
    """
    settings = settings or ParserSettings()
    with _threads.threads(settings.training.n_jobs):
        heads, changed = lifted(bank.heads, bank.lengths)
        gold = list(Ragged(heads, offsets_of(bank.lengths)))
        encoder = TreeEncoder(bits=settings.bits).learn(bank, gold)
        nodes = encoder.nodes(bank)
        held = None if dev is None else (encoder.nodes(dev), dev.heads)
        passes = PASSES if settings.training.max_iter is None else settings.training.max_iter
        trees = _trees(encoder, nodes, heads, settings.stage("first", passes), held)
        stages = {"first order": trees}
        if settings.order == 2:
            second = replace(encoder, order=2, first=trees.weights)
            trees = _trees(second, nodes, heads, settings.stage("second", passes), held)
            stages["second order"] = trees
        relations = stages["relations"] = _relations(bank, nodes, settings, passes)
    whole = ParsingEncoder(_of(trees, TreeEncoder), _of(relations, RelationEncoder))
    metadata = {
        **{f"{name}: {key}": value for name, model in stages.items() for key, value in model.metadata.items()},
        "sentences": bank.n_sentences,
        "tokens": bank.n_tokens,
        "lifted": changed,
    }
    weights = np.concatenate([trees.weights, relations.weights])
    return ParserModel(weights, whole, metadata, settings.training.n_jobs, training=trees.training)


def _of(model: Model, kind: Any) -> Any:
    assert isinstance(model.encoder, kind)
    return model.encoder


def _trees(
    encoder: TreeEncoder, nodes: Nodes, heads: IntArray, settings: Settings, dev: tuple[Nodes, IntArray] | None
) -> Model:
    """A model of trees."""
    batch = encoder.batch_of(nodes, heads)
    gold = encoder.encode(batch, list(Ragged(heads, offsets_of(nodes.lengths))))
    score = None
    if dev is not None:
        held = encoder.batch_of(dev[0])

        def score(model: Model) -> float:
            return float((np.concatenate(model.outputs(held)) == dev[1]).mean())

    return train_examples(Examples(encoder, batch, gold), settings, score=score)


def _relations(bank: Treebank, nodes: Nodes, settings: ParserSettings, passes: int) -> Model:
    """A model of the relations of gold trees."""
    codes, names = bank.relations
    order = np.argsort(names)
    numbers = np.argsort(order)[codes]
    encoder = RelationEncoder(tuple(names[at] for at in order), settings.bits)
    fitted, batch, gold = encoder.fit((nodes, bank.heads), numbers)
    return train_examples(Examples(fitted, batch, gold), settings.stage("relations", passes))
