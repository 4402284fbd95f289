"""Files of n-best lists in each format, and what is wrong with malformed ones: file, line and remedy."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from lists import named

from benchmarks.record import DATA
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.inputs import read_references

MOSES = """0 ||| the house |0-1| is |2-2| ||| LM0= -1.5 TM0= -1 -2 w_a~b= 1 ||| -3.5
0 |||  ||| LM0= -2.5 TM0= -1 -2.5 ||| -4
2 ||| yes |0-0| ||| TM0= 0 1e-3 LM0= +1 w_a~b= 2 w_c= -1 ||| 0
"""


# ---- Moses


def test_moses(saved):
    lists = read_nbest(saved(MOSES))
    assert lists.texts == ["the house is", "", "yes"]
    assert lists.ids == ["0", "2"]
    assert lists.offsets.tolist() == [0, 2, 3]
    assert lists.names == ("LM0", "TM0,1", "TM0,2")
    assert lists.values.tolist() == [[-1.5, -1, -2], [-2.5, -1, -2.5], [1, 0, 1e-3]]
    assert lists.totals.tolist() == [-3.5, -4, 0]
    assert named(lists) == [{"w_a~b": 1}, {}, {"w_a~b": 2, "w_c": -1}]
    assert lists.segments == ["1:0-1:0-1 2:2-2:2-2", "", "1:0-0:0-0"]


def test_moses_of_other_tools(saved):
    """Names joined to values, names with a colon, alignments, no totals, blank lines and Windows line ends."""
    joined = read_nbest(saved("0 ||| a b ||| lm=-1 tm=2\r\n\r\n0 ||| c ||| lm=-2 tm=0"))
    assert (joined.names, joined.values.tolist(), joined.totals) == (("lm", "tm"), [[-1, 2], [-2, 0]], None)
    old = read_nbest(saved("u1 ||| a b ||| d: 0 -1 lm: -7.5 ||| -3 ||| 0-1=0 2=1-1"))
    assert (old.names, old.segments, old.ids) == (("d,1", "d,2", "lm"), ["1:0-1:0-0 2:2-2:1-1"], ["u1"])
    assert read_nbest(saved("0 ||| a b ||| x= 1 ||| 1 ||| 0-0 1-1")).segments == ["1:0-0:0-0 2:1-1:1-1"]
    assert read_nbest(saved("0 ||| a ||| ||| -2.5")).names == ()


def test_a_feature_with_an_underscore_is_dense_where_it_is_everywhere(saved):
    text = "0 ||| a ||| fwd_score= 1 x_y= 1\n0 ||| b ||| fwd_score= 2\n"
    lists = read_nbest(saved(text))
    assert (lists.names, lists.sparse_names) == (("fwd_score",), ("x_y",))
    asked = read_nbest(saved(text), names=["fwd_score"])
    assert (asked.names, asked.sparse_names) == (("fwd_score",), ("x_y",))
    with pytest.raises(FileError, match="file, line 2: feature 'x_y' is missing, and line 1 has it"):
        read_nbest(saved(text), names=["x_y"])


def test_features_that_are_asked_for(saved):
    lists = read_nbest(saved(MOSES), names=["TM0,2", "LM0"])
    assert lists.names == ("TM0,2", "LM0")
    assert lists.values.tolist() == [[-2, -1.5], [-2.5, -2.5], [1e-3, 1]]
    with pytest.raises(FileError, match="file: no feature 'LM1'; there are LM0"):
        read_nbest(saved(MOSES), names=["LM0", "LM1"])


GOOD = "0 ||| a ||| LM0= 1 D0= 2 ||| 3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "0 ||| b ||| LM0= 1 ||| 3\n", "line 2: feature 'D0' is missing, and line 1 has it; each hypothesis"),
        (2 * GOOD + "0 ||| b ||| LM0= 1 DO= 2 ||| 3\n", "line 3: feature 'DO' is in this hypothesis alone, and 'D0'"),
        (GOOD + "0 ||| b ||| LM0= 1 D0= 2 E= 1 ||| 3\n" + GOOD, "line 2: feature 'E' is in this hypothesis alone; "),
        (GOOD + 2 * "0 ||| b ||| LM0= 1 D0= 2 E= 1 ||| 3\n", "line 2: feature 'E' is in 2 of 3 hypotheses; correct"),
        (GOOD + "1 ||| b ||| LM0= 1 D0= 2 ||| 3\n" + GOOD, "line 3: id '0' comes again, after line 1 and other ids"),
        ("3 ||| a ||| x= 1\n1 ||| b ||| x= 2\n", "line 2: id 1 after id 3; sort the lists by id"),
        (GOOD + "0 ||| b ||| LM0= nan D0= 2 ||| 3\n", "line 2: 'nan' is neither a name of a feature nor a finite"),
        (GOOD + "0 ||| b ||| LM0= 1e999 D0= 2 ||| 3\n", "line 2: '1e999' is neither"),
        (GOOD + "0 ||| b ||| LM0= 1 D0= 2 ||| inf\n", "line 2: 'inf' is not a finite total score"),
        (GOOD + "0 ||| b ||| LM0= 1 D0= 2\n", "line 2: no total score, unlike line 1"),
        ("0 ||| b ||| x= 1\n0 ||| b ||| x= 1 ||| 3\n", "line 2: a total score, unlike line 1"),
        (GOOD + "0 ||| b ||| LM0= 1 2 D0= 2 ||| 3\n", "line 2: feature 'LM0' has 2 values, and in lines before 1"),
        (GOOD + "0 ||| b ||| LM0= 1 LM0= 2 D0= 2 ||| 3\n", "line 2: feature 'LM0' comes twice"),
        (GOOD + "0 ||| b ||| LM0= D0= 2 ||| 3\n", "line 2: feature 'LM0' has no value"),
        ("0 ||| b ||| 1 2 ||| 3\n", "line 1: the value '1' comes before the name"),
        (GOOD + "0 ||| b\n", "line 2: 2 fields; write id ||| text ||| name= value ... ||| total"),
        (GOOD + "0|||b|||LM0= 1\n", "line 2: 1 field; write"),
        ("two words ||| b ||| x= 1\n", "line 1: 'two words' is not an id"),
        ("0 ||| a |0-0| ||| x= 1\n0 ||| b ||| x= 1\n", "line 2: 'b' is in no phrase"),
        ("0 ||| a ||| x= 1 ||| 2 ||| 0-0 1:1\n", "line 1: '1:1' is not part of an alignment"),
    ],
)  # fmt: skip
def test_malformed_moses(saved, text, message):
    with pytest.raises(FileError) as error:
        read_nbest(saved(text), format="moses")
    assert f"file, {message}" in str(error.value)


# ---- plain texts and files of features


def test_plain_lists_with_files_of_features(saved):
    texts = saved("une maison\nla maison\n\n\n\n\nnon\n\n\xe9t\xe9\n".encode("latin-1"), "3best.gz")
    values = saved("1\t2\n3\t4\nnan nan\n5 6\n0 0\n\n7 8\n9 10\n11 12\n", "ffvals")
    lm = saved(gzip.compress(b"-1\n-2\n0\n-3\nnan\n\n-4\n-5\n-6", mtime=0), "ff.LM#0.2.gz")
    phrases = saved("1:0-0:0-1\n1:0-1:0-1\n\n\n\n\n1:0-0:0-0\n\n1:0-0:0-0\n", "pal")
    gold, source = saved("house\nnone\nsummer\n", "en"), saved("x\n\ny\n", "fr")
    lists = read_nbest(
        texts, features=[values, lm], references=[gold, gold], sources=source, segments=phrases, encoding="latin-1"
    )
    assert lists.texts == ["une maison", "la maison", "", "non", "", "été"]
    assert lists.sizes.tolist() == [2, 1, 3]
    assert lists.names == ("ffvals,1", "ffvals,2", "ff.LM#0.2")
    assert lists.values.tolist() == [[1, 2, -1], [3, 4, -2], [5, 6, -3], [7, 8, -4], [9, 10, -5], [11, 12, -6]]
    assert lists.references == [("house",) * 2, ("none",) * 2, ("summer",) * 2]
    assert lists.sources == ["x", "", "y"]
    assert lists.segments == ["1:0-0:0-1", "1:0-1:0-1", "", "1:0-0:0-0", "", "1:0-0:0-0"]
    by_name = read_nbest(texts, features={"a": values, "b": lm}, list_size=3, encoding="latin-1", names=["b", "a,1"])
    assert by_name.names == ("b", "a,1")
    assert by_name.values.tolist() == lists.values[:, [2, 0]].tolist()
    short = saved("1\n2\n3\n4\n5\n6\n", "short")  # only the hypotheses, without padding
    assert read_nbest(texts, features=[short], list_size=3, encoding="latin-1").values.ravel().tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]


def test_features_beside_any_format(saved):
    lists = read_nbest(saved(MOSES), features=[saved("1\n2\n3\n", "more")])
    assert lists.names == ("LM0", "TM0,1", "TM0,2", "more")
    assert lists.values[:, 3].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", "more: 2 lines, and NBEST has 3 hypotheses; give one line per hypothesis"),
        ("1\n2\n3\n4\n", "more: 4 lines, and NBEST has 3 hypotheses"),
        ("1\n2 2\n3\n", "more, line 2: 2 numbers, and line 1 has 1; give each line the same columns"),
        ("1\n\n3\n", "more, line 2: an empty line; give the features of each hypothesis"),
        ("1\nx\n3\n", "more, line 2: 'x' is not a finite number"),
        ("1\n2\nnan\n", "more, line 3: 'nan' is not a finite number"),
        ("1\n2\n-inf\n", "more, line 3: '-inf' is not a finite number"),
        ("\n\n\n", "more: no numbers"),
        ("", "more: no numbers"),
    ],
)
def test_malformed_features(saved, content, message):
    nbest, more = saved(MOSES, "nbest"), saved(content, "more")
    with pytest.raises(FileError) as error:
        read_nbest(nbest, features=[more])
    assert message.replace("NBEST", nbest) in str(error.value)


def test_a_feature_in_two_files(saved):
    with pytest.raises(FileError, match="LM0: feature 'LM0' is in other files too"):
        read_nbest(saved(MOSES, "nbest"), features=[saved("1\n2\n3\n", "LM0")])
    with pytest.raises(FileError, match=r"standard input \(-\) can be read only once"):
        read_nbest("-", features=["-"])
    with pytest.raises(FileError, match="features on standard input have no name"):
        read_nbest(saved(MOSES), features=["-"])


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a\nb\nc\n", {"list_size": 2}, "file, line 3: the last list has 1 line instead of 2; give all lists equally"),
        ("a\nb\nc\n", {}, "file: 3 lines and no number of lists; give references, sources or the list size"),
        ("", {}, "file: no hypotheses"),
        ("\n\n", {}, "file: no hypotheses"),
        ("été\n".encode("latin-1"), {"list_size": 1}, "file, line 1: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("été\n".encode("latin-1"), {"list_size": 1}, "or give its encoding, as --encoding latin-1"),
        (gzip.compress(b"a\n" * 100, mtime=0)[:-9], {"list_size": 1}, "file: damaged gzip file"),
        (b"a\0b\n", {"list_size": 1}, "file, line 1: a NUL byte"),
    ],
)  # fmt: skip
def test_malformed_plain_lists(saved, text, settings, message):
    with pytest.raises(FileError) as error:
        read_nbest(saved(text), **settings)
    assert message in str(error.value)


def test_counts_of_references_and_sources(saved):
    nbest = saved("a\nb\nc\n", "nbest")
    with pytest.raises(FileError, match="nbest: 3 lines, which is not a multiple of the 2 inputs"):
        read_nbest(nbest, references=saved("x\ny\n", "en"))
    with pytest.raises(FileError, match=r"nbest has 3 lists and .*en has 2 references; give one reference per list"):
        read_nbest(nbest, list_size=1, references=saved("x\ny\n", "en"))
    with pytest.raises(FileError, match=r"has 2 lists and .*en has 3 references; there is no list with id 1"):
        read_nbest(saved(MOSES, "moses"), references=saved("x\ny\nz\n", "en"))
    with pytest.raises(FileError, match=r"has 2 lists and .*fr has 1 source;"):
        read_nbest(saved(MOSES, "moses"), sources=saved("x\n", "fr"))
    with pytest.raises(FileError, match=r"one has 2 lines and .*two has 1; line N of each"):
        read_references([saved("a\nb\n", "one"), saved("a\n", "two")])
    with pytest.raises(FileError, match="en: no references"):
        read_references(saved("", "en"))
    with pytest.raises(FileError, match="pal, line 2: '0-1' is not a list of phrases"):
        read_nbest(nbest, list_size=1, segments=saved("\n0-1\n\n", "pal"))
    with pytest.raises(FileError, match=r"pal: 2 lines, and .*nbest has 3"):
        read_nbest(nbest, list_size=1, segments=saved("\n\n", "pal"))
    with pytest.raises(ValueError, match="format must be one of moses, plain, tsv, jsonl, parquet, got 'xml'"):
        read_nbest(nbest, format="xml")
    assert list(read_nbest(saved("PAR1 a\nb\n", "texts"), list_size=2).texts) == ["PAR1 a", "b"]


@pytest.mark.skipif(not (DATA / "reranking").is_dir(), reason="the folder of shared data is not there")
@pytest.mark.parametrize(("system", "width"), [("sysA_dev2", 22), ("sysB_dev2", 4)])
def test_lists_of_a_real_system(system, width):
    folder = DATA / "reranking"
    lists = read_nbest(
        folder / system / "100best.gz",
        features=sorted((folder / system).glob("ff*.gz")),
        references=[folder / "dev2_en.al"],
        sources=folder / "dev2_fr.al",
        segments=folder / system / "pal.gz",
        encoding="latin-1",
    )
    assert len(lists) == 100
    assert lists.values.shape == (lists.n_hypotheses, width)
    assert all(lists.texts)
    best = (folder / system / "1best").read_text(encoding="latin-1").split("\n")
    firsts = [lists.texts[at].split() for at in lists.offsets[:-1].tolist()]
    assert firsts == [line.split() for line in best[:100]]


# ---- tables


def test_tables(saved):
    grouped = read_nbest(saved("a b\t-1\nc\t-2\n\n\nd\t-3\n\t-4\n"))
    assert (grouped.texts, grouped.sizes.tolist(), grouped.names) == (["a b", "c", "d", ""], [2, 2], ("score",))
    several = read_nbest(saved("a\t-1\t1\nb\t-2\t2\nc\t-3\t3\nd\t-4\t4"), list_size=2)
    assert (several.sizes.tolist(), several.names) == ([2, 2], ("score,1", "score,2"))
    by_inputs = read_nbest(saved("a\t-1\nb\t-2\n", "tab"), references=saved("x\ny\n", "en"))
    assert by_inputs.sizes.tolist() == [1, 1]
    assert len(read_nbest(saved("a\t-1\nb\t-2\n"))) == 1
    named = read_nbest(saved("id\tlm\ttext\ttotal\nu1\t-1\ta b\t5\nu1\t-2\t\t6\nu2\t3\tc\t7\n"))
    assert (named.ids, named.names, named.texts) == (["u1", "u2"], ("lm",), ["a b", "", "c"])
    assert named.totals.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a\t1\nb\n", {}, "line 2: 1 column, and line 1 has 2; separate text and each score by one TAB"),
        ("a\t1\nb\tx\n", {}, "line 2: 'x' is not a finite number"),
        ("a\t1\nb\t\n", {}, "line 2: '' is not a finite number"),
        ("a\t1\nb\tinf\n", {}, "line 2: 'inf' is not a finite number"),
        ("a\t1\nb\t2\nc\t3\n", {"list_size": 2}, "line 3: the last list has 1 line instead of 2"),
        ("a\t1\n\nb\t2\n", {"list_size": 1}, "line 2: a blank line, which ends a list"),
        ("id\ttext\tlm\tlm\n0\ta\t1\t2\n", {}, "line 1: two columns 'lm'"),
        ("id\ttext\t\n0\ta\t1\n", {}, "line 1: column 3 has no name"),
        ("id\ttext\tlm\n0\ta\n", {}, "line 2: 2 columns, and the header has 3"),
        ("id\ttext\tlm\n0\ta\t1\n1\tb\t1\n0\tc\t1\n", {}, "line 4: id '0' comes again"),
    ],
)
def test_malformed_tables(saved, text, settings, message):
    with pytest.raises(FileError) as error:
        read_nbest(saved(text), format="tsv", **settings)
    assert f"file, {message}" in str(error.value)


def test_tables_without_hypotheses(saved):
    with pytest.raises(FileError, match="file: no hypotheses below the header"):
        read_nbest(saved("id\ttext\tlm\n"))
    with pytest.raises(FileError, match="file: no hypotheses; write text TAB score"):
        read_nbest(saved("\n"), format="tsv")
    with pytest.raises(FileError, match="file, line 1: no TAB; write text TAB score"):
        read_nbest(saved("a b\n"), format="tsv")


# ---- JSON lines and Parquet


def test_json_lines(saved):
    first = {"ref": "the cat", "hyps": ["the cat", "a cat", ""], "am": [-1, -2.5, 0], "lm": [1, 2, 3], "words": ["x"]}
    second = {"ref": ["b", "c"], "hyps": ["b"], "lm": [4], "am": [5], "duration": 2.5, "id": 7}
    lists = read_nbest(saved(f"{json.dumps(first)}\n\n{json.dumps(second)}\n"))
    assert (lists.names, lists.ids, lists.sizes.tolist()) == (("am", "lm"), ["0", "7"], [3, 1])
    assert lists.values.tolist() == [[-1, 1], [-2.5, 2], [0, 3], [5, 4]]
    assert lists.references == [("the cat",), ("b", "c")]
    assert read_nbest(saved(json.dumps(first)), names=["lm"]).names == ("lm",)


def test_hypotheses_as_objects(saved):
    hyps = [{"text": "a b", "features": {"lm": -1, "w_a": 2}}, {"text": "c", "features": {"lm": -2}, "am": 3}]
    hyps[0]["am"] = 1
    lists = read_nbest(saved(json.dumps({"hyps": hyps, "ctc": [0.5, 1.5]})))
    assert (lists.names, lists.sparse_names) == (("ctc", "am", "lm"), ("w_a",))
    assert lists.values.tolist() == [[0.5, 1, -1], [1.5, 3, -2]]
    assert named(lists) == [{"w_a": 2}, {}]


START = '{"hyps": ["a", "b"], "lm": [1, 2], "ref": "a"}\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON at column"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "JSON that is too large to read"),
        ('{"hyps": ["a"], "lm": [1' + "0" * 5000 + "]}", "JSON that is too large to read"),
        ('{"hyps": ["a"], "hyps": ["b"], "lm": [1], "ref": "a"}', "the key 'hyps' comes twice"),
        ('{"lm": [1], "ref": "a"}', "no hypotheses; give 'hyps'"),
        ('{"hyps": [], "lm": [], "ref": "a"}', "no hypotheses; give 'hyps'"),
        ('{"hyps": "a", "lm": [1], "ref": "a"}', """'hyps' is "a"; give"""),
        ('{"hyps": ["a", 1], "lm": [1, 2], "ref": "a"}', 'a hypothesis is "a"; give texts'),
        ('{"hyps": ["a"], "lm": [1, 2], "ref": "a"}', "'lm' has 2 numbers for 1 hypothesis; give one per hypothesis"),
        ('{"hyps": ["a"], "lm": ["1"], "ref": "a"}', """'lm' has "1"; give numbers"""),
        ('{"hyps": ["a", "b"], "lm": [1, null], "ref": "a"}', "'lm' has null; give numbers"),
        ('{"hyps": ["a"], "lm": [NaN], "ref": "a"}', "feature 'lm' is nan; give a finite number"),
        ('{"hyps": ["a"], "lm": [-Infinity], "ref": "a"}', "feature 'lm' is -inf; give a finite number"),
        ('{"hyps": ["a"], "lm": [1' + "0" * 400 + '], "ref": "a"}', "feature 'lm' is 1000000"),
        ('{"hyps": ["a"], "ref": "a"}', "feature 'lm' is missing, and line 1 has it"),
        ('{"hyps": ["a"], "lm": [1], "am": [1], "ref": "a"}', "feature 'am' is not in line 1"),
        ('{"hyps": ["a"], "lm": [1]}', "'references' is missing, unlike in line 1"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "source": "b"}', "'source' is there, unlike in line 1"),
        ('{"hyps": ["a"], "lm": [1], "ref": 5}', "the reference is 5; give a text or a list of texts"),
        ('{"hyps": ["a"], "lm": [1], "ref": []}', "the reference is []"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "id": [1]}', "the id is [1]; give a string or an integer"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "id": "0"}', "id '0' is that of line 1 too"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "total": [1, 2]}', "'total' is [1, 2]; give a list with a number"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "sparse": [5]}', "'sparse' has 5; give an object"),
        ('{"hyps": ["a"], "lm": [1], "ref": "a", "sparse": [{"x_y": "5"}]}', """feature 'x_y' is "5"; give a finite"""),
        ('{"hyps": [{"text": "a", "features": [1]}], "lm": [1], "ref": "a"}', "'features' of a hypothesis is [1]"),
        ('{"hyps": ["\\ud800"], "lm": [1], "ref": "a"}', "an escape such as"),
    ],
)  # fmt: skip
def test_malformed_json(saved, line, message):
    with pytest.raises(FileError) as error:
        read_nbest(saved(START + line), format="jsonl")
    assert f"file, line 2: {message}" in str(error.value)


def test_features_of_objects_that_are_missing(saved):
    lines = [{"hyps": [{"text": "a", "features": {"lm": 1}}]}, {"hyps": [{"text": "b", "features": {}}]}]
    with pytest.raises(FileError, match="file, line 2: feature 'lm' is missing, and line 1 has it"):
        read_nbest(saved("\n".join(map(json.dumps, lines))))
    twice = {"hyps": [{"text": "a", "features": {"lm": 1}}], "lm": [1]}
    with pytest.raises(FileError, match="file: feature 'lm' is given in two ways"):
        read_nbest(saved(json.dumps(twice)))
    with pytest.raises(FileError, match="file: no lists"):
        read_nbest(saved("\n"), format="jsonl")


def test_parquet(saved, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def written(columns):
        parquet.write_table(pa.table(columns), tmp_path / "file.parquet")
        return tmp_path / "file.parquet"

    columns = {"ref": ["a", "c"], "hyps": [["a", "b"], ["c"]], "lm": [[1.0, 2.0], [3.0]], "words": [["x"], ["y"]]}
    lists = read_nbest(written(columns))
    assert (lists.names, lists.values.ravel().tolist(), lists.sizes.tolist()) == (("lm",), [1, 2, 3], [2, 1])
    with pytest.raises(FileError, match=r"file.parquet, row 2: 'lm' has 2 numbers for 1 hypothesis"):
        read_nbest(written({**columns, "lm": [[1.0, 2.0], [3.0, 4.0]]}))
    with pytest.raises(FileError, match=r"file.parquet, row 2: feature 'lm' is missing, and row 1 has it"):
        read_nbest(written({**columns, "lm": [[1.0, 2.0], None]}))
    with pytest.raises(FileError, match=r"file.parquet, row 1: feature 'lm' is nan"):
        read_nbest(written({**columns, "lm": [[1.0, np.nan], [3.0]]}))
    (tmp_path / "hypotheses").write_bytes((tmp_path / "file.parquet").read_bytes())
    with pytest.raises(FileError, match=r"hypotheses, row 1: feature 'lm' is nan"):  # recognized by its content
        read_nbest(tmp_path / "hypotheses")
    with pytest.raises(FileError, match=r"x\.parquet: not a Parquet file that can be read"):
        read_nbest(saved(b"PAR1 and nothing else", "x.parquet"))


def test_the_format_of_long_lines_is_recognized(saved):
    text = "word " * 40_000
    lists = read_nbest(saved(f"\n0 ||| {text}||| lm= 1\n0 ||| a ||| lm= 2\n"))
    assert lists.names == ("lm",)
    assert lists.texts == [text.strip(), "a"]
    assert read_nbest(saved(f"{text}\t1\n")).names == ("score",)
