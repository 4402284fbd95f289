"""Messages of errors about files: what a file says is quoted in them, but never so much that the reason is lost."""

from __future__ import annotations

LONGEST = 800
"""Characters of a message; a longer one loses its middle, which is what it quotes."""

_END = 300
"""Of which so many are kept at the end, where a message says what to do."""


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


def quoted(value: object, most: int = 60) -> str:
    """A value as it would be written in Python, cut if that is long."""
    # A huge string or list is cut before it is written: repr takes several times its memory.
    text = repr(value[: most + 1] if isinstance(value, (str, bytes, list, tuple)) else value)
    return text if len(text) <= most + 2 else f"{text[:most]}..."
