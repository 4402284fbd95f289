"""Training of parsers: relations, trees of first order, then of second order among the candidates of the first.

Each of them is a large-margin problem of its own. Trees that are not projective are lifted before training.
Relations come first, as from then on Ctrl-C leaves a whole parser; where heads are unknown they come
after the trees of first order, which complete them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin.datasets import Examples
from maxmargin.models.base import Model, Training
from maxmargin.problem import PartialOutputs
from maxmargin.solvers import Mira, Status
from maxmargin.structures._arrays import Ragged, offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.tasks.parsing.defaults import AGGRESSIVENESS, BITS, ORDER, PASSES
from maxmargin.tasks.parsing.encoder.heads import HeadEncoder
from maxmargin.tasks.parsing.encoder.parsing import ParsingEncoder
from maxmargin.tasks.parsing.encoder.relations import RelationEncoder
from maxmargin.tasks.parsing.encoder.tokens import Nodes
from maxmargin.tasks.parsing.io.checks import check_relations, check_trees, missing_tags
from maxmargin.tasks.parsing.io.treebank import MISSING, Treebank
from maxmargin.tasks.parsing.model import ParserModel
from maxmargin.tasks.parsing.partial import ROUNDS, KnownHeads, known_arcs
from maxmargin.training import BestGood, Settings, train_examples


@dataclass(frozen=True, kw_only=True, eq=False)
class ParserSettings:
    """How to train a parser.

    Attributes:
        order: 1 for arcs alone, 2 for siblings and grandparents, too.
        bits: features of trees are hashed to ``2^bits`` weights, those of relations to as many columns.
        training: settings of each of the problems; "auto" stands for MIRA, with so many passes as ``max_iter`` says.
        aggressiveness: of MIRA.
        single_root: whether exactly one token of a sentence is below the root; training trees with more are refused.
        labeled: whether arcs have relations; training tokens without one are refused. If not, heads alone are trained,
            and predicted relations are ``_``.
        partial: whether heads and relations that are missing are unknown; if not, they are refused. Sentences whose
            known heads no projective tree has are left out, as ``metadata`` says.
    """

    order: int = ORDER
    bits: int = BITS
    single_root: bool = True
    labeled: bool = True
    partial: bool = False
    training: Settings = field(default_factory=lambda: Settings(C=1.0))
    aggressiveness: float = AGGRESSIVENESS

    def __post_init__(self) -> None:
        _checks.integer("order", self.order, least=1, most=2)
        _checks.integer("bits", self.bits, least=3, most=30)
        _checks.positive("aggressiveness", self.aggressiveness)
        _checks.flag("single_root", self.single_root)
        _checks.flag("labeled", self.labeled)
        _checks.flag("partial", self.partial)

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
        dev: sentences by which the number of passes over trees is chosen, if there are any.

    Returns:
        The model; ``model.training`` is the record of the run of its trees. Ctrl-C ends training with the best trees so
        far, perhaps those of first order; it is a KeyboardInterrupt if there are none yet.
    """
    settings = settings or ParserSettings()
    if not bank.n_sentences:
        raise ValueError("there are no sentences to train on; give at least one")
    if dev is not None and not dev.n_sentences:
        raise ValueError("dev data: there are no sentences; give at least one, or leave dev out")
    bank = checked(bank, settings)
    if missing := missing_tags(bank):
        warnings.warn(
            f"{missing}; a parser learns much from tags, so tag the sentences first (maxmargin tag), those to be "
            "parsed as well",
            UserWarning,
            stacklevel=callers_level(),
        )
    with _threads.threads(settings.training.n_jobs):
        known = KnownHeads.of(bank.known_heads, bank.lengths, single_root=settings.single_root)
        encoder = HeadEncoder(bits=settings.bits, single_root=settings.single_root).learn(bank, ())
        nodes = encoder.nodes(bank)
        held = None if dev is None else (encoder.nodes(dev), dev.heads)
        if held is None and settings.training.patience is not None:
            raise ValueError("patience counts dev scores: give dev data as well")
        passes = PASSES if settings.training.max_iter is None else settings.training.max_iter
        heads = known.heads
        if known.all_known:
            relations = _relations(bank, nodes, bank.known_heads, settings, passes)
        trees = _trees(encoder, nodes, known, heads, settings.stage("first", passes), held)
        stopped = _record(trees).interrupted
        if stopped and not trees.weights.any():
            raise KeyboardInterrupt("no trees were trained yet")
        if not known.all_known:
            heads = known.completed(trees, nodes)
            at = bank.known_heads
            relations = _relations(bank, nodes, np.where(at < 0, heads, at), settings, passes)
        stages = {"relations": relations, "first order": trees}
        if settings.order == 2 and not stopped:
            second = replace(encoder, order=2, first=trees.weights)
            try:
                model = _trees(second, nodes, known, heads, settings.stage("second", passes), held)
                stopped = _record(model).interrupted
                if model.weights.any() or not stopped:
                    trees = stages["second order"] = model
            except KeyboardInterrupt:  # before its first weights
                stopped = True
    whole = ParsingEncoder(_of(trees, HeadEncoder), _of(relations, RelationEncoder))
    metadata = {
        **{f"{name}: {key}": value for name, model in stages.items() for key, value in model.metadata.items()},
        "status": str(Status.INTERRUPTED) if stopped else trees.metadata["status"],
        "sentences": bank.n_sentences,
        "tokens": bank.n_tokens,
        "lifted": known.lifted,
    }
    if not known.all_known:
        metadata |= {"known heads": int((bank.known_heads >= 0).sum()), "left out": known.left_out}
    weights = np.concatenate([trees.weights, relations.weights])
    training = replace(_record(trees), interrupted=stopped)
    return ParserModel(weights, whole, metadata, settings.training.n_jobs, training=training)


