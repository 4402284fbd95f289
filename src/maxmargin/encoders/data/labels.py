"""Label vocabularies: any hashable labels in a fixed order, and their form in model files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin.structures._arrays import IntArray, Ragged, offsets_of

_PLAIN = {str, int, bool, type(None)}
"""Types whose values can be labels as they are."""


@dataclass(frozen=True, eq=False)
class Labels(Sequence[list[Hashable]]):
    """Label sequences of all examples.

    Attributes:
        flat: all labels, example after example.
        offsets: where each example begins in ``flat``, and the end.
    """

    flat: list[Hashable]
    offsets: IntArray

    @classmethod
    def parse(cls, y: Sequence[Any]) -> Labels:
        """Check the outputs of a user: one sequence of hashable labels per example."""
        if isinstance(y, Labels):
            return y
        flat: list[Hashable] = []
        lengths = []
        for index, given in enumerate(y):
            labels = given if type(given) is list else sequence_of(given, index)
            flat += labels
            lengths.append(len(labels))
        found = cls(flat, offsets_of(lengths))
        if not set(map(type, flat)) <= _PLAIN:
            flat[:] = [plain(label, f"example {found.owner(place)}") for place, label in enumerate(flat)]
        return found

    @classmethod
    def known(cls, y: Sequence[Any]) -> Labels:
        """As :meth:`parse`; ValueError naming the example where a label is None, which stands for an unknown one."""
        found = cls.parse(y)
        if None in found.flat:
            place = found.flat.index(None)
            owner = found.owner(place)
            raise _unknown(f"example {owner}: the label at place {place - int(found.offsets[owner])} (from 0)")
        return found

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    def owner(self, place: int) -> int:
        """The example of a place in ``flat``."""
        return int(np.searchsorted(self.offsets, place, side="right")) - 1

    def vocabulary(self) -> tuple[Hashable, ...]:
        """All labels: sorted if they can be compared, else in order of appearance."""
        seen = dict.fromkeys(self.flat)
        try:
            return tuple(sorted(seen))  # type: ignore[type-var]
        except (TypeError, ValueError, RecursionError):
            return tuple(seen)

    def codes(self, index: dict[Hashable, int]) -> Ragged:
        """The number of every label; ValueError naming the example for a label that has none."""
        try:
            return Ragged(np.fromiter(map(index.__getitem__, self.flat), np.int64, len(self.flat)), self.offsets)
        except KeyError:
            place = next(place for place, label in enumerate(self.flat) if label not in index)
            raise ValueError(
                f"example {self.owner(place)}: label {shown(self.flat[place])} was not seen in training; "
                "give all labels with classes=[...] or remove the example"
            ) from None


def vocabulary(y: Sequence[Any]) -> tuple[Hashable, ...]:
    """All labels of a list of label sequences: sorted if they can be compared, else in order of appearance."""
    return Labels.parse(y).vocabulary()


def distinct(classes: Any) -> tuple[Hashable, ...]:
    """A user's list of all labels, checked."""
    keys = isinstance(classes, (dict, set, frozenset))
    given = list(classes) if keys else _checks.listed("classes", classes, "a list of labels", sized=False)
    found = tuple(plain(label, "classes") for label in given)
    if not found or len(set(found)) != len(found):
        raise ValueError("classes must be a non-empty list of distinct labels")
    return found


def known(label: Any, where: str) -> Hashable:
    """As :func:`plain`; ValueError for None, which stands for an unknown label."""
    if label is None:
        raise _unknown(f"{where}: a label")
    return plain(label, where)


def _unknown(what: str) -> ValueError:
    return ValueError(
        f"{what} is None, which stands for an unknown one; give it, or train with mm.LatentSVM(...) or SequenceTagger, "
        "which learn from labels that are known in part"
    )


def sequence(labels: Any, index: int) -> list[Hashable]:
    """The labels of one example as a list of plain hashable values; ValueError naming the example if they are not."""
    return [plain(label, f"example {index}") for label in sequence_of(labels, index)]


def sequence_of(labels: Any, index: int) -> list[Any]:
    """The labels of one example as a list; ValueError naming the example if they are not a sequence."""
    what, wanted = f"example {index}: y", "a list or 1-D array with one label per position"
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError(f"{what} must be {wanted}, got {type(labels).__name__} of shape {labels.shape}")
    if type(labels) is np.ndarray:
        _memory.require(8.0 * labels.size, what, "give one label per position")
        return list(labels.tolist())
    return _checks.listed(what, labels, wanted)


def plain(label: Any, where: str, what: str = "label") -> Hashable:
    """NumPy scalars as the Python values they equal, so that predictions and files do not depend on dtypes.

    Errors say ``where`` the label is, and ``what`` it is called.
    """
    value: Hashable = label.item() if hasattr(label, "item") and getattr(label, "ndim", None) == 0 else label
    try:
        hash(value)
        equal = bool(value == value)
    except Exception:  # the caller's code
        raise ValueError(
            f"{where}: {what}s must be hashable (text, numbers, tuples, ...), got {type(label).__name__}; "
            "turn lists into tuples"
        ) from None
    if not equal:
        raise ValueError(f"{where}: NaN cannot be a {what}, as it does not equal itself; use another value")
    return value


def label_to_json(label: Any) -> Any:
    """A label as JSON: text, numbers, None and nested tuples of these."""
    if isinstance(label, float) and not math.isfinite(label):
        raise ValueError(f"the label {label} cannot be saved; use text or finite numbers, or pickle the estimator")
    if label is None or isinstance(label, (bool, int, float, str)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise ValueError(
        f"a label of type {type(label).__name__} cannot be saved; use text, numbers or tuples as labels, "
        "or pickle the estimator"
    )


def label_from_json(value: Any) -> Hashable:
    """The inverse of :func:`label_to_json`."""
    if isinstance(value, dict) and set(value) == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(label_from_json(part) for part in value["tuple"])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"not a label: {value!r}")
