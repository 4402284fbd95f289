"""Bases of the encoders with one row of features for every part: explicit features, or a kernel in their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.base import Encoder, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.names import ColumnNames, WeightTable, table
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import PartFeatures
from maxmargin.features.rows import Matrix, Rows
from maxmargin.structures.base import FloatArray, IntArray

Own = TypeVar("Own", bound=Encoder)


def learn_first(encoder: Own, blocks: Iterable[tuple[Any, Any]]) -> Own:
    """What an encoder learns from the first of some blocks; packing checks that the others fit."""
    for X, y in blocks:
        return encoder.learn(encoder.parse(checks.examples(X)), encoder.parse_outputs(checks.examples(y, "y")))
    raise ValueError("there are no examples: give at least one")


class RowsEncoder(Encoder):
    """One weight per feature of the parts; a subclass is a dataclass with the field ``n_features``."""

    n_features: int | None
    """Columns of the parts' features."""

    empty: ClassVar[str] = "no parts"
    """The error for an example without rows."""

    def parse(self, X: list[Any]) -> tuple[list[Any], checks.Rows]:
        """The examples as given, and the features of all their parts."""
        return X, checks.rows(X, "features", self.empty)

    def learn(self, parsed: tuple[list[Any], checks.Rows], y: Sequence[Any]) -> Self:
        """The number of features."""
        return cast(Self, replace(cast(Any, self), n_features=parsed[1].width))

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """The number of features is that of the first block."""
        return learn_first(self, blocks)

    @property
    def n_weights(self) -> int:
        """One per feature."""
        return self.n_features or 0

    def state(self) -> State:
        """The number of features."""
        return {"n_features": self.n_features}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        return cls(n_features=_checks.integer("n_features", state["n_features"], least=0))  # type: ignore[call-arg]


class KernelEncoder(Encoder):
    """The first weights belong to rows of features, or to a kernel; a subclass is a dataclass with these fields.

    Each row of features has :attr:`_columns` weights per feature, row-major.
    """

    kernel: Kernel | None
    """A kernel in place of explicit features, or None."""

    support: KernelMap | None
    """With a kernel, the rows that it compares others with."""

    def __post_init__(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise ValueError(
                f'features must be None or a kernel such as mm.features.Kernel("rbf"), got {shown(self.kernel)}'
            )

    @property
    def _columns(self) -> int:
        """Weights per feature of a row: one, unless rows have labels."""
        return 1

    def _support(self, rows: checks.Rows) -> KernelMap | None:
        """The map that a kernel learns from training rows."""
        return None if self.kernel is None else KernelMap.learn(self.kernel, rows.matrix)

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block; ValueError with a kernel, which compares all rows."""
        if self.kernel is not None:
            raise ValueError(
                "a kernel compares every row with the rows of all training data, which must be in memory; use explicit "
                "features, or train in memory"
            )
        return learn_first(self, blocks)

    def _row_matrix(self, rows: checks.Rows) -> Matrix | Rows:
        """The rows of features, or what the kernel puts in their place."""
        return rows.matrix if self.support is None else self.support.features(rows.matrix)

    def _row_features(self, rows: checks.Rows, offsets: IntArray) -> Features:
        """The features of parts with one row each."""
        return PartFeatures(self._row_matrix(rows), offsets)

    def _n_row_weights(self, n_features: int | None) -> int:
        """One per feature (and column); with a kernel its dimension while training, then one per support row."""
        return ((n_features or 0) if self.support is None else self.support.n_weights) * self._columns

    def _row_names(
        self, columns: ColumnNames, n_features: int | None, matrix: str = "features", state: Any = lambda at: ""
    ) -> WeightTable:
        """Names of the weights of rows; with a kernel all of a state are one, as support rows have no names."""
        if self.support is not None:
            return table(self.support.n_weights, lambda at: "kernel", self._columns, state)._replace(summed=True)
        width = n_features or 0
        return table(width, columns.of(matrix, width, "feature"), self._columns, state)

    @property
    def _kernel_layout(self) -> Any:
        """The kernel, and its training rows."""
        return self.kernel if self.support is None else (self.support.kernel, self.support.digest)

    @property
    def l1_unsupported(self) -> str:
        """See :meth:`Encoder.l1_unsupported`."""
        reason = "an L1 ball of kernel features would depend on the choice of coordinates in the kernel's space"
        return "" if self.kernel is None else f'{reason}; use norm="l2" (radius or C), or explicit features'

    @property
    def signs_unsupported(self) -> str:
        """See :meth:`Encoder.signs_unsupported`."""
        return "" if self.kernel is None else "sign constraints have no kernel form; use explicit features"

    def to_model(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """With a kernel: the support rows and their dual coefficients, then the other weights."""
        if self.support is None:
            return self, weights
        n, k = self.support.n_weights, self._columns
        support, dual = self.support.to_model(weights[: n * k].reshape(n, k))
        return replace(cast(Any, self), support=support), np.concatenate([dual.ravel(), weights[n * k :]])

    def to_training(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """See :meth:`Encoder.to_training`."""
        assert isinstance(trained, KernelEncoder)
        if self.support is None or trained.support is None:
            return weights
        n, k = trained.support.n_weights, self._columns
        own = self.support.to_training(trained.support, weights[: n * k].reshape(n, k))
        return np.concatenate([own.ravel(), weights[n * k :]])

    def _kernel_state(self) -> State:
        """The entries of the kernel in the state; none without a kernel."""
        return {} if self.support is None else {"kernel": self.support.kernel.header(), **self.support.arrays()}


class KernelRowsEncoder(KernelEncoder):
    """All weights belong to rows of features, or to a kernel; a subclass is a dataclass with these fields."""

    n_features: int | None
    """Columns of the rows."""

    @property
    def n_weights(self) -> int:
        """Those of the rows' features or of the kernel."""
        return self._n_row_weights(self.n_features)

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of the rows."""
        return [self._row_names(columns, self.n_features)]

    @property
    def layout(self) -> tuple[Any, ...]:
        """The width; with a kernel also its settings and the training rows."""
        return self.kind, self.n_features, self._kernel_layout

    def state(self) -> State:
        """The number of features and the kernel."""
        return {"n_features": self.n_features, **self._kernel_state()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        kernel, support = kernel_from_state(state, n_features)
        return cls(n_features=n_features, kernel=kernel, support=support)  # type: ignore[call-arg]


def kernel_from_state(state: State, n_features: int) -> tuple[Kernel | None, KernelMap | None]:
    """The kernel of a state and its support rows; ValueError if they make no sense."""
    if "kernel" not in state:
        return None, None
    kernel = Kernel.from_header(state["kernel"])
    return kernel, KernelMap.from_arrays(kernel, state, n_features)
