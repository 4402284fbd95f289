"""Files read and labeled block by block: the bytes of the whole-file way, from files, pipes and gzip."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maxmargin.tasks.common.files.blocks import TextBlocks
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.tagging.cli.predict import Labeling, predict_file
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.io.files import read_tagged
from maxmargin.tasks.tagging.reading import ReadOptions, file_metadata, labels_of
from maxmargin.tasks.tagging.training import SETTINGS, train_tagger

WORDS = ["the", "dog", "Öl", "3-4", "runs", "12", "x", "#", "née"]
LABELS = ["D", "N", "V"]
WAYS = [{}, {"margins": True}, {"probabilities": True}, {"k_best": 2}]


def _label(word: str) -> str:
    return LABELS[len(word) % 3]


def _columns(sentences, end):
    return "".join("".join(f"{w}\t{_label(w)}{end}" for w in s) + end for s in sentences)


def _conllu(sentences, end):
    def line(j, word):
        return "\t".join([str(j), word, "_", _label(word), "_", "_", "0", "_", "_", "_"]) + end

    return "".join(
        f"# id = {i}{end}" + "".join(line(j + 1, w) for j, w in enumerate(s)) + end for i, s in enumerate(sentences)
    )


def _slash(sentences, end):
    return "".join(" ".join(f"{w}/{_label(w)}" for w in s) + end for s in sentences)


def _crfsuite(sentences, end):
    return "".join("".join(f"{_label(w)}\tw={w}\tlen={len(w)}:2{end}" for w in s) + end for s in sentences)


def _json(sentences, end):
    lines = (
        '{"tokens": [' + ", ".join(f'"{w}"' for w in s) + '], "labels": [' + ", ".join(f'"{_label(w)}"' for w in s)
        for s in sentences
    )
    return "".join(line + "]}" + end for line in lines)


def _features(sentences, end):
    lines = ('{"features": [' + ", ".join(f'["w={w}"]' for w in s) + "]" for s in sentences)
    return "".join(line + "}" + end for line in lines)


FORMS = {"columns": _columns, "conllu": _conllu, "slash": _slash, "crfsuite": _crfsuite, "json": _json}


@pytest.fixture(scope="module")
def taggers(tmp_path_factory):
    """A tagger for each format."""
    folder, found = tmp_path_factory.mktemp("blocks"), {}
    sentences = [["the", "dog", "runs"], ["Öl", "x", "#", "12"], ["née", "3-4"]]
    for form, write in FORMS.items():
        path = folder / form
        path.write_text(write(sentences, "\n"), encoding="utf-8", newline="")
        text = read_tagged(path, format=form)
        model = train_tagger(TaggingEncoder(), text.tokens, labels_of(text), SETTINGS)
        model.metadata["file"] = file_metadata(text, False)
        found[form] = model
    found["features"] = found["crfsuite"]
    return found


def _predicted(model, path, form, size, **way):
    out = io.BytesIO()
    options = ReadOptions(format={"features": "json"}.get(form, form))
    predict_file(model, options.blocks_for(str(path), model, labeled=None, size=size), out, Labeling(**way))
    return out.getvalue()


sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
gap = st.sampled_from(["", "", "\n", " \n", "\r\n\n"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from([*FORMS, "features"]),
    parts=st.lists(st.tuples(gap, sentence), min_size=1, max_size=6),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 90),
    way=st.sampled_from(WAYS),
    last=st.booleans(),
    packed=st.booleans(),
    mark=st.booleans(),
)
def test_blocks_give_the_bytes_of_the_whole_file(taggers, tmp_path, form, parts, end, size, way, last, packed, mark):
    write = {**FORMS, "features": _features}[form]
    content = "".join(space + write([words], end) for space, words in parts)
    content = content if last else content.rstrip("\r\n")
    data = ("\ufeff" * mark + content).encode()
    path = tmp_path / "content"
    path.write_bytes(gzip.compress(data) if packed else data)
    whole = _predicted(taggers[form], path, form, None, **way)
    assert _predicted(taggers[form], path, form, size, **way) == whole


@pytest.mark.parametrize("form", FORMS)
def test_known_labels_and_the_remembered_format(taggers, tmp_path, form):
    sentences = [WORDS[i % 5 :][: 1 + i % 4] for i in range(300)]
    path = tmp_path / "content"
    path.write_text(FORMS[form](sentences, "\n"), encoding="utf-8", newline="")
    model, options = taggers[form], ReadOptions()
    column = "upos" if form == "conllu" else "label"
    outs = []
    for size in (None, 100):
        out = io.BytesIO()
        predict_file(model, options.blocks_for(str(path), model, labeled=None, size=size), out, Labeling(known=column))
        outs.append(out.getvalue())
    assert outs[0] == outs[1]


def test_lines_without_tokens_stay(taggers, tmp_path):
    content = (
        "# first\n\n\n# more\n\n" + _conllu([["the"]], "\n") + "\n# between\n\n\n" + _conllu([["dog"]], "\n") + "# e"
    )
    path = tmp_path / "content"
    path.write_text(content, encoding="utf-8")
    for way in WAYS:
        whole = _predicted(taggers["conllu"], path, "conllu", None, **way)
        assert _predicted(taggers["conllu"], path, "conllu", 3, **way) == whole


def test_sentences_without_tokens_stay(taggers, tmp_path):
    path = tmp_path / "content"
    path.write_text('{"tokens": []}\n{"tokens": ["a"]}\n{"tokens": [], "id": 2}\n{"tokens": ["b"]}\n')
    for way in WAYS:
        whole = _predicted(taggers["json"], path, "json", None, **way)
        assert whole.count(b"\n") == 4
        assert _predicted(taggers["json"], path, "json", 3, **way) == whole


ERRORS = {
    "columns": ("a\tD\n\nb\tN\n\nc\tD\tE\n", "line 5: 3 columns, and line 1 has 2"),
    "conllu": (_conllu([["the"], ["dog"]], "\n") + "x\ty\n", "line 7: 'x' is not a token number"),
    "slash": ("a/D\nb/N\nc\n", "line 3: 'c' has no tag"),
    "crfsuite": ("D\ta\n\nN\tb\n\nD\tc:y\n", "line 5: 'y' is not a finite weight"),
    "json": ('{"tokens": ["a"]}\n{"tokens": ["a"]}\n{"tokens": [["b"]]}\n', 'line 3: token 1 is ["b"], and others are'),
}


@pytest.mark.parametrize("form", FORMS)
def test_errors_name_the_line_of_the_file(taggers, tmp_path, form):
    path = tmp_path / "content"
    content, message = ERRORS[form]
    path.write_text(content)
    for size in (None, 1):
        with pytest.raises(FileError) as found:
            _predicted(taggers[form], path, form, size)
        assert message in str(found.value)
    path.write_bytes(content.encode()[: content.index("\n") + 1] + b"\n" + b"\xff\n")
    with pytest.raises(FileError, match="line 3: byte 0xff is not UTF-8"):
        _predicted(taggers[form], path, form, 1)
    path.write_bytes(content.encode()[: content.index("\n") + 1] + b"\n" + b"\0\n")
    with pytest.raises(FileError, match="line 3: a NUL byte"):
        _predicted(taggers[form], path, form, 1)
    path.write_bytes(b"\n \n")
    with pytest.raises(FileError, match="no tokens"):
        _predicted(taggers[form], path, form, 1)


def test_first_sentences_come_while_the_input_is_open(taggers, monkeypatch):
    reading, writing = os.pipe()
    model = taggers["columns"]
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
        texts = ReadOptions(format="columns").blocks_for("-", model, labeled=None)
        sink.write(b"the\tD\n\ndog\tN\n")
        first = next(texts)
        assert first.data == b"the\tD\n\n"
        sink.write(b"\nruns")
        assert next(texts).data == b"dog\tN\n\n"
        sink.write(b"\tV")
        sink.close()
        assert [text.data for text in texts] == [b"runs\tV"]


@pytest.mark.parametrize("packed", [False, True])
def test_pipes_give_all_bytes(packed, monkeypatch):
    lines = b"".join(b"word%d\n\n" % i for i in range(30_000))
    reading, writing = os.pipe()
    content = gzip.compress(lines[:100_000]) + gzip.compress(lines[100_000:]) if packed else lines

    def feed():
        with open(writing, "wb") as sink:
            for first in range(0, len(content), 5001):
                sink.write(content[first : first + 5001])
                sink.flush()

    thread = threading.Thread(target=feed)
    thread.start()
    with open(reading, "rb") as source:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
        with TextBlocks("-") as stream:
            blocks = list(stream.blocks(paragraphs=True))
        thread.join()
    assert b"".join(data for _, data in blocks) == lines
    assert [before for before, _ in blocks] == [
        0,
        *itertools.accumulate(data.count(b"\n") for _, data in blocks[:-1]),
    ]


def test_blocks_are_no_larger_than_needed(tmp_path):
    rng = np.random.default_rng(0)
    lines = [b"w\n" * int(n) + b"\n" for n in rng.integers(1, 40, 2000)]
    lines[1000] = b"w\n" * 5000 + b"\n"  # a sentence longer than blocks
    path = tmp_path / "content"
    path.write_bytes(b"".join(lines))
    with TextBlocks(path, 1000) as stream:
        sizes = [len(data) for _, data in stream.blocks(paragraphs=True)]
    assert sum(sizes) == path.stat().st_size
    assert sorted(sizes)[-2] <= 1000 < max(sizes) <= 4 * 10_001


@pytest.mark.parametrize("kind", ["bzip2", "xz", "Zstandard"])
def test_other_compressed_files(kind, tmp_path):
    if kind == "Zstandard":
        pack = pytest.importorskip("zstandard", reason="zstandard is optional").ZstdCompressor().compress
    else:
        pack = {"bzip2": bz2.compress, "xz": lzma.compress}[kind]
    lines = b"".join(b"word%d\n\n" % i for i in range(3000))
    path = tmp_path / "content"
    path.write_bytes(pack(lines))
    with TextBlocks(path, 1000) as stream:
        assert b"".join(data for _, data in stream.blocks(paragraphs=True)) == lines
    path.write_bytes(pack(lines)[:-9])
    with pytest.raises(FileError, match=f"content: damaged {kind} file"), TextBlocks(path, 1000) as stream:
        list(stream.blocks(paragraphs=True))
    path.write_bytes(b"BZ\tX\n\n")
    with TextBlocks(path, 1000) as stream:
        assert [data for _, data in stream.blocks(paragraphs=True)] == [b"BZ\tX\n\n"]


def test_damaged_and_bloated_gzip_is_refused(tmp_path):
    path = tmp_path / "content"
    for content in (gzip.compress(b"a\n\n" * 1000)[:-9], b"\x1f\x8bnot gzip at all"):
        path.write_bytes(content)
        with pytest.raises(FileError, match="damaged gzip file"), TextBlocks(path, 100) as stream:
            list(stream.blocks(paragraphs=True))
    path.write_bytes(gzip.compress(b"a" * (1 << 23)))
    with pytest.raises(FileError, match="expand to more than 100 times"), TextBlocks(path, 1000) as stream:
        list(stream.blocks(paragraphs=True))
    with pytest.raises(FileError, match="No such file"):
        TextBlocks(tmp_path / "none")
