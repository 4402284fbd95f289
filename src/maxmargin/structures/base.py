"""Output spaces: a packed batch of polytopes, one per example.

A structure describes, for every example of a batch, the polytope ``Z_i`` whose vertices are the possible outputs. All
examples live in one flat vector of *parts*. Parts come in *blocks* (a chain has nodes and pairs, a cut has nodes and
edges); a packed vector holds the first block of all examples, then the second block of all examples, and so on, and
``block.offsets[i]:block.offsets[i + 1]`` are the parts of example ``i`` inside a block. Every method treats the whole
batch in one call, with as many threads as :func:`maxmargin.threads` allows, and gives the same bits for any number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory, _threads
from maxmargin._digest import attributes
from maxmargin._sparse import sp
from maxmargin.structures._arrays import FloatArray as FloatArray
from maxmargin.structures._arrays import IntArray as IntArray
from maxmargin.structures._arrays import Ragged as Ragged
from maxmargin.structures._arrays import example_numbers, offsets_of, pieces, ranges, sums_of

if TYPE_CHECKING:
    from maxmargin.structures.sparse import SparsePoint

SHARD_PARTS = 1_000_000
"""Batch vectors of more parts than this are made shard by shard where the whole is not needed."""


class PointStatus(IntEnum):
    """How one example of a batch fared in a kernel call."""

    OK = 0
    INEXACT = 1
    """The iteration limit came before the tolerance; the point is feasible and usable."""
    NONFINITE = 2
    """The input held NaN or infinity; the point is all zeros."""
    ABSENT = 3
    """There is no such output, for example no third best of two."""


@dataclass(frozen=True)
class Points:
    """One point per example.

    Attributes:
        z: packed vector, shape ``(n_parts,)``.
        value: shape ``(n_examples,)``; the score ``scores'z`` for an argmax, ``1/2 ||z - point||^2`` for a projection.
        status: shape ``(n_examples,)``, :class:`PointStatus` codes.
        warm: what the next call of the same method may start from, opaque but for its size in memory, ``nbytes``; or
            None.
    """

    z: FloatArray
    value: FloatArray
    status: npt.NDArray[np.int8]
    warm: Any = None


def warm_bytes(*warm: Any) -> float:
    """The memory of warm starts: the sum of their ``nbytes``; infinite if one does not say."""
    return sum(0 if one is None else getattr(one, "nbytes", np.inf) for one in warm)


@dataclass(frozen=True, eq=False)
class Labeling:
    """The predicted output of each example.

    Attributes:
        outputs: one per example, as :meth:`Structure.decode` gives them; for labels of positions a :class:`Ragged`
            array, with -1 throughout an example that has no output (status ABSENT or NONFINITE).
        value: the score of each output, shape ``(n_examples,)``.
        status: shape ``(n_examples,)``, :class:`PointStatus` codes.
        z: the packed point that was decoded, if one was made.
    """

    outputs: Sequence[Any]
    value: FloatArray
    status: npt.NDArray[np.int8]
    z: FloatArray | None = None


@dataclass(frozen=True)
class Block:
    """One kind of parts: its name, and where the parts of each example begin (shape ``(n_examples + 1,)``)."""

    name: str
    offsets: IntArray


@dataclass(frozen=True)
class Polytope:
    """The batch as one linear description: ``Z = {lift @ q : ub @ q <= ub_rhs, eq @ q = eq_rhs, q >= 0}``.

    Block diagonal over examples; for reference solvers and small problems. ``ub`` and ``eq`` have no rows by default.
    """

    lift: sp.csr_array
    ub: sp.csr_array = None
    ub_rhs: FloatArray = field(default_factory=lambda: np.zeros(0))
    eq: sp.csr_array = None
    eq_rhs: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("ub", "eq"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, sp.csr_array((0, self.lift.shape[1])))


class Structure(ABC):
    """A packed batch of output polytopes. Subclasses give ``blocks``, ``argmax``, ``encode``, ``decode``, ``select``.

    ``project``, ``k_best`` and ``slack_argmax`` fall back on the argmax alone
    (:mod:`maxmargin.structures.fallbacks.generic`, :mod:`maxmargin.structures.fallbacks.relaxed_slack`).
    """

    name: str
    """The word for this structure in messages and model files."""

    blocks: tuple[Block, ...]

    categorical: bool
    """Whether each variable takes exactly one of several states, one part per state (one-hot), as the nodes of a chain
    take labels: Hamming loss then counts wrong variables. False: each variable part is 0 or 1 independently of its
    neighbors, as the edges of a matching, and Hamming loss counts wrong parts. Every structure declares it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "categorical"):
            raise TypeError(
                f"{cls.__name__} must declare `categorical`: True if each variable takes exactly one of several states "
                "(one part per state), False if each part is 0 or 1 on its own; Hamming loss depends on it"
            )
        if cls.categorical is True and cls.states_per_variable is Structure.states_per_variable:
            raise TypeError(
                f"{cls.__name__} is categorical and must declare `states_per_variable`: the number of states of each "
                "variable, one number for all or an array with one per variable"
            )

    @property
    def called(self) -> str:
        """The name with its article, for sentences."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    relaxed = False
    """Whether the polytope is larger than the hull of the outputs: then hinge losses, objectives and certificates are
    those of the relaxation, and :meth:`predict` finds the outputs."""

    value_bounds = False
    """Whether the ``value`` of an INEXACT argmax or slack argmax is an upper bound, which certificates may use."""

    marginals_unsupported = "it has no sum-product kernel; use geometry=Euclidean()"
    """Why :meth:`marginals` is not supported, and what to use instead; empty if it is supported."""

    slack_relaxed = True
    """Whether :meth:`slack_argmax` maximizes over the whole polytope, which bounds the maximum over the outputs."""

    forbids = False
    """Whether a score of ``-inf`` in :meth:`argmax` forbids a part."""

    loss_on_variables_only = False
    """Whether a loss outside the variable parts would make the argmax intractable (cuts: an edge must attract)."""

    edge_sign: int | tuple[int, ...] = 0
    """The sign that scores outside the variable parts must have for an argmax to be an output: -1 for cuts, 1 for
    associative networks, 0 for any; a tuple gives one for each block after the first."""

    @property
    def n_examples(self) -> int:
        """Number of examples in the batch."""
        return len(self.blocks[0].offsets) - 1

    def fingerprint_data(self) -> Iterable[Any]:
        """The data that identifies the batch in fingerprints of problems: its blocks, arrays and strings.

        Single numbers are left out: blocks depend on them, and a user's structure may count calls in one.
        """
        return self.blocks, *attributes(self, numbers=False)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each block starts in a packed vector, and at the end the number of parts."""
        return tuple(np.cumsum([0, *(int(block.offsets[-1]) for block in self.blocks)]).tolist())

    @property
    def n_parts(self) -> int:
        """Length of a packed vector."""
        return self.starts[-1]

    @property
    def variable_parts(self) -> slice:
        """The parts that a Hamming loss counts: the first block."""
        return slice(0, self.starts[1])

    @property
    def states_per_variable(self) -> int | IntArray:
        """How many consecutive parts are the states of one variable: one number, or an array ``(n_variables,)``.

        1 if the structure is not categorical.
        """
        return 1

    @cached_property
    def n_states(self) -> IntArray:
        """:attr:`states_per_variable` of every variable, shape ``(n_variables,)``."""
        sizes = self.states_per_variable
        if isinstance(sizes, np.ndarray):
            return sizes
        self._require_memory()
        return np.full(self.starts[1] // sizes, sizes, dtype=np.int64)

    @cached_property
    def part_states(self) -> IntArray:
        """The state that each variable part stands for, shape ``(starts[1],)``: by default counted from 0."""
        self._require_memory()
        begin = np.cumsum(self.n_states) - self.n_states
        return np.arange(self.starts[1]) - np.repeat(begin, self.n_states)

    @property
    def n_variables(self) -> IntArray:
        """Number of variables of each example, shape ``(n_examples,)``."""
        return np.diff(np.searchsorted(offsets_of(self.n_states), self.blocks[0].offsets))

    @cached_property
    def part_bound(self) -> FloatArray:
        """The largest value each part takes over the polytope, shape ``(n_parts,)``: 1 unless parts are counts."""
        self._require_memory()
        return np.ones(self.n_parts)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of parts of each example, shape ``(n_examples,)``."""
        return np.asarray(sum(np.diff(block.offsets) for block in self.blocks), dtype=np.int64)

    def consecutive(self, max_parts: int = SHARD_PARTS) -> Iterator[IntArray]:
        """Consecutive examples in pieces of at most ``max_parts`` parts or one example; at least one piece."""
        yield from pieces(self.sizes, max_parts) if self.n_examples else [np.arange(0)]

    def by_example(self, values: FloatArray) -> FloatArray:
        """Sum a packed vector over the parts of each example: shape ``(n_parts,)`` to ``(n_examples,)``."""
        total = np.zeros(self.n_examples)
        for block, first, last in zip(self.blocks, self.starts[:-1], self.starts[1:], strict=True):
            total += sums_of(values[first:last], block.offsets)
        return total

    def by_variables(self, values: FloatArray) -> FloatArray:
        """Sum the variable parts of each example: shape ``(starts[1],)`` to ``(n_examples,)``."""
        return sums_of(values, self.blocks[0].offsets)

    def to_parts(self, per_example: FloatArray) -> FloatArray:
        """Repeat one number per example over its parts: shape ``(n_examples,)`` to ``(n_parts,)``."""
        return np.concatenate([np.repeat(per_example, np.diff(block.offsets)) for block in self.blocks])

    def parts_of(self, indices: npt.ArrayLike) -> IntArray:
        """Positions, in a packed vector of this batch, of the packed vector of ``select(indices)``."""
        chosen = example_numbers(indices, self.n_examples)
        blocks = zip(self.blocks, self.starts, strict=False)
        return np.concatenate(
            [start + ranges(block.offsets[chosen], block.offsets[chosen + 1]) for block, start in blocks]
        )

    def _require_memory(self, vectors: int = 1) -> None:
        """ValueError if there is no memory for so many packed vectors."""
        what = f"{vectors} outputs per example (k)" if vectors > 1 else "a packed vector of this batch"
        _memory.require(
            8.0 * vectors * self.n_parts, what, "give fewer examples at a time, fewer labels or a smaller k"
        )

    def _buffers(self, *ranks: int) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int8]]:
        """Arrays for a kernel to fill: ``z`` of zeros, ``value`` and ``status``, with an axis of ranks if given."""
        shape = (*ranks, self.n_examples)
        self._require_memory(math.prod(ranks))
        return np.zeros((*ranks, self.n_parts)), np.empty(shape), np.empty(shape, dtype=np.int8)

    def _from_kernel(self, kernel: Callable[..., None], *arguments: Any) -> Points:
        """The points with which ``kernel(*arguments, z, value, status, threads)`` fills its arrays."""
        outputs = self._buffers()
        kernel(*arguments, *outputs, _threads.current())
        return Points(*outputs)

    def __getstate__(self) -> dict[str, Any]:
        """Without cached properties, such as kernel objects: they are made again from the rest."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    @abstractmethod
    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The vertices of the given outputs by their nonzeros; ValueError naming the example if one is not legal.

        A structure of your own may return a packed vector, shape ``(n_parts,)``.
        """

    @abstractmethod
    def decode(self, z: FloatArray) -> list[Any]:
        """The outputs of a packed vertex, one per example: the inverse of ``encode``."""

    @abstractmethod
    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """``argmax_{z in Z_i} scores_i'z`` for every example ``i``: a vertex, and its value."""

    def argmax_within(self, scores: FloatArray, tol: float, *, warm: Any = None) -> Points:
        """As :meth:`argmax`, with values that bound the maxima from above and sum to at most ``scores'z + tol``.

        For structures whose maxima are expensive to find exactly; by default :meth:`argmax`.
        """
        return self.argmax(scores, warm=warm)

    def predict(self, scores: FloatArray) -> Points:
        """The output of each example to show to a user: the argmax, or where that is relaxed, a good legal output.

        Status INEXACT marks an example whose output is not known to be the best one.
        """
        return self.argmax(scores)

    def labels(self, scores: FloatArray) -> Labeling:
        """The outputs of :meth:`predict`, decoded."""
        points = self.predict(scores)
        return Labeling(self.decode(points.z), points.value, points.status, points.z)

    @abstractmethod
    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best distinct vertices, best first: element ``r`` holds rank ``r`` of every example.

        The list is shorter than ``k`` if no example has ``k`` outputs, but never empty. An example with fewer outputs
        than others has status ABSENT and value ``-inf`` at later ranks. The fallback partitions the outputs (Lawler
        1972): up to ``k`` times the number of variable parts argmax calls per example, in ``k`` batches.
        """
        from maxmargin.structures.fallbacks import generic

        return generic.k_best(self, scores, k)

    def oracle(self, ranks: int = 1) -> Any:
        """A compiled view for online methods: the argmax, or the ``ranks`` best, of one example at a time.

        A compiled one may offer :meth:`slack_argmax`, too. The fallback calls :meth:`argmax` and :meth:`k_best` on
        batches of one example.
        """
        from maxmargin.structures.fallbacks import generic

        _checks.integer("ranks", ranks, least=1)
        return generic.oracle(self)

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs_i'y + constants_i) (margin_i + scores_i'y)`` of every example: slack rescaling.

        ``scores`` and ``costs`` are packed, ``margin`` and ``constants`` have shape ``(n_examples,)``. The first factor
        is a loss: never negative, and zero at an output for which the second is positive, so the maximum is never
        negative. The product is not linear in the parts: this fallback maximizes it over the polytope
        (:attr:`slack_relaxed`), by a few calls of :meth:`argmax`. ``value`` is the product at ``z``, or an upper bound
        of it with status INEXACT.
        """
        from maxmargin.structures.fallbacks import relaxed_slack

        return relaxed_slack.slack_argmax(self, scores, margin, costs, constants, warm=warm)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection ``argmin_{z in Z_i} 1/2 ||z - point_i||^2`` of every example.

        ``tol`` bounds the distance to the exact projection (the stopping test is a gap of ``tol^2 / 2``, or rounding
        if that is larger). The result is feasible to rounding, so that it may enter a certificate. The fallback is an
        active set over vertices found by ``argmax``.
        """
        from maxmargin.structures.fallbacks import generic

        return generic.project(self, point, tol=tol, warm=warm)

    def marginals(self, potentials: FloatArray) -> Points:
        """Expected parts of the Gibbs distribution ``p(y) ~ exp(potentials_i'y)`` over the outputs of every example.

        ``z`` holds the marginals (for counts, expected counts), ``value`` the log-partition function
        ``log sum_y exp(potentials_i'y)``. In entropic geometry this is the Bregman projection: the step ``s`` from the
        point of potentials ``theta`` ends at the point of potentials ``theta + s``. Potentials of ``-inf`` forbid;
        where all outputs are forbidden the status is ABSENT and the value ``-inf``.
        """
        raise ValueError(f"{self.called} has no marginals: {self.marginals_unsupported}")

    def log_outputs(self) -> FloatArray:
        """The natural logarithm of the number of outputs of each example, shape ``(n_examples,)``.

        The fallback is the log-partition function of potentials that are all zero.
        """
        if self.marginals_unsupported:
            raise ValueError(f"the number of outputs of {self.called} is not known; give it where it is asked for")
        self._require_memory(2)
        return self.marginals(np.zeros(self.n_parts)).value

    def polytope(self) -> Polytope | None:
        """The linear description of the batch, or None if there is none of polynomial size."""
        return None
