"""What token files and writers cannot take: errors with file and line, and any text is read or refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_files import put, written

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.tagging.io.files import FORMATS, read_tagged

CONLLU_LINE = "1\ta" + "\t_" * 8 + "\n"


BAD = [
    ("", {}, "file: no tokens; give a file that has some"),
    (" \n\r\n", {}, "file: no tokens"),
    ("# only\n", {"format": "conllu"}, "file: no tokens"),
    ('{"tokens": []}\n', {}, "file: no tokens"),
    ("a N X\nb N\n", {}, "line 2: 2 columns, and line 1 has 3; give each token a line and the same columns"),
    ("\na N X\n\nb N X X\n", {}, "line 4: 4 columns, and line 2 has 3"),
    ("a\tN\tX\nb N X\n", {}, "line 2: 1 column, and line 1 has 3; separate them with TAB as line 1 does"),
    (
        "a\tN\tX\nb\tN\n",
        {},
        "line 2: 2 columns, and line 1 has 3; give all tokens the same columns, or the format",
    ),
    ("a\n", {"labeled": True}, r"line 1: one column \(word\), so there are no labels; add a column"),
    ("a\n", {"labeled": True, "columns": "word"}, r"line 1: one column \(word\), so there are no labels"),
    (
        "a N\n",
        {"labeled": True, "columns": "word,pos,label"},
        r"line 1: 2 columns \(word, pos\), and the column 'label' is missing; add it, or name",
    ),
    ("a N X Y\n", {"columns": "word,pos,label"}, r"line 1: 4 columns, and 3 are named \(word, pos, label\); name"),
    ("a N X Y\n", {"columns": "w,x", "labeled": False}, r"line 1: 4 columns, and 2 are named \(w, x\)"),
    (b"a X\nb \xff\n", {}, "line 2: byte 0xff is not UTF-8; save the file as UTF-8"),
    (b"a X\n\nb\0 X\n", {}, "line 3: a NUL byte"),
    (b"\x1f\x8bxx", {}, "damaged gzip file"),
    (CONLLU_LINE + "2\tb\n", {}, "line 2: 2 columns, and CoNLL-U has 10; separate them with TAB"),
    (CONLLU_LINE + "b\tb" + "\t_" * 8, {}, "line 2: 'b' is not a token number; CoNLL-U has 1, 2, ..."),
    (CONLLU_LINE, {"columns": "word,label"}, "columns are named, and CoNLL-U has its own"),
    ("B\tw=a\n", {"columns": "word,label", "format": "crfsuite"}, "columns are named, and CRFsuite files have none"),
    ("a/X b/Y\nc d/Z\n", {"labeled": True, "format": "slash"}, "line 2: 'c' has no tag; write word/TAG"),
    ("a/X b/\n", {"labeled": True, "format": "slash"}, "line 1: 'b/' has no tag"),
    ("a/X /Y\n", {"labeled": True, "format": "slash"}, "line 1: '/Y' has no tag"),
    ("a/X\nb/Y\n", {}, "one word with a slash per line, .* give the format slash or columns"),
    ("B\tw=a\nO\tw=b\n", {}, "two columns, either .* give the format crfsuite or columns"),
    ("B\tw=a\nO\tw=a\n", {}, "two columns, either .* give the format crfsuite or columns"),
    ("# a b\nc\td\n#\te\tf\n", {}, "line 3: 3 columns, and line 2 has 2"),
    ("# a b\nc d\n# a comment\nc\n", {}, "line 4: 1 column, and line 2 has 2"),
    (
        "B\tw=a\tx\nO\tw=b:c\tx=y\n",
        {},
        r"line 2: 'c' is not a finite weight of an attribute; write name:weight, and \\: for",
    ),
    ("B\tw=a:1e999\ty:1\n", {}, "line 1: '1e999' is not a finite weight"),
    ("B\tw=a:nan\ty:1\n", {"format": "crfsuite"}, "line 1: 'nan' is not a finite weight"),
    ('{"tokens": ["a"]}\n{"tokens": \n', {}, r"line 2: not JSON at column 11 \(Expecting value\); write one object"),
    ('{"tokens": ["a"]}\n[1]\n', {}, "line 2: not a JSON object; write"),
    ('{"words": ["a"]}\n', {}, "line 1: no 'tokens', only 'words'; give the tokens of a sentence as 'tokens'"),
    ('{"tokens": ["a"]}\n{"features": []}\n', {}, "line 2: 'features', and line 1 has 'tokens'; give the same"),
    ('{"tokens": "a b"}\n', {}, "line 1: 'tokens' is \"a b\"; give a list"),
    ('{"tokens": ["a"], "labels": []}\n', {}, "line 1: 0 labels for 1 token; give each token one"),
    ('{"tokens": ["a"], "labels": [1]}\n', {}, r"line 1: 'labels' is \[1\]; give a list of strings"),
    ('{"tokens": ["a"], "labels": ["X"]}\n{"tokens": []}\n', {}, "line 2: no 'labels'; give the label of each"),
    ('{"tokens": []}\n{"tokens": ["a"], "labels": ["X"]}\n', {}, "line 2: labels, and line 1 has none; give them"),
    ('{"tokens": ["a"]}\n', {"labeled": True}, "line 1: no 'labels'"),
    ('{"tokens": ["a"]}\n{"tokens": ["b", 1]}\n', {}, "line 2: token 2 is 1, and others are strings"),
    ('{"tokens": [["a", "b"], ["a"]]}\n', {}, r'line 1: token 2 is \["a"\], and others are lists of 2 strings'),
    ('{"tokens": [[]]}\n', {}, r"line 1: token 1 is \[\]"),
    ('{"tokens": [7]}\n', {}, "line 1: token 1 is 7"),
    ('{"tokens": ["\\ud800"]}\n', {}, r"line 1: an escape such as \\ud800 alone; write both halves"),
    ('{"tokens": ' + "[" * 100_000 + "\n", {"format": "json"}, "line 1: JSON that is too large to read"),
    ('{"tokens": [' + "1" * 5000 + "]}\n", {"format": "json"}, "line 1: JSON that is too large to read"),
    ('{"features": [[1]]}\n', {}, "line 1, token 1: expected texts in a list, got int"),
    (
        '{"features": [[], {"a": null}]}\n',
        {},
        "line 1, token 2: attribute 'a': expected text, a number, or a list or dictionary of them, got NoneType",
    ),
    ('{"features": [{"a": NaN}]}\n', {}, "line 1, token 1: attribute 'a': the value is NaN or infinite"),
    ('{"features": [["a"], 1]}\n', {}, "line 1, token 2: expected"),
]


@pytest.mark.parametrize(("content", "settings", "message"), BAD, ids=map(str, range(len(BAD))))
def test_bad_files(saved, content, settings, message):
    with pytest.raises(FileError, match=message) as caught:
        read_tagged(saved(content), **settings)
    assert "\n" not in str(caught.value)
    assert "/file" in str(caught.value)


PIECES = ["a", "/", "#", "# ", " ", "\t", "\n", "\n\n", "\r\n", "1", "1-2", "2.1", "w=x", ":", "\\", "\ufeff", "\u2028"]
PIECES += ["\t_" * 8, '{"tokens": ["a", "b"]}', '{"features": [["a"], {"b": 1}], "labels": ["X", "Y"]}', "{"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(TEXTS, st.sampled_from([None, *FORMATS]), st.sampled_from([None, True, False]))
@settings(max_examples=300)
def test_any_text_is_read_or_refused(folder, content, form, labeled):
    try:
        text = read_tagged(put(folder, content, False), format=form, labeled=labeled)
    except FileError:
        return
    assert text.sentences[0] == 0
    assert text.sentences[-1] == text.n_tokens > 0
    assert (text.tokens.lengths > 0).all() or text.format == "json"
    if labeled:
        assert text.labeled
    if text.labeled:
        assert list(map(len, text.labels())) == text.tokens.lengths.tolist()
    out = written(text, ["\u2603"] * text.n_tokens, scores=np.zeros(text.n_tokens))
    again = read_tagged(put(folder, out, False), format=text.format, labeled=None)
    if text.format in ("columns", "conllu", "json"):
        assert again.sentences.tolist() == text.sentences.tolist()
    bare = written(text, ["\u2603"] * text.n_tokens)
    assert bare.count("\u2603") == text.n_tokens
    if text.format == "columns":
        assert bare.replace(text.separator.decode() + "\u2603", "") == content.removeprefix("\ufeff")
    if text.format == "slash" and text.label is None:
        assert bare.replace("/\u2603", "") == content.removeprefix("\ufeff")


def test_absent_file(tmp_path):
    with pytest.raises(FileError, match="No such file or directory; check the name"):
        read_tagged(tmp_path / "absent")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "xml"}, "no format 'xml'; choose one of columns, conllu, slash, crfsuite, json"),
        ({"columns": "word,word"}, "the column 'word' is named twice; give each column a name of its own"),
        ({"columns": "word,,label"}, "a column has no name; give for example word,pos,label"),
        ({"columns": []}, "a column has no name"),
        ({"columns": "word,pos", "label": "chunk"}, "no column 'chunk' for labels; there are word, pos"),
    ],
)
def test_bad_settings(saved, settings, message):
    with pytest.raises(ValueError, match=message):
        read_tagged(saved("a X\n"), **settings)


def test_bad_columns_of_conllu(saved):
    name = saved(CONLLU_LINE)
    assert read_tagged(name, label="form").label == "word"
    for wrong in ("id", "pos"):
        with pytest.raises(ValueError, match=f"no column '{wrong}' for labels; CoNLL-U has word, lemma, upos"):
            read_tagged(name, label=wrong)
    text = read_tagged(name)
    assert "\tX\t" in written(text, ["X"], column="form")
    with pytest.raises(ValueError, match="no column 'pos'; there are id, word"):
        written(text, ["X"], column="pos")
    with pytest.raises(ValueError, match="cannot replace the token numbers"):
        written(text, ["X"], column="id")
    with pytest.raises(ValueError, match=r"in CoNLL-U only, and .* is columns"):
        written(read_tagged(saved("a X")), ["X"], column="label")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["X"], "there are 2 tokens, and 1 labels"),
        ([], "there are 2 tokens, and 0 labels"),
        ([["X"], ["Y"]], "for each token of each sentence"),
        ([["X", "Y"], []], "for each token of each sentence"),
        ((np.array([0, 2]), ["X", "Y"]), "numbers of labels must be integers in 0..1"),
        ((np.array([0, 2**32]), ["X", "Y"]), "numbers of labels must be integers in 0..1"),
        ((np.array([0.0, 1.0]), ["X", "Y"]), "numbers of labels must be integers in 0..1"),
        ((np.array([0]), ["X", "Y"]), "there are 2 tokens, and 1 labels"),
        (["X", ""], "the label '' cannot be written in the format columns; choose labels without blanks"),
        (["X", "a b"], "the label 'a b' cannot be written"),
        (["X", "a\n"], "the label 'a.n' cannot be written"),
        (["X", 1], "the label 1 is not a string"),
    ],
)
def test_bad_labels(saved, labels, message):
    text = read_tagged(saved("a N\nb N\n"))
    with pytest.raises(ValueError, match=message):
        written(text, labels)


def test_labels_that_a_format_cannot_hold(saved):
    with pytest.raises(ValueError, match="without blanks and slashes"):
        written(read_tagged(saved("a/X b/Y")), ["X", "Y/Z"])
    assert written(read_tagged(saved("a\tX\n")), ["X/Y Z"]) == "a\tX\tX/Y Z\n"
    # A label that is not used does no harm.
    assert written(read_tagged(saved("a X\n")), (np.array([0]), ["Y", "a b"])) == "a X Y\n"


@pytest.mark.parametrize(
    "scores", [np.array([1.0]), np.array([1.0, np.nan]), np.ones((2, 1))], ids=["few", "nan", "2d"]
)
def test_bad_scores(saved, scores):
    with pytest.raises(ValueError, match=r"scores must be numbers, not NaN, of shape \(2,\)"):
        written(read_tagged(saved("a N\nb N\n")), ["X", "Y"], scores=scores)
