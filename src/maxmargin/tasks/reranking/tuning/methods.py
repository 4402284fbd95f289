"""Methods by name, as options of commands give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from maxmargin import _checks
from maxmargin._messages import shown
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


def method_named(name: str, **settings: Any) -> Method:
    """Return a method with its usual settings, but for those given that are not None.

    ``name`` is one of :data:`METHODS`; settings are fields of its class.
    """
    if not _checks.is_one_of(name, *METHODS):
        raise ValueError(f"no method is called {shown(name)}; give one of {', '.join(METHODS)}")
    method: Any = METHODS[name]()
    known = {field.name for field in fields(method)}
    chosen = {key: value for key, value in settings.items() if value is not None}
    for key in chosen:
        if key not in known:
            raise ValueError(f"{name} has no setting {key}; leave it out, or take another method")
    return replace(method, **chosen)  # type: ignore[no-any-return]
