"""Alignments on a terminal: grids by their content, and the command."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from shown import FILES, HOUSE, embedded, pairs, run, write_files

from maxmargin.tasks.alignment import evaluate
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.show import KINDS, ShownPair, explain, grid


def marks(pair, text):
    """The cells of a grid that hold a glyph."""
    rows = text.plain.splitlines()[-len(pair.source) :]
    return {(i, j): glyph for i, row in enumerate(rows) for j, glyph in enumerate(row.split()[1:]) if glyph != "·"}


# --- kinds ---


def test_kinds_and_error_rate():
    assert HOUSE.drawn() == {
        (0, 0): ("sure", None),
        (0, 2): ("wrong", None),
        (1, 1): ("wrong", None),
        (1, 2): ("missed", None),
        (2, 1): ("possible", None),
        (2, 2): ("open", None),
    }
    assert HOUSE.error_rate() == pytest.approx(1 - (1 + 2) / (4 + 2))
    assert ShownPair(["a"], ["b"], [[0, 0]]).error_rate() is None
    assert ShownPair(["a"], [], [], reference=Reference.of([])).error_rate() == 0


@given(pairs())
def test_error_rate_is_that_of_the_sets(pair):
    if pair.reference is None:
        return
    predicted, sure, possible = (
        {tuple(link) for link in links.tolist()} for links in (pair.links, pair.reference.sure, pair.reference.possible)
    )
    total = len(predicted) + len(sure)
    expected = 1 - (len(predicted & sure) + len(predicted & possible)) / total if total else 0
    assert pair.error_rate() == pytest.approx(expected)
    assert pair.error_rate() == pytest.approx(evaluate([pair.reference], [pair.links]).aer)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a b", ["c"], []), "sentence 1: the source must be a list of words"),
        ((["a"], ["c", 3], []), "the target must be a list of words"),
        ((["a"], ["c"], [[0, 1]]), "0-1 is outside a pair of 1 and 1 words"),
        ((["a"], ["c"], [[-1, 0]]), "outside"),
        ((["a"], [], [[0, 0]]), "outside"),
        ((["a"], ["c"], [[0.5, 0]]), "integers of shape"),
        ((["a"], ["c"], [0, 0]), "integers of shape"),
        ((["a"], ["c"], [[0, 0]], [0.5, 0.5]), "one confidence from 0 to 1 for each of its 1 links"),
        ((["a"], ["c"], [[0, 0]], [np.nan]), "one confidence"),
        ((["a"], ["c"], [[0, 0]], [1.5]), "one confidence"),
        ((["a"], ["c"], [[0, 0]], ["high"]), "one confidence"),
        ((["a"], ["c"], [[0, 0]], None, Reference.of([(0, 3)])), "reference links, 0-3 is outside"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ShownPair(*arguments)


# --- the terminal ---


def test_grid_with_a_reference():
    assert grid(HOUSE).plain.splitlines() == [
        "sentence 1   AER 50.0%   1 sure, 1 possible, 2 wrong, 1 missed",
        "          b",
        "        m l",
        "        a a",
        "        i n",
        "        s c",
        "      l o h",
        "      a n e",
        "  the ■ · ✗",
        "white · ✗ □",
        "house · ◆ ◇",
        "■ right, sure   ◆ right, possible   ✗ wrong   □ missed, sure",
        "◇ possible, not predicted",
    ]


def test_grid_without_a_reference():
    plain = ShownPair(["yes"], ["oui"], [[0, 0]], number=7)
    assert grid(plain).plain.splitlines() == ["sentence 7   1 link", "    o", "    u", "    i", "yes ■", "■ link"]
    shades = ShownPair(["a"], list("pqrs"), [[0, j] for j in range(4)], [1.0, 0.6, 0.3, 0.1])
    assert "a █ ▓ ▒ ░" in grid(shades).plain
    assert "confidence 0.75 or more" in grid(shades).plain


def test_kinds_differ_in_color():
    spans = {str(span.style) for span in grid(HOUSE).spans}
    assert {kind.style for name, kind in KINDS.items() if name != "link"} <= spans
    assert len({kind.glyph for name, kind in KINDS.items() if name != "link"}) == 5


def test_a_narrow_terminal_gets_a_list():
    lines = grid(HOUSE, width=10).plain.splitlines()
    assert lines[1:7] == [
        "source: the white house",
        "target: la maison blanche",
        "■ 0-0 the la (right, sure)",
        "✗ 0-2 the blanche (wrong)",
        "✗ 1-1 white maison (wrong)",
        "□ 1-2 white blanche (missed, sure)",
    ]


def test_thirty_words_fit_eighty_columns():
    words = ["w" * (1 + k % 12) for k in range(30)]
    lines = grid(ShownPair(words, words, [[k, k] for k in range(30)]), width=80).plain.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert sum("■" in line for line in lines) == 31  # a row each, and the legend


def test_wide_combining_and_right_to_left_characters_keep_columns():
    pair = ShownPair(["北京烤鸭", "e\u0301te\u0301", "בית"], ["中国", "e\u0301", "בית", "x"], [[0, 3], [1, 3], [2, 3]])
    lines = grid(pair).plain.splitlines()
    rows = [line for line in lines if "■" in line][:3]
    assert len({cell_len(row[: row.index("■")]) for row in rows}) == 1
    assert cell_len(rows[0][: rows[0].index("■")]) == 8 + 1 + 6
    # Each right-to-left letter of a heading is a run of its own, so that no terminal reorders the columns.
    heading = [line for line in lines if re.search("[\u05d0-\u05ea]", line) and "■" not in line]
    assert all(re.search("[\u05d0-\u05ea]\u200e", line) for line in heading)
    assert len(heading) == 3


def test_text_cannot_move_the_cursor():
    text = grid(ShownPair(["a\x1b[2Jb", "\r", "[bold]"], ["\n", "\u202ex"], [[0, 0]])).plain
    assert not set(text) & {"\x1b", "\r", "\u202e"}
    assert "[bold]" in text


@given(pairs(), st.integers(1, 200))
def test_any_pair_has_a_grid_with_all_its_links(pair, width):
    text = grid(pair, width=width, legend=False)
    assert all(c.isprintable() or c in "\n\u200c\u200d\u200e" for c in text.plain)
    if pair.source and pair.target and 24 + 1 + 2 * len(pair.target) <= width:
        assert "source: " not in text.plain or any("source: " in word for word in pair.source)
    found = sum(text.plain.count(glyph) for glyph in {kind.glyph for kind in KINDS.values()} | set("█▓▒░"))
    listed = "source: " in text.plain
    expected = [kind for kind, _ in pair.drawn().values() if not (listed and kind == "open")]
    assert found >= len(expected)
    explain([pair], width=width)


@given(pairs(tokens=st.text("abcdefgh", min_size=1, max_size=9)))
def test_the_marks_of_a_grid_are_its_links(pair):
    if not pair.source or not pair.target:
        return
    found = marks(pair, grid(pair, legend=False))
    assert found.keys() == pair.drawn().keys()
    for link, (kind, confidence) in pair.drawn().items():
        assert found[link] == KINDS[kind].glyph or (kind == "link" and confidence is not None)


# --- the command ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_files(tmp_path)
    return tmp_path


def test_command_prints_grids(folder):
    output = run(*FILES)
    assert [int(n) for n in re.findall(r"sentence (\d+)", output)] == list(range(1, 21))
    assert output.endswith("10 more omitted; --limit 30 shows all\n")
    assert output.count("■ link") == 1
    assert output.replace("\r", "").startswith("sentence 1   2 links\n  x y\na ■ ·\nb · ■\n")
    assert run("--source", "both", "--links", "links") == output
    assert "omitted" not in run(*FILES, "--limit", "30")
    chosen = run(*FILES, "--sentence", "25", "--sentence", "2")
    assert re.findall(r"sentence (\d+)", chosen) == ["25", "2"]
    assert "omitted" not in chosen


def test_command_compares_with_gold(folder):
    output = run(*FILES, "--gold", "gold", "--worst", "--limit", "2")
    assert re.findall(r"sentence (\d+)   AER (\S+)%", output) == [("2", "100.0"), ("1", "0.0")]
    assert "a □ ✗\nb ✗ □" in output.replace("\r", "")
    assert "█" in run("--source", "s", "--target", "t", "--links", "scored")


def test_command_writes_a_page(folder):
    assert run(*FILES, "--gold", "gold", "--html", "page.html") == "wrote page.html: 30 sentence pairs\n"
    data = embedded((folder / "page.html").read_text(encoding="utf-8"))
    assert [pair["number"] for pair in data["pairs"]] == list(range(1, 31))
    assert data["pairs"][1]["links"] == [[0, 0, 0, 2, None], [0, 1, 1, 0, None], [1, 0, 1, 0, None], [1, 1, 0, 2, None]]
    output = run(*FILES, "--html", "page.html", "--limit", "3")
    assert output == "wrote page.html: 3 sentence pairs (27 more omitted; --limit 30 shows all)\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*FILES, "--worst"), "error: --worst needs --gold"),
        ((*FILES, "--sentence", "31"), "error: --sentence 31: there are 30 sentence pairs"),
        ((*FILES, "--html", "no/such/page.html"), "error: no/such/page.html: its folder does not exist"),
        ((*FILES[:4], "--links", "missing"), "error: missing: No such file"),
        ((*FILES[:4], "--links", "outside"), "error: outside, line 2: link 5-5 lies outside sentence pair 2"),
        ((*FILES[:4], "--links", "scores"), "error: scores: sentence 1: give one confidence from 0 to 1"),
        ((*FILES, "--gold", "outside"), "error: outside, line 2"),
    ],
)
def test_command_says_what_is_wrong(folder, arguments, words):
    (folder / "outside").write_text("0-0\n5-5\n" + "\n" * 28)
    (folder / "scores").write_text("0-0:7.5\n" + "\n" * 29)
    assert words in run(*arguments, code=2)
