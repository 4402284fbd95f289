"""Trees over sentences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.deductions.grammar import GrammarEncoder
from maxmargin.encoders.deductions.grammar_rules import Grammar
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import LabeledSVM
from maxmargin.features.kernel import Kernel


class GrammarSVM(LabeledSVM):
    """Trees over the tokens of sentences, such as constituency trees: labeled spans, or derivations of a grammar.

    Score of a tree: ``sum W[:, l]'x_{b,e}`` over its nodes, spans ``(b, e)`` with label ``l``, plus ``sum v's_{b,k,e}``
    over its splits where features of splits are given. With a grammar: the same sum over the rules that derive the
    tree, with ``l`` the rule used over the span. ``coef_`` holds ``W`` row-major, then ``v``.

    X: list of :class:`maxmargin.SpanChart` or of ``(n (n + 1) / 2, d)`` matrices, dense or CSR, a row for each span as
    :func:`maxmargin.spans_of` lists them. y: list of trees, each nested tuples ``(label, child, ...)`` whose leaves are
    the tokens, or bracketed text ``"(S (NP the cat) (VP sleeps))"``. Predictions are nested tuples with the numbers of
    tokens as leaves; :func:`maxmargin.tree_text` writes them with words. Nodes may have any number of children, and a
    chain of nodes over the same tokens is learned as one label, such as ``S+VP``. ``score`` is labeled F1 over nodes.

    Args:
        classes: without a grammar all labels, joined ones included, where training data may lack some; None takes
            those of the training data.
        grammar: a :class:`maxmargin.Grammar` whose derivations are the only trees; None allows all trees.
        rooted: without a grammar, whether the whole sentence must be a node. If not, y and predictions may be lists of
            trees and tokens.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of spans.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels, or the rules, after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        grammar: Grammar | None = None,
        rooted: bool = True,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.grammar = grammar
        self.rooted = rooted
        self.features = features

    def _encoder(self) -> Encoder:
        return GrammarEncoder(self._classes(), self.grammar, self.rooted, kernel=self.features)
