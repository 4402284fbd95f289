"""Files of sentences and links: round trips in every format, any bytes, and errors with file and line."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest
from data import same
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.record import DATA
from maxmargin.tasks.alignment import FileError, WordAligner
from maxmargin.tasks.alignment.io.bitext import Bitext, read_bitext
from maxmargin.tasks.alignment.io.formats import table
from maxmargin.tasks.alignment.io.link_files import format_links, open_links, read_links, read_references, write_links
from maxmargin.tasks.alignment.io.link_formats import FIRST, FORMATS
from maxmargin.tasks.alignment.io.links import Prediction, Reference, as_links

LINKS = st.sets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


def written(items, form, **settings) -> bytes:
    stream = io.StringIO()
    if form == "a3":  # it has the sentences, too
        settings["sentences"] = [(["({"] * 31, ["})"] * 31)] * len(items)
    write_links(stream, items, form, **settings)
    return stream.getvalue().encode()


# ---- sentences


WORD = st.text(
    st.characters(exclude_characters="\0 \t\n\r\x0b\x0c", exclude_categories=("Cs",)), min_size=1, max_size=5
)


@given(st.lists(st.lists(WORD, max_size=5), max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
@example([["a\u00a0b", "\u2003"], [], ["\x1c", "\x85"]], "\n", False, False)
@example([[]], "\n", False, False)
def test_sentences_round_trip(folder, sentences, end, packed, marked):
    data = ("\ufeff" if marked else "") + "".join(" \t".join(words) + end for words in sentences)
    if not marked and sentences and sentences[0] and sentences[0][0].startswith("\ufeff"):
        return
    content = data.encode()
    path = folder / "sentences.txt"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    assert read_bitext(path, path) == Bitext(sentences, sentences)


@pytest.mark.parametrize(
    ("content", "sentences"),
    [("a b\n\nc", [["a", "b"], [], ["c"]]), ("a b\n\nc\n", [["a", "b"], [], ["c"]]), ("", []), ("\n", [[]])],
)
def test_the_last_end_of_line_is_optional(saved, content, sentences):
    path = saved(content)
    assert read_bitext(path, path) == Bitext(sentences, sentences)


def test_standard_input(monkeypatch):
    class Stream:
        buffer = io.BytesIO(gzip.compress(b"a b ||| c\nd ||| e\n", mtime=0))

    monkeypatch.setattr(sys, "stdin", Stream())
    assert read_bitext("-") == Bitext([["a", "b"], ["d"]], [["c"], ["e"]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nbad \xff\n", r"file, line 2: byte 0xff is not UTF-8; save the file as UTF-8, for example with iconv"),
        (b"good\n\nbad \xe9t\xe9\n", r"file, line 3: byte 0xe9"),
        ("good\n".encode("utf-16"), r"file, line 1: byte 0xff"),
        ("good\nbad\n".encode("utf-16-le"), r"file, line 1: a NUL byte, .*iconv"),
        (b"good\nbad\0\n", r"file, line 2: a NUL byte"),
        (
            gzip.compress(b"some words\n" * 99, mtime=0)[:-9],
            r"file: damaged gzip file \(.*\); copy or compress it again",
        ),
        (gzip.compress(b"some words\n" * 99, mtime=0)[:30] + b"x" * 40, r"file: damaged gzip"),
        (gzip.compress(b"some words\n", mtime=0) + b"rubbish", r"file: damaged gzip"),
        (b"\x1f\x8b", r"file: damaged gzip"),
    ],
)
def test_what_is_no_text(saved, content, message):
    path = saved(content)
    for read in (read_bitext, read_links, read_references):
        with pytest.raises(FileError, match=message):
            read(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileError, match="missing: No such file or directory; check the name"):
        read_bitext(tmp_path / "missing")
    with pytest.raises(FileError, match="Is a directory"):
        read_bitext(tmp_path)
    with pytest.raises(FileError, match="no file can have this name"):
        read_bitext("a\0b")


def test_bitext(saved):
    two = read_bitext(saved("a b\n\n", "s"), saved("c\nd\n", "t"))
    one = read_bitext(saved("a b ||| c\n||| d\n"))
    assert two == one == Bitext([["a", "b"], []], [["c"], ["d"]])
    assert len(two) == 2
    assert read_bitext(saved("|||\na |||")) == Bitext([[], ["a"]], [[], []])
    assert read_bitext(saved("a ||| b\n\n \t\r\nc ||| d")) == Bitext([["a"], [], [], ["c"]], [["b"], [], [], ["d"]])
    assert len(read_bitext(saved(""))) == 0


def test_a_bitext_wherever_pairs_are_wanted(saved, aligner, few):
    """Read from files, without anything done to it."""
    joined = "".join(f"{' '.join(e)} ||| {' '.join(f)}\n" for e, f in few[0][:20])
    bitext = read_bitext(saved(joined))
    assert same(aligner.predict(bitext), aligner.predict(few[0][:20]))
    given = WordAligner(folds=0, C=0.1, false_negative=2.0, tol=0.1).fit(bitext, few[1][:20], bitext=bitext)
    assert given.models_.n_pairs == 20  # the same pairs
    assert 0 <= given.score(bitext, few[1][:20]) <= 1
    WordAligner(models=given.models_, tol=0.1).bootstrap(bitext)


def test_refused_bitext(saved):
    with pytest.raises(FileError, match=r"/s has 2 lines and .*/t has 1; line N of one"):
        read_bitext(saved("a\nb\n", "s"), saved("c\n", "t"))
    with pytest.raises(FileError, match=r"file, line 2: no ' \|\|\| ' .*second file"):
        read_bitext(saved("a ||| b\nc\n"))
    with pytest.raises(FileError, match=r"file, line 1: 2 ' \|\|\| '"):
        read_bitext(saved("a ||| b ||| c\n"))
    with pytest.raises(FileError, match="standard input can be read only once"):
        read_bitext("-", "-")
    for text in ("a\nb ||| c\n||| d\n", "a\n||| c\nb", "a\nb |||"):
        with pytest.raises(FileError, match=r"/s, line 2: has ' \|\|\| ', .*; omit the target file \(--target\)"):
            read_bitext(saved(text, "s"), saved("x\ny\nz\n", "t"))
    assert read_bitext(saved("a |||b", "s"), saved("x ||| y", "t")) == Bitext([["a", "|||b"]], [["x", "|||", "y"]])


def test_words_are_split_at_ascii_white_space(saved):
    path = saved("a\tb\rc\x0bd\x0ce  f\u00a0g\u2028h\x1ci\x85\r\n")
    assert read_bitext(path, path).source == [["a", "b", "c", "d", "e", "f\u00a0g\u2028h\x1ci\x85"]]


# ---- links


@given(st.lists(LINKS, max_size=6), st.sampled_from(FORMATS), st.booleans(), st.integers(0, 999))
def test_links_round_trip(folder, pairs, form, packed, seed):
    links = [as_links(pair) for pair in pairs]
    chances = np.random.default_rng(seed).random
    for items in (links, [Prediction(one, chances(len(one)).round(4)) for one in links]):
        content = written(items, form)
        if form != "naacl":
            assert content.count(b"\n") == len(pairs) * (3 if form == "a3" else 1)
        path = folder / "links"
        path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
        read = read_links(path, format=form, sentences=len(pairs))
        if form != "talp" and content:
            recognized = read_links(path, sentences=len(pairs), first=FIRST[form])
            assert all(np.array_equal(a.links, b.links) for a, b in zip(read, recognized, strict=True))
        for one, item in zip(read, items, strict=True):
            expected = item.links if isinstance(item, Prediction) else item
            assert np.array_equal(one.links, expected)
            assert one.links.dtype == np.int64
            if isinstance(item, Prediction) and len(expected) and form != "a3":
                assert np.allclose(one.confidence, item.confidence, atol=1e-9)


@given(st.lists(st.tuples(LINKS, LINKS), max_size=6), st.sampled_from([form for form in FORMATS if form != "a3"]))
def test_references_round_trip(folder, pairs, form):
    references = [Reference.of(*pair) for pair in pairs]
    path = folder / "references"
    path.write_bytes(written(references, form))
    read = read_references(path, format=form, sentences=len(pairs))
    for one, other in zip(read, references, strict=True):
        assert np.array_equal(one.sure, other.sure)
        assert np.array_equal(one.possible, other.possible)


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text('0123456789-p: \n\tSP.[]{},"e', max_size=60).map(str.encode),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["S", "P"]) | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["links", "sure", "possible", "confidence", "x"]), inner, max_size=3)
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    ),
    st.sampled_from([None, *FORMATS]),
    st.booleans(),
)
@example(b"[" * 100_000, None, False)
@example(b"[[" + b"1" * 5000 + b", 0]]", None, False)
@example(b'[[0, 1, "\\ud800"]]', None, False)
@example(b"0-0:nan", None, False)
@example(b"0-0:1e999", None, False)
@example(b"1 2 3 4e9 5", None, False)
def test_any_bytes_give_links_or_an_error(folder, data, form, packed):
    path = folder / "any"
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    for read in (
        lambda: read_links(path, format=form),
        lambda: read_references(path, format=form),
        lambda: read_bitext(path),
        lambda: read_bitext(path),
    ):
        message = f"{path}: said"
        try:
            read()
        except FileError as error:
            message = str(error)
        assert message.startswith(str(path))
        assert message.isprintable()


def links_in(text, saved, **settings):
    return [one.links.tolist() for one in read_links(saved(text), **settings)]


def test_formats_are_recognized(saved):
    assert open_links(saved("0-0 1p2\n\n2-3")).format == "pharaoh"
    assert links_in("0-0 1p2\r\n\r\n3-3 2-3", saved) == [[[0, 0], [1, 2]], [], [[2, 3], [3, 3]]]
    assert links_in("\n0-0:0.5 1p2:1e-3\n", saved) == [[], [[0, 0], [1, 2]]]
    assert links_in("0002 1 1 S\n\n1 2 3 P\n1 0 3\n1 1 1\n", saved, first=1) == [[[0, 0], [1, 2]], [[0, 0]]]
    assert links_in("1 1 1 S\n1 2 0 S\n", saved, sentences=3, first=1) == [[[0, 0]], [], []]
    assert links_in("[[0, 0], [1, 2]]\n[]\n\n", saved) == [[[0, 0], [1, 2]], [], []]
    assert links_in('{"sure": [[0, 0]], "possible": [[1, 2]]}', saved) == [[[0, 0], [1, 2]]]
    assert links_in("[[[0, 0]],\n [],\n [[1, 1]]\n]\n", saved) == [[[0, 0]], [], [[1, 1]]]
    assert links_in('[[[0, 0]], {"links": [[1, 1]]}]', saved) == [[[0, 0]], [[1, 1]]]
    assert links_in("[[]]", saved) == [[]]
    assert links_in("[]", saved) == [[]]
    assert links_in("", saved) == []
    assert links_in("\n\n", saved) == [[], []]
    assert links_in("1-1 2-3 0-1 4-0", saved, format="talp") == [[[0, 0], [1, 2]]]


def test_references_of_each_format(saved):
    for text in ("0-0 1p2 0p0", "1 1 1 S\n1 2 3 P\n1 1 1 P", '[[0, 0], [1, 2, "P"], [0, 0, "P"]]'):
        (reference,) = read_references(saved(text))
        assert reference.sure.tolist() == [[0, 0]]
        assert reference.possible.tolist() == [[0, 0], [1, 2]]


def test_confidences(saved):
    for text in (
        "1-0:0.5 0-0:0.25 0-0:0.75",
        "1 2 1 0.5\n1 1 1 S 0.25\n1 1 1 P 0.75",
        '{"links": [[1, 0], [0, 0], [0, 0]], "confidence": [0.5, 0.25, 0.75]}',
    ):
        (found,) = read_links(saved(text))
        assert found.links.tolist() == [[0, 0], [1, 0]]
        assert found.confidence.tolist() == [0.75, 0.5]
    assert read_links(saved("0-0"))[0].confidence is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\nhello there",
            r"line 2: 'hello there' is neither Pharaoh .* JSON .* nor A3 .*; check that this is a file of links",
        ),
        ("0-0\n0-0 1+2", r"line 2: '1\+2' is not a link; write source-target such as 0-0, or 0p0"),
        ("0-0\n0-0 1-", r"line 2: '1-' is not a link"),
        ("0-0 -1-2", r"line 1: '-1-2' is not a link"),
        ("0-0 1-2-3", r"line 1: '1-2-3' is not a link"),
        ("0-0 1-23\n1 2-3 4", r"line 2: '1' is not a link"),
        ("0-0 1-12345678901", r"line 1: '1-12345678901' is not a link"),
        ("0-0:0.5\n0-1", r"line 2: some links of this file have a confidence and others have none"),
        ("0-0\n0-1:0.5", r"line 2: some links of this file have a confidence"),
        ("0-0:1e999", r"line 1: '1e999' is not a confidence"),
        ("1 1 1 S\n1 2 S", r"line 2: '1 2 S' is not a link; write sentence, source and target word"),
        ("1 1 1 S\n1 2 -2 S", r"line 2: '1 2 -2 S' is not a link"),
        ("1 1 1 S\n0 2 2 S", r"line 2: sentence 0; number sentences from 1"),
        ("1 1 1 X", r"line 1: 'X' is neither S, P nor a confidence; use S or P, or a finite number such as 0.93"),
        ("1 1 1 nan", r"line 1: 'nan' is neither S, P nor a confidence"),
        ("1 1 1 X 0.5", r"line 1: 'X' is neither S nor P"),
        ("1 1 1 S nan", r"line 1: 'nan' is not a confidence"),
        ("[[0, 0]]\n[[0, 0]", r"line 2: not JSON .*; write one value per line"),
        ("[\n[[0, 0]],\n[[0 0]]\n]", r"line 3: not JSON"),
        ("[[0, 0]]\n[[0, -1]]", r"line 2: '\[0, -1\]' is not a link; write \[0, 0\]"),
        ("[[0, 0]]\n[[0, true]]", r"line 2: '\[0, true\]' is not a link"),
        ("[[0, 0]]\n[[0, 1.0]]", r"line 2: '\[0, 1.0\]' is not a link"),
        ('[[0, 0]]\n[[0, 1, "Q"]]', r"line 2: .* is not a link"),
        ('{"sures": []}', r"line 1: .* is not a list of links"),
        ('{"links": [[0, 0]], "confidence": [1, 2]}', r"line 1: confidence must be a list with one number for each"),
        ('{"links": [[0, 0]], "confidence": ["x"]}', r"line 1: 'x' is not a confidence"),
        ('{"sure": 3}', r"line 1: sure must be a list"),
        ("[[[0, 0]],\n3]", r"file: sentence 2: '3' is not a list of links"),
        ('{\n"links": []\n}', r"file: a JSON document must be a list"),
    ],
)
def test_refused_links(saved, text, message):
    with pytest.raises(FileError, match=message):
        read_links(saved(text))


SENTENCES = Bitext([["a", "b", "c"], ["a"]], [["x"], ["y", "z"]])


def test_links_inside_sentences(saved):
    assert links_in("2-0\n0-1", saved, bitext=SENTENCES) == [[[2, 0]], [[0, 1]]]
    assert links_in("1 3 1", saved, bitext=SENTENCES) == [[[2, 0]], []]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n", "has links of 1 sentence pair and there are 2; it needs one line per pair"),
        ("0-0\n0-0\n\n", "has links of 3 sentence pairs and there are 2"),
        (
            "0-0\n0-0 1-1",
            r"line 2: link 1-1 lies outside sentence pair 2, which has 1 source and 2 target words; .* give --first 1",
        ),
        ("2 1 1\n1 3 2\n", r"line 2: link 3-2 lies outside sentence pair 1, which has 3 source and 1 target words"),
        ("0-0\n1-0\n", r"line 2: .*source and target seem to be swapped"),
        ("1 1 1\n3 1 1\n", r"line 2: sentence 3 of 2; number sentences from 1"),
        ("38 1 1\n39 1 1\n", r"numbered 38 to 39 and there are 2; number them from 1, .*awk '\{\$1 -= 37; print\}'"),
        ("[[0, 0]]\n[[0, 2]]", r"line 2: link 0-2 lies outside"),
        ("[\n[[0, 0]], [[0, 2]]]", r"file: link 0-2 lies outside sentence pair 2"),
    ],
)
def test_links_outside_sentences(saved, text, message):
    with pytest.raises(FileError, match=message):
        read_references(saved(text), bitext=SENTENCES)


def test_renumbering_as_told_works(saved):
    text = "".join(f"{int(line.split()[0]) - 37} {line.split(maxsplit=1)[1]}\n" for line in ["38 1 1 S", "39 1 2 P"])
    assert links_in(text, saved, bitext=SENTENCES) == [[[0, 0]], [[0, 1]]]


def test_reversed(saved):
    file = open_links(saved("0-1 2-0 1-1:0.5".replace(":0.5", ""))).reversed()
    assert file.predictions()[0].links.tolist() == [[0, 2], [1, 0], [1, 1]]


def test_chunks_do_not_show_in_naacl(saved, monkeypatch):
    monkeypatch.setattr(table, "_CHUNK", 32)
    lines = [f"{number} 1 {number} S" for number in range(1, 60)]
    assert [len(one) for one in links_in("\n".join(lines), saved)] == [1] * 59
    for bad, message in (("3 x 1", "'3 x 1' is not a link"), ("0 1 1 S", "sentence 0"), ("4 1 1 S 0.5", "some links")):
        text = "\n".join([*lines[:40], bad, *lines[40:]])
        with pytest.raises(FileError, match=f"line 4[0-9]: {message}"):
            links_in(text, saved)


def test_chunks_do_not_show(saved, monkeypatch):
    """Files are parsed in pieces, each by the fast way or line by line: the links and the line numbers are the same."""
    rng = np.random.default_rng(0)
    links = [as_links(rng.integers(0, 200, size=(rng.integers(0, 5), 2))) for _ in range(300)]
    path = saved(written(links, "pharaoh"))
    monkeypatch.setattr(table, "_CHUNK", 64)
    for one, two in zip(read_links(path), links, strict=True):
        assert np.array_equal(one.links, two)
    lines = written(links, "pharaoh").decode().splitlines()
    lines[222] += " 5-x"
    with pytest.raises(FileError, match="line 223: '5-x' is not a link"):
        read_links(saved("\n".join(lines)))
    lines[222] = "0-0:0.5"
    with pytest.raises(FileError, match=r"line \d+: some links of this file have a confidence"):
        read_links(saved("\n".join(lines)))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40), st.integers(0, 40), st.sampled_from("SP ")), max_size=20)
)
def test_both_ways_of_reading_naacl(folder, rows):
    """A confidence on one line only is an error, on all of them it is read line by line: the links are the same."""
    path = folder / "both"
    for tail in ("", " 0.5"):
        lines = [f"{n:04d} {i}\t{j} {mark}{tail}" for n, i, j, mark in rows]
        path.write_text("\n\n".join(lines) + "\r\n", encoding="utf-8")
        found = read_references(path, format="naacl", sentences=9, first=1)
        for number, one in enumerate(found, start=1):
            mine = [(i - 1, j - 1, mark) for n, i, j, mark in rows if n == number and i and j]
            assert np.array_equal(one.possible, as_links([link[:2] for link in mine]))
            assert np.array_equal(one.sure, as_links([link[:2] for link in mine if link[2] != "P"]))


def test_what_may_count_from_one(saved):
    many = "1-2 2-1 3p3 4-4\n" * 5
    with pytest.warns(UserWarning, match=r"file has no position 0; if it counts from 1, give --first 1 .* first=1"):
        read_links(saved(many))
    for told in ({"format": "talp"}, {"format": "pharaoh"}, {"first": 0}, {"first": 1}):
        read_links(saved(many), **told)
    for other in (many[:-5], many + "0-7", many + "7-0", "1 2 3 S\n" * 30, "[[1, 1]]\n" * 30, ""):
        read_links(saved(other))
    (one, *_) = read_links(saved("1-1 2-3\n"), first=1)
    assert one.links.tolist() == read_links(saved("[[1, 1], [2, 3]]"), first=1)[0].links.tolist() == [[0, 0], [1, 2]]


def test_naacl_that_counts_from_zero(saved):
    """Read from 1, the first links would be dropped and the others shifted."""
    text = "1 0 0 S\n1 1 2 P\n2 1 0 S\n"
    for read in (read_links, read_references):
        with pytest.raises(FileError, match=r"line 1: word 0, but .* count from 1; .*--first 0; .*--first 1 .*first="):
            read(saved(text))
    assert links_in(text, saved, first=0) == [[[0, 0], [1, 2]], [[1, 0]]]
    assert links_in(text, saved, first=1) == [[[0, 1]], []]
    # Sentences count from 0, too, if there is a sentence 0.
    assert links_in("0 0 0\n1 1 0\n", saved, first=0) == [[[0, 0]], [[1, 0]]]
    with pytest.raises(FileError, match="line 1: sentence 0; number sentences from 1, or give --first 0"):
        links_in("0 1 1\n1 1 1\n", saved)
    for wrong in (2, -1, True, "0"):
        with pytest.raises(ValueError, match="first must be 0 or 1"):
            links_in(text, saved, first=wrong)


def test_naacl_that_may_count_from_zero(saved):
    """Without a link of a first word nothing is refused, but no link is of a last word either."""
    bitext = Bitext([["a"] * 5] * 5, [["b"] * 6] * 5)
    text = "".join(f"{n} {i} {i} S\n" for n in range(1, 6) for i in range(1, 5))
    with pytest.warns(UserWarning, match=r"file has no link of the last word of a sentence; .* --first 0"):
        read_references(saved(text), bitext=bitext)
    read_references(saved(text), bitext=bitext, first=1)
    read_references(saved(text + "1 5 5 S\n"), bitext=bitext)
    read_references(saved(text))  # nothing is known of the sentences


A3 = """# Sentence pair (2) source length 2 target length 3 alignment score : 0.1
le chat noir
NULL ({ 1 }) the ({ }) cat ({ 2 3 })
# Sentence pair (1) source length 1 target length 1 alignment score : 1e-05
oui
NULL ({ }) yes ({ 1 })
"""


def test_a3(saved):
    file = open_links(saved(A3))
    assert file.format == "a3"
    assert [one.links.tolist() for one in file.predictions()] == [[[0, 0]], [[1, 1], [1, 2]]]
    bitext = Bitext([["yes"], ["the", "cat"]], [["oui"], ["le", "chat", "noir"]])
    stream = io.StringIO()
    write_links(stream, file.references(bitext=bitext), "a3", sentences=bitext)
    assert stream.getvalue().splitlines() == [
        "# Sentence pair (1) source length 1 target length 1 alignment score : 1",
        "oui",
        "NULL ({ }) yes ({ 1 })",
        "# Sentence pair (2) source length 2 target length 3 alignment score : 1",
        "le chat noir",
        "NULL ({ 1 }) the ({ }) cat ({ 2 3 })",
    ]
    with pytest.raises(ValueError, match="a3 repeats the sentences; give them"):
        format_links(as_links([(0, 0)]), format="a3")
    with pytest.raises(ValueError, match="a3 counts words from 1; omit --first"):
        open_links(saved(A3), first=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (A3.replace("(1) source", "(2) source"), "line 4: sentence pair 2: it is there twice"),
        (A3.replace("(1) source", "(0) source"), "line 4: sentence pair 0: pairs count from 1"),
        (A3.replace("2 3 })", "2 4 })"), "line 3: '4' is not a position in the sentence of 3 words before"),
        (A3.replace("2 3 })", "2 0 })"), "line 3: '0' is not a position"),
        (A3.replace("2 3 })", "2 3"), r"line 3: 'cat \(\{ 2 3' is not a word with its links"),
        (A3.replace("NULL ({ 1 })", ""), r"line 3: 'the \(\{ \}\) cat .* is not a word with its links; write NULL"),
        (A3 + "# Sentence pair (3)\nx\n", "line 8: sentence pair 3 ends here; give its three lines"),
        (A3 + "x\ny\nz\n", "line 7: 'x' should be '# Sentence pair"),
    ],
)
def test_refused_a3(saved, text, message):
    with pytest.raises(FileError, match=message):
        open_links(saved(text))


def test_pairs_with_tabs(saved):
    assert read_bitext(saved("a b\tc\n\td\ne ||| f\t\r\n\n")) == Bitext(
        [["a", "b"], [], ["e", "|||", "f"], []], [["c"], ["d"], [], []]
    )
    assert read_bitext(saved("a\tb ||| c\n")) == Bitext([["a", "b"]], [["c"]])
    for text, message in (("a\tb\nc\n", "line 2: no TAB"), ("a\tb\nc\td\te\n", "line 2: 2 TAB instead of one")):
        with pytest.raises(FileError, match=message):
            read_bitext(saved(text))


def test_far_positions_sort(saved):
    text = "999999999-999999999 0-999999999 999999999-0"
    expected = [[0, 999999999], [999999999, 0], [999999999, 999999999]]
    assert links_in("\n" * 50 + text, saved)[50] == expected


def test_writing():
    links = as_links([(0, 0), (1, 2)])
    assert format_links(links) == "0-0 1-2"
    assert format_links(links, format="talp") == "1-1 2-3"
    assert format_links(links, format="naacl", sentence=7) == "7 1 1 S\n7 2 3 S"
    assert format_links(links, format="json") == "[[0, 0], [1, 2]]"
    sure = np.array([0.93123, 1.0])
    assert format_links(links, confidence=sure) == "0-0:0.9312 1-2:1.0000"
    assert format_links(links, confidence=sure, digits=2, format="naacl") == "1 1 1 S 0.93\n1 2 3 S 1.00"
    assert json.loads(format_links(Prediction(links, sure), format="json")) == {
        "links": [[0, 0], [1, 2]],
        "confidence": [0.9312, 1.0],
    }
    reference = Reference.of([(0, 0)], [(1, 2)])
    assert format_links(reference) == "0-0 1p2"
    assert format_links(reference, format="naacl") == "1 1 1 S\n1 2 3 P"
    none = as_links([])
    assert [format_links(none, format=form) for form in FORMATS if form != "a3"] == ["", "", "", "[]"]
    assert written([none, links, none], "naacl") == b"2 1 1 S\n2 2 3 S\n"
    assert written([none, links, none], "pharaoh") == b"\n0-0 1-2\n\n"


def test_refused_writing():
    links = as_links([(0, 0), (1, 2)])
    with pytest.raises(ValueError, match="unknown format 'giza'; choose one of pharaoh"):
        format_links(links, format="giza")
    for confidence in (np.ones(1), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="sentence 1: confidence must have a finite number for each of 2 links"):
            format_links(links, confidence=confidence)
    with pytest.raises(ValueError, match="references have no confidences"):
        format_links(Reference.of(links), confidence=np.ones(2))
    with pytest.raises(ValueError, match="unknown format 'giza'"):
        open_links("-", format="giza")


HANSARDS = DATA / "alignment" / "hansards"


@pytest.mark.skipif(not HANSARDS.is_dir(), reason="the Hansards are not at hand (set MAXMARGIN_DATA)")
@pytest.mark.parametrize(("part", "pairs", "links"), [("train", 100, 3421), ("dev", 37, 1784)])
def test_hansards(part, pairs, links):
    bitext = read_bitext(HANSARDS / f"{part}.e", HANSARDS / f"{part}.f")
    references = read_references(HANSARDS / f"{part}.wa", bitext=bitext)
    assert len(bitext) == len(references) == pairs
    assert sum(len(reference.possible) for reference in references) == links
