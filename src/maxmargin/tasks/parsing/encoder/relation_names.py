"""Names of the features of the relations of a parser, for explanations.

A feature is hashed from its template, the side of the head, and what the terms of the template see: the names go
through the templates as ``cpp/include/maxmargin/parsing/relations.hpp`` does, and find columns by the same hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from maxmargin.encoders.data.names import FeatureNamer, Name
from maxmargin.features.supported import Support
from maxmargin.structures.base import IntArray
from maxmargin.tasks.parsing.encoder.names import Values, distance_text, few, kinds_text, side_text
from maxmargin.tasks.parsing.encoder.templates import ATTRIBUTES, ROLES, relation_texts
from maxmargin.tasks.parsing.encoder.tokens import Nodes, TokenNumbers

_WORD = (1 << 64) - 1
_ABSENT = -2
"""What a template sees of a node that does not exist."""

Seen = dict[str, tuple[int, str]]
"""For each circumstance its number in hashes, and its text."""


def relation_features(
    nodes: Nodes, heads: IntArray, known: TokenNumbers, support: Support, bits: int, classes: Sequence[str]
) -> FeatureNamer:
    """Return a function that names the features of the relation of each token of one sentence."""
    sentence, k = _Sentence(nodes, heads, known), len(classes)
    names: dict[int, dict[int, str]] = {}

    def of_token(token: int) -> dict[int, str]:
        found: dict[int, str] = {}
        for hashed, text in sentence.features(token):
            column = hashed & ((1 << bits) - 1)
            found[column] = f"{found[column]} / {text}" if column in found else text
        return found

    def named(part: int, weights: Sequence[int]) -> list[tuple[Name, bool]]:
        token, relation = divmod(part, k)
        if token not in names:
            names[token] = of_token(token + 1)
        return [(Name(names[token][int(support.features[at])], classes[relation]), False) for at in weights]

    return named


class _Sentence:
    """A sentence with its tree."""

    def __init__(self, nodes: Nodes, heads: IntArray, known: TokenNumbers) -> None:
        self.numbers, self.kinds, self.n = nodes.numbers, nodes.kinds, len(heads)
        self.heads, self.values = [-1, *heads.tolist()], Values(nodes.numbers, known)

    @cached_property
    def below(self) -> list[list[int]]:
        """The tokens below each node, in order."""
        found: list[list[int]] = [[] for _ in self.heads]
        for token in range(1, self.n + 1):
            found[self.heads[token]].append(token)
        return found

    def features(self, token: int) -> Iterator[tuple[int, str]]:
        """Hashes and texts of all features of a token, from 1."""
        places, seen = self._near(token), self._seen(token)
        for number, line in enumerate(relation_texts()):
            terms = line.split()
            repeated = next(
                (role for role in ("child", "sibling") if any(term.startswith(role + ".") for term in terms)), ""
            )
            if not repeated:
                yield from self._feature(number, terms, token, places, seen)
                continue
            for other in self.below[token if repeated == "child" else self.heads[token]]:
                if other != token:
                    own = {**seen, "side": self._side(other, token, repeated)}
                    yield from self._feature(number, terms, token, {**places, repeated: other}, own)

    def _feature(
        self, number: int, terms: list[str], token: int, places: dict[str, int], seen: Seen
    ) -> Iterator[tuple[int, str]]:
        """The feature of a template, if all that it sees is known."""
        before = self.heads[token] < token
        hashed, texts = 2 * number + before, []
        for term in terms:
            role, _, attribute = term.rpartition(".")
            if not role:
                x, text = seen[term]
            elif (node := places.get(role, -1)) < 0:
                x, text = _ABSENT, f"{term}=(none)"
            else:
                place = ATTRIBUTES.index(attribute)
                x, value = int(self.numbers[node, place]), self.values.value(node, place)
                if value is None:
                    return
                text = f"{term}={value}"
            texts.append(text)
            hashed = ((hashed ^ (hashed >> 32)) * 0x9E3779B97F4A7C15 + x + 3) & _WORD
            hashed ^= hashed >> 29
        hashed = hashed * 0xD6E8FEB86659FD93 & _WORD
        yield hashed ^ (hashed >> 32), f"{' '.join(texts)}, {side_text(before)}"

    def _near(self, token: int) -> dict[str, int]:
        """The nodes near a token by their roles; what is not there is left out, or has no node."""
        head = self.heads[token]
        found = {"m": token, "h": head, "g": self.heads[head], "begin": 1, "end": self.n}
        beside = {"m-1": token - 1, "m+1": token + 1, "h-1": head - 1, "h+1": head + 1}
        found |= {role: node for role, node in beside.items() if node <= self.n}
        beside_left = [other for other in self.below[head] if other < token]
        beside_right = [other for other in self.below[head] if other > token]
        for role, some, at in (
            ("left", beside_left, -1),
            ("right", beside_right, 0),
            ("first", self.below[token], 0),
            ("last", self.below[token], -1),
        ):
            if some:
                found[role] = some[at]
        assert found.keys() <= set(ROLES)
        return found

    def _seen(self, token: int) -> Seen:
        """The circumstances of a token; the side is that of one child or sibling."""
        head, children = self.heads[token], len(self.below[token])
        same = [other for other in self.below[head] if other != token and (other < head) == (token < head)]
        before = sum(other < token for other in same)
        after = len(same) - before
        apart = abs(head - token)
        kinds = np.bincount(self.kinds[min(head, token) + 1 : max(head, token)], minlength=4)[1:4].tolist()
        top = 2 if head == 0 else int(self.heads[head] == 0)
        return {
            "distance": (
                apart if apart <= 4 else 5 if apart <= 7 else 6 if apart <= 14 else 7,
                f"head {distance_text(head, token)} away",
            ),
            "siblings": (
                min(before, 3) * 4 + min(after, 3),
                f"siblings on its side: {few(before, 3)} before, {few(after, 3)} after",
            ),
            "children": (min(children, 4), f"children: {few(children, 4)}"),
            "between": (sum(min(kinds[k], 2) * 3 ** (2 - k) for k in range(3)), kinds_text(self.kinds, head, token)),
            "top": (top, ("deep", "below the root word", "root word")[top]),
        }

    def _side(self, other: int, token: int, role: str) -> tuple[int, str]:
        """On which sides of a token and its head a child or sibling is."""
        left_of_token, left_of_head = other < token, other < self.heads[token]
        sides = [f"{'before' if left else 'after'} {of}" for left, of in ((left_of_token, "m"), (left_of_head, "h"))]
        return 10 * ROLES.index(role) + 2 * left_of_token + left_of_head, f"{role} {' and '.join(sides)}"
