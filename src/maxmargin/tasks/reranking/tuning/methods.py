"""Methods by name, as options of commands give them."""

from __future__ import annotations

from collections.abc import Callable

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


def method_named(name: str) -> Method:
    """Return a method with its usual settings; ``name`` is one of :data:`METHODS`."""
    if name not in METHODS:
        raise ValueError(f"no method is called {name!r}; give one of {', '.join(METHODS)}")
    return METHODS[name]()
