"""Comments and beginnings of documents in files of columns: not tokens, and kept on output."""

from __future__ import annotations

import io

import pytest
from commands import run

from maxmargin.tasks.tagging import read_tagged, write_tagged

FILE = """# a comment of the file
-DOCSTART- -X- O

# sent_id = 1
The DT O
# within
dog NN B-X
# SYM O

-DOCSTART-
# text = A cat
# SYM B-X
cat NN O
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("tabs", [False, True])
def test_comments_are_not_tokens(tmp_path, tabs, ends):
    lines = FILE.splitlines()
    if tabs:
        cells = ("The", "dog", "# SYM", "cat", "-DOC")
        lines = [line.replace(" ", "\t") if line.startswith(cells) else line for line in lines]
    path = tmp_path / "file"
    path.write_bytes((ends.join(lines) + ends).encode())
    text = read_tagged(path)
    assert text.columns == ("word", "pos", "label")
    assert text.table.by_sentence(0) == [["The", "dog", "#"], ["#", "cat"]]
    assert text.table.lines.tolist() == [5, 7, 8, 12, 13]
    out = io.BytesIO()
    write_tagged(text, ["L"] * 5, out=out)
    written = out.getvalue().decode().split(ends)
    label = "\tL" if tabs else " L"
    assert written == [line + label if at + 1 in (5, 7, 8, 12, 13) else line for at, line in enumerate([*lines, ""])]


def test_words_alone(tmp_path):
    path = tmp_path / "words"
    path.write_text("# two words\nThe\n#\ndog\n")
    assert read_tagged(path, labeled=False).table.by_sentence(0) == [["The", "#", "dog"]]


def test_commands_skip_comments(tmp_path):
    path, model = tmp_path / "file", str(tmp_path / "model")
    path.write_text(FILE)
    for more in ((), ("--format", "columns")):
        run("tag", "train", str(path), "--out", model, *more)
        predicted = run("tag", "predict", model, str(path), *more).splitlines()
        assert [len(line.split()) for line in predicted if line and not line.startswith(("# ", "-DOC"))] == [4, 4, 4]
        assert [line for line in predicted if "SYM" not in line and line.startswith(("#", "-"))] == [
            line for line in FILE.splitlines() if "SYM" not in line and line.startswith(("#", "-"))
        ]
        (tmp_path / "predicted").write_text("\n".join(predicted) + "\n")
        run("tag", "evaluate", str(tmp_path / "predicted"), str(path))
