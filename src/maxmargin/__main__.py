"""The process of the command line, ``maxmargin`` and ``python -m maxmargin``: signals end it in one line."""

from __future__ import annotations

import contextlib
import sys

from maxmargin import _interrupts


def main() -> None:
    """Run a command; signals end it from here on, also while modules are imported."""
    _interrupts.end_on_signals()
    try:
        from maxmargin.cli import app

        app(prog_name="maxmargin")
    except (KeyboardInterrupt, Exception) as error:
        # An import that is interrupted may fail with another error.
        if _interrupts.received() is None and not isinstance(error, KeyboardInterrupt):
            raise
        with contextlib.suppress(OSError):
            print("interrupted", file=sys.stderr)
        sys.exit(_interrupts.exit_code())
    finally:
        _interrupts.no_more_signals()


if __name__ == "__main__":
    main()
