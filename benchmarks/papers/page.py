"""The page of a paper in ``docs/papers``: its tables, sentences with numbers and figures are those of one command.

A page is written by hand, except between two markers of ``benchmarks/figures.py``:

    <!-- figures
    {PAGE_BLOCK.text}
    -->
    <!-- /figures -->

A command measures block after block and prints all its numbers and the blocks as one JSON object. With ``--write`` it
keeps each block as a record, ``benchmarks/results/papers/PAGE_BLOCK.json``, and fills its page. ``--only BLOCK ...``
measures some of them and leaves the others as they are. The tests use ``--small``, which takes seconds, on data that
the command makes itself, and never writes to the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import fill
from benchmarks.record import DATA, ROOT, keep


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


class Page:
    """What one run of a command has measured.

    Attributes:
        name: the page is ``docs/papers/NAME.md``, its figures ``docs/papers/NAME_*.png``.
        numbers: everything measured, printed as JSON.
        options: the command's arguments: ``data``, ``small``, ``jobs``, ``write``, ``only``.
    """

    def __init__(self, name: str, description: str, blocks: dict[str, Callable[[Page], None]]) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--data", type=Path, default=DATA, help="folder of the public data sets")
        parser.add_argument("--small", action="store_true", help="seconds instead of minutes, on data made up here")
        parser.add_argument("--jobs", type=int, default=2, help="threads")
        parser.add_argument("--write", action="store_true", help=f"put the results into docs/papers/{name}.md")
        parser.add_argument(
            "--only", nargs="+", choices=list(blocks), default=list(blocks), help="the blocks to measure"
        )
        self.options = parser.parse_args()
        if self.options.small and self.options.write:
            parser.error("--write needs a full run, without --small")
        self.name, self.blocks = name, blocks
        self.numbers: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._figures: dict[str, Any] = {}

    @property
    def path(self) -> Path:
        """The page's file."""
        return ROOT / "docs" / "papers" / f"{self.name}.md"

    def text(self, block: str, markdown: str) -> None:
        """Set what stands between the block's markers."""
        self._texts[block] = markdown.strip()

    def figure(self, name: str, figure: Any) -> None:
        """Keep a matplotlib figure, written as ``docs/papers/PAGE_NAME.png``."""
        self._figures[name] = figure

    def run(self) -> None:
        """Measure the blocks asked for, write them to the page if asked to, and print the numbers and the blocks."""
        for block in self.options.only:
            known = set(self.numbers)
            self.blocks[block](self)
            if self.options.write:  # after every block, so that a run that is stopped leaves what it has measured
                self._write(block, {name: found for name, found in self.numbers.items() if name not in known})
        print(json.dumps({"benchmark": self.name, **self.numbers, "blocks": self._texts}, indent=1))

    def _write(self, block: str, numbers: dict[str, Any]) -> None:
        keep(
            f"{self.name}_{block}",
            f"benchmarks.papers.{self.name}",
            ["--only", block],
            {"text": self._texts[block], **numbers},
        )
        if wrong := fill([self.path]):
            raise SystemExit("\n".join(wrong))
        for name, figure in self._figures.items():
            file = self.path.with_name(f"{self.name}_{name}.png")
            figure.savefig(file, dpi=110)
            _with_palette(file)


def _with_palette(file: Path) -> None:
    """Write a figure again with a palette, which makes the file a third as large.

    The median cut, Pillow's default, would mix the colors of thin lines.
    """
    from PIL import Image

    with Image.open(file) as image:
        reduced = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    reduced.save(file, optimize=True)
