"""A3, the alignments that GIZA++ writes, as ``A3.final``: three lines per pair.

A comment with the number of the pair, the target sentence, and the source words with the positions, from 1, of the
target words that they are linked to; those of the empty word come first::

    # Sentence pair (1) source length 2 target length 3 alignment score : 0.1
    le chat noir
    NULL ({ }) the ({ 1 }) cat ({ 2 3 })
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from maxmargin._messages import quoted
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.formats.table import NUMBER, Rows, Table
from maxmargin.tasks.common.files.text import AnyPath, lines_of, problem

HEADER = re.compile(rb"# Sentence pair \(([0-9]{1,9})\)")
_EMPTY, _OPEN, _CLOSE = b"NULL", b"({", b"})"


def parse(path: AnyPath, data: bytes) -> Table:
    """Parse the links of pairs in any order; links of the empty word are dropped."""
    rows, count = Rows(path), 0
    lines = lines_of(data.rstrip())
    seen: set[int] = set()
    for at in range(0, len(lines), 3):
        match = HEADER.match(lines[at])
        if match is None:
            raise problem(path, at + 1, f"{quoted(lines[at])} should be '# Sentence pair (1) ...'; give an A3 file")
        number = int(match[1])
        if number == 0 or number in seen:
            what = "pairs count from 1" if number == 0 else "it is there twice; give each pair once"
            raise problem(path, at + 1, f"sentence pair {number}: {what}")
        if at + 2 >= len(lines):
            raise problem(path, len(lines), f"sentence pair {number} ends here; give its three lines")
        seen.add(number)
        count = max(count, number)
        _pair(rows, number - 1, len(lines[at + 1].split()), lines[at + 2].split(), at + 3)
    return rows.table(count)


def _pair(rows: Rows, sentence: int, n_target: int, words: Sequence[bytes], line: int) -> None:
    """Add the links of a pair with so many target words from ``NULL ({ }) the ({ 1 })``, split at white space."""
    at, source = 0, -1
    while at < len(words):
        # A word may be any token, also one that looks like a bracket.
        end = at + 2
        while end < len(words) and words[end] != _CLOSE:
            end += 1
        if end >= len(words) or words[at + 1] != _OPEN or (at == 0 and words[0] != _EMPTY):
            shown = quoted(b" ".join(words[at : at + 6]))
            raise problem(
                rows.path, line, f"{shown} is not a word with its links; write NULL ({{ }}) the ({{ 1 }}) ..."
            )
        for target in words[at + 2 : end]:
            if not NUMBER.fullmatch(target) or not 1 <= int(target) <= n_target:
                raise problem(
                    rows.path,
                    line,
                    f"{quoted(target)} is not a position in the sentence of {n_target} words before; positions count "
                    "from 1",
                )
            if source >= 0:
                rows.add(sentence, source, int(target) - 1, True, None, line)
        at, source = end + 1, source + 1


def format_pair(links: IntArray, source: Sequence[str], target: Sequence[str], number: int) -> str:
    """Format a pair with its links in three lines, without the last end of line."""
    of: list[list[int]] = [[] for _ in range(len(source) + 1)]
    linked = set()
    for i, j in links.tolist():
        of[i + 1].append(j + 1)
        linked.add(j)
    of[0] = [j + 1 for j in range(len(target)) if j not in linked]
    words = (
        f"{word} ({{ {''.join(f'{position} ' for position in positions)}}})"
        for word, positions in zip(("NULL", *source), of, strict=True)
    )
    sizes = f"source length {len(source)} target length {len(target)}"
    return f"# Sentence pair ({number}) {sizes} alignment score : 1\n{' '.join(target)}\n{' '.join(words)}"
