"""Names of the features of a parser, for explanations: features are hashed, so that templates tell what they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.data.names import FeatureNamer, Name
from maxmargin.encoders.dependency import tree_namers
from maxmargin.features.hashed import HashedTrees, Template
from maxmargin.features.supported import Support
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.parsing.encoder.templates import ATTRIBUTES, relation_templates, relation_texts
from maxmargin.tasks.parsing.encoder.tokens import Nodes, TokenNumbers

_UNKNOWN = -1
_BESIDE = {"m": (0, 0), "h": (1, 0), "m-1": (0, -1), "m+1": (0, 1), "h-1": (1, -1), "h+1": (1, 1)}
"""Nodes of templates of relations whose attributes are shown: of the token or its head, and how far beside it."""


def token_text(words: Sequence[str], at: int) -> str:
    """Return the name of a token, counted from 1; 0 is the root."""
    return "root" if at == 0 else f"token {at} {words[at - 1]!r}" if at <= len(words) else f"token {at}"


class _Values:
    """The attributes of the nodes of one sentence as text."""

    def __init__(self, numbers: npt.NDArray[np.int32], known: TokenNumbers) -> None:
        self.numbers, self.n = numbers, len(numbers) - 1
        self._known = [{number: value for value, number in own.items()} for own in known.known]

    def value(self, node: int, attribute: int) -> str | None:
        """The value at a node, or what lies beyond the ends; None if it is unknown."""
        if not 0 <= node <= self.n:
            return "(begin)" if node < 0 else "(end)"
        number = int(self.numbers[node, attribute])
        return None if number == _UNKNOWN else "(root)" if number == 0 else self._known[attribute][number]

    def key(self, node: int, parts: tuple[tuple[int, int], ...]) -> str | None:
        """The text of a key; None if one of its values is unknown."""
        found = [(ATTRIBUTES[attribute], shift, self.value(node + shift, attribute)) for attribute, shift in parts]
        if any(value is None for _, _, value in found):
            return None
        return " ".join(f"{name}{f'{shift:+d}' if shift else ''}={value}" for name, shift, value in found)


def tree_features(features: HashedTrees, known: TokenNumbers) -> FeatureNamer:
    """Return a function that names the features of the parts of one tree, in the order in which they are made."""
    trees, templates, values = features.trees, features.templates, _Values(features.numbers, known)
    owner = np.repeat(np.arange(1, values.n + 1), trees.n_states)
    starts = dict(zip((block.name for block in trees.blocks), trees.starts, strict=False))

    def joined(roles: tuple[str, ...], nodes: tuple[int, ...], lines: tuple[Template, ...]) -> Iterator[str]:
        """Each template alone, and with the distance."""
        for line in lines:
            texts = []
            for role, node, key in zip(roles, nodes, line, strict=False):
                if key and node < 0:
                    texts.append(f"no {role}")
                elif key:
                    text = values.key(node, templates.keys[key])
                    if text is None:
                        break
                    texts.append(f"{role} {text}")
            else:
                more = [line[2]] if len(roles) == 2 and line[2] else []
                yield ", ".join([*texts, *more])
                yield ", ".join([*texts, *more, "distance"])

    def arc(head: int, modifier: int) -> Iterator[str]:
        yield from joined(("head", "modifier"), (head, modifier), templates.arcs)
        if not templates.between:
            return
        ends = [values.key(node, templates.keys[templates.between]) for node in (head, modifier)]
        if None in ends:
            return
        upos = ATTRIBUTES.index("upos")
        step = 1 if head > modifier else -1
        seen = dict.fromkeys(int(features.tags[node]) - 1 for node in range(modifier + step, head, step))
        for number in seen:
            tag = "unknown" if number == _UNKNOWN else values._known[upos][number]
            yield f"head {ends[0]}, modifier {ends[1]}, {tag} between"

    def texts(part: int) -> Iterator[str]:
        for name in ("grandparents", "siblings"):
            if name in starts and part >= starts[name]:
                first, second, modifier = map(int, trees.triples_of(name, np.array([part - starts[name]]))[0])
                if name == "siblings":
                    nodes = first, -1 if second == first else second, modifier
                    return joined(("head", "sibling", "modifier"), nodes, templates.siblings)
                return joined(("grandparent", "head", "modifier"), (first, second, modifier), templates.grandparents)
        return arc(int(trees.heads_of(np.array([part]))[0][0]), int(owner[part]))

    def named(part: int, weights: Sequence[int]) -> list[tuple[Name, bool]]:
        found = list(texts(part))
        if len(found) != len(weights):
            raise AssertionError(f"{len(found)} names for the {len(weights)} features of part {part}")
        return [(Name(text), False) for text in found] if weights else []

    return named


def relation_features(
    nodes: Nodes, heads: IntArray, known: TokenNumbers, support: Support, bits: int, classes: Sequence[str]
) -> FeatureNamer:
    """Return a function that names the features of the relation of each token of one sentence."""
    values, k = _Values(nodes.numbers, known), len(classes)
    starts, terms = relation_templates()
    lines = relation_texts()
    before: list[Counter[int]] = [Counter() for _ in heads]
    names: list[dict[int, str]] = [{} for _ in heads]
    for template in range(len(lines)):
        # The hash of a template depends on its number, so its features are those that it adds to the ones before it.
        some = starts[: template + 2]
        given = nodes.lengths, nodes.numbers, nodes.kinds, np.ascontiguousarray(heads, dtype=np.int64)
        rows, columns = _kernels.relation_rows(*given, some, np.ascontiguousarray(terms[: some[-1]]), bits, 1)
        for token in range(len(heads)):
            own = Counter(columns[rows[token] : rows[token + 1]].tolist())
            text = _filled(lines[template], token + 1, int(heads[token]), values)
            for column in own - before[token]:
                names[token][column] = f"{names[token][column]} / {text}" if column in names[token] else text
            before[token] = own

    def named(part: int, weights: Sequence[int]) -> list[tuple[Name, bool]]:
        token, relation = divmod(part, k)
        return [(Name(names[token][int(support.features[at])], classes[relation]), False) for at in weights]

    return named


def _filled(line: str, token: int, head: int, values: _Values) -> str:
    """A template with the values of the token and its head, and of the words beside them."""
    found = []
    for term in line.split():
        role, _, attribute = term.rpartition(".")
        if role in _BESIDE:
            side, shift = _BESIDE[role]
            node = (token, head)[side] + shift
            value = values.value(node, ATTRIBUTES.index(attribute)) if 0 <= node <= values.n else "(none)"
            found.append(f"{term}={value}")
        else:
            found.append(term)
    return " ".join(found)


def part_namers(trees: Any, words: Sequence[str]) -> list[Any]:
    """Return functions that name the arcs, siblings and grandparents of one tree."""
    return tree_namers(trees, lambda at: token_text(words, at))
