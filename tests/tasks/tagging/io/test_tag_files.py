"""Files of tokens: round trips in every format, awkward text, errors with file and line, conllu as the referee."""

from __future__ import annotations

import gzip
import io
import json
import sys

import conllu
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from token_files import put, written

from benchmarks.record import DATA
from maxmargin.tasks.common.files.text import FileError, open_output
from maxmargin.tasks.common.tokens.conllu_objects import of_conllu
from maxmargin.tasks.common.tokens.line_formats import CONLLU
from maxmargin.tasks.common.tokens.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.io.files import read_tagged, write_k_best, write_tagged

BLANKS = " \t\n\r\x0b\x0c"
CELL = st.text(st.characters(exclude_characters="\0" + BLANKS, exclude_categories=("Cs",)), min_size=1, max_size=4)
SPACED = st.lists(CELL, min_size=1, max_size=2).map(" ".join)
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\t \n"])


def k_best(text, best, **settings) -> str:
    stream = io.BytesIO()
    write_k_best(text, best, out=stream, **settings)
    return stream.getvalue().decode()


def cells(table: TokenTable) -> list[list[tuple[str, ...]]]:
    """All cells, sentence after sentence, token after token."""
    columns = [table.by_sentence(c) for c in range(len(table.columns))]
    return [list(zip(*sentence, strict=True)) for sentence in zip(*columns, strict=True)]


# ---- columns


@given(st.data(), st.integers(1, 4), ENDS, st.booleans(), st.booleans(), st.booleans())
def test_columns_round_trip(folder, data, width, end, tabs, packed, last):
    cell = SPACED if tabs and width > 1 else CELL
    row = st.tuples(*[cell] * width)
    sentences = data.draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=3))
    separator = "\t" if tabs else data.draw(st.sampled_from([" ", "  ", " \x0b"]))
    lines = end.join(end.join(separator.join(row) for row in sentence) + end for sentence in sentences)
    content = lines[: -len(end)] if last else lines
    if content.startswith("\ufeff"):
        return
    text = read_tagged(put(folder, content, packed), format="columns")
    assert cells(text.table) == sentences
    assert text.columns[0] == "word"
    assert text.labeled == (width > 1)
    lengths = [len(sentence) for sentence in sentences]
    assert text.table.lengths.tolist() == lengths
    numbers = text.table.lines.tolist()
    assert numbers == [n for n, line in enumerate(content.split("\n"), 1) if line.strip(BLANKS)]
    # What is written has one more column, and is the file itself without it.
    labels = [f"L{i % 3}" for i in range(text.n_tokens)]
    scores = np.arange(text.n_tokens) / 8 - 1
    more = written(text, labels, scores=scores)
    again = read_tagged(put(folder, more, not packed), format="columns")
    flat = [row for sentence in sentences for row in sentence]
    rows = [row for sentence in cells(again.table) for row in sentence]
    assert rows == [
        (*row, label, f"{score:g}") for row, label, score in zip(flat, labels, scores.tolist(), strict=True)
    ]
    assert again.table.lengths.tolist() == lengths
    gap = "\t" if tabs and width > 1 else " "
    without = written(text, labels)
    for label in ("L0", "L1", "L2"):
        without = without.replace(gap + label, "")
    if "L" not in content:
        assert without == content


