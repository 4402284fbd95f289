"""Labeled trees over tokens: as nested tuples, as bracketed text, and as lists of their nodes.

A tree is a tuple ``(label, child, child, ...)``; a child is a tree or a token, which is anything but a tuple or a list.
In bracketed text, as treebanks have it, ``(S (NP the cat) (VP sleeps))`` is ``("S", ("NP", "the", "cat"), ("VP",
"sleeps"))``. A list of trees and tokens is a forest. Nodes are rows ``(begin, end, label)`` in preorder: a node comes
before those inside it, and left before right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.data.labels import plain

JOINED = "+"
"""Between the labels of a chain of nodes over the same tokens, where they are made one label."""

_PIECES = re.compile(r"[()]|[^\s()]+")


class Nodes(NamedTuple):
    """A tree or a forest by its nodes.

    Attributes:
        n_tokens: how many tokens it has.
        nodes: ``(begin, end, label)`` in preorder.
    """

    n_tokens: int
    nodes: list[tuple[int, int, Hashable]]


def parse_trees(text: str) -> list[Any]:
    """The trees of bracketed text, one after the other, as nested tuples; ValueError where brackets do not match.

    A bracket without a label, as treebanks put it around a whole sentence, is left out: its children stand in its
    place.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string with bracketed trees, got {shown(text)}")
    open_nodes: list[list[Any]] = [[]]
    label_next = False
    for piece in _PIECES.finditer(text):
        word = piece.group()
        if word == "(":
            if label_next:
                open_nodes[-1].append("")
            open_nodes.append([])
        elif word == ")":
            if len(open_nodes) == 1:
                raise ValueError(f"character {piece.start()}: ')' closes no bracket")
            node = open_nodes.pop()
            if len(node) < 2:
                raise ValueError(f"character {piece.start()}: a bracket needs a label and at least one child")
            open_nodes[-1] += node[1:] if node[0] == "" else [tuple(node)]
        elif len(open_nodes) == 1:
            raise ValueError(f"character {piece.start()}: {word!r} stands outside brackets")
        else:
            open_nodes[-1].append(word)
        label_next = word == "("
    if len(open_nodes) > 1:
        raise ValueError(f"{len(open_nodes) - 1} brackets are not closed at the end of the text")
    return open_nodes[0]


def tree_text(tree: Any, tokens: Sequence[Any] | None = None) -> str:
    """A tree, or a forest, as bracketed text.

    Args:
        tree: nested tuples, such as a prediction of :class:`maxmargin.GrammarSVM`.
        tokens: in place of the tree's own leaves; None keeps those.
    """
    leaves = None if tokens is None else _checks.listed("tokens", tokens, "one token per leaf")
    pieces: list[str] = []
    place = 0
    stack: list[Any] = [*reversed(tree)] if isinstance(tree, list) else [tree]
    while stack:
        node = stack.pop()
        if node is stack:  # the end of a bracket
            pieces[-1] += ")"
        elif isinstance(node, tuple):
            _check_node(node, "tree")
            pieces.append(f"({node[0]}")
            stack += [stack, *reversed(node[1:])]
        else:
            if leaves is not None and place >= len(leaves):
                raise ValueError(f"tokens has {len(leaves)} entries, and the tree more leaves; give one token per leaf")
            pieces.append(str(node if leaves is None else leaves[place]))
            place += 1
    if leaves is not None and place < len(leaves):
        raise ValueError(f"tokens has {len(leaves)} entries for {place} leaves; give one token per leaf")
    return " ".join(pieces)


def nodes_of(tree: Any, where: str) -> Nodes:
    """The nodes of a tree (nested tuples), a forest (a list) or bracketed text; errors begin with ``where``."""
    if isinstance(tree, str):
        try:
            found = parse_trees(tree)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    else:
        found = tree if isinstance(tree, list) else [tree]
        if not isinstance(tree, (list, tuple)):
            raise ValueError(
                f"{where} must be a tree (label, child, ...), bracketed text, or a list of trees and tokens, got "
                f"{shown(tree)}"
            )
    nodes: list[list[Any]] = []
    stack: list[Any] = [*reversed(found)]
    place = 0
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            _check_node(node, where)
            nodes.append([place, -1, plain(node[0], where)])
            stack += [_End(nodes[-1]), *reversed(node[1:])]
        elif isinstance(node, _End):
            node.row[1] = place
        elif isinstance(node, list):
            raise ValueError(f"{where}: {shown(node)} stands inside a tree; write nodes as tuples (label, child, ...)")
        else:
            place += 1
    return Nodes(place, [(begin, end, label) for begin, end, label in nodes])


class _End:
    """The end of an open node, whose row it completes."""

    def __init__(self, row: list[Any]) -> None:
        self.row = row


def _check_node(node: tuple[Any, ...], where: str) -> None:
    if len(node) < 2:
        raise ValueError(f"{where}: {shown(node)} is not a node; it needs a label and at least one child")


def joined(nodes: Iterable[tuple[int, int, Hashable]], where: str) -> list[tuple[int, int, Hashable]]:
    """Nodes with chains over the same tokens made one node, whose label joins theirs: ``S+VP``."""
    found: list[tuple[int, int, Hashable]] = []
    for begin, end, label in nodes:
        if isinstance(label, str) and JOINED in label:
            raise ValueError(
                f"{where}: label {label!r} has a {JOINED!r}, which joins the labels of nodes over one span; rename it"
            )
        if found and found[-1][:2] == (begin, end):
            above = found.pop()[2]
            if not isinstance(above, str) or not isinstance(label, str):
                raise ValueError(
                    f"{where}: nodes {shown(above)} and {shown(label)} stand over the same tokens, and only labels "
                    "that are text can be joined into one; use text, or one node"
                )
            label = above + JOINED + label
        found.append((begin, end, label))
    return found


def separated(nodes: Iterable[tuple[int, int, Hashable]]) -> list[tuple[int, int, Hashable]]:
    """The reverse of :func:`joined`."""
    return [
        (begin, end, part)
        for begin, end, label in nodes
        for part in (label.split(JOINED) if isinstance(label, str) else (label,))
    ]


def tree_of(nodes: Sequence[tuple[int, int, Hashable]], n_tokens: int) -> list[Any]:
    """The forest of nodes in preorder, tokens by their numbers: a list of one tree if a node is around all."""
    forest: list[Any] = []
    open_nodes: list[tuple[int, list[Any]]] = [(n_tokens, forest)]
    place = 0

    def close(until: int) -> None:
        """Adds the tokens before ``until``, and closes the nodes that end there or before."""
        nonlocal place
        while open_nodes[-1][0] <= until and len(open_nodes) > 1:
            end, items = open_nodes.pop()
            items += range(place, end)
            place = end
            open_nodes[-1][1].append(tuple(items))
        open_nodes[-1][1].extend(range(place, until))
        place = max(place, until)

    for begin, end, label in nodes:
        close(begin)
        open_nodes.append((end, [label]))
    close(n_tokens)
    return forest


def common(gold: Nodes, predicted: Nodes) -> tuple[float, float]:
    """Twice the nodes on both sides, and the nodes of both: their ratio is F1."""
    both = Counter(gold.nodes) & Counter(predicted.nodes)
    return 2.0 * both.total(), float(len(gold.nodes) + len(predicted.nodes))
