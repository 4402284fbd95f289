"""Fill the figures of Markdown pages from what benchmarks have measured, the records in ``benchmarks/results``.

    python -m benchmarks.figures [--check]

Nobody types a measured number into a page: it stands between two comments, which readers do not see. In a line:

    the test error is <!-- figure letters.chain.error:.2f -->12.67<!-- / -->%

The first comment has a Python expression, in which the names of records stand for their figures, and a
format; or, if it has braces, a template: ``{min(aer):.1f} to {max(aer):.1f}``. It must not begin a line, where Markdown
would take it for the end of the paragraph. Tables and paragraphs have a template over several lines, in which lines may
be repeated and names be given, which hold in the rest of the page:

    <!-- figures
    let times = pairings["microseconds of a matching"]
    | graphs | maxmargin | rustworkx, networkx |
    |---|--:|--:|
    for graph, row in times.items(): | {graph} | **{row.maxmargin:2s}** | {[row.rustworkx, row.get("networkx")]:2s} |
    -->
    filled by this program
    <!-- /figures -->

An expression with a colon or an exclamation mark, either of which would end it, goes into a "let".

Keys of objects that are names are attributes. ``NAME.date`` is the day of a run, ``NAME.command`` how to repeat it, and
``NAME.about`` both and the machine. Besides Python's formats there is ``2s``, two significant digits and commas. The
items of a list are cells of a table. None leaves its place empty.

``--check`` writes nothing and fails if a page is not what it would be.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import string
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, ROOT

MARKED = re.compile(
    r"(?ms:^(?P<begin><!-- figures\n)(?P<block>.*?)(?P<middle>\n-->\n).*?^(?P<end><!-- /figures -->)$)"
    r"|(?P<from><!-- figure )(?P<inline>.*?)(?P<to> -->).*?(?P<over><!-- / -->)"
)
MARKER = re.compile(r"<!-- /?figures?\b|<!-- / -->")
ERRORS = (
    AttributeError,
    IndexError,
    KeyError,
    NameError,
    SyntaxError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)
"""Of templates whose figures were not measured, or that are not right."""


def pages() -> list[Path]:
    """The pages that have figures."""
    return [ROOT / "README.md", *sorted(ROOT.glob("benchmarks/**/RESULTS.md")), *sorted(ROOT.glob("docs/**/*.md"))]


class Object(dict[str, Any]):
    """A JSON object; its keys are attributes, too."""

    def __getattr__(self, key: str) -> Any:
        if key in self:
            return self[key]
        raise AttributeError(f"there is no {key!r} beside {', '.join(map(repr, self))}")


class Template(string.Formatter):
    """Text with expressions in braces."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """The value of an expression."""
        return eval(field_name, {**self.names, **kwargs}), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        """A value in a format of this module or of Python."""
        if value is None:
            return ""
        if isinstance(value, list):
            return " | ".join(self.format_field(one, format_spec) for one in value)
        digits = re.fullmatch(r"(\d+)s", format_spec)
        return rounded(float(value), int(digits[1])) if digits else super().format_field(value, format_spec)

    def lines(self, template: str) -> Iterator[str]:
        """The lines of a block: a "let" stands for none, a "for" for one per item."""
        for line in template.splitlines():
            if short := re.fullmatch(r"let (\w+) = (.*)", line):
                self.names[short[1]] = eval(short[2], self.names)
            elif loop := re.fullmatch(r"for (.+?) in (.+?): (.*)", line):
                variables = ", ".join(f"{name}={name}" for name in re.findall(r"\w+", loop[1]))
                for values in eval(f"[dict({variables}) for {loop[1]} in {loop[2]}]", self.names):
                    yield self.format(loop[3], **values)
            else:
                yield self.format(line)


def rounded(value: float, digits: int) -> str:
    """The value with so many significant digits, and commas; very small ones in powers of ten."""
    value = float(f"{value:.{digits}g}")
    if 0 < abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-")
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(decimals, 0)}f}"


def measured(folder: Path = RESULTS) -> dict[str, Object]:
    """The figures of every record by its name; attributes are the date, the command, and both and the machine."""
    found: dict[str, Object] = {}
    for file in sorted(folder.rglob("*.json")):
        if file.stem in found:
            raise ValueError(f"two records have the name {file.stem}, one of them {file}; rename one")
        record = json.loads(file.read_text(encoding="utf-8"), object_hook=Object)
        source = "copied from an earlier table" if record.get("transcribed") else record.machine
        found[file.stem] = record.figures
        found[file.stem].date, found[file.stem].command = record.date, record.command
        found[file.stem].about = f"{record.date}, `{record.command}`, {source}"
    return found


def filled(page: str, names: Mapping[str, Any], errors: list[str] | None = None) -> str:
    """The text of a page with all figures as measured; a list ``errors`` takes the errors, and their places stay."""
    template = Template(names)

    def new(match: re.Match[str]) -> str:
        try:
            return measured_text(match)
        except ERRORS as error:
            if errors is None:
                raise
            errors.append(f"line {page.count(chr(10), 0, match.start()) + 1}: {type(error).__name__}: {error}")
            return match[0]

    def measured_text(match: re.Match[str]) -> str:
        if match["block"] is not None:
            lines = "".join(f"{line}\n" for line in template.lines(match["block"]))
            return match["begin"] + match["block"] + match["middle"] + lines + match["end"]
        text = match["inline"] if "{" in match["inline"] else f"{{{match['inline']}}}"
        return match["from"] + match["inline"] + match["to"] + template.format(text) + match["over"]

    return MARKED.sub(new, page)


def templates(page: str) -> list[str]:
    """The templates of a page."""
    return [match["block"] or match["inline"] for match in MARKED.finditer(page)]


def broken(page: str) -> list[str]:
    """Lines with a marker that is not one half of a pair, or that begins a line of text."""
    unpaired = [line for line in MARKED.sub("", page).splitlines() if MARKER.search(line)]
    return unpaired + re.findall(r"^ {0,3}<!-- figure .*", page, re.MULTILINE)


def fill(pages: Iterable[Path], *, write: bool = True) -> list[str]:
    """Fill the figures of pages; what is wrong with them, and without ``write`` which pages would change.

    A figure whose record is missing stays as it is; the others of its page are filled.
    """
    names, wrong = measured(), []
    for page in pages:
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT)
        errors: list[str] = []
        new = filled(text, names, errors)
        wrong += [f"{name}: {error}" for error in errors]
        wrong += [f"{name}: half of a pair of markers, or one that begins a line: {line}" for line in broken(text)]
        if new != text and write:
            page.write_text(new, encoding="utf-8")
            print(f"filled {name}", file=sys.stderr)
        elif new != text:
            wrong.append(f"{name}: not the figures of benchmarks/results: run make figures")
    return wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, fail if a page would change")
    wrong = fill(pages(), write=not options.parse_args().check)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
