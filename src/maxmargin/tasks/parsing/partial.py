"""Trees that are known in part, for training: an unknown head may be any that makes a projective tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.models.base import Model
from maxmargin.problem import PartialOutputs
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray, PointStatus
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.structures.fallbacks.given import Given, argmax_given
from maxmargin.tasks.parsing.encoder.heads import HeadEncoder, lifted
from maxmargin.tasks.parsing.encoder.tokens import Nodes

ROUNDS = 3
"""Rounds of training, each with the best completions under the weights of the one before."""


@dataclass(frozen=True, eq=False)
class KnownHeads:
    """Heads that are known, of all tokens of a treebank.

    Attributes:
        heads: counted from 1 in the sentence, 0 for the root, -1 for unknown, shape ``(n_tokens,)``.
        lifted: sentences that are known as a whole and had crossing arcs.
        left_out: sentences known in part that no projective tree completes; their heads are all -1.
    """

    heads: IntArray
    lifted: int
    left_out: int

    @classmethod
    def of(cls, heads: IntArray, lengths: IntArray, *, single_root: bool) -> KnownHeads:
        """Make heads projective where they are known as a whole, and leave out what cannot be completed."""
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        part = np.bincount(sentence[heads < 0], minlength=len(lengths)) > 0
        found, whole = heads.copy(), ~part[sentence]
        found[whole], changed = lifted(heads[whole], lengths[~part])
        if not part.any():
            return cls(found, changed, 0)
        trees = ProjectiveTrees.dense(lengths[part], single_root=single_root)
        given = known_arcs(trees, found[~whole])
        absent = np.zeros(len(lengths), dtype=np.bool_)
        absent[part] = argmax_given(trees, np.zeros(trees.n_parts), given).status == PointStatus.ABSENT
        found[absent[sentence]] = -1
        return cls(found, changed, int(absent.sum()))

    @property
    def all_known(self) -> bool:
        """Whether no head is unknown."""
        return bool((self.heads >= 0).all())

    def completed(self, model: Model, nodes: Nodes) -> IntArray:
        """The heads of the best trees under a model of first order that agree with those that are known."""
        assert isinstance(model.encoder, HeadEncoder)
        batch = model.encoder.batch_of(nodes)
        trees = batch.structure
        assert isinstance(trees, ProjectiveTrees)
        good = PartialOutputs.build(trees, known_arcs(trees, self.heads))
        best = good.completed(trees, batch.features, model.weights)
        return np.concatenate([np.zeros(0, dtype=np.int64), *trees.decode(best.dense())])


def known_arcs(trees: ProjectiveTrees, heads: IntArray) -> Given:
    """What heads say of the arcs of a batch: 1 for those that are there, -1 for others to the same token, else 0."""
    offsets = offsets_of(trees.n_states)
    wanted = np.repeat(heads, np.diff(offsets))
    head, _ = trees.heads_of(np.arange(int(offsets[-1])))
    return np.where(wanted < 0, 0, np.where(head == wanted, 1, -1)).astype(np.int8)
