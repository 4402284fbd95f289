"""Transition constraints: which labels of a sequence may follow each other, come first and come last.

A :class:`~maxmargin.structures.chains.chain.Chain` with constraints has only the label sequences that satisfy them:
others are never predicted, have no probability, and are refused as gold outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin.structures._arrays import FloatArray, IntArray, array_of, integers, lengths_of

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class TransitionConstraints:
    """Constraints on sequences of the labels ``0 .. K - 1``; equal if they allow the same sequences.

    Attributes:
        pairs: whether label ``b`` may follow label ``a``, shape ``(K, K)``, entry ``[a, b]``.
        first: whether a sequence may begin with a label, shape ``(K,)``.
        last: whether a sequence may end with a label, shape ``(K,)``.

    ``one & other`` allows what both allow.
    """

    pairs: BoolArray
    first: BoolArray
    last: BoolArray

    def __post_init__(self) -> None:
        pairs = _booleans(self.pairs, "pairs")
        if pairs.ndim != 2 or pairs.shape[0] != pairs.shape[1] or not pairs.size:
            raise ValueError(f"pairs must be a square array, one row and column per label, got shape {pairs.shape}")
        object.__setattr__(self, "pairs", pairs)
        for name in ("first", "last"):
            ends = _booleans(getattr(self, name), name)
            if ends.shape != pairs.shape[:1]:
                raise ValueError(f"{name} must have shape ({len(pairs)},), one flag per label, got {ends.shape}")
            object.__setattr__(self, name, ends)

    @classmethod
    def anything(cls, n_labels: int) -> TransitionConstraints:
        """No constraints."""
        n = _checks.integer("n_labels", n_labels, least=1)
        _memory.require(float(n) ** 2, "a flag for each pair of labels", "give fewer labels")
        return cls(np.ones((n, n), dtype=bool), np.ones(n, dtype=bool), np.ones(n, dtype=bool))

    @classmethod
    def bio(cls, labels: Sequence[str]) -> TransitionConstraints:
        """BIO tags, chunks as ``B-X I-X I-X``: ``I-X`` comes only after ``B-X`` or ``I-X``, and never first.

        Labels of other forms, such as ``O``, are outside chunks. ``B`` and ``I`` alone are chunks without a type.
        """
        kinds, types = _chunks(labels, {"B": "B", "I": "I"})
        continues = kinds == "I"
        same = types[:, None] == types[None, :]
        pairs = ~continues[None, :] | (np.isin(kinds, ["B", "I"])[:, None] & same)
        return cls(pairs, ~continues, np.ones(len(kinds), dtype=bool))

    @classmethod
    def iobes(cls, labels: Sequence[str]) -> TransitionConstraints:
        """IOBES tags, chunks as ``B-X I-X E-X`` or ``S-X``; or BILOU tags, ``L-X`` for ``E-X``, ``U-X`` for ``S-X``.

        ``B-X`` and ``I-X`` are followed by ``I-X`` or ``E-X``, which come nowhere else; so no sequence ends with the
        former or begins with the latter. Labels of other forms, such as ``O``, are outside chunks.
        """
        kinds, types = _chunks(labels, {"B": "B", "I": "I", "E": "E", "L": "E", "S": "S", "U": "S"})
        opens, continues = np.isin(kinds, ["B", "I"]), np.isin(kinds, ["I", "E"])
        same = types[:, None] == types[None, :]
        pairs = (opens[:, None] == continues[None, :]) & (~opens[:, None] | same)
        return cls(pairs, ~continues, ~opens)

    @classmethod
    def forbid(cls, labels: Sequence[str], pairs: Iterable[tuple[str | None, str | None]]) -> TransitionConstraints:
        """Any transitions but the given ones: ``("A", "B")`` forbids a ``B`` that follows an ``A``.

        ``(None, "B")`` forbids sequences that begin with ``B``, ``("A", None)`` those that end with ``A``.
        """
        number = {name: at for at, name in enumerate(_names(labels))}
        allowed, first, last = (flags.copy() for flags in cls.anything(len(number))._flags)
        for given in _checks.listed("forbidden transitions", pairs, "a list of pairs of labels", sized=False):
            pair = _checks.listed("a forbidden transition", given, "a pair of labels; None stands for the start or end")
            words = shown(given)
            if len(pair) != 2:
                raise ValueError(f"forbidden transitions must be pairs of labels, got {words}")
            for name in pair:
                if name is not None and not (isinstance(name, str) and name in number):
                    raise ValueError(
                        f"forbidden transition {words}: there is no label {shown(name)}; use the labels given"
                    )
            before, after = (None if name is None else number[name] for name in pair)
            if before is not None and after is not None:
                allowed[before, after] = False
            elif after is not None:
                first[after] = False
            elif before is not None:
                last[before] = False
            else:
                raise ValueError("forbidden transition (None, None): name at least one label")
        return cls(allowed, first, last)

    def __and__(self, other: TransitionConstraints) -> TransitionConstraints:
        if not isinstance(other, TransitionConstraints):
            return NotImplemented
        if other.n_labels != self.n_labels:
            raise ValueError(f"constraints on {self.n_labels} and on {other.n_labels} labels cannot be combined")
        return TransitionConstraints(*(one & two for one, two in zip(self._flags, other._flags, strict=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransitionConstraints) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        pairs, first, last = (int((~flags).sum()) for flags in self._flags)
        return f"TransitionConstraints({self.n_labels} labels; forbidden: {pairs} pairs, {first} first, {last} last)"

    @property
    def _flags(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        return self.pairs, self.first, self.last

    @property
    def n_labels(self) -> int:
        """Number of labels ``K``."""
        return len(self.pairs)

    @property
    def allows_all(self) -> bool:
        """Whether nothing is forbidden."""
        return all(bool(flags.all()) for flags in self._flags)

    @cached_property
    def inside(self) -> TransitionConstraints:
        """The constraints on pieces of sequences, which may begin and end with any label."""
        return TransitionConstraints(self.pairs, np.ones_like(self.first), np.ones_like(self.last))

    @cached_property
    def key(self) -> bytes:
        """The constraints as bytes, for comparisons."""
        return b"".join(flags.tobytes() for flags in self._flags)

    @cached_property
    def masks(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Masks to add to scores of pairs ``(K, K)``, first and last labels ``(K,)``: 0, or -inf if forbidden."""
        pairs, first, last = (np.where(flags, 0.0, -np.inf) for flags in self._flags)
        return pairs, first, last

    def broken(self, labels: npt.ArrayLike, lengths: npt.ArrayLike) -> BoolArray:
        """Positions that violate a constraint: flags, shape ``(n_positions,)``.

        A position is flagged if its label may not follow the one before, is first and may not be, or is last and may
        not be.

        Args:
            labels: of all positions, sequence after sequence, integers in ``0 .. K - 1``, shape ``(n_positions,)``.
            lengths: of the sequences.
        """
        flat, sizes = integers(labels, "labels"), lengths_of(lengths)
        if flat.shape != (sizes.sum(),) or (flat.size and (flat.min() < 0 or flat.max() >= self.n_labels)):
            raise ValueError(
                f"labels must be {int(sizes.sum())} numbers in 0..{self.n_labels - 1}, one per position of the lengths"
            )
        ends = np.cumsum(sizes, dtype=np.int64)
        wrong = np.zeros(len(flat), dtype=bool)
        wrong[1:] = ~self.pairs[flat[:-1], flat[1:]]
        begin, end = (ends - sizes)[sizes > 0], ends[sizes > 0] - 1
        wrong[begin] = ~self.first[flat[begin]]
        wrong[end] |= ~self.last[flat[end]]
        return wrong

    def refuse(self, labels: IntArray, lengths: IntArray) -> None:
        """ValueError naming the first position that violates a constraint; arguments as for :meth:`broken`."""
        wrong = np.flatnonzero(self.broken(labels, lengths))
        if not wrong.size:
            return
        at = int(wrong[0])
        ends = np.cumsum(lengths)
        example = int(np.searchsorted(ends, at, side="right"))
        position = at - int(ends[example] - lengths[example])
        label = int(labels[at])
        if position == 0 and not self.first[label]:
            what = f"label {label} may not come first"
        elif position > 0 and not self.pairs[labels[at - 1], label]:
            what = f"label {label} at position {position} (from 0) may not follow label {labels[at - 1]}"
        else:
            what = f"label {label} at position {position} (from 0) may not come last"
        raise ValueError(f"example {example}: {what}; correct its labels, or build the chain with other constraints")

    def reachable(self, longest: int) -> tuple[BoolArray, BoolArray]:
        """Labels that allowed prefixes can lead to, and that allowed suffixes can follow.

        Two arrays of shape ``(longest, K)``: row ``t`` of the first is about a label with ``t`` positions before it,
        row ``t`` of the second about one with ``t`` positions after it.
        """
        return _powers(self.first, self.pairs, longest), _powers(self.last, self.pairs.T, longest)