def test_columns_are_named(saved):
    one, two, three, four = (saved(" ".join("abcd"[:n]) + "\n", f"file{n}") for n in range(1, 5))
    assert read_tagged(one).columns == ("word",)
    assert read_tagged(two).columns == ("word", "label")
    assert read_tagged(three).columns == ("word", "pos", "label")
    assert read_tagged(four).columns == ("word", "column1", "column2", "label")
    assert read_tagged(two, labeled=False).columns == ("word", "pos")
    assert read_tagged(three, labeled=False).columns == ("word", "column1", "column2")
    assert read_tagged(three, label="chunk").columns == ("word", "pos", "chunk")
    named = read_tagged(three, columns="label,word, pos")
    assert (named.columns, named.label, named.labels()) == (("label", "word", "pos"), "label", [["a"]])
    named = read_tagged(three, columns=["word", "pos", "chunk"])
    assert (named.label, named.labels()) == ("chunk", [["c"]])
    named = read_tagged(three, columns="word,pos,chunk", label="pos")
    assert (named.label, named.labels(), named.column("chunk")) == ("pos", [["b"]], 2)
    # A file to be labeled has one column less.
    for columns in ("word,pos,label", "word,label,pos"):
        short = read_tagged(two, columns=columns)
        assert (short.columns, short.label, short.labeled) == (("word", "pos"), None, False)
        assert read_tagged(two, columns=columns, labeled=False).columns == ("word", "pos")
    plain = read_tagged(two, columns="word,pos", labeled=False)
    assert (plain.columns, plain.label) == (("word", "pos"), None)
    assert read_tagged(one, columns="word").label is None
    assert read_tagged(one, columns="word", labeled=False).label is None
    with pytest.raises(FileError, match="no labels, only the columns word, pos; give a file"):
        plain.labels()
    with pytest.raises(ValueError, match="no column 'lemma'; there are word, pos"):
        plain.column("lemma")


def test_marks_of_documents_are_no_tokens_and_number_signs_may_be(saved):
    text = read_tagged(saved("-DOCSTART- -X- O\n\n# SYM O\nx NN O\n"))
    assert text.table.by_sentence(0) == [["#", "x"]]
    assert text.table.lines.tolist() == [3, 4]


def test_a_tab_in_the_first_token_decides(saved):
    assert cells(read_tagged(saved("a b\tc\nd\te f\n")).table) == [[("a b", "c"), ("d", "e f")]]
    assert cells(read_tagged(saved("a b\nd\te\n")).table) == [[("a", "b"), ("d", "e")]]
    assert cells(read_tagged(saved("a\t\tc\nd\te\tf\n")).table) == [[("a", "", "c"), ("d", "e", "f")]]


@pytest.mark.parametrize("cell", ["\u00a0", "\u2028", "\x85", "\x1c", "a\u0301", "\U0001f600", "\ufeff", "'\"", "\\"])
def test_only_ascii_white_space_separates(saved, cell):
    text = read_tagged(saved(f"x {cell} O\n{cell}y N O\n"))
    assert cells(text.table) == [[("x", cell, "O"), (f"{cell}y", "N", "O")]]


def test_a_sentence_of_a_million_tokens(saved):
    n = 1_000_000
    data = b"word NN O\n" * n
    text = read_tagged(saved(data))
    assert (text.n_tokens, text.n_sentences, text.sentences.tolist()) == (n, 1, [0, n])
    assert len(written(text, (np.zeros(n, dtype=np.int32), ["O"]))) == len(data) + 2 * n
    line = read_tagged(saved(b"word/NN " * n), labeled=True)
    assert (line.format, line.n_tokens, line.n_sentences) == ("slash", n, 1)
    items = read_tagged(saved(b"O\tw=a\tx:2\n" * n))
    assert (items.format, items.n_tokens, items.n_sentences, len(items.items.weight)) == ("crfsuite", n, 1, 2 * n)


# ---- CoNLL-U

FIELD = SPACED.filter(lambda cell: cell == cell.strip() and not cell.startswith("#"))


@st.composite
def conllu_files(draw):
    end = draw(st.sampled_from(["\n", "\r\n"]))
    blocks, sentences = [], []
    for _ in range(draw(st.integers(1, 3))):
        lines = [f"# {draw(SPACED)}" for _ in range(draw(st.integers(0, 2)))]
        rows = []
        for number in range(1, draw(st.integers(1, 4)) + 1):
            other = draw(st.sampled_from(["", f"{number}-{number + 1}", f"{number}.1"]))
            row = tuple(draw(st.one_of(st.just("_"), FIELD)) for _ in range(9))
            if "-" in other:
                lines.append("\t".join([other, *row]))
            rows.append((str(number), *row))
            lines.append("\t".join(rows[-1]))
            if "." in other:
                lines.append("\t".join([other, *row]))
        sentences.append(rows)
        blocks.append(end.join(lines) + end)
    blank = draw(st.sampled_from([end, end + end, " " + end]))
    content = blank.join(blocks)
    return (content if draw(st.booleans()) else content + end), sentences


