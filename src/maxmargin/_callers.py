"""The line that a warning should show: that of the first caller outside the library."""

from __future__ import annotations

import inspect
from pathlib import Path


def callers_level() -> int:
    """The ``stacklevel`` of ``warnings.warn`` in the calling function that points at the first caller outside."""
    here, level = str(Path(__file__).parent), 1
    frame = inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level
