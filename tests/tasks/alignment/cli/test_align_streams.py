"""predict reads, aligns and writes block by block."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zlib
from functools import partial

import commands
import pytest

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.alignment import read_bitext, write_links
from maxmargin.tasks.alignment.cli import blocks
from maxmargin.tasks.alignment.io.bitext import bitext_blocks

run = partial(commands.run, "align")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, corpus, model):
    """Pairs of the corpus and new ones as files, and a model."""
    at = tmp_path_factory.mktemp("streams")
    part = corpus.select(range(40))
    for name, sentences in (("en", part.source), ("fr", part.target)):
        (at / name).write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    joined = (f"{' '.join(e)} ||| {' '.join(f)}\n" for e, f in zip(part.source, part.target, strict=True))
    (at / "both").write_text("".join(joined), encoding="utf-8")
    (at / "new").write_text("".join(f"the {n} ||| le {n}\n" for n in "abcdefghijklmnopqrstuvwxyz"), encoding="utf-8")
    (at / "model").write_bytes(model.read_bytes())
    return at


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def written(aligner, pairs, sizes, form, confidence, adapt):
    """What calls for blocks of these sizes give."""
    stream, first = io.StringIO(), 0
    for size in sizes:
        some = pairs[first : first + size]
        if not some:
            break
        found = aligner.align(some, adapt=adapt) if confidence else aligner.predict(some, adapt=adapt)
        write_links(stream, found, form, first=first + 1, sentences=some if form == "a3" else None)
        first += size
    return stream.getvalue()


@pytest.mark.parametrize("form", ["pharaoh", "naacl", "json", "a3"])
@pytest.mark.parametrize("confidence", [False, True])
def test_blocks_are_as_calls_of_their_own(form, confidence):
    aligner, pairs = mm.load("model"), list(read_bitext("new"))
    if form == "a3" and confidence:
        return
    options = ["predict", "model", "--source", "new", "--to", form, *(["--confidence"] if confidence else [])]
    for size in (1, 7, 26, 100):
        expected = written(aligner, pairs, [size] * 26, form, confidence, True)
        assert run(*options, "--block", str(size)) == expected
    assert run(*options) == written(aligner, pairs, [26], form, confidence, True)
    assert run(*options, "--no-adapt") == written(aligner, pairs, [26], form, confidence, False)


def test_pipes_begin_with_small_blocks(folder):
    aligner, pairs = mm.load("model"), list(read_bitext("new"))
    found = run("predict", "model", "--source", "-", given=(folder / "new").read_text(encoding="utf-8"))
    assert found == written(aligner, pairs, [1, 2, 4, 8, 16], "pharaoh", False, True)
    sizes = blocks._sizes(None, os.devnull, None, False)
    assert [next(sizes) for _ in range(16)] == [*(2**n for n in range(13)), 10000, 10000, 10000]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("adapt", [(), ("--no-adapt",)])
def test_the_first_line_is_written_while_the_input_is_open(folder, adapt, packed):
    command = [sys.executable, "-m", "maxmargin", "align", "predict", "model", "--source", "-", *adapt]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}  # communicate() sees no buffers
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        lines = [b"a ||| b\n", *(folder / "new").read_bytes().splitlines(keepends=True)]  # the first has 8 bytes
        packer = zlib.compressobj(wbits=31)
        first_part, rest_part = lines[0], b"".join(lines[1:])
        if packed:
            first_part = packer.compress(first_part) + packer.flush(zlib.Z_SYNC_FLUSH)
            rest_part = packer.compress(rest_part) + packer.flush()
        process.stdin.write(first_part)
        first = process.stdout.readline()
        assert first.endswith(b"\n")
        rest = process.communicate(rest_part)[0]
    assert process.returncode == 0
    assert (first + rest).count(b"\n") == len(lines)


def test_blocks_of_files():
    whole = read_bitext("en", "fr")
    for sizes in ([1] * 41, [7] * 6, [40, 1], [41], None):
        for files in (("en", "fr"), ("both", None)):
            parts = list(bitext_blocks(*files, sizes))
            assert [pair for part in parts for pair in part] == list(whole)
            if sizes and sizes[0] != 41:
                assert len(parts[0]) == sizes[0]


def test_errors_name_lines_of_later_blocks(tmp_path):
    (tmp_path / "bad").write_bytes(b"a ||| b\n" * 9 + b"a b\n")
    (tmp_path / "latin").write_bytes(b"a ||| b\n" * 9 + b"a ||| \xe9\n")
    (tmp_path / "e").write_text("a\n" * 9)
    (tmp_path / "f").write_text("b\n" * 7)
    (tmp_path / "pipes").write_text("a\n" * 8 + "a ||| b\n")
    for arguments, message in (
        (("bad",), "line 10: no ' ||| ' instead of one"),
        (("latin",), "line 10: byte 0xe9 is not UTF-8"),
        (("pipes", "e"), "line 9: has ' ||| '"),
        (("e", "f"), "has 9 lines and"),
        (("f", "e"), "has 7 lines and"),
    ):
        files = [str(tmp_path / name) for name in arguments]
        sides = [word for pair in zip(("--source", "--target"), files, strict=False) for word in pair]
        for block in (1, 4, 100):
            answer = commands.runner.invoke(app, ["align", "predict", "model", *sides, "--block", str(block)])
            assert answer.exit_code == 2
            assert message in answer.stderr
            assert answer.stderr.count("error: ") == 1
        with pytest.raises(ValueError, match=message.split(":")[0]):
            read_bitext(*files)


def test_blank_lines_first(tmp_path):
    (tmp_path / "tabs").write_text("\n\na\tb\n\nc\td\n")
    expected = [([], []), ([], []), (["a"], ["b"]), ([], []), (["c"], ["d"])]
    assert list(read_bitext(tmp_path / "tabs")) == expected
    assert [pair for part in bitext_blocks(tmp_path / "tabs", None, [1] * 9) for pair in part] == expected
