"""Reading files that may be damaged."""

from __future__ import annotations

from maxmargin.tasks.common.files.text import FileError


def read_or_refuse(read, path):
    """What was read, or None if the file was refused with an error that names it and says what to do."""
    try:
        return read(path)
    except FileError as error:
        message = str(error)
    assert message.startswith(str(path))
    assert ";" in message
    return None
