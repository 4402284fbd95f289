"""Segmentations: a sequence is cut into labeled segments, scored as wholes (semi-Markov models).

Example ``i`` is a sequence of ``n`` tokens, its output a list of segments, each with one of ``K`` labels. The parts are

* ``tokens[t, s]``, whether token ``t`` has state ``s``: the label of its segment and its place there decide its state
  (:func:`token_states`), as tags such as B-NP and I-NP do. Scores of tokens are so summed over segments, and Hamming
  loss counts tokens of a wrong state, wrong borders too;
* ``transitions[a, b]``, how often a segment of label ``b`` follows one of label ``a``;
* ``segments[b, l, y]``, whether there is a segment of label ``y`` with the ``l`` tokens from ``b`` on.

Cost per example, with segments of at most ``L`` tokens: argmax ``n L K + n K^2`` additions and maxima, one stream over
the scores of segments (Sarawagi and Cohen 2004); marginals, k best outputs and slack rescaling those of a deduction
system (:mod:`maxmargin.structures.deductions.base`) with ``3 n L K + n K^2`` ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._messages import shown
from maxmargin.structures._arrays import (
    Ragged,
    example_numbers,
    integers,
    lengths_of,
    offsets_in_memory,
    offsets_of,
    one_per_example,
    ranges,
    vector,
)
from maxmargin.structures._labeled import check_range, joined_labels, largest
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.deductions.base import Deduction
from maxmargin.structures.sparse import SparsePoint

FIRST, INSIDE, LAST, SINGLE = range(4)
"""The places of a token in its segment: the columns of a table of states."""

ROLES = {"I": (0, 0, 0, 0), "BI": (0, 1, 1, 0), "BIES": (0, 1, 2, 3)}
"""How many states each label has, and which place has which."""

_MOST_LABELS = 1 << 15
_MOST_LENGTH = 1 << 30


def token_states(n_labels: int, roles: str = "BI") -> IntArray:
    """The states of tokens by label and place, shape ``(n_labels, 4)``: first, inside, last, and alone in its segment.

    Args:
        n_labels: number of labels ``K``.
        roles: "I": the label alone; "BI": first tokens are told from others, state ``2 y`` or ``2 y + 1``; "BIES":
            first, inside, last and single tokens have states ``4 y`` to ``4 y + 3``.
    """
    _checks.one_of("roles", roles, tuple(ROLES))
    own, labels = np.array(ROLES[roles]), np.arange(_checks.integer("n_labels", n_labels, least=1, most=_MOST_LABELS))
    return np.asarray(labels[:, None] * (own.max() + 1) + own)


def n_candidate_segments(lengths: IntArray, longest: int) -> IntArray:
    """The number of segments of up to ``longest`` tokens of sequences."""
    return _before(lengths, lengths, longest)


def candidate_segments(length: int, longest: int) -> IntArray:
    """All segments ``(begin, end)`` of a sequence, in the order of their parts: by begin, then by end."""
    n, most = _checks.integer("length", length, least=0), _checks.integer("longest", longest, least=1)
    lengths = np.minimum(most, n - np.arange(n))
    begin = np.repeat(np.arange(n), lengths)
    return np.stack([begin, ranges(np.arange(n) + 1, np.arange(n) + 1 + lengths)], axis=1)


class Segments(Deduction):
    """A packed batch of sequences with three blocks, ``tokens``, ``transitions`` and ``segments``.

    Args:
        lengths: tokens of the sequences, shape ``(n_examples,)``; a sequence may be empty.
        n_labels: ``K``.
        longest: the most tokens of a segment, one number or one for each label, shape ``(K,)``.
        states: the states of tokens, shape ``(K, 4)``, as :func:`token_states` makes them; -1 where a label has no
            tokens at such a place. None for ``token_states(K, "BI")``.
        constraints: which labels may follow each other, come first and come last; None for any.

    An output is an int64 array ``(n_segments, 3)``: first token, token after the last, label; in order, without gaps. A
    score of ``-inf`` forbids a part. Among outputs of equal score the argmax takes the lowest last label, the longest
    last segment, then the lowest label before it, and so on.
    """

    name = "segmentation"
    kernel = "Segments"
    categorical = True

    def __init__(
        self,
        lengths: npt.ArrayLike,
        n_labels: int,
        longest: npt.ArrayLike,
        *,
        states: npt.ArrayLike | None = None,
        constraints: TransitionConstraints | None = None,
    ) -> None:
        self.lengths = lengths_of(lengths)
        self.n_labels = k = _checks.integer("n_labels", n_labels, least=1, most=_MOST_LABELS)
        most = integers(longest, "longest")
        if most.shape not in ((), (k,)) or (most < 1).any() or (most >= _MOST_LENGTH).any():
            raise ValueError(
                f"longest must be a number between 1 and {_MOST_LENGTH - 1}, or {k} of them, one per label; got "
                f"{shown(longest)}"
            )
        self.longest = np.broadcast_to(most, (k,)).copy()
        self.states = token_states(k) if states is None else integers(states, "states")
        if self.states.shape != (k, 4) or (self.states < -1).any() or (self.states >= _MOST_LENGTH).any():
            raise ValueError(f"states must be numbers >= 0, or -1, of shape ({k}, 4), got shape {self.states.shape}")
        if (self.states < 0).all():
            raise ValueError("states gives no label any tokens; give at least one a state >= 0")
        if constraints is not None and not isinstance(constraints, TransitionConstraints):
            raise ValueError(f"constraints must be a TransitionConstraints or None, got {type(constraints).__name__}")
        if constraints is not None and constraints.n_labels != k:
            raise ValueError(f"the constraints are for {constraints.n_labels} labels, but there are {k}")
        self.constraints = constraints
        n_rows = n_candidate_segments(self.lengths, self.most)
        self.blocks = (
            Block("tokens", offsets_in_memory(self.lengths, self.n_states_each, "states of all tokens")),
            Block("transitions", offsets_in_memory(np.ones_like(self.lengths), k**2, "pairs of labels")),
            Block("segments", offsets_in_memory(n_rows, k, "labels of all segments")),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_examples} sequences, {int(self.lengths.sum())} tokens, {self.n_labels} "
            f"labels, segments of up to {self.most} tokens)"
        )

    @property
    def most(self) -> int:
        """The most tokens of a segment of any label, ``L``."""
        return int(self.longest.max())

    @property
    def n_states_each(self) -> int:
        """The number of states of a token, ``S``."""
        return int(self.states.max()) + 1

    @property
    def states_per_variable(self) -> int:
        """Each token has one of all states."""
        return self.n_states_each

    @property
    def _rules(self) -> TransitionConstraints:
        return self.constraints or TransitionConstraints.anything(self.n_labels)

    @cached_property
    def _batch(self) -> Any:
        rules = self._rules
        flags = (
            np.ascontiguousarray(one, dtype=np.uint8).reshape(-1) for one in (rules.pairs, rules.first, rules.last)
        )
        states = np.ascontiguousarray(self.states.T, dtype=np.int32).reshape(-1)
        longest = np.minimum(self.longest, max(int(self.lengths.max(initial=0)), 1))
        return _kernels.SegmentsBatch(self.lengths, self.n_states_each, states, longest, *flags)

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for states and segments; transitions (a, a) come ``length - 1`` times at most, others ``length // 2``
        times.

        0 for transitions and segments that are forbidden.
        """
        self._require_memory()
        same, other = np.maximum(self.lengths - 1, 0)[:, None, None], (self.lengths // 2)[:, None, None]
        transitions = np.where(np.eye(self.n_labels, dtype=bool), same, other) * self._rules.pairs
        fits = self.row_lengths[:, None] <= self.longest
        return np.concatenate([np.ones(self.starts[1]), transitions.ravel(), fits.ravel()])

    @property
    def row_lengths(self) -> IntArray:
        """The length of each candidate segment of the batch, example after example, see :func:`candidate_segments`."""
        left = np.repeat(offsets_of(self.lengths)[1:], self.lengths) - np.arange(int(self.lengths.sum()))
        lengths = np.minimum(self.most, left)
        return ranges(np.ones_like(lengths), lengths + 1)

    def encode(self, labels: Sequence[Any], *, names: Sequence[Any] | None = None) -> SparsePoint:
        """The parts of one segmentation per example; errors call labels by ``names``, or by their numbers."""
        given = enumerate(one_per_example(labels, self.n_examples, "segmentations"))
        rows = [_rows(label, i) for i, label in given]
        flat = np.concatenate([np.zeros((0, 3), dtype=np.int64), *rows])
        return self._encoded(flat, np.array([len(own) for own in rows], dtype=np.int64), names)

    def _encoded(self, flat: IntArray, counts: IntArray, names: Sequence[Any] | None = None) -> SparsePoint:
        """The parts of segments, example after example."""
        example = np.repeat(np.arange(self.n_examples), counts)
        self._check(flat, example, counts, range(self.n_labels) if names is None else names)
        (begin, end, label), k = flat.T, self.n_labels
        row = _before(begin, self.lengths[example], self.most) + end - begin - 1
        segments = self.starts[2] + self.blocks[2].offsets[example] + row * k + label
        joined = np.flatnonzero(example[1:] == example[:-1])
        pairs = self.starts[1] + example[joined] * k * k + label[joined] * k + label[joined + 1]
        tokens = np.arange(int(self.lengths.sum())) * self.n_states_each + self._token_states(flat)
        return SparsePoint.counting(self, np.concatenate([tokens, pairs, segments]))

    def _token_states(self, flat: IntArray) -> IntArray:
        """The states of all tokens of legal segmentations."""
        lengths = flat[:, 1] - flat[:, 0]
        ends = np.cumsum(lengths)
        role = np.full(int(lengths.sum()), INSIDE)
        role[ends - lengths], role[ends - 1] = FIRST, LAST
        role[(ends - 1)[lengths == 1]] = SINGLE
        return np.asarray(self.states[np.repeat(flat[:, 2], lengths), role])

    def _check(self, flat: IntArray, example: IntArray, counts: IntArray, names: Sequence[Any]) -> None:
        """ValueError naming the first example whose rows are not a legal segmentation."""
        k, rules = self.n_labels, self._rules
        ends, some = np.cumsum(counts), counts > 0
        starts = np.concatenate([[0], flat[:-1, 1]]) if len(flat) else np.zeros(0, dtype=np.int64)
        starts[(ends - counts)[some]] = 0
        label = np.clip(flat[:, 2], 0, k - 1)
        length = flat[:, 1] - flat[:, 0]
        follows, first, last = np.zeros((3, len(flat)), dtype=bool)
        at = np.flatnonzero(example[1:] == example[:-1]) + 1
        follows[at] = ~rules.pairs[label[at - 1], label[at]]
        first[(ends - counts)[some]] = ~rules.first[label[(ends - counts)[some]]]
        last[ends[some] - 1] = ~rules.last[label[ends[some] - 1]]
        needed = np.where(length[:, None] == 1, [[SINGLE] * 3], [[FIRST, LAST, LAST]])
        needed[length > 2, 2] = INSIDE
        faults = (
            (flat[:, 0] != starts, "does not begin where the one before it ends, or at 0"),
            (length <= 0, "is empty; end must be greater than begin"),
            (flat[:, 1] > self.lengths[example], "ends after the sequence"),
            (flat[:, 2] != label, f"has a label that is not between 0 and {k - 1}"),
            (length > self.longest[label], "is longer than its label allows; cut it, or raise longest"),
            ((self.states[label[:, None], needed] < 0).any(axis=1), "has a length for which its label has no states"),
            (follows, "has a label that may not follow the one before it"),
            (first, "has a label that may not come first"),
            (last, "has a label that may not come last"),
        )
        for wrong, what in faults:
            if wrong.any():
                at_row = int(np.argmax(wrong))
                begin, end, code = flat[at_row].tolist()
                segment = begin, end, names[code] if 0 <= code < k else code
                raise ValueError(f"example {int(example[at_row])}: segment {segment} (begin, end, label) {what}")
        reached = np.zeros(self.n_examples, dtype=np.int64)
        reached[some] = flat[ends[some] - 1, 1]
        short = np.flatnonzero(reached != self.lengths)
        if short.size:
            i = int(short[0])
            raise ValueError(
                f"example {i}: the segments end at {int(reached[i])} and the sequence at {int(self.lengths[i])}; "
                "segments must cover all tokens"
            )

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The segmentations of a packed vertex: per example an int64 array ``(n_segments, 3)``."""
        taken = np.flatnonzero(vector(z, self.n_parts, "z")[self.starts[2] :] > 0.5)
        offsets, k = self.blocks[2].offsets, self.n_labels
        example = np.searchsorted(offsets, taken, side="right") - 1
        number, label = np.divmod(taken - offsets[example], k)
        n = self.lengths[example]
        begin = _begin_of(number, n, self.most)
        end = begin + number - _before(begin, n, self.most) + 1
        rows = np.stack([begin, end, label], axis=1)
        return np.split(rows, np.searchsorted(example, np.arange(1, self.n_examples))) if self.n_examples else []

    def best_states(self, scores: FloatArray) -> Labeling:
        """The states of the tokens of the best segmentations, without the packed vector; -1 where there is none."""
        found = np.empty(int(self.lengths.sum()), dtype=np.int32)
        value, status = np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        scores = vector(scores, self.n_parts, "scores")
        self._batch.states(scores, found, value, status, _threads.current())
        return Labeling(Ragged(found, offsets_of(self.lengths)), value, status)

    def max_marginals(self, scores: FloatArray) -> FloatArray:
        """The score of the best segmentation in which a token has a state, shape ``(n_tokens, S)``.

        ``-inf`` where no segmentation has it, NaN throughout an example whose scores are NaN or +inf.
        """
        out = np.empty(self.starts[1])
        self._batch.max_marginals(vector(scores, self.n_parts, "scores"), out, _threads.current())
        return out.reshape(-1, self.n_states_each)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(
            self.lengths[chosen], self.n_labels, self.longest, states=self.states, constraints=self.constraints
        )


class TaggedSegments(Segments):
    """Segmentations that are given and shown as states of tokens, such as the codes of BIO tags.

    An output is an int64 array with a state for each token. The states of a label must show where its segments begin:
    those of first and single tokens are others than those of inside and last ones, unless its segments have one token.
    Arguments as for :class:`Segments`.
    """

    def __init__(self, lengths: npt.ArrayLike, n_labels: int, longest: npt.ArrayLike, **given: Any) -> None:
        super().__init__(lengths, n_labels, longest, **given)
        begins, others = self.states[:, [FIRST, SINGLE]], self.states[:, [INSIDE, LAST]]
        clash = ((begins[:, :, None] == others[:, None, :]) & (begins[:, :, None] >= 0)).any(axis=(1, 2))
        self._begins = np.zeros(self.n_states_each, dtype=bool)
        self._begins[begins[begins >= 0]] = True
        self._label = np.full(self.n_states_each, -1, dtype=np.int64)
        for label, own in enumerate(self.states):
            twice = own[(own >= 0) & (self._label[own] >= 0)]
            if twice.size or (clash[label] and self.longest[label] > 1):
                raise ValueError(
                    f"label {label}: its states do not tell where segments begin; give others, or longest=1"
                )
            self._label[own[own >= 0]] = label

    def encode(self, labels: Sequence[Any], *, names: Sequence[Any] | None = None) -> SparsePoint:
        """The parts of one sequence of states per example; errors call states by ``names``, or by their numbers."""
        flat = joined_labels(labels, self.lengths, "label sequences", "token")
        check_range(flat, self.n_states_each, self.lengths, self.name)
        return self._encoded(*self._segments(flat, range(self.n_states_each) if names is None else names))

    def _segments(self, states: IntArray, names: Sequence[Any]) -> tuple[IntArray, IntArray]:
        """The segments of states of all tokens, and how many each example has; ValueError for states out of place."""
        offsets = offsets_of(self.lengths)
        label, starts = self._label[states], self._begins[states]
        starts[1:] |= label[1:] != label[:-1]
        starts[offsets[:-1][self.lengths > 0]] = True
        first = np.flatnonzero(starts)
        example = np.searchsorted(offsets, first, side="right") - 1
        begin = first - offsets[example]
        rows = np.stack([begin, begin + np.diff(np.append(first, len(states))), label[first]], axis=1)
        wrong = label < 0
        if not wrong.any():
            wrong = self._token_states(rows) != states
        if wrong.any():
            at = int(np.argmax(wrong))
            i = int(np.searchsorted(offsets, at, side="right")) - 1
            found, position = shown(names[int(states[at])]), at - int(offsets[i])
            raise ValueError(
                f"example {i}: label {found} at position {position} (from 0) is not part of a segment; correct it"
            )
        return rows, np.bincount(example, minlength=self.n_examples)

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Sequences of states, one int64 array per example."""
        return largest(vector(z, self.n_parts, "z")[self.variable_parts], self.n_states_each, self.lengths)

    def labels(self, scores: FloatArray) -> Labeling:
        """The states of the best segmentations, see :meth:`best_states`."""
        return self.best_states(scores)


def _rows(given: Any, index: int) -> IntArray:
    found = integers(given, f"example {index}: segments") if np.size(given) else np.zeros((0, 3), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 3:
        raise ValueError(
            f"example {index}: segments must be rows (begin, end, label), shape (n_segments, 3), got {found.shape}"
        )
    return found


def _before(begin: IntArray, length: IntArray, longest: int) -> IntArray:
    """The number of pairs of a start below ``begin`` and a length in a sequence."""
    full = np.minimum(begin, np.maximum(length - longest + 1, 0))
    rest, left = length - full, length - begin
    return np.asarray(full * longest + (rest * (rest + 1) - left * (left + 1)) // 2)


def _begin_of(number: IntArray, length: IntArray, longest: int) -> IntArray:
    """The start of the pair with this number: the inverse of :func:`_before`."""
    full = np.maximum(length - longest + 1, 0)
    rest, over = length - full, number - full * longest
    # Of the last positions, `left` still follow where rest (rest + 1) / 2 - over pairs do.
    left = (np.sqrt(8.0 * np.maximum(rest * (rest + 1) // 2 - over, 0) + 1.0) - 1.0) / 2.0
    begin = np.where(over < 0, number // longest, length - np.ceil(left - 1e-9).astype(np.int64))
    return begin.astype(np.int64)
