"""Parsers: training, prediction, files, commands, refusals."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from banks import conllu
from commands import failed, run
from sklearn.base import clone

import maxmargin as mm
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.tasks.parsing import DependencyParser, Treebank, read_treebank
from maxmargin.tasks.parsing.encoder.trees import lifted
from maxmargin.tasks.parsing.model import ParserModel

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("banks")
    for name, n, seed in (("train", 60, 0), ("test", 25, 1)):
        (folder / f"{name}.conllu").write_text(conllu(n, seed))
    return folder


@pytest.fixture(scope="module")
def banks(files):
    return read_treebank(files / "train.conllu"), read_treebank(files / "test.conllu")


@pytest.fixture(scope="module", params=[1, 2])
def parser(request, banks):
    return DependencyParser(order=request.param, bits=14, max_iter=4).fit(banks[0])


def test_learns_the_grammar(parser, banks):
    scores = parser.evaluate(banks[1])
    assert scores.las > 0.97
    assert parser.score(banks[1]) == scores.las <= scores.uas
    trees = parser.predict(banks[1])
    assert [len(heads) for heads, _ in trees] == banks[1].lengths.tolist()
    assert {one for _, relations in trees for one in relations} <= set(parser.classes_)


def test_equal_seeds_give_equal_models(parser, banks):
    again = clone(parser).set_params(n_jobs=2).fit(banks[0])
    np.testing.assert_array_equal(again.coef_, parser.coef_)


def test_saved_and_loaded(parser, banks, tmp_path):
    parser.save(tmp_path / "parser.mm")
    model = mm.load(tmp_path / "parser.mm")
    assert isinstance(model, ParserModel)
    for (heads, relations), (own, names) in zip(model.predict(banks[1]), parser.predict(banks[1]), strict=True):
        np.testing.assert_array_equal(heads, own)
        assert relations == names
    assert model.describe()["kind"] == "dependency parsing"
    assert DependencyParser.load(tmp_path / "parser.mm").order == parser.order


def test_the_best_trees_come_first(parser, banks):
    some = banks[1].part(0, 4)
    for (heads, relations), ranks in zip(parser.predict(some), parser.k_best(some, 3), strict=True):
        np.testing.assert_array_equal(ranks[0][0][0], heads)
        assert ranks[0][0][1] == relations
        scores = [score for _, score in ranks]
        assert scores == sorted(scores, reverse=True)


def test_trees_may_be_given(banks):
    train = banks[0].part(0, 20)
    words = [[{"form": cell} for cell in own] for own in train.table.by_sentence(1)]
    given = DependencyParser(order=1, bits=12, max_iter=2).fit(words, train.trees(), dev=(words, train.trees()))
    assert given.score(words, train.trees()) > 0.5
    assert given.solution_ is not None
    with pytest.raises(ValueError, match="20 sentences and y 1 trees"):
        given.score(words, train.trees()[:1])
    with pytest.raises(ValueError, match="example 0: a tree must have a head and a relation for each of the"):
        given.score(words[:1], [(np.zeros(1, dtype=int), ["root"])])


def test_a_certified_solver(banks):
    solver = BlockFrankWolfe()
    parser = DependencyParser(order=1, bits=12, solver=solver, C=0.1, tol=0.1, max_iter=30).fit(banks[0].part(0, 20))
    assert parser.solution_.certificate.relative_gap < 0.5
    assert parser.score(banks[1]) > 0.8


def test_crossing_arcs_are_lifted():
    heads, changed = lifted(np.array([3, 0, 2, 1, 0, 1]), np.array([4, 2]))  # the arcs to tokens 1 and 4 cross 0 -> 2
    assert changed == 1
    mm.structures.ProjectiveTrees.dense([4, 2]).encode([heads[:4], heads[4:]])
    with pytest.raises(ValueError, match="example 1: from token 1 the heads lead around in a circle"):
        lifted(np.array([0, 2, 1]), np.array([1, 2]))
    own = np.array([2, 0, 2])
    same, changed = lifted(own, np.array([3]))
    assert changed == 0
    np.testing.assert_array_equal(same, own)


def test_commands(files, tmp_path):
    model, out = str(tmp_path / "parser.mm"), tmp_path / "out.conllu"
    train, test = str(files / "train.conllu"), str(files / "test.conllu")
    said = json.loads(run("parse", "train", train, "--out", model, "--dev", test, "--order", "1", "--passes", "3",
                          "--bits", "13", "--json"))  # fmt: skip
    assert said["sentences"] == 60
    run("parse", "predict", model, test, "--out", str(out))
    scores = json.loads(run("parse", "evaluate", str(out), test, "--json"))
    assert scores["LAS"] == pytest.approx(said["dev LAS"]) == json.loads(
        run("parse", "evaluate", model, test, "--json")
    )["LAS"]  # fmt: skip
    assert scores["LAS interval"][0] <= scores["LAS"] <= scores["LAS interval"][1]
    assert run("parse", "predict", model, test) == out.read_text()
    assert "UAS" in run("parse", "evaluate", str(out), test)
    assert "no tokens" in failed("parse", "predict", model, "-", given="")
    assert "is also an input" in failed("parse", "train", train, "--out", train)


def test_bad_input(parser, banks):
    with pytest.raises(ValueError, match="order must"):
        DependencyParser(order=3).fit(banks[0])
    with pytest.raises(ValueError, match="with a 'form'"):
        parser.predict([["word"]])
    with pytest.raises(ValueError, match="is not one of the other tokens"):
        parser.score(Treebank.of([[{"form": "a", "head": 3, "deprel": "x"}]]))


def test_the_example(files, tmp_path):
    path = Path(__file__).parents[2] / "examples" / "dependency_parsing.py"
    spec = importlib.util.spec_from_file_location("dependency_parsing", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    names = [str(files / f"{name}.conllu") for name in ("train", "test")]
    scores = example.main(
        [*names, "--order", "1", "--passes", "2", "--bits", "12", "--out", str(tmp_path / "o.conllu")]
    )
    assert scores["LAS"] > 0.8