@given(conllu_files(), st.booleans(), st.sampled_from(CONLLU[1:]))
def test_conllu_round_trip(folder, made, packed, column):
    content, sentences = made
    text = read_tagged(put(folder, content, packed))
    assert text.format == "conllu"
    assert cells(text.table) == sentences
    # The labels that are there give the same bytes; other labels change their column and nothing else.
    same = text.table.cells(text.column(column))
    assert written(text, same, column=column) == content
    changed = written(text, ["X Y"] * text.n_tokens, column=column)
    again = read_tagged(put(folder, changed, packed), format="conllu")
    at = CONLLU.index(column)
    assert cells(again.table) == [[(*row[:at], "X Y", *row[at + 1 :]) for row in rows] for rows in sentences]
    assert written(again, same, column=column) == content


AWKWARD = """# sent_id = 1
# text = vámonos al mar
# key without value
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tvamos\tir\tVERB\tV\tMood=Imp|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\tP\tCase=Acc\t1\tobj\t1:obj|8.1:x\tA=1|B
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\tD\tDefinite=Def\t5\tdet\t5:det\t_
5\tmar 10 000\tmar\tNOUN\tN\t_\t1\tobl\t1:obl:a\t_
5.1\tvacío\t_\t_\t_\t_\t_\t_\t1:conj\tCopyOf=5

# newpar

# sent_id = 2
1\t_\t_\tSYM\t_\t_\t_\t_\t_\t_

"""


def referee(content: str) -> list[list[tuple[str, ...]]]:
    """Tokens by the package conllu, without interpreting their fields."""
    parsers = {field: lambda line, i: line[i] for field in conllu.parser.DEFAULT_FIELDS}
    parsers["id"] = conllu.parser.DEFAULT_FIELD_PARSERS["id"]
    found = [
        [(str(token["id"]), *list(token.values())[1:]) for token in sentence if isinstance(token["id"], int)]
        for sentence in conllu.parse(content, field_parsers=parsers)
    ]
    return [sentence for sentence in found if sentence]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_conllu_agrees(saved, end):
    content = AWKWARD.replace("\n", end)
    text = read_tagged(saved(content.encode()))
    assert cells(text.table) == referee(AWKWARD)
    assert text.labels() == [["VERB", "PRON", "ADP", "DET", "NOUN"], ["SYM"]]
    assert text.column("form") == text.column("word") == 1
    assert written(text, text.labels()) == content
    # This is why the package is the referee and not the reader.
    assert "".join(sentence.serialize() for sentence in conllu.parse(content)) != content


def test_objects_of_conllu(saved):
    table, text = of_conllu(conllu.parse(AWKWARD)), read_tagged(saved(AWKWARD)).table
    assert table.columns == text.columns
    assert [rows for rows in cells(table) if rows] == cells(text)
    assert table.where(2) == "sentence 0, token 2"
    for wrong in ([["a"]], [[{"id": 1}]]):
        with pytest.raises(ValueError, match="sentence 0, token 0: expected a token of the package conllu"):
            of_conllu(wrong)
    with pytest.raises(ValueError, match=r"sentence 0, token 1: deps must be .* or pairs \(relation, head\), got \["):
        of_conllu([[{"form": "a", "deps": [("nsubj", 2)]}, {"form": "b", "deps": [("nsubj", 2, 3)]}]])


@given(conllu_files())
def test_conllu_agrees_on_any_file(folder, made):
    content, _ = made
    # The package also splits at two blanks, and strips what Unicode calls white space.
    if any(c.isspace() and c not in " \t\r\n" for c in content) or "  " in content or "\u001f" in content:
        return
    assert cells(read_tagged(put(folder, content, False)).table) == referee(content)


