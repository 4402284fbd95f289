"""Scores of labels by a plain walk over tokens: the slow twin of ``tasks.tagging.metrics``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Part = tuple[str, str]
_BOUNDARY: Part = ("O", "")


def parted(label: str) -> Part:
    """Tag and type of a label, L, U and M as E, S and I."""
    tag, kind = label.split("-", 1) if "-" in label else (label, "")
    return {"L": "E", "U": "S", "M": "I"}.get(tag, tag), kind


def ends(before: Part, after: Part, *, original: bool = False) -> bool:
    """Whether a chunk ends between two tags with types; ``original`` without the rules for IOBES."""
    (left, left_type), (right, right_type) = before, after
    if left in ("[", "]"):
        return True
    if left not in ("O", ".") and left_type != right_type:
        return True
    if left in ("B", "I") and right in ("B", "O"):
        return True
    if left == "E" and right in ("E", "I", "O"):
        return True
    return not original and (
        left == "S" or (left == "E" and right == "B") or (left in ("B", "I", "E") and right == "S")
    )


def begins(before: Part, after: Part, *, original: bool = False) -> bool:
    """Whether a chunk begins between two tags with types; ``original`` without the rules for IOBES."""
    (left, left_type), (right, right_type) = before, after
    if right in ("[", "]"):
        return True
    if right not in ("O", ".") and left_type != right_type:
        return True
    if right == "B" and left in ("B", "I", "O"):
        return True
    if right in ("I", "E") and left in ("O", "E"):
        return True
    return not original and (
        right == "S" or (left == "E" and right == "B") or (left == "S" and right in ("B", "I", "E"))
    )


def chunk_counts(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, original: bool = False
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Gold, predicted and correct chunks by type, token after token with the one flag that conlleval keeps."""
    found: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    last = (_BOUNDARY, _BOUNDARY)
    same = False  # both are in a chunk that began at one token with one type
    for pair in zip(gold, predicted, strict=True):
        rows = [(parted(g), parted(p)) for g, p in zip(*pair, strict=True)]
        for now in (*rows, (_BOUNDARY, _BOUNDARY)):
            over = [ends(last[side], now[side], original=original) for side in (0, 1)]
            new = [begins(last[side], now[side], original=original) for side in (0, 1)]
            if same and all(over) and last[0][1] == last[1][1]:
                found[2][last[0][1]] += 1
                same = False
            elif over[0] != over[1] or now[0][1] != now[1][1]:
                same = False
            if all(new) and now[0][1] == now[1][1]:
                same = True
            for side in (0, 1):
                found[side][now[side][1]] += new[side]
            last = now
    found[2][last[0][1]] += same
    return found


def chunk_sets(sentences: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
    """The chunks of legal or nearly legal sequences: sentence, first token, token after the last, type."""
    found = set()
    for i, labels in enumerate(sentences):
        parts = [_BOUNDARY, *map(parted, labels), _BOUNDARY]
        first: int | None = None
        for at in range(1, len(parts)):
            if first is not None and ends(parts[at - 1], parts[at]):
                found.add((i, first, at - 1, parts[at - 1][1]))
                first = None
            if begins(parts[at - 1], parts[at]):
                first = at - 1
    return found
