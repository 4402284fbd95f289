"""Helpers of commands: errors as lines, checks of output files, standard input read once."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from maxmargin._terminal import fail, printable
from maxmargin.tasks.common.text import STANDARD_INPUT, FileError


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """Print warnings, then the error if there is one, as one line each; an error ends the command."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for warning in caught:
                    print(f"warning: {printable(warning.message)}", file=sys.stderr)
    except BrokenPipeError:  # the reader has stopped, as after ``| head``: typer exits quietly
        raise
    except OSError as error:
        fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except ValueError as error:
        fail(str(error))


def writable(path: Path, keep: Sequence[str | None] = ()) -> None:
    """Fail before the work is done if ``path`` cannot be written afterwards or is one of the files to ``keep``."""
    for other in keep:
        if other not in (None, STANDARD_INPUT) and path.resolve() == Path(str(other)).resolve():
            fail(f"--out {path} is also an input; give another --out")
    if path.is_dir():
        fail(f"{path} is a folder; give --out a file")
    folder = path.resolve().parent
    if not folder.is_dir():
        fail(f"{path}: its folder does not exist; create it, or give another --out")
    if not os.access(folder, os.W_OK | os.X_OK):  # an existing file is replaced, not written to
        fail(f"{path}: no permission to write to its folder; give another --out")


def once(paths: Sequence[str | None]) -> None:
    """Raise FileError if standard input is to be read more than once."""
    if sum(path == STANDARD_INPUT for path in paths) > 1:
        raise FileError("standard input (-) can be read only once; give the other inputs as files")
