"""Optional packages, imported when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any


class MissingPackageError(ImportError):
    """A package is missing that comes with an extra."""


def optional(module: str, extra: str) -> Any:
    """Import a module of a package that comes with an extra; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingPackageError(f"{package} is not installed; run: pip install 'maxmargin[{extra}]'") from None
