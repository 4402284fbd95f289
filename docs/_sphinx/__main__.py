"""Lays out the sources of the site in a folder: ``python -m _sphinx FOLDER``, from docs."""

from __future__ import annotations

import sys
from pathlib import Path

from . import api, commands, sources


def main(folder: Path) -> None:
    """Lay out the sources in a folder."""
    generated = {f"reference/api/{name}": text for name, text in api.pages().items()}
    generated |= {f"reference/commands/{name}": text for name, text in commands.pages().items()}
    sources.stage(folder, generated)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