def test_conllu_scores(saved):
    text = read_tagged(saved(AWKWARD))
    scores = np.array([0.5, 1e-9, 3.0, 4.0, 5.0, -1.0])
    out = written(text, ["X"] * 6, scores=scores)
    misc = [row.split("\t")[9] for row in out.split("\n") if row[:1].isdigit()]
    wanted = ["Score=0.5", "A=1|B|Score=1e-09", "_", "Score=3", "Score=4", "Score=5", "CopyOf=5", "Score=-1"]
    assert misc == ["SpaceAfter=No", *wanted]
    assert read_tagged(saved(out)).labels() == [["X"] * 5, ["X"]]
    out = written(text, ["X"] * 6, scores=scores, column="misc")
    assert "\tX|Score=1e-09\n" in out


# ---- word/TAG


@given(st.data(), ENDS, st.booleans())
def test_slash_round_trip(folder, data, end, packed):
    tag = CELL.filter(lambda cell: "/" not in cell)
    sentences = data.draw(st.lists(st.lists(st.tuples(CELL, tag), min_size=1, max_size=4), min_size=1, max_size=3))
    content = "".join(" ".join("/".join(pair) for pair in sentence) + end for sentence in sentences)
    if content.startswith("\ufeff"):
        return
    text = read_tagged(put(folder, content, packed), format="slash")
    assert cells(text.table) == sentences
    assert written(text, text.labels()) == content
    plain = "".join(" ".join(word for word, _ in sentence) + end for sentence in sentences)
    if plain.startswith("\ufeff"):
        return
    unlabeled = read_tagged(put(folder, plain, packed), format="slash", labeled=False)
    assert unlabeled.table.by_sentence(0) == [[word for word, _ in sentence] for sentence in sentences]
    assert written(unlabeled, text.labels()) == content
    again = read_tagged(put(folder, written(unlabeled, text.labels()), packed), format="slash", labeled=True)
    assert cells(again.table) == sentences


def test_slash_by_the_first_line(saved):
    assert read_tagged(saved("The dog\n"), format="slash").columns == ("word",)
    assert read_tagged(saved("1/2/CD dog/NN\n")).table.cells(0) == ["1/2", "dog"]
    text = read_tagged(saved("a/X b/Y\n"), columns="token,tag")
    assert (text.columns, text.label) == (("token", "tag"), "tag")
    assert written(text, ["P", "Q"], scores=np.array([1.0, 0.25])) == "a/P/1 b/Q/0.25\n"


def test_words_with_blanks(saved):
    name = saved("the/DT G + C/NN box/NN\n")
    with pytest.raises(FileError, match=r"file, line 1: 'G' has no tag; write word/TAG, join words"):
        read_tagged(name, format="slash", labeled=True)
    text = read_tagged(name, format="slash", join=True)
    assert cells(text.table) == [[("the", "DT"), ("G + C", "NN"), ("box", "NN")]]
    assert written(text, ["A", "B", "C"]) == "the/A G + C/B box/C\n"
    with pytest.raises(FileError, match=r"line 1: 'b' has no tag"):
        read_tagged(saved("a/X b\n"), format="slash", labeled=True, join=True)


# ---- CRFsuite

NAME = st.text(
    st.characters(exclude_characters="\0\t\n\r\x0b\x0c ", exclude_categories=("Cs",)), min_size=1, max_size=5
)
WEIGHT = st.one_of(st.none(), st.floats(-1e6, 1e6))


def escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(":", "\\:")


