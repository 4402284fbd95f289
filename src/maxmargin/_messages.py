"""Words of errors: what a caller gave or a file says is quoted in them, but never so much that the reason is lost."""

from __future__ import annotations

import reprlib

from maxmargin._terminal import printable

LONGEST = 800
"""Characters of a message; a longer one loses its middle, which is what it quotes."""

_END = 300
"""Of which so many are kept at the end, where a message says what to do."""


_QUOTED = 40
"""Characters that are quoted of a piece of a file."""


_GIVEN = 200
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100


class FileContentError(ValueError):
    """Base class of errors about the content of files, whose messages are never longer than :data:`LONGEST`."""

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(str(message)))


def shortened(text: str, most: int = LONGEST) -> str:
    """A text without its middle if it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    end = min(_END, most // 3)
    return f"{text[: most - end - 5]} ... {text[-end:]}"


def quoted(value: object) -> str:
    """A piece of a file for a message: text in quotes, anything else as Python writes it, and not too long."""
    # Cut before it is written: the text of a huge value takes several times its memory.
    if isinstance(value, (str, bytes, list, tuple)):
        value = value[: _QUOTED + 1]
    if isinstance(value, (str, bytes)):
        words = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return repr(printable(words if len(words) <= _QUOTED else words[: _QUOTED - 3] + "..."))
    text = printable(shown(value))
    return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."


def shown(value: object) -> str:
    """What a caller gave, as Python writes it: shortened, and whatever it is."""
    try:
        words = _SHORT.repr(value)
        return words if len(words) <= _GIVEN else f"{words[: _GIVEN - 3]}..."
    except Exception:  # repr is the caller's code, and Python has no words for integers of thousands of digits
        return f"<{type(value).__name__}>"
