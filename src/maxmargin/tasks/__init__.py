"""Applications over the core, each with its files, encoder, metrics and commands."""

from typing import TYPE_CHECKING

from maxmargin import _lazy

if TYPE_CHECKING:
    from maxmargin.tasks import alignment, tagging
else:
    __getattr__, __dir__ = _lazy.names(__name__, {}, ("alignment", "tagging"))

__all__ = ["alignment", "tagging"]