def _powers(start: BoolArray, follows: BoolArray, count: int) -> BoolArray:
    """Labels reached in ``0 .. count - 1`` steps; sets of labels soon recur and then repeat periodically."""
    rows, seen = [start], {start.tobytes(): 0}
    while len(rows) < count:
        after = np.asarray(follows[rows[-1]].any(axis=0))
        known = seen.setdefault(after.tobytes(), len(rows))
        if known < len(rows):
            at = np.arange(len(rows), count)
            return np.concatenate([np.array(rows), np.array(rows)[known + (at - known) % (len(rows) - known)]])
        rows.append(after)
    return np.array(rows)[:count]


def _booleans(values: Any, what: str) -> BoolArray:
    flags = np.array(array_of(values, what, "b", "an array of booleans"))
    if flags.dtype != np.bool_:
        raise ValueError(f"{what} must be an array of booleans, got {flags.dtype}")
    flags.setflags(write=False)
    return flags


def _names(labels: Sequence[str]) -> list[str]:
    names = _checks.listed("labels", labels, "a sequence of strings", sized=False)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels must be a sequence of strings, got {shown(labels)}")
    if not names:
        raise ValueError("labels must not be empty")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"label {shown(twice)} comes twice; give every label once, in the order of their numbers")
    return names


def _chunks(labels: Sequence[str], prefixes: dict[str, str]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Per label: its place in a chunk (empty outside chunks), and the type of the chunk."""
    kinds, types = [], []
    for name in _names(labels):
        prefix, dash, rest = name.partition("-")
        fits = prefix in prefixes and bool(rest or not dash)
        kinds.append(prefixes[prefix] if fits else "")
        types.append(rest if fits else "")
    return np.array(kinds, dtype=object), np.array(types, dtype=object)