@given(
    st.lists(
        st.lists(st.tuples(NAME, st.lists(st.tuples(NAME, WEIGHT), max_size=3)), min_size=1, max_size=3),
        min_size=1,
        max_size=3,
    ),
    ENDS,
    st.booleans(),
)
@example([[(":", [("\\", None), ("\\:", 2.0), (":", None)])]], "\n", False)
def test_crfsuite_round_trip(folder, sentences, end, packed):
    def line(label, items):
        fields = [escaped(name) + ("" if weight is None else f":{weight!r}") for name, weight in items]
        return "\t".join([escaped(label), *fields]) + end

    content = end.join("".join(line(*token) for token in sentence) for sentence in sentences)
    if content.startswith("\ufeff"):
        return
    text = read_tagged(put(folder, content, packed), format="crfsuite")
    items = text.items
    assert text.labels() == [[label for label, _ in sentence] for sentence in sentences]
    flat = [token for sentence in sentences for token in sentence]
    assert items.names() == [name for _, some in flat for name, _ in some]
    assert items.weight.tolist() == [1.0 if weight is None else weight for _, some in flat for _, weight in some]
    assert np.diff(items.starts).tolist() == [len(some) for _, some in flat]
    assert items.labels() == [label for label, _ in flat]
    labels = [f"L{i}" for i in range(text.n_tokens)]
    numbers = iter(labels)
    assert written(text, labels) == "".join("".join(f"{next(numbers)}\n" for _ in some) + "\n" for some in sentences)


def test_crfsuite_scores(saved):
    text = read_tagged(saved("B\tw=a\tx\nI\tw=b\n\nO\tw=c\ty=2\n"))
    assert text.format == "crfsuite"
    assert text.columns == ()
    assert written(text, [["x", "y"], ["z"]], scores=np.array([1, 2, 3])) == "x\t1\ny\t2\n\nz\t3\n\n"
    with pytest.raises(ValueError, match="attributes and no columns"):
        text.column("word")


# ---- JSON lines

TOKENS = st.text(st.characters(exclude_categories=("Cs",)), max_size=4)


