"""The process of the command line, ``maxmargin`` and ``python -m maxmargin``: signals end it in one line."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn

from maxmargin import _interrupts


def main() -> None:
    """Run a command; signals end it from here on, also while modules are imported."""
    _interrupts.end_on_signals()
    try:
        from maxmargin._terminal import use_utf8
        from maxmargin.cli import app

        use_utf8()
        app(prog_name="maxmargin")
    except SystemExit as ended:
        _interrupts.no_more_signals()
        # Where typer itself is interrupted it exits without a word.
        silent = isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt)
        if not silent and _interrupts.received() is None:
            raise
        _end("interrupted\n" if silent else "", _interrupts.exit_code() if silent else ended.code)
    except (KeyboardInterrupt, Exception) as error:
        _interrupts.no_more_signals()
        # An import that is interrupted may fail with another error.
        if _interrupts.received() is None and not isinstance(error, KeyboardInterrupt):
            raise
        _end("interrupted\n", _interrupts.exit_code())


def _end(message: str, code: object) -> NoReturn:
    """End the process at once.

    Left to itself, Python would die of SIGINT, not with this exit code, if the interrupt came while it executed code
    from a string, as dataclasses do when they are made.
    """
    with contextlib.suppress(OSError):  # the terminal, or the reader of the output, may be gone
        sys.stderr.write(message)
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
