"""From lists of user data to packed batches and back: one packer per structure.

A packer is a small immutable object: its settings, and what :meth:`Encoder.learn` saw in the training data (numbers of
features, label vocabulary). With the weights it is all a model needs, and all a model file stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.features.base import Features
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of inputs: what outputs are legal, and the features of their parts."""

    structure: Structure
    features: Features

    def pieces(self) -> Iterator[tuple[IntArray, Batch]]:
        """Consecutive examples, their numbers and their batch, so few that packed vectors of a piece are small."""
        pieces = list(self.structure.consecutive())
        for examples in pieces:
            whole = len(pieces) == 1
            yield examples, self if whole else Batch(self.structure.select(examples), self.features.select(examples))


class Encoder(ABC):
    """Translates between user data and packed batches."""

    kind: str
    """The word for this packer in model files."""

    classes: tuple[Hashable, ...] | None = None
    """Where outputs choose among labels: all of them, in the order of the weights' columns."""

    @abstractmethod
    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """A copy that knows the training data's feature counts and labels."""

    @abstractmethod
    def pack(self, X: Sequence[Any]) -> Batch:
        """Check the inputs and pack them; ValueError naming the example if one does not fit."""

    @abstractmethod
    def encode(self, packed: Batch, y: Sequence[Any]) -> FloatArray:
        """Check the outputs and pack them as vertices, shape ``(n_parts,)``."""

    def gold(self, packed: Batch, y: Sequence[Any]) -> SparsePoint:
        """:meth:`encode`, piece by piece, so that no packed vector of the whole batch is made."""
        try:
            pieces = []
            for examples, piece in packed.pieces():
                labels = [y[i] for i in examples.tolist()]
                pieces.append((examples, SparsePoint.of(piece.structure, self.encode(piece, labels))))
        except ValueError:
            self.encode(packed, y)  # names the example by its number in the whole batch
            raise
        return pieces[0][1] if len(pieces) == 1 else SparsePoint.joined(packed.structure, pieces)

    @abstractmethod
    def decode(self, packed: Batch, z: FloatArray) -> list[Any]:
        """Outputs as users write them, one per example."""

    @abstractmethod
    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """``(right, out of)`` for one example; a model's score is the ratio of the (weighted) sums."""

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """How many weights a model of these feature counts and labels has."""

    @property
    def layout(self) -> tuple[Any, ...]:
        """What the weights stand for, as far as the packer knows: equal where one model may start from another's."""
        return self.kind, self.n_weights

    def nonnegative(self) -> npt.NDArray[np.bool_] | None:
        """Weights that must be >= 0 for the outputs to stay tractable, as a mask, or None."""
        return None

    @property
    def no_l1(self) -> str:
        """Where an L1 ball of the weights is refused: the reason, and what to use. Empty where it is not."""
        return ""

    @property
    def no_signs(self) -> str:
        """Where ``nonnegative`` weights of the caller's choice are refused: the reason. Empty where they are not."""
        return ""

    def finish(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """The packer and the weights of the trained model: these, unless training uses other coordinates."""
        return self, weights

    def resume(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """Training weights from those of a trained model of the same layout: the inverse of ``finish``."""
        return weights

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a model file must hold besides the weights and the header, by name."""
        return {}

    def with_arrays(self, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """A copy that holds these arrays of a model file, the inverse of ``arrays``; ValueError if they do not fit."""
        return self

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """Settings and learned facts as plain JSON values: the inverse of ``from_header``."""

    @classmethod
    @abstractmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """A packer from a model file's header; ValueError if it makes no sense."""
