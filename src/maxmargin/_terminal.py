"""Output of commands: errors as one line, metadata as a table, text from files without control characters."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from maxmargin._interrupts import exit_code

if TYPE_CHECKING:
    from rich.console import Console


_quiet = False


def set_quiet(quiet: bool) -> None:
    """Set whether a command leaves out notes and progress bars; warnings and errors stay."""
    global _quiet
    _quiet = quiet


def use_utf8() -> None:
    """Let what commands print be UTF-8 with line ends as in the files they write.

    Windows would write the code page of the machine, which lacks most letters, and other line ends; elsewhere the
    user's locale is left as it is.
    """
    if os.name == "nt":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors=stream.errors, newline="\n")


def is_quiet() -> bool:
    """Whether notes and progress bars are left out."""
    return _quiet


def note(message: str) -> None:
    """Print ``note: message`` on standard error, unless the command is quiet."""
    if not _quiet:
        print(f"note: {printable(message)}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Print ``error: message`` and end the command with exit code 2."""
    import typer  # here, as libraries take the other functions and no commands

    print(f"error: {printable(message)}", file=sys.stderr)
    raise typer.Exit(code=2)


def interrupted(left: str = "") -> NoReturn:
    """Print ``interrupted; what is left`` and end the command with the exit code of the signal that ends it."""
    import typer

    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"interrupted{'; ' if left else ''}{printable(left)}", file=sys.stderr)
    raise typer.Exit(code=exit_code()) from None


def printable(value: object) -> str:
    """One line without control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def shown(value: object) -> str:
    """A value as text for a table: numbers with four digits, ``-`` for None and empty lists."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "-"
    return printable(value)


def console() -> Console:
    """Return a console for tables; in pipes and files, lines are not wrapped."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)


def report(metadata: dict[str, Any], *, as_json: bool) -> None:
    """Print metadata, one JSON object or a table."""
    if as_json:
        print(json.dumps(metadata), flush=True)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for key, value in metadata.items():
        table.add_row(Text(key), Text(shown(value)))
    console().print(table)
