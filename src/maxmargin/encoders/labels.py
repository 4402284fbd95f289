"""Label vocabularies: any hashable labels in a fixed order, and their form in model files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any


def vocabulary(y: Sequence[Any]) -> tuple[Hashable, ...]:
    """All labels of a list of label sequences: sorted if they can be compared, else in order of appearance."""
    seen: dict[Hashable, None] = {}
    for index, labels in enumerate(y):
        seen.update(dict.fromkeys(sequence(labels, index)))
    try:
        return tuple(sorted(seen))  # type: ignore[type-var]
    except TypeError:
        return tuple(seen)


def distinct(classes: Any) -> tuple[Hashable, ...]:
    """A user's list of all labels, checked."""
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise ValueError(f"classes must be a list of labels, got {classes!r}")
    found = tuple(plain(label, "classes") for label in classes)
    if not found or len(set(found)) != len(found):
        raise ValueError("classes must be a non-empty list of distinct labels")
    return found


def sequence(labels: Any, index: int) -> list[Hashable]:
    """The labels of one example as a list of plain hashable values; ValueError naming the example if they are not."""
    odd = isinstance(labels, (str, bytes, dict, set, frozenset)) or not hasattr(labels, "__iter__")
    if odd or not hasattr(labels, "__len__") or getattr(labels, "ndim", 1) != 1:
        shape = f" of shape {labels.shape}" if hasattr(labels, "shape") else ""
        raise ValueError(
            f"example {index}: y must be a list or 1-D array with one label per position, got "
            f"{type(labels).__name__}{shape}"
        )
    return [plain(label, f"example {index}") for label in (labels.tolist() if hasattr(labels, "tolist") else labels)]


def plain(label: Any, where: str) -> Hashable:
    """NumPy scalars as the Python values they equal, so that predictions and files do not depend on dtypes."""
    value: Hashable = label.item() if hasattr(label, "item") and getattr(label, "ndim", None) == 0 else label
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"{where}: labels must be hashable (text, numbers, tuples, ...), got {type(label).__name__}; "
            "turn lists into tuples"
        ) from None
    if value != value:
        raise ValueError(f"{where}: NaN cannot be a label, as it does not equal itself; use another value")
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
