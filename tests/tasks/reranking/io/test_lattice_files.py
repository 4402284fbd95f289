"""Lattices in PLF, SLF and JSON lines, and what is wrong with malformed ones: file, line and remedy."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lists import NUMBER, TEXT

from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.reranking.io.lattice_formats.arcs import NO_WORD
from maxmargin.tasks.reranking.io.lattices import Lattices, read_lattices, write_lattices
from maxmargin.tasks.reranking.made import made_lattices

PLF = r"""((('the',-0.5,-1,1),('a\'s',-1.2,-2,1),("*EPS*",0,0,2)),(('cat',-.1,1e1,1),),)
((("x" , 1 , 2 , 1),),)
"""

SLF = """# made by hand
VERSION=1.0
UTTERANCE=u1
lmname=bigram lmscale=9.00 wdpenalty=0.00
N=4 L=4
I=0 t=0.00
I=1 t=0.25
I=2 t=0.60
I=3 t=0.60
J=0 S=0 E=1 W=the v=1 a=-100.5 l=-1.0
J=1 S=0 E=1 W="a \\"b\\"" v=1 a=-101.5 l=-2.0
J=2 S=1 E=2 W=\\303\\251t\\303\\251 a=-80 l=-0.5
J=3 S=2 E=3 W=!NULL
"""


def edges_of(lattice):
    return [tuple(edge) for edge in np.asarray(lattice.edges).tolist()]


def test_plf(saved):
    found = read_lattices(saved(PLF))
    first, second = found.lattices
    assert (found.names, found.ids) == (("score,1", "score,2"), ["0", "1"])
    assert edges_of(first) == [(0, 1), (0, 1), (0, 2), (1, 2)]
    assert first.words == ["the", "a's", None, "cat"]
    assert first.features.tolist() == [[-0.5, -1], [-1.2, -2], [0, 0], [-0.1, 10]]
    assert (first.start, first.end) == (0, 2)
    assert (second.words, second.features.tolist()) == (["x"], [[1, 2]])
    alone = read_lattices(saved("((('a',1),),)"))
    assert (alone.names, alone.lattices[0].features.shape) == ((), (1, 0))
    assert read_lattices(saved("((('a',-2.5,1),),)")).names == ("score",)


def test_slf(saved):
    found = read_lattices(saved(SLF))
    lattice = found.lattices[0]
    assert (found.names, found.ids) == (("a", "l"), ["u1"])
    assert edges_of(lattice) == [(0, 1), (0, 1), (1, 2), (2, 3)]
    assert lattice.words == ["the", 'a "b"', "été", None]
    assert lattice.features.tolist() == [[-100.5, -1], [-101.5, -2], [-80, -0.5], [0, 0]]
    assert (lattice.start, lattice.end) == (0, 3)


def test_slf_with_words_on_nodes_and_long_names(saved):
    text = """NODES=4 LINKS=3 start=7 end=5
