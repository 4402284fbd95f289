"""Grammars given as rules between named symbols."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.data.labels import label_from_json, label_to_json, plain
from maxmargin.encoders.deductions.bracketed import Nodes
from maxmargin.structures.base import IntArray
from maxmargin.structures.deductions.derivations import Derivations


class Grammar:
    """A context-free grammar of binary rules, unary rules without cycles, and preterminals over tokens.

    Args:
        rules: tuples ``(A, B, C)`` for ``A -> B C`` and ``(A, B)`` for ``A -> B``, each once; symbols are text, numbers
            or other hashable values.
        start: the symbol of a whole sentence; None takes the left side of the first rule.
        preterminals: the symbols that may stand over a token; None takes those on no left side.

    A rule of more symbols is written as several: ``A -> B C D`` as ``A -> B X`` and ``X -> C D``.

    Attributes:
        rules: all rules in the order of their weights: binary, unary, then a tuple ``(A,)`` for each preterminal.
        start: the symbol of a whole sentence.
    """

    def __init__(
        self, rules: Sequence[Any], start: Hashable | None = None, preterminals: Sequence[Hashable] | None = None
    ) -> None:
        given = [_rule(rule, index) for index, rule in enumerate(_checks.listed("rules", rules, "a list of tuples"))]
        if not given and start is None:
            raise ValueError("a grammar needs rules, or a start symbol that is a preterminal")
        if len(set(given)) < len(given):
            twice = next(rule for index, rule in enumerate(given) if rule in given[:index])
            raise ValueError(f"rule {_arrow(twice)} is given twice; give each rule once")
        self.start = plain(given[0][0] if start is None else start, "start")
        if preterminals is None:
            left = {rule[0] for rule in given}
            over = [*dict.fromkeys(s for rule in given for s in rule[1:] if s not in left)]
        else:
            listed = _checks.listed("preterminals", preterminals, "a list of symbols")
            over = [plain(symbol, "preterminals") for symbol in listed]
            if len(set(over)) < len(over):
                raise ValueError("preterminals must be different symbols")
        binary, unary = [rule for rule in given if len(rule) == 3], [rule for rule in given if len(rule) == 2]
        self.rules: tuple[tuple[Hashable, ...], ...] = (*binary, *unary, *((symbol,) for symbol in over))
        self._sizes = len(binary), len(unary), len(over)
        self._check()

    def _check(self) -> None:
        left = {rule[0] for rule in self.rules}
        for symbol in [self.start, *(s for rule in self.rules for s in rule[1:])]:
            if symbol not in left:
                raise ValueError(
                    f"symbol {shown(symbol)} has no rule and is not a preterminal; add a rule, or list it there"
                )
        self.structure(np.zeros(0, dtype=np.int64))  # refuses cycles

    def __repr__(self) -> str:
        rules, over = self.rules[: sum(self._sizes[:2])], [rule[0] for rule in self.rules[sum(self._sizes[:2]) :]]
        return f"Grammar({list(rules)!r}, start={self.start!r}, preterminals={over!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and (self.rules, self.start) == (other.rules, other.start)

    def __hash__(self) -> int:
        return hash((self.rules, self.start))

    @cached_property
    def symbols(self) -> tuple[Hashable, ...]:
        """All symbols, in order of appearance."""
        return tuple(dict.fromkeys([self.start, *(symbol for rule in self.rules for symbol in rule)]))

    @cached_property
    def _index(self) -> dict[tuple[Hashable, ...], int]:
        return {rule: number for number, rule in enumerate(self.rules)}

    def structure(self, lengths: npt.ArrayLike) -> Derivations:
        """The derivations of sentences of so many tokens."""
        number = {symbol: i for i, symbol in enumerate(self.symbols)}
        rows = [[number[symbol] for symbol in rule] for rule in self.rules]
        binary, unary, _ = self._sizes
        over = [row[0] for row in rows[binary + unary :]]
        return Derivations(lengths, len(number), rows[:binary], rows[binary : binary + unary], over)

    def derivation(self, tree: Nodes, where: str) -> IntArray:
        """Rows ``(begin, end, rule)`` of a tree in preorder; ValueError if the grammar does not derive it."""
        children: list[list[tuple[int, int, Hashable]]] = [[] for _ in tree.nodes]
        open_nodes: list[int] = []
        for number, node in enumerate(tree.nodes):
            begin = node[0]
            while open_nodes and tree.nodes[open_nodes[-1]][1] <= begin:
                open_nodes.pop()
            if open_nodes:
                children[open_nodes[-1]].append(node)
            open_nodes.append(number)
        found = []
        for (begin, end, label), below in zip(tree.nodes, children, strict=True):
            symbols = (label, *(child[2] for child in below))
            rule = self._index.get(symbols)
            if rule is None:
                raise ValueError(f"{where}: the grammar has no rule {_arrow(symbols)} for tokens {begin} to {end}")
            covered = sum(last - first for first, last, _ in below) if below else 1
            if covered != end - begin:
                what = "its nodes over some of them" if below else "a preterminal stands over one"
                raise ValueError(
                    f"{where}: {_arrow(symbols)} is used over tokens {begin} to {end}, but {what}; give each token a "
                    "node of its own"
                )
            found.append((begin, end, rule))
        top = tree.nodes[0] if tree.nodes else (0, 0, None)
        if top[:2] != (0, tree.n_tokens) or top[2] != self.start:
            raise ValueError(
                f"{where}: the grammar derives one tree from {shown(self.start)} over all {tree.n_tokens} tokens, and "
                f"the top node is {shown(top[2])} over tokens {top[0]} to {top[1]}"
            )
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def only_rule(self, given: Hashable, possible: Sequence[int], where: str) -> int:
        """The number of a rule, or of the one rule of a symbol, among those that are possible over a span."""
        rule = self._index.get(given) if isinstance(given, tuple) else None
        found = [rule] if rule is not None else [number for number in possible if self.rules[number][0] == given]
        if not found:
            raise ValueError(f"{where}: the grammar has no rule and no symbol {shown(given)}; see its rules")
        if len(found) > 1:
            named = ", ".join(_arrow(self.rules[number]) for number in found[:3])
            raise ValueError(
                f"{where}: {shown(given)} has {len(found)} rules ({named}{', ...' * (len(found) > 3)}); name one of "
                "them as a tuple, or give the span among the brackets, which no node crosses"
            )
        if found[0] not in possible:
            raise ValueError(
                f"{where}: {_arrow(self.rules[found[0]])} cannot stand there; preterminals stand over one token, "
                "binary rules over more"
            )
        return found[0]

    def header(self) -> dict[str, Any]:
        """The grammar as plain JSON values."""
        rules = [[label_to_json(symbol) for symbol in rule] for rule in self.rules]
        return {"rules": rules, "start": label_to_json(self.start)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Grammar:
        """The inverse of :meth:`header`; ValueError, KeyError or TypeError if it makes no sense."""
        rules = [tuple(label_from_json(symbol) for symbol in rule) for rule in header["rules"]]
        longer = [rule for rule in rules if len(rule) > 1]
        return cls(longer, label_from_json(header["start"]), [rule[0] for rule in rules if len(rule) == 1])


def _rule(given: Any, index: int) -> tuple[Hashable, ...]:
    if isinstance(given, str) or not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise ValueError(
            f"rule {index} must be a tuple (A, B, C) or (A, B), got {shown(given)}; write longer rules as several"
        )
    return tuple(plain(symbol, f"rule {index}") for symbol in given)


def _arrow(rule: tuple[Hashable, ...]) -> str:
    return f"{shown(rule[0])} -> {' '.join(shown(symbol) for symbol in rule[1:]) or 'a token'}"


def rule_text(rule: tuple[Hashable, ...]) -> str:
    """A rule in names: ``S → NP VP``, and for a preterminal its symbol."""
    return f"{rule[0]} → {' '.join(map(str, rule[1:]))}" if len(rule) > 1 else str(rule[0])
