"""Helpers of commands: options of several files, errors as lines, checks of output files, standard input read once."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from maxmargin._files import recorded, regular_file
from maxmargin._locks import FileInUseError, FileLock, release_at_the_end
from maxmargin._terminal import fail, interrupted, printable
from maxmargin.tasks.common.files.text import STANDARD_INPUT
from maxmargin.tasks.common.files.text import once as once
from maxmargin.tasks.common.packages import MissingPackageError

PART_WRITTEN = "the output is incomplete"
"""What Ctrl-C leaves behind in commands that write to standard output."""

_OF_NAMES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""Errors that another name of a file would mend."""


class ManyValues(TyperCommand):
    """A command whose repeatable options take several values at once: ``--features a b c``.

    Values go on until the next option, so that arguments come before such options.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its values."""
        repeatable = {name for one in self.params if getattr(one, "multiple", False) for name in one.opts}
        spread: list[str] = []
        option, given = None, 0
        for at, arg in enumerate(args):
            if arg == "--":
                spread += args[at:]
                break
            if arg.startswith("-") and arg != STANDARD_INPUT:
                option, given = (arg if arg in repeatable else None), 0
            elif option is not None:
                spread += [option] if given else []
                given += 1
            spread.append(arg)
        return super().parse_args(ctx, spread)


class BestSoFar(KeyboardInterrupt):
    """Ctrl-C ended training, and the best model so far was written."""


@contextmanager
def errors_as_lines(left: str | Callable[[Sequence[Path], bool], str] | None = None) -> Iterator[None]:
    """Print warnings as they come, then the error if there is one, a line each; an error or Ctrl-C ends the command.

    What a KeyboardInterrupt says is printed before what is left.

    Args:
        left: what Ctrl-C leaves behind, or a function that returns it and gets the files that were written and whether
            they hold the :class:`BestSoFar`; None to name these files.
    """
    written: list[Path] = []
    try:
        with recorded() as written, warnings.catch_warnings():
            warnings.simplefilter("always")
            late: list[Warning | str] = []

            def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
                if category.__name__ == "ConvergenceWarning":
                    late.append(message)
                else:
                    _warn(message)

            warnings.showwarning = show
            try:
                yield
            except KeyboardInterrupt:
                late.clear()  # how the run ended is said in the last line
                raise
            finally:
                for message in late:
                    _warn(message)
    except BrokenPipeError:  # the reader has stopped, as after ``| head``: typer exits quietly
        raise
    except OSError as error:
        said = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # what was saved before that may help
            said = "; ".join(filter(None, (said, "free some space", left(written, False) if callable(left) else "")))
        elif error.filename and error.errno in _OF_NAMES and error.strerror == os.strerror(error.errno):
            said += "; check the name of the file"
        fail(said)
    except (ValueError, MissingPackageError) as error:
        fail(str(error))
    except KeyboardInterrupt as stopped:
        what = left if isinstance(left, str) else (left or _named)(written, isinstance(stopped, BestSoFar))
        interrupted("; ".join(filter(None, (str(stopped), what))))


def _warn(message: Warning | str) -> None:
    print(f"warning: {printable(message)}", file=sys.stderr)


def _named(written: Sequence[Path], best: bool) -> str:
    if len(written) > 1:
        return f"{len(written)} files were written"
    return written_line(written[0], best) if written else "nothing was written"


def written_line(path: Path, best: bool) -> str:
    """Return what is said of a model that was written, perhaps the best so far of an interrupted training."""
    return f"{path} was written{' with the best weights so far' if best else ''}"


def writable(path: Path, keep: Sequence[str | None] = (), *, option: str = "--out", streams: bool = False) -> None:
    """Fail before the work is done if ``path`` cannot be written afterwards or is one of the files to ``keep``.

    Args:
        path: the file to write.
        keep: files that must stay what they are.
        option: the option that names the file.
        streams: whether ``-`` stands for standard output.
    """
    try:
        target = regular_file(path)
    except IsADirectoryError:
        fail(f"{path} is a folder; give {option} a file")
    except OSError as error:
        instead = "write to standard output and redirect that" if streams else f"give another {option}"
        fail(f"{path}: {error.strerror or error}; {instead}")
    for other in keep:
        if other not in (None, STANDARD_INPUT) and target == Path(os.path.realpath(str(other))):
            fail(f"{option} {path} is also an input; give another {option}")
    folder = target.parent
    if not folder.is_dir():
        fail(f"{path}: its folder does not exist; create it, or give another {option}")
    if not os.access(folder, os.W_OK | os.X_OK):  # an existing file is replaced, not written to
        fail(f"{path}: no permission to write to its folder; give another {option}")


def reserve(out: Path, keep: Sequence[str | None] = ()) -> None:
    """:func:`writable` for the model of a command that trains: no other process may train to this file meanwhile."""
    writable(out, keep)
    try:
        lock = FileLock(out)
    except FileInUseError as found:
        other = "another process" if found.pid is None else f"process {found.pid}"
        fail(f"{out}: {other} is training to this file; wait for it, end it, or give another --out")
    except OSError as error:
        fail(f"{out}: {error.strerror or error}; give another --out")
    release_at_the_end(lock)


def writable_folder(path: Path, keep: Sequence[Path] = ()) -> None:
    """Make a folder for output; fail if files cannot be written to it, or if it has one of the files to ``keep``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        fail(f"{path} is a file; give --out a folder")
    except OSError as error:
        fail(f"{path}: {error.strerror or error}; give another --out")
    if not os.access(path, os.W_OK | os.X_OK):
        fail(f"{path}: no permission to write to this folder; give another --out")
    folder = path.resolve()
    for other in keep:
        if other.resolve().parent == folder:
            fail(f"--out {path} has the input {other}, which could be overwritten; give another --out")