@given(
    st.lists(st.lists(st.tuples(TOKENS, TOKENS), max_size=4), min_size=1, max_size=4).filter(any),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_json_round_trip(folder, sentences, packed, ascii, labeled):
    records = [
        {"id": i, "tokens": [word for word, _ in some], "labels": [label for _, label in some]}
        for i, some in enumerate(sentences)
    ]
    if not labeled:
        for record in records:
            del record["labels"]
    content = "".join(json.dumps(record, ensure_ascii=ascii) + "\r\n" for record in records)
    text = read_tagged(put(folder, content, packed))
    assert text.format == "json"
    assert text.table.by_sentence(0) == [[word for word, _ in some] for some in sentences]
    assert text.labeled == labeled
    if labeled:
        assert text.labels() == [[label for _, label in some] for some in sentences]
    labels = [[label + "!" for _, label in some] for some in sentences]
    out = written(text, labels, scores=np.full(text.n_tokens, 0.1))
    assert [json.loads(line) for line in out.split("\n") if line] == [
        {**record, "predicted": some, "scores": [0.1] * len(some)} for record, some in zip(records, labels, strict=True)
    ]


def test_json_with_features(saved):
    tokens = [{"bias": 1.5, "title": True, "word": "the", "suffix": ["e", "he"], "at": {"to": 0.5}}, ["w=a", "w=b"]]
    content = (
        json.dumps({"features": tokens, "labels": ["X", "Y"]})
        + "\n\n"
        + json.dumps({"features": [[]], "labels": ["Z"]})
    )
    text = read_tagged(saved(content))
    assert (text.format, text.table) == ("json", None)
    items = text.items
    assert items.names() == ["bias", "title", "word:the", "suffix:e", "suffix:he", "at:to", "w=a", "w=b"]
    assert items.weight.tolist() == [1.5, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    assert items.starts.tolist() == [0, 6, 8, 8]
    assert text.labels() == [["X", "Y"], ["Z"]]
    assert items.lines.tolist() == [1, 1, 3]
    out = [
        json.loads(line) for line in written(text, ["P", "Q", "R"], scores=np.array([1.0, np.inf, 2.0])).splitlines()
    ]
    assert [record["predicted"] for record in out] == [["P", "Q"], ["R"]]
    assert out[0]["scores"] == [1.0, None]
    assert out[0]["features"] == tokens
    assert not read_tagged(saved('{"features": [["a"]]}')).labeled
    assert read_tagged(saved('{"features": ["a", {"b": 2}]}')).items.names() == ["a", "b"]
    mixed = saved('{"tokens": ["a"]}\n{"tokens": ["b"], "labels": ["X"]}')
    assert not read_tagged(mixed, labeled=False).labeled


def test_json_with_columns(saved):
    name = saved('{"tokens": [["a", "N"], ["b", "V"]], "labels": ["X", "Y"]}')
    text = read_tagged(name)
    assert (text.columns, cells(text.table)) == (("word", "pos", "label"), [[("a", "N", "X"), ("b", "V", "Y")]])
    text = read_tagged(name, columns="word,tag,part", label="tag")
    assert cells(text.table) == [[("a", "X", "N"), ("b", "Y", "V")]]
    text = read_tagged(name, columns="word,pos,label", labeled=False)
    assert (text.columns, text.label) == (("word", "pos"), None)


# ---- several labelings


def test_k_best_as_crf_plus_plus_has_it(saved):
    text = read_tagged(saved("a N\r\nb V\r\n\r\n\r\nc N"))
    best = [[(["X", "Y"], 0.75), (["Y", "Y"], 0.25)], [(["X"], -1.5)]]
    assert k_best(text, best) == (
        "# 0 0.75\r\na N X\r\nb V Y\r\n\r\n# 1 0.25\r\na N Y\r\nb V Y\r\n\r\n# 0 -1.5\r\nc N X\r\n\r\n"
    )


def test_k_best_of_the_other_formats(saved):
    best = [[(["X", "Y"], 0.75), (["Y", "Y"], 0.25)], [(["X"], -1.5)]]
    text = read_tagged(saved("a/N b/V \n\nc/N"))
    assert k_best(text, best) == "# 0 0.75\na/X b/Y \n# 1 0.25\na/Y b/Y \n# 0 -1.5\nc/X\n"
    text = read_tagged(saved("O\tw=a\tx=1\nO\tw=b\n\nO\tw=c"))
    assert k_best(text, best) == "# 0 0.75\nX\nY\n\n# 1 0.25\nY\nY\n\n# 0 -1.5\nX\n\n"
    text = read_tagged(saved('{"tokens": ["a", "b"]}\n{"tokens": ["c"]}'))
    found = [json.loads(line)["k_best"] for line in k_best(text, best).splitlines()]
    assert found[0] == [{"labels": ["X", "Y"], "score": 0.75}, {"labels": ["Y", "Y"], "score": 0.25}]
    with pytest.raises(ValueError, match="sentence 1: give each labeling one label for each of its 1 tokens"):
        k_best(text, [[], [(["X", "Y"], 1.0)]])
    with pytest.raises(ValueError, match="labelings of 1 sentences, and there are 2"):
        k_best(text, best[:1])


def test_k_best_of_conllu(saved):
    text = read_tagged(saved(AWKWARD))
    best = [[(list("ABCDE"), 2.0), (list("FGHIJ"), 1.0)], [(["K"], 0.0)]]
    out = k_best(text, best)
    assert read_tagged(saved(out, "out.conllu")).labels() == [list("ABCDE"), list("FGHIJ"), ["K"]]
    assert out.startswith("# 0 2\n# sent_id = 1\n")
    assert out.count("5.1\tvacío") == 2
    assert out.count("1-2\tvámonos") == 2


# ---- names, streams, packing


def test_standard_streams_and_packed_output(saved, tmp_path, monkeypatch):
    class Stream:
        buffer = io.BytesIO(gzip.compress(b"a X\n", mtime=0))

    monkeypatch.setattr(sys, "stdin", Stream())
    text = read_tagged("-")
    assert (text.source, text.labels()) == ("standard input", [["X"]])

    class Output:
        buffer = io.BytesIO()

    monkeypatch.setattr(sys, "stdout", Output())
    write_tagged(text, ["Y"], out="-")
    assert Output.buffer.getvalue() == b"a X Y\n"
    for name in ("out.gz", "out"):
        path = tmp_path / name
        write_tagged(text, ["Y"], out=path)
        assert (path.read_bytes()[:2] == b"\x1f\x8b") == (name == "out.gz")
        assert read_tagged(path).labels() == [["Y"]]
    with pytest.raises(FileError, match=r"No such file or directory; check the name of the file"):
        write_tagged(text, ["Y"], out=tmp_path / "absent" / "file")
    with pytest.raises(RuntimeError, match="mine"), open_output(tmp_path / "x"):
        raise RuntimeError("mine")


def test_a_mark_at_the_start_is_no_part_of_a_word(saved):
    assert read_tagged(saved("\ufeffa X\n")).table.cells(0) == ["a"]


@pytest.mark.parametrize(
    ("content", "name", "form"),
    [
        ("a X\nb Y\n", "f", "columns"),
        ("a\n", "f", "columns"),
        ("{ ( O\n", "f", "columns"),
        ("a\tb=c\tX\nd\te\tf\n", "f", "columns"),
        ("1\ta\n", "f", "columns"),
        ("# c\n1\ta" + "\t_" * 8 + "\n", "f", "conllu"),
        ("1-2\ta" + "\t_" * 8 + "\n1\ta" + "\t_" * 8, "f", "conllu"),
        ("1\ta" + "\t_" * 8 + "\n", "f.conllu.gz", "conllu"),
        ("a/X b/Y\n", "f", "slash"),
        ("a/X\nb/Y c/Z\n", "f", "slash"),
        ("B\tw[0]=a\tpos=b\nO\tw[0]=c\n", "f", "crfsuite"),
        ("B\tbias\tx:2\ty:0.5\n", "f", "crfsuite"),
        ("a\tb\tCase=Nom\n", "f", "columns"),
        ("a\tCase=Nom\nb\tCase=Acc\nc\tCase=Nom\n", "f", "columns"),  # fewer labels than words
        ('{"tokens": ["a"]}\n', "f", "json"),
        ('\n {"tokens": ["a"], "labels": ["X"]}\n', "f.jsonl", "json"),
    ],
)
def test_formats_are_recognized(saved, content, name, form):
    assert read_tagged(saved(content, name)).format == form


def test_named_columns_are_columns(saved):
    text = read_tagged(saved("a\tCase=Nom\nb\tCase=Acc\n"), columns="word,label")
    assert (text.format, text.labels()) == ("columns", [["Case=Nom", "Case=Acc"]])


def test_places_of_tokens(saved):
    name = saved("a X\n\nb Y\n")
    text = read_tagged(name)
    assert text.tokens.where(1) == f"{name}, line 3"
    items = AttributeText.of_lists([[["w"]], [{"x": 1}, {"y": True}]])
    assert [items.where(t) for t in range(3)] == ["sentence 0, token 0", "sentence 1, token 0", "sentence 1, token 1"]
    assert (items.labels(), items.n_tokens, items.n_sentences, items.lengths.tolist()) == (None, 3, 2, [1, 2])
    assert AttributeText.of_lists([[{"a": {"y", "x"}}]]).names() == ["a:x", "a:y"]
    with pytest.raises(ValueError, match="sentence 0: 1 labels for 2 tokens"):
        AttributeText.of_lists([[["w"], ["x"]], []], [["X"], []])
    with pytest.raises(ValueError, match="sentence 0, token 0: text with a lone surrogate"):
        AttributeText.of_lists([[["\ud800"]]])


# ---- public data


@pytest.mark.skipif(not (DATA / "tagging").exists(), reason="the public data sets are not here")
def test_public_files():
    text = read_tagged(DATA / "tagging" / "conll2000" / "test.txt.gz", labeled=True)
    assert (text.format, text.n_sentences, text.n_tokens) == ("columns", 2012, 47377)
    text = read_tagged(DATA / "tagging" / "ewt" / "dev.conllu.gz")
    content = gzip.decompress((DATA / "tagging" / "ewt" / "dev.conllu.gz").read_bytes()).decode()
    assert (text.format, text.n_sentences) == ("conllu", 2001)
    assert cells(text.table) == referee(content)
    assert written(text, text.labels()) == content
    text = read_tagged(DATA / "tagging" / "genia" / "train.pos.gz", labeled=True, join=True)
    assert (text.format, text.n_sentences) == ("slash", 18508)
