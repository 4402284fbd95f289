"""The saddle-point problem: structure + features + loss + gold outputs + region.

    min_{w in W} penalty(w) + H(w),    H(w) = max_{z in Z} w'g(z) + sum_i s_i (c_i'z_i + d_i),
    g(z) = sum_i s_i (F_i z_i - F_i y_i)

with ``s_i`` the example weights; other hinges than this one, the margin rescaled, are in
:mod:`maxmargin.problem.hinges`. A solver uses the data only through ``augmented`` scores, ``gradient``,
``most_violated`` outputs and their feature ``differences``, and the structure's projections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory, _threads
from maxmargin._digest import digest
from maxmargin._sparse import sp
from maxmargin._vectors import dot
from maxmargin.features.base import Features, operator_norm
from maxmargin.losses import Loss
from maxmargin.problem import hinges
from maxmargin.problem.base import NonZeros, nonzeros, with_zeros
from maxmargin.problem.costs import check_losses, leading_costs
from maxmargin.problem.good import GoodOutputs
from maxmargin.problem.hinges import RESCALINGS, ROUNDING, SLACKS, Hinge, MostViolated
from maxmargin.regions import Region
from maxmargin.structures._arrays import example_numbers, ranges, vector
from maxmargin.structures.base import SHARD_PARTS, FloatArray, IntArray, Structure
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class Problem:
    """One packed training problem. Build it with :meth:`Problem.build`.

    It keeps no packed vector of its own: gold outputs are stored by their non-zeros, costs for the leading parts.

    Attributes:
        structure: the batch of output polytopes.
        features: the linear map between weights and the batch's parts.
        gold_point: the gold outputs.
        leading_costs: packed ``s_i c_i`` of the leading parts (the variables, unless a loss goes further); the parts
            after them cost nothing. As uint8 where all are such small whole numbers.
        constant: ``sum_i s_i d_i``.
        region: set and penalty of the weights.
        example_weight: ``s_i``, shape ``(n_examples,)``, or None for all 1.
        rescaling: how the loss scales the margin: "margin", "slack" or "none", see :mod:`maxmargin.problem.hinges`.
        slack: whether a violation counts as it is ("linear") or half its square ("quadratic").
        good: several good outputs per example, see :mod:`maxmargin.problem.good`, or None.
    """

    structure: Structure
    features: Features
    gold_point: SparsePoint
    leading_costs: FloatArray | npt.NDArray[np.uint8]
    constant: float
    region: Region
    example_weight: FloatArray | None = None
    rescaling: str = "margin"
    slack: str = "linear"
    good: GoodOutputs | None = None

    @classmethod
    def build(
        cls,
        structure: Structure,
        features: Features,
        gold: FloatArray | SparsePoint,
        loss: Loss | FloatArray,
        region: Region,
        *,
        example_weight: FloatArray | None = None,
        loss_weight: FloatArray | None = None,
        rescaling: str = "margin",
        slack: str = "linear",
        good: GoodOutputs | None = None,
    ) -> Problem:
        """Assemble and check a problem.

        Args:
            structure, features, region, rescaling, slack: see the attributes.
            gold: packed gold outputs (``structure.encode``), or their non-zeros.
            loss: the loss, whose costs are computed shard by shard; or packed costs ``c`` of the variables' parts or of
                all parts, which make the loss ``c_i'(z_i - y_i)``.
            example_weight: shape ``(n_examples,)``, >= 0; scales an example's whole term.
            loss_weight: packed over the variables' parts, >= 0; scales the loss part by part.
            good: several good outputs per example; ``gold`` is then one of them. With the margin rescaled they need
                packed costs in place of a loss, which would compare outputs with one gold output.
        """
        _checks.one_of("rescaling", rescaling, RESCALINGS)
        _checks.one_of("slack", slack, SLACKS)
        _checks.instance("structure", structure, Structure, "a Structure")
        _checks.instance("features", features, Features, "feature maps of maxmargin.features")
        _checks.instance("region", region, Region, "a region of maxmargin.regions")
        if good is not None:
            _checks.instance("good", good, GoodOutputs, "good outputs of maxmargin.problem, or None")
        _memory.require(8.0 * features.n_weights, f"{features.n_weights} weights", "give fewer features or labels")
        if features.n_parts != structure.n_parts:
            raise ValueError(f"features have {features.n_parts} parts, the structure has {structure.n_parts}")
        if reason := region.unsupported(features.n_weights):
            raise ValueError(reason)
        if example_weight is not None:
            example_weight = vector(example_weight, structure.n_examples, "example_weight")
            if not (np.isfinite(example_weight) & (example_weight >= 0)).all():
                raise ValueError(f"example_weight must be {structure.n_examples} finite numbers >= 0, one per example")
            if np.all(example_weight == 1.0):
                example_weight = None
        if loss_weight is not None:
            loss_weight = vector(loss_weight, structure.starts[1], "loss_weight")
            if not (np.isfinite(loss_weight) & (loss_weight >= 0)).all():
                raise ValueError("loss_weight must be finite numbers >= 0, one per part of a variable")
        if not isinstance(gold, SparsePoint):
            gold = SparsePoint.feasible(structure, vector(gold, structure.n_parts, "gold, a packed vector,"))
        elif gold.shape != (structure.n_parts,):
            raise ValueError(f"gold has {gold.shape[0]} parts, the structure has {structure.n_parts}")
        leading, constant = leading_costs(structure, gold, loss, example_weight, loss_weight)
        if good is not None and rescaling == "margin" and isinstance(loss, Loss):
            raise ValueError(
                f"{type(loss).__name__} compares outputs with one gold output, and several are good; give the costs of "
                'all outputs (costs=), or rescaling="none" for a margin of 1'
            )
        problem = cls(structure, features, gold, leading, constant, region, example_weight, rescaling, slack, good)
        if reason := hinges.unsupported(problem):
            raise ValueError(reason)
        if rescaling == "slack":
            check_losses(problem)
        return problem

    @classmethod
    def again(
        cls,
        structure: Structure,
        features: Features,
        gold: SparsePoint,
        loss: Loss | FloatArray,
        region: Region,
        *,
        example_weight: FloatArray | None = None,
        loss_weight: FloatArray | None = None,
        rescaling: str = "margin",
        slack: str = "linear",
        good: GoodOutputs | None = None,
    ) -> Problem:
        """The problem that :meth:`build` made of the same data before, without its checks where that saves time."""
        if isinstance(loss, Loss) and example_weight is None and loss_weight is None:
            found = loss.quick_costs(structure, gold)
            if found is not None:
                return cls(structure, features, gold, *found, region, None, rescaling, slack, good)
        weights = {"example_weight": example_weight, "loss_weight": loss_weight}
        how = {"rescaling": rescaling, "slack": slack, "good": good}
        return cls.build(structure, features, gold, loss, region, **weights, **how)  # type: ignore[arg-type]

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the numbers in the structure, the gold outputs, the features and so on, by their names.

        Costs one pass over the data at about a gigabyte a second.
        """
        gold = self.gold_point
        return {
            "structure": digest(self.structure),
            "gold outputs": digest(gold.starts, gold.index, gold.value, self.good),
            "features": digest(self.features),
            "loss": digest(self.leading_costs, self.rescaling, self.slack),
            "sample weights": digest(self.example_weight),
            "regularization": digest(self.region),
        }

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed when it is first used."""
        made = {name for name, one in vars(Problem).items() if isinstance(one, cached_property)}
        return {name: one for name, one in vars(self).items() if name not in made}

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.features.n_weights

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return self.structure.n_examples

    @property
    def n_parts(self) -> int:
        """Length of a packed vector."""
        return self.structure.n_parts

    @property
    def kind(self) -> Structure:
        """The structure, for its name and capabilities."""
        return self.structure

    def with_rescaling(self, rescaling: str) -> Problem:
        """The same problem with another hinge."""
        return replace(self, rescaling=rescaling)

    @property
    def gold(self) -> FloatArray:
        """Packed gold outputs, shape ``(n_parts,)``; made at each call."""
        return self.gold_point.dense()

    @property
    def costs(self) -> FloatArray:
        """Packed ``s_i c_i``, shape ``(n_parts,)``; made at each call."""
        return np.concatenate([self.leading_costs, np.zeros(self.structure.n_parts - len(self.leading_costs))])

    @cached_property
    def gold_nonzeros(self) -> NonZeros:
        """Where :attr:`gold_features` are not zero, and what they are there."""
        return nonzeros(self.gold_sum())

    @cached_property
    def gold_features(self) -> FloatArray:
        """``sum_i s_i F_i y_i``, shape ``(n_weights,)``."""
        return with_zeros(self.gold_nonzeros, self.n_weights)

    def gold_sum(self) -> FloatArray:
        """:attr:`gold_features`, made at each call."""
        total = np.zeros(self.n_weights)
        for examples in self.structure.consecutive(SHARD_PARTS):
            # Selected even if these are all examples: features keep transposed copies of sparse matrices, which many
            # solvers need for nothing else. Those of a selection are dropped with it.
            shard = self.select(examples)
            total += shard.feature_sum(shard.gold)
        return total

    def _scaled(self, z: FloatArray) -> FloatArray:
        return z if self.example_weight is None else self.structure.to_parts(self.example_weight) * z

    def scores(self, weights: FloatArray) -> FloatArray:
        """``s_i F_i'w``, shape ``(n_parts,)``."""
        return self._scaled(self.features.scores(weights))

    def plus_costs(self, scores: FloatArray) -> FloatArray:
        """``scores + s_i c_i``, in place: of :meth:`scores` the loss-augmented ones."""
        scores[: len(self.leading_costs)] += self.leading_costs
        return scores

    def with_costs(self, scores: FloatArray) -> FloatArray:
        """``s_i (scores + c_i)``; scores of ``F_i'w`` may be overwritten."""
        return self.plus_costs(self._scaled(scores))

    def pair_scores(self, scores: FloatArray) -> FloatArray:
        """``s_i (scores + c_i)`` where the margin is rescaled, else ``s_i scores``: what pairs of outputs differ in."""
        return self.with_costs(scores) if self.rescaling == "margin" else self._scaled(scores)

    def augmented(self, weights: FloatArray) -> FloatArray:
        """``s_i (F_i'w + c_i)``: the structures player's gradient, and the scores of loss-augmented argmax."""
        return self.with_costs(self.features.scores(weights))

    def augmented_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`augmented` of two weight vectors in one pass over the features."""
        one, two = self.features.scores_pair(first, second)
        return self.with_costs(one), self.with_costs(two)

    def feature_sum(self, z: FloatArray) -> FloatArray:
        """``sum_i s_i F_i z_i``, shape ``(n_weights,)``; sums of shards add up to that of the whole."""
        return self.features.adjoint(self._scaled(z))

    def feature_sum_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`feature_sum` of two packed points in one pass over the features."""
        return self.features.adjoint_pair(self._scaled(first), self._scaled(second))

    def gradient(self, z: FloatArray) -> FloatArray:
        """``g(z)``, shape ``(n_weights,)``: the weights player's gradient without the penalty's."""
        return self.feature_sum(z) - self.gold_features

    def loss(self, z: FloatArray) -> float:
        """``sum_i s_i (c_i'z_i + d_i)``."""
        return dot(self.leading_costs, z[: len(self.leading_costs)]) + self.constant

    def losses(self, z: FloatArray) -> FloatArray:
        """``s_i (c_i'z_i + d_i)`` of every example, shape ``(n_examples,)``."""
        n = len(self.leading_costs)
        if n == self.structure.starts[1]:
            return self.structure.by_variables(self.leading_costs * z[:n]) + self.constants
        return self.structure.by_example(self.costs * z) + self.constants

    @cached_property
    def constants(self) -> FloatArray:
        """``s_i d_i``, shape ``(n_examples,)``: the gold output has loss zero."""
        return 0.0 - self.gold_point.dot(self.costs)

    @cached_property
    def scale(self) -> FloatArray:
        """``s_i``, shape ``(n_examples,)``."""
        return np.ones(self.structure.n_examples) if self.example_weight is None else self.example_weight

    @property
    def bilinear(self) -> bool:
        """Whether hinges are maxima of ``w'g(z) + loss(z)`` over the polytopes, which saddle-point methods need."""
        return self.rescaling == "margin" and self.slack == "linear" and self.good is None

    @property
    def relaxed(self) -> bool:
        """Whether hinges are those of a relaxation, never below the true ones."""
        return self.structure.relaxed or (self.rescaling == "slack" and self.structure.slack_relaxed)

    def most_violated(self, weights: FloatArray, *, warm: Any = None, first: int = 0, tol: float = 0.0) -> MostViolated:
        """Loss-augmented inference, one argmax pass; InexactError if a value is not a bound.

        ``first`` is the number of the first example, for the error; ``tol`` how far the sum of the values may be above
        what the outputs are worth, where the structure can save time by that, the margin is rescaled and the slack
        linear.
        """
        return hinges.most_violated_of_scores(self, self.features.scores(weights), warm, first, tol)

    def differences(self, z: FloatArray) -> sp.csr_array:
        """``F_i z_i - F_i y_i`` of every example, without the example weights, shape ``(n_examples, n_weights)``."""
        blocks = [block.offsets for block in self.structure.blocks]
        starts, columns, values = _kernels.differences(self._single, blocks, z, _threads.current())
        return sp.csr_array((values, columns, starts), shape=(self.structure.n_examples, self.n_weights))

    def examples(self, ranks: int = 1) -> Any:
        """A compiled view of single examples, for online passes; ``ranks`` outputs at most are asked for at a time.

        The most violated output comes from the structure's oracle: an argmax where the margin is rescaled, and on
        chains, trees, lattices and lists also where the slack is (except for costs on pairs of a chain, or its costs
        that are not multiples of a unit) or nothing is; pairs of candidates and of paths have compiled hinges.
        Elsewhere it comes from the batch methods of one example, by a call of Python.
        """
        structure, gold = self.structure, self.gold_point
        blocks = [block.offsets for block in structure.blocks]
        oracle = structure.oracle(ranks)
        hinge: Any = None
        if self.good is not None:
            costs = self.costs if self.rescaling == "margin" else None
            hinge = self.good.online_hinge(structure, gold, costs, self.scale) or self._single_violated()
        elif self.rescaling != "margin":
            hinge = self._single_violated()
            if self.rescaling == "none" and ranks == 1:
                two = structure.oracle(2)  # the best wrong output is one of the two best
                oracle = two if two.ranks > 1 else oracle
        return _kernels.OnlineExamples(
            oracle,
            self.features.per_example(blocks),
            RESCALINGS.index(self.rescaling),
            hinge,
            self.good is not None,
            blocks,
            self.leading_costs,
            np.ascontiguousarray(gold.starts, dtype=np.int64).ravel(),
            gold.index,
            np.ascontiguousarray(gold.value),
            self.scale,
        )

    def _single_violated(self) -> Callable[[int, FloatArray], tuple[IntArray, FloatArray]]:
        """The most violated output of one example given its scores, where the oracle does not find it."""
        single: dict[int, Problem] = {}

        def find(example: int, scores: FloatArray) -> tuple[IntArray, FloatArray]:
            if example not in single:
                single[example] = self.select([example])
            z = hinges.most_violated_of_scores(single[example], scores, None, example).z
            at = np.flatnonzero(z)
            return at, z[at]

        return find

    @cached_property
    def _single(self) -> Any:
        # Without a hinge that calls back: it would hold this problem, in a cycle that no garbage collector sees.
        return replace(self, rescaling="margin", good=None).examples()

    def slack_slope(self, value: FloatArray) -> FloatArray:
        """The derivative ``zeta_i`` of each example's term by its hinge: 1, or with quadratic slack the hinge ``h_i``.

        ``value`` is that of :class:`MostViolated`.
        """
        if self.slack == "linear":
            return np.ones(len(value))
        return np.divide(np.maximum(value, 0.0), self.scale, out=np.zeros(len(value)), where=self.scale > 0.0)

    def total(self, value: FloatArray) -> float:
        """``H(w)`` of a batch from the values of :class:`MostViolated`: their sum, or that of half their squares."""
        return float(value.sum()) if self.slack == "linear" else 0.5 * float((self.slack_slope(value) * value).sum())

    def rounding(self, violated: MostViolated) -> float:
        """How large the rounding error of :meth:`total` may be."""
        error = ROUNDING * violated.size
        if self.slack == "linear":
            return float(error.sum())
        return float((self.slack_slope(violated.value + error) * error).sum())

    def evaluate(self, weights: FloatArray) -> Hinge:
        """``H(w)`` and its rounding error: one argmax pass."""
        value = rounding = 0.0
        for shard in self.shards():
            violated = shard.most_violated(weights)
            value += shard.total(violated.value)
            rounding += shard.rounding(violated)
        return Hinge(value, rounding)

    def hinge(self, weights: FloatArray) -> float:
        """``H(w)``: one argmax pass."""
        return self.evaluate(weights).value

    def objective(self, weights: FloatArray) -> float:
        """``penalty(w) + H(w)``."""
        return self.region.penalty(weights) + self.hinge(weights)

    @cached_property
    def norm(self) -> float:
        """``||[s_1 F_1 ... s_m F_m]||_2`` by power iteration."""
        shards = list(self.shards())

        def normal(w: FloatArray) -> FloatArray:
            total = np.zeros(self.n_weights)
            for shard in shards:
                total += shard.normal(w)
            return total

        return operator_norm(normal, self.n_weights)

    def normal(self, weights: FloatArray) -> FloatArray:
        """``sum_i s_i^2 F_i F_i'w``, shape ``(n_weights,)``; sums of shards add up to that of the whole."""
        return self.features.adjoint(self._scaled(self._scaled(self.features.scores(weights))))

    def part_norms(self, order: float) -> FloatArray:
        """``s_i ||F e_p||`` of every part: Euclidean norm (order 2) or largest entry (inf), shape ``(n_parts,)``."""
        return self._scaled(self.features.part_norms(order))

    def weight_norms(self) -> FloatArray:
        """``||F'e_k||_2`` of every weight, with the example weights, shape ``(n_weights,)``."""
        return self.features.weight_norms(
            None if self.example_weight is None else self.structure.to_parts(self.example_weight)
        )

    def around(self, weights: FloatArray) -> Problem:
        """The same problem in ``v = w - weights``: its penalty is that of ``v``, so that ``w`` stays close to weights.

        The scores at ``weights`` become costs of the parts; margin rescaling only.
        """
        if self.rescaling != "margin" or self.good is not None:
            raise ValueError("only a problem with the margin rescaled can be taken around given weights")
        costs = np.zeros(self.structure.n_parts)
        for examples, shard in self.pieces():
            costs[self.structure.parts_of(examples)] = shard._scaled(shard.features.scores(weights))
        costs[: len(self.leading_costs)] += self.leading_costs
        constant = -float(self.gold_point.dot(costs).sum())  # the gold output has loss zero
        return replace(self, leading_costs=costs, constant=constant)

    def select(self, indices: npt.ArrayLike) -> Problem:
        """The problem of some of the examples, with the same region. Hinges, losses and gradients of shards add up.

        Consecutive examples share the memory of their features and costs.
        """
        chosen = example_numbers(indices, self.structure.n_examples)
        structure = self.structure.select(chosen)
        gold = self.gold_point.select(chosen, structure)
        offsets = self.structure.blocks[0].offsets
        if len(self.leading_costs) > self.structure.starts[1]:
            costs = self.leading_costs[self.structure.parts_of(chosen)]
        elif len(chosen) and (np.diff(chosen) == 1).all():
            costs = self.leading_costs[offsets[chosen[0]] : offsets[chosen[-1] + 1]]
        else:
            costs = self.leading_costs[ranges(offsets[chosen], offsets[chosen + 1])]
        within = gold.index < len(costs)
        return Problem(
            structure,
            self.features.select(chosen),
            gold,
            costs,
            -dot(costs[gold.index[within]], gold.value[within]),  # the gold output has loss zero
            self.region,
            None if self.example_weight is None else self.example_weight[chosen],
            self.rescaling,
            self.slack,
            None if self.good is None else self.good.select(self.structure, chosen),
        )

    def shards(self, max_parts: int = SHARD_PARTS) -> Iterator[Problem]:
        """The problems of consecutive examples of at most ``max_parts`` parts (or of one, if that is larger)."""
        return (shard for _, shard in self.pieces(max_parts))

    def pieces(self, max_parts: int = SHARD_PARTS) -> Iterator[tuple[IntArray, Problem]]:
        """The shards with the numbers of their examples."""
        pieces = list(self.structure.consecutive(max_parts))
        for examples in pieces:
            yield examples, self if len(pieces) == 1 else self.select(examples)