def checked(bank: Treebank, settings: ParserSettings) -> Treebank:
    """The treebank that a parser is trained on; FileError if it has not the trees and relations that are asked for."""
    check_trees(bank, single_root=settings.single_root, partial=settings.partial)
    if not settings.labeled:
        return bank.without_relations()
    check_relations(bank, partial=settings.partial)
    return bank


def _record(model: Model) -> Training:
    assert model.training is not None
    return model.training


def _of(model: Model, kind: Any) -> Any:
    assert isinstance(model.encoder, kind)
    return model.encoder


def _trees(
    encoder: HeadEncoder,
    nodes: Nodes,
    known: KnownHeads,
    heads: IntArray,
    settings: Settings,
    dev: tuple[Nodes, IntArray] | None,
) -> Model:
    """A model of trees; of second order the arcs of ``heads`` are among the candidates."""
    batch = encoder.batch_of(nodes, heads if encoder.order == 2 else None)
    good, hooks = None, None
    if known.all_known:
        gold = encoder.encode(batch, list(Ragged(heads, offsets_of(nodes.lengths))))
    else:
        assert isinstance(batch.structure, ProjectiveTrees)
        good, hooks = PartialOutputs.build(batch.structure, known_arcs(batch.structure, known.heads)), BestGood(ROUNDS)
        gold = good.first(batch.structure, batch.features)
    score = None
    if dev is not None:
        held = encoder.batch_of(dev[0])

        def score(model: Model) -> float:
            return float((np.concatenate(model.outputs(held)) == dev[1]).mean())

    return train_examples(Examples(encoder, batch, gold, good=good), settings, score=score, hooks=hooks)


def _relations(bank: Treebank, nodes: Nodes, heads: IntArray, settings: ParserSettings, passes: int) -> Model:
    """A model of the relations of trees, from tokens whose head and relation are known."""
    codes, names = bank.relations
    usual = [at for at, name in enumerate(names) if name not in MISSING or not settings.labeled]
    order = np.array(sorted(usual, key=names.__getitem__), dtype=np.int64)
    number = np.full(len(names), -1, dtype=np.int64)
    number[order] = np.arange(len(order))
    tokens = np.flatnonzero((number[codes] >= 0) & (bank.known_heads >= 0))
    encoder = RelationEncoder(tuple(names[at] for at in order), settings.bits)
    fitted, batch, gold = encoder.fit((nodes, heads), number[codes[tokens]], tokens)
    if len(order) == 1:  # there is nothing to choose
        return Model(np.zeros(fitted.n_weights), fitted)
    own = replace(settings.stage("relations", passes), patience=None)  # there is no dev score of relations alone
    model = train_examples(Examples(fitted, batch, gold), own)
    if _record(model).interrupted:
        raise KeyboardInterrupt("no trees were trained yet")
    return model
