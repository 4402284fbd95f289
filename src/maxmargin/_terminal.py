"""What commands share: errors as one line, and text from files that cannot move the cursor."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer


def fail(message: str) -> NoReturn:
    """Print ``error: message`` and end the command with exit code 2."""
    print(f"error: {printable(message)}", file=sys.stderr)
    raise typer.Exit(code=2)


def printable(value: object) -> str:
    """One line without control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