I=7
I=9 WORD=hello
I=5 W=!NULL
I=6 W=unused
J=0 START=7 END=9 acoustic=-1 language=-2 n=-3 r=0 x1=4
J=1 S=9 E=5 a=-5 l=0 n=0 r=0 x1=0
J=2 S=9 E=6 a=-5 l=0 n=0 r=0 x1=0
"""
    found = read_lattices(saved(text))
    assert found.names == ("a", "l", "n", "r", "x1")
    assert found.lattices[0].words == ["hello", None, "unused"]
    assert found.lattices[0].start == 2
    assert found.lattices[0].end == 0


def test_json(saved):
    edges = [
        {"from": 0, "to": 2, "word": "a", "features": {"lm": -1, "am": 2.5}},
        {"from": 2, "to": 1, "word": None, "features": {"am": 0, "lm": 0}},
    ]
    columns = {"from": [0, 2], "to": [2, 1], "word": ["a", None], "features": {"lm": [-1, 0], "am": [2.5, 0]}}
    lines = [
        {"id": "x", "nodes": 3, "end": 1, "edges": edges, "ref": "a"},
        {"end": 1, "edges": columns, "ref": ["a", "b"]},
    ]
    found = read_lattices(saved("\n".join(map(json.dumps, lines))))
    assert (found.names, found.ids, found.references) == (("lm", "am"), ["x", "1"], [("a",), ("a", "b")])
    for lattice in found.lattices:
        assert (edges_of(lattice), lattice.words) == ([(0, 2), (2, 1)], ["a", None])
        assert lattice.features.tolist() == [[-1, 2.5], [0, 0]]
        assert (lattice.start, lattice.end) == (0, 1)


def test_several_files_and_folders(saved, tmp_path):
    saved(SLF.replace("UTTERANCE=u1\n", ""), "b.slf")
    saved(gzip.compress(SLF.replace("UTTERANCE=u1\n", "").encode("latin-1", "replace"), mtime=0), "a.lat.gz")
    saved("not a lattice", "notes.txt")
    found = read_lattices(tmp_path, references=saved("x\ny\n", "ref"), names=["l"])
    assert (found.ids, found.names, found.references) == (["a", "b"], ("l",), [("x",), ("y",)])
    assert found.lattices[0].features.tolist() == [[-1], [-2], [-0.5], [0]]
    assert found.select([1]).ids == ["b"]
    assert found.select([1]).references == [("y",)]
    with pytest.raises(FileError, match=r"has 2 lattices and .*ref has 3 references"):
        read_lattices(tmp_path, references=[saved("x\ny\nz\n", "ref")])
    with pytest.raises(FileError, match=r"b\.slf, line 2: id 'u1' is that of .*a\.slf, line 2 too"):
        read_lattices([saved(SLF, "a.slf"), saved(SLF, "b.slf")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="empty: no file of lattices in this folder"):
        read_lattices(tmp_path / "empty")
    with pytest.raises(FileError, match=r"x\.plf, line 1: the lattice has no feature 'a', unlike that of .*a\.slf"):
        read_lattices([saved(SLF, "a.slf"), saved("((('a',-2.5,1),),)", "x.plf")])
    with pytest.raises(ValueError, match="format must be one of plf, slf, json"):
        read_lattices(tmp_path, format="xml")
    with pytest.raises(ValueError, match="no files of lattices"):
        read_lattices([])
    with pytest.raises(FileError, match=r"standard input \(-\) can be read only once"):
        read_lattices(["-", "-"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "an empty line"),
        ("()", "a lattice without edges"),
        ("((('a',1,1),)", "the line ends at column 13 where ',' belongs"),
        ("((('a',1,1),),) x", "'x' behind the lattice"),
        ("(('a',1,1),)", "where '(' belongs"),
        ("(((1,1,1),),)", "an edge that is not a word, scores and a distance"),
        ("((('a',1,0),),)", "'0' is not a distance"),
        ("((('a',1,-1),),)", "'-1' is not a distance"),
        ("((('a',1,1.5),),)", "'1.5' is not a distance"),
        ("((('a',1,2),),)", "an edge of node 2, and there are 2 nodes"),
        ("((('a',nan,1),),)", "'nan' is not a finite score"),
        ("((('a',1e999,1),),)", "feature 'score' is inf"),
        ("((('a',1,1),('b',1)),)", "an edge with 0 scores, and the first has 1"),
        ("((('a,1,1),),)", "a string without its end"),
        ("((('a',(1),1),),)", "'(' at column 8 inside an edge"),
        ("((('a',__import__('os'),1),),)", "at column"),
        ("(" * 50_000, "inside an edge"),
        ("((('a',1,1),),(),(('b',1,1),),)", "no path from node 0, the start, to node 3, the end"),
    ],
)
def test_malformed_plf(saved, line, message):
    with pytest.raises(FileError) as error:
        read_lattices(saved(f"((('a',1,1),),)\n{line}\n"), format="plf")
    assert "file, line 2: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("J=2 S=1 E=2", "J=2 S=1 E=9"), 12, "an edge of node 9, which has no line I=9"),
        (("J=2 S=1 E=2", "J=2 S=1"), 12, "no E=; give the number of a node"),
        (("J=2 S=1 E=2", "J=2 S=x E=2"), 12, "S=x is not a number"),
        (("E=3 W=!NULL", "E=1 W=!NULL a=0 l=0"), 12, "the edge from node 1 to node 2 is on a cycle"),
        (("J=3 S=2 E=3", "J=3 S=2 E=2"), 13, "the edge from node 2 to node 2 is on a cycle"),
        (("J=3 S=2 E=3", "J=3 S=0 E=3"), 2, "2 nodes that no edge leaves; give one, or end=NODE in the header"),
        (("J=3 S=2 E=3", "J=3 S=3 E=2"), 2, "2 nodes that no edge enters; give one, or start=NODE"),
        (("N=4 L=4", "N=4 L=5"), 5, "L=5, and there are 4 edges"),
        (("N=4 L=4", "N=x L=4"), 5, "N=x, and there are 4 nodes"),
        (("N=4 L=4", "N=4 L=4 end=8"), 5, "end=8 is not the number of a node"),
        (("N=4 L=4", "N=4 L=4 start=3 end=0"), 2, "no path from node 3, the start, to node 0, the end"),
        (("a=-80 l=-0.5", "a=-80"), 12, "an edge without l=, which others have"),
        (("a=-80 l=-0.5", "a=x l=-0.5"), 12, "a=x is not a number"),
        (("a=-80 l=-0.5", "a=-inf l=-0.5"), 12, "feature 'a' is -inf"),
        (("a=-80 l=-0.5", "a=-80 a=2 l=-0.5"), 12, "the field 'a' comes twice"),
        (("a=-80 l=-0.5", "a=-80 nonsense"), 12, "'nonsense' is not a field"),
        (("I=3 t=0.60", "I=2 t=0.60"), 9, "node 2 comes twice"),
        (("J=3 S=2", "lmscale=1\nJ=3 S=2"), 13, "'lmscale=1' is neither a node (I=) nor an edge (J=)"),
    ],
)
def test_malformed_slf(saved, change, line, message):
    assert change[0] in SLF
    with pytest.raises(FileError) as error:
        read_lattices(saved(SLF.replace(*change)))
    assert f"file, line {line}: {message}" in str(error.value)


GOOD = {"edges": {"from": [0], "to": [1], "word": ["a"], "features": {"lm": [1]}}}
EDGE = {"from": 0, "to": 1, "word": "a", "features": {"lm": 1}}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "'edges' is null; give a list of edges"),
        ({"edges": []}, "a lattice without edges"),
        ({"edges": [5]}, "edge 0 is 5; give"),
        ({"edges": [{**EDGE, "words": "x"}]}, "edge 0 is"),
        ({"edges": [{**EDGE, "to": "1"}]}, 'an edge of node "1"'),
        ({"edges": [{**EDGE, "to": -1}]}, "an edge of node -1"),
        ({"edges": [{**EDGE, "to": True}]}, "an edge of node true"),
        ({"edges": [{**EDGE, "word": 5}]}, "a word is 5; give a string"),
        ({"edges": [{**EDGE, "features": [1]}]}, "'features' of edge 0 is [1]"),
        ({"edges": [{**EDGE, "features": {"lm": "1"}}]}, """feature 'lm' is "1"; give a finite number"""),
        ({"edges": [{**EDGE, "features": {"lm": float("nan")}}]}, "feature 'lm' is nan; give a finite number"),
        ({"edges": [{**EDGE, "features": {"lm": 10**400}}]}, "feature 'lm' is 1000"),
        ({"edges": [EDGE, {"from": 0, "to": 1}]}, "edge 1 lacks feature 'lm', unlike edge 0"),
        ({"edges": [EDGE, {**EDGE, "features": {"lm": 1, "am": 1}}]}, "edge 1 has feature 'am', unlike edge 0"),
        ({"edges": [EDGE, {**EDGE, "from": 1, "to": 0}]}, "the edge from node 0 to node 1 is on a cycle"),
        ({"edges": [EDGE], "nodes": 1}, "an edge of node 1, and there are 1 nodes"),
        ({"edges": [{**EDGE, "to": 2_000_000_000}]}, "2000000001 nodes for 1 edges; number the nodes from 0"),
        ({"edges": [EDGE], "nodes": 2_000_000_000}, "2000000000 nodes for 1 edges"),
        ({"edges": [EDGE], "start": 5}, "the start is node 5, and there are 2 nodes"),
        ({"edges": [EDGE], "start": 1, "end": 0}, "no path from node 1, the start, to node 0, the end"),
        ({"edges": [EDGE], "end": 1.5}, "'end' is 1.5; give an integer"),
        ({"edges": [EDGE], "id": [1]}, "the id is [1]"),
        ({"edges": [EDGE], "ref": 5}, "the reference is 5"),
        ({"edges": [EDGE], "ref": "a"}, "a reference, unlike the first lattice"),
        ({"edges": {"from": [0]}}, "the columns of edges are 'from'; give from, to, word and features"),
        ({"edges": {"from": [0], "to": 1}}, "'to' is 1; give a list"),
        ({"edges": {"from": [0], "to": [1, 2]}}, "'to' has 2 values for 1 edge"),
        ({"edges": {"from": [0], "to": [1], "features": {"lm": []}}}, "'lm' has 0 values for 1 edge"),
        ({"edges": {"from": [0], "to": [1], "features": [1]}}, "'features' is [1]"),
        ({"edges": {"from": [0], "to": [1]}}, "the lattice has no feature 'lm', unlike that of"),
        ({"edges": {"from": [0], "to": [1], "features": {"lm": [1], "x": [1]}}}, "the lattice has feature 'x', unlike"),
    ],
)
def test_malformed_json(saved, record, message):
    with pytest.raises(FileError) as error:
        read_lattices(saved(f"{json.dumps(GOOD)}\n{json.dumps(record)}\n"))
    assert "file, line 2: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("form", ["plf", "slf", "json", None])
def test_empty_files(saved, form):
    with pytest.raises(FileError, match="file: no lattice"):
        read_lattices(saved(""), format=form)


@st.composite
def lattices(draw) -> Lattices:
    """Lattices whose edges go from smaller to larger numbers, with a path through all nodes."""
    found, names = [], tuple(draw(st.lists(TEXT, unique=True, max_size=3)))
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(2, 5))
        more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
        edges = [(at, at + 1) for at in range(n - 1)] + [(min(e), max(e)) for e in more if e[0] != e[1]]
        words = [draw(st.none() | TEXT.filter(lambda text: text not in NO_WORD)) for _ in edges]
        values = np.array([draw(NUMBER) for _ in range(len(edges) * len(names))]).reshape(len(edges), len(names))
        found.append(WordLattice(values, np.array(edges), words, 0, n - 1))
    references = draw(st.none() | st.just([(draw(TEXT),) for _ in found]))
    return Lattices(found, names, [f"u{at}" for at in range(len(found))], references)


def same_lattices(first: Lattices, second: Lattices) -> None:
    assert (first.names, list(first.ids), first.references) == (second.names, list(second.ids), second.references)
    for one, two in zip(first.lattices, second.lattices, strict=True):
        assert (edges_of(one), one.words, one.start, one.end) == (edges_of(two), two.words, two.start, two.end)
        assert np.array_equal(one.features, two.features)


@given(lattices())
def test_written_lattices_are_read_again(folder, lattices):
    write_lattices(lattices, folder / "lattices.jsonl.gz")
    same_lattices(read_lattices(folder / "lattices.jsonl.gz"), lattices)


def test_made_lattices_are_read_again(tmp_path):
    made = made_lattices(3)
    write_lattices(made, tmp_path / "made")
    same_lattices(read_lattices(tmp_path / "made"), made)
