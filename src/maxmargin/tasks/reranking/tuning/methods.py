"""Methods by name, as options of commands give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from maxmargin.tasks.reranking.tuning.base import Method
from maxmargin.tasks.reranking.tuning.max_margin import LinearProgram7, LinearProgram8, MaxMargin
from maxmargin.tasks.reranking.tuning.mert import Mert
from maxmargin.tasks.reranking.tuning.online import KBestMira, Perceptron
from maxmargin.tasks.reranking.tuning.pro import Pro

METHODS: dict[str, Callable[[], Method]] = {
    "max-margin": MaxMargin,
    "lp7": LinearProgram7,
    "lp8": LinearProgram8,
    "mert": Mert,
    "pro": Pro,
    "mira": KBestMira,
    "perceptron": Perceptron,
}
"""All methods with their usual settings."""


def method_named(name: str, *, C: Sequence[float] | None = None) -> Method:
    """Return a method with its usual settings.

    Args:
        name: one of :data:`METHODS`.
        C: values to choose from in place of the method's own; larger means less regularization.
    """
    if name not in METHODS:
        raise ValueError(f"no method is called {name!r}; give one of {', '.join(METHODS)}")
    method: Any = METHODS[name]()
    if C is None:
        return method  # type: ignore[no-any-return]
    if "C" not in {field.name for field in fields(method)}:
        raise ValueError(f"{name} has no C; leave it out")
    return replace(method, C=tuple(C))  # type: ignore[no-any-return]
