"""Names of the features of the trees of a parser, for explanations.

Features are hashed, so that templates tell what they are. A name says all that the hash sees: the side on which the
head is, and distances and counts as they are grouped in ``cpp/include/maxmargin/dependencies/features.hpp``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.data.names import FeatureNamer, Name
from maxmargin.encoders.dependency import tree_namers
from maxmargin.features.hashed import HashedTrees, Template
from maxmargin.tasks.parsing.encoder.templates import ATTRIBUTES
from maxmargin.tasks.parsing.encoder.tokens import TokenNumbers

_UNKNOWN = -1


def token_text(words: Sequence[str], at: int) -> str:
    """Return the name of a token, counted from 1; 0 is the root."""
    return "root" if at == 0 else f"token {at} {words[at - 1]!r}" if at <= len(words) else f"token {at}"


def side_text(before: bool) -> str:
    """Return on which side of its modifier the head is."""
    return "head before" if before else "head after"


def distance_text(one: int, two: int) -> str:
    """Return how far two nodes are from each other, as features see it."""
    apart = abs(one - two)
    return str(apart) if apart <= 4 else "5-7" if apart <= 7 else "8-14" if apart <= 14 else "15+"


def few(count: int, most: int) -> str:
    """Return a count up to the one from which on all are alike."""
    return str(count) if count < most else f"{most}+"


def kinds_text(kinds: npt.NDArray[np.uint8], one: int, two: int) -> str:
    """Return how many words of each kind are between two nodes."""
    counts = np.bincount(kinds[min(one, two) + 1 : max(one, two)], minlength=4)[1:4].tolist()
    names = zip(counts, ("verbs", "punctuation", "conjunctions"), strict=True)
    return " ".join(f"{few(count, 2)} {name}" for count, name in names) + " between"


class Values:
    """The attributes of the nodes of one sentence as text."""

    def __init__(self, numbers: npt.NDArray[np.int32], known: TokenNumbers) -> None:
        self.numbers, self.n = numbers, len(numbers) - 1
        self.known = [{number: value for value, number in own.items()} for own in known.known]

    def value(self, node: int, attribute: int) -> str | None:
        """The value at a node, or what lies beyond the ends; None if it is unknown."""
        if not 0 <= node <= self.n:
            return "(begin)" if node < 0 else "(end)"
        number = int(self.numbers[node, attribute])
        return None if number == _UNKNOWN else "(root)" if number == 0 else self.known[attribute][number]

    def key(self, node: int, parts: tuple[tuple[int, int], ...]) -> str | None:
        """The text of a key, of a node that is not there if it is below 0; None if one of its values is unknown."""
        found = [
            (ATTRIBUTES[attribute], shift, "(none)" if node < 0 else self.value(node + shift, attribute))
            for attribute, shift in parts
        ]
        if any(value is None for _, _, value in found):
            return None
        return " ".join(f"{name}{f'{shift:+d}' if shift else ''}={value}" for name, shift, value in found)


def _circumstance(features: HashedTrees, seen: str, head: int, modifier: int, n: int) -> str:
    """What a template of arcs sees besides keys, as text; see :data:`~maxmargin.features.hashed.CIRCUMSTANCES`."""
    tags = features.tags[min(head, modifier) + 1 : max(head, modifier)]
    like = {role: few(int((tags == features.tags[node]).sum()), 3) for role, node in _roles(head, modifier)}
    if seen == "both same":
        return f"{like['head']} with the tag of the head and {like['modifier']} with that of the modifier between"
    if seen.startswith("same as "):
        role = seen.removeprefix("same as ")
        return f"{like[role]} with the tag of the {role} between"
    if seen == "kinds between":
        return kinds_text(features.kinds, head, modifier)
    if seen == "edge":
        ends = [f"{role} is {end}" for role, node in _roles(head, modifier) for end in _ends(node, n)]
        return " and ".join(ends) or "neither is first or last"
    assert seen == "place", seen
    length = "40+" if n >= 40 else f"{n // 5 * 5}-{n // 5 * 5 + 4}"
    return f"{few(modifier - 1, 3)} before and {few(n - modifier, 4)} after the modifier in {length} tokens"


def _roles(head: int, modifier: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("head", head), ("modifier", modifier)


def _ends(node: int, n: int) -> list[str]:
    return [end for end, place in (("first", 1), ("last", n)) if node == place]


def tree_features(features: HashedTrees, known: TokenNumbers) -> FeatureNamer:
    """Return a function that names the features of the parts of one tree, in the order in which they are made."""
    trees, templates, values = features.trees, features.templates, Values(features.numbers, known)
    owner = np.repeat(np.arange(1, values.n + 1), trees.n_states)
    starts = dict(zip((block.name for block in trees.blocks), trees.starts, strict=False))

    def joined(
        roles: tuple[str, ...], nodes: tuple[int, ...], lines: tuple[Template, ...], sides: list[str]
    ) -> Iterator[str]:
        """Each template alone, and with the distance of the modifier from sibling, grandparent, or else head."""
        far = 1 if roles[1] == "sibling" and nodes[1] >= 0 else 0
        away = f"{roles[far]} {distance_text(nodes[far], nodes[-1])} away"
        for line in lines:
            texts = []
            for role, node, key in zip(roles, nodes, line, strict=False):
                if key:
                    text = values.key(node, templates.keys[key])
                    if text is None:
                        break
                    texts.append(f"{role} {text}")
            else:
                if len(roles) == 2 and line[2]:
                    texts.append(_circumstance(features, line[2], nodes[0], nodes[1], values.n))
                yield ", ".join([*texts, *sides])
                yield ", ".join([*texts, *sides, away])

    def arc(head: int, modifier: int) -> Iterator[str]:
        side = side_text(head < modifier)
        yield from joined(("head", "modifier"), (head, modifier), templates.arcs, [side])
        if not templates.between:
            return
        ends = [values.key(node, templates.keys[templates.between]) for node in (head, modifier)]
        if None in ends:
            return
        upos = ATTRIBUTES.index("upos")
        step = 1 if head > modifier else -1
        seen = dict.fromkeys(int(features.tags[node]) - 1 for node in range(modifier + step, head, step))
        for number in seen:
            tag = "unknown" if number == _UNKNOWN else values.known[upos][number]
            yield f"head {ends[0]}, modifier {ends[1]}, {tag} between, {side}"

    def texts(part: int) -> Iterator[str]:
        for name in ("grandparents", "siblings"):
            if name in starts and part >= starts[name]:
                first, second, modifier = map(int, trees.triples_of(name, np.array([part - starts[name]]))[0])
                if name == "siblings":
                    nodes, sides = (first, -1 if second == first else second, modifier), [side_text(first < modifier)]
                    return joined(("head", "sibling", "modifier"), nodes, templates.siblings, sides)
                sides = [side_text(second < modifier), f"grandparent {'before' if first < second else 'after'} head"]
                roles = "grandparent", "head", "modifier"
                return joined(roles, (first, second, modifier), templates.grandparents, sides)
        return arc(int(trees.heads_of(np.array([part]))[0][0]), int(owner[part]))

    def named(part: int, weights: Sequence[int]) -> list[tuple[Name, bool]]:
        found = list(texts(part))
        if len(found) != len(weights):
            raise AssertionError(f"{len(found)} names for the {len(weights)} features of part {part}")
        return [(Name(text), False) for text in found] if weights else []

    return named


def part_namers(trees: Any, words: Sequence[str]) -> list[Any]:
    """Return functions that name the arcs, siblings and grandparents of one tree."""
    return tree_namers(trees, lambda at: token_text(words, at))
