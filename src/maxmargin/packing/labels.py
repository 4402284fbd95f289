"""Label vocabularies: any hashable labels in a fixed order, and their form in model files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def vocabulary(y: Sequence[Any]) -> tuple[Hashable, ...]:
    """All labels of a list of label sequences: sorted if they can be compared, else in order of appearance."""
    seen: dict[Hashable, None] = {}
    for index, labels in enumerate(y):
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
            raise ValueError(f"example {index}: y must be a list or array of labels, got {type(labels).__name__}")
        try:
            seen.update(dict.fromkeys(_plain(label) for label in labels))
        except TypeError:
            raise ValueError(f"example {index}: labels must be hashable (strings, numbers, tuples, ...)") from None
    try:
        return tuple(sorted(seen))  # type: ignore[type-var]
    except TypeError:
        return tuple(seen)


def _plain(label: Any) -> Hashable:
    """NumPy scalars as the Python values they equal, so that predictions and files do not depend on dtypes."""
    plain: Hashable = label.item() if hasattr(label, "item") and getattr(label, "ndim", None) == 0 else label
    return plain


def label_to_json(label: Any) -> Any:
    """A label as JSON: text, numbers, None and nested tuples of these."""
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
