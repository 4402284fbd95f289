"""Costs of a wrong output, linear in the parts: ``loss_i(z) = c_i'z + d_i``, zero at the gold output.

Linearity is what keeps the loss-augmented argmax as easy as the plain one. A loss of your own is a subclass of
:class:`Loss` with one method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray, Structure
from maxmargin.structures.sparse import SparsePoint

_BYTE = 255


class Loss(ABC):
    """A cost linear in the parts."""

    @abstractmethod
    def costs(self, structure: Structure, gold: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``(c, offset)``: ``loss_i(z) = sum over parts of (c z + offset)``, which must be zero at ``gold``.

        ``gold`` is packed, shape ``(n_parts,)``. Both results have that shape, or that of the variable parts alone if
        the others cost nothing. ``offset`` is kept per part so that weights per part scale both.
        """

    def quick_costs(self, structure: Structure, gold: SparsePoint) -> tuple[npt.NDArray[Any], float] | None:
        """Costs ``c`` of the variable parts and the sum of the offsets, where they are quickly made; else None.

        For outputs for which :meth:`costs` has been checked before; the numbers must be the same.
        """
        return None


@dataclass(frozen=True)
class Hamming(Loss):
    """Weighted Hamming loss: the number of wrong variables (mathematics: eq. 10 of the 2005 report).

    On matchings and cuts ``c = false_positive - (false_positive + false_negative) y`` and
    ``d = false_negative * sum(y)``: a wrong link (or a node wrongly labeled 1) costs ``false_positive``, a missed one
    ``false_negative``. On chains and trees every wrong label costs ``false_positive``, and the two must be equal; use
    :class:`LabelCost` for costs that depend on the labels.
    """

    false_positive: float = 1.0
    false_negative: float = 1.0

    def costs(self, structure: Structure, gold: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Loss.costs`."""
        plus = _checks.number("false_positive", self.false_positive, least=0)
        minus = _checks.number("false_negative", self.false_negative, least=0)
        y = gold[structure.variable_parts]
        if structure.categorical:
            if plus != minus:
                raise ValueError(
                    f"on {structure.called} a wrong label is a false positive and a false negative at once, so "
                    f"Hamming needs false_positive == false_negative (got {plus} and {minus}); "
                    "use losses.LabelCost for costs that depend on the labels"
                )
            return plus * (1.0 - y), np.zeros_like(y)
        if (structure.part_bound[structure.variable_parts] > 1).any():
            raise ValueError(
                f"Hamming counts variables that are 0 or 1, but parts of this {structure.name} go up to "
                f"{structure.part_bound[structure.variable_parts].max():g}; give a loss of your own, a subclass of "
                "losses.Loss that is linear in the parts"
            )
        return plus - (plus + minus) * y, minus * y

    def quick_costs(self, structure: Structure, gold: SparsePoint) -> tuple[npt.NDArray[Any], float] | None:
        """See :meth:`Loss.quick_costs`: whole numbers, and gold outputs of ones."""
        n, plus, minus = structure.starts[1], float(self.false_positive), float(self.false_negative)
        ones = gold.index[: np.searchsorted(gold.index, n)]
        whole = plus.is_integer() and minus.is_integer() and 0 <= plus <= _BYTE and 0 <= minus <= _BYTE
        if not whole or (gold.value.strides != (0,) and (gold.value[: len(ones)] != 1.0).any()):
            return None
        if structure.categorical:
            costs: npt.NDArray[Any] = np.full(n, plus, dtype=np.uint8)
            costs[ones] = 0
            return costs, 0.0
        costs = np.full(n, plus, dtype=np.float64 if minus and len(ones) else np.uint8)
        if len(ones):  # otherwise costs are bytes, which have no sign
            costs[ones] = -minus
        return costs, minus * len(ones)


@dataclass(frozen=True, eq=False)
class LabelCost(Loss):
    """On chains, trees and graphs: the cost of predicting label ``k`` where gold is ``g`` is ``matrix[g, k]``.

    Also on structures of your own that are ``categorical``.
    ``matrix`` has shape ``(n_labels, n_labels)``, rows and columns in the order of the model's ``classes_``, entries
    >= 0 and a zero diagonal.
    """

    matrix: npt.ArrayLike

    def costs(self, structure: Structure, gold: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Loss.costs`."""
        matrix = array_of(self.matrix, "the matrix of LabelCost", "fiub", "a square matrix of numbers")
        if not structure.categorical:
            raise ValueError(
                f"LabelCost is for structures that choose one of several labels, not for {structure.called}; "
                "use losses.Hamming"
            )
        _check_size(matrix, structure)
        matrix = np.asarray(matrix, dtype=np.float64)
        if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
            raise ValueError("LabelCost needs finite costs >= 0 and a zero diagonal")
        y, labels, sizes = gold[structure.variable_parts], structure.part_states, structure.n_states
        begin = np.cumsum(sizes) - sizes
        right = np.add.reduceat(y * labels, begin).round().astype(np.int64) if len(sizes) else begin
        return matrix[np.repeat(right, sizes), labels], np.zeros_like(y)


def _check_size(matrix: FloatArray, structure: Structure) -> None:
    """ValueError unless the matrix has a row and a column per label; it may have more where variables have different
    labels of one vocabulary."""
    n_labels = structure.states_per_variable
    if isinstance(n_labels, np.ndarray):
        least = int(structure.part_states.max(initial=0)) + 1
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < least:
            raise ValueError(
                f"LabelCost needs a square matrix with a row for each of the {least} labels of this {structure.name}, "
                f"got shape {matrix.shape}"
            )
    elif matrix.shape != (n_labels, n_labels):
        raise ValueError(
            f"LabelCost needs a ({n_labels}, {n_labels}) matrix, as each variable of this {structure.name} has "
            f"{n_labels} states, got shape {matrix.shape}"
        )
