"""Parsers: training, prediction, files, commands, refusals."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from banks import conllu
from commands import failed, run, runner
from sklearn.base import clone

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.tasks.parsing import DependencyParser, Treebank, read_treebank
from maxmargin.tasks.parsing.encoder.heads import lifted
from maxmargin.tasks.parsing.model import ParserModel
from maxmargin.training import Settings

ONE = [{"form": "Yes", "head": 0, "deprel": "root"}]

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


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], None, "there are no sentences to train on"),
        ([ONE, []], None, "sentence 1 has no tokens; leave it out"),
        (5, None, "X must be a list of sentences"),
        ([3], None, "sentence 0 must be a list of tokens"),
        ([ONE], 5, "y must be a list of trees"),
        ([ONE, ONE], [([0], ["root"]), 2], r"example 1: a tree must be a pair \(heads, relations\).* got 2"),
        ([ONE], [([0], [7])], "example 0: a tree must be a pair .* relations strings"),
        ([ONE], [([0], "r")], "example 0: a tree must be a pair"),
        ([ONE], [(0, ["root"])], "example 0: a tree must be a pair"),
        ([ONE], [([[0], [1, 2]], ["root"])], "example 0: a tree must be a pair"),
    ],
)
def test_bad_training_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        DependencyParser(bits=10).fit(X, y)


def test_no_sentences(parser, banks):
    assert parser.predict([]) == parser.k_best([], 2) == []
    with pytest.raises(ValueError, match="sentence 0 has no tokens"):
        parser.predict([[]])
    with pytest.raises(ValueError, match="dev data: there are no sentences"):
        clone(parser).fit(banks[0], dev=[])


def test_patience_is_that_of_trees(banks):
    train = banks[0].part(0, 10)
    parser = DependencyParser(order=1, bits=10, max_iter=8, patience=1)
    assert parser.fit(train, dev=train).model_.metadata["first order: iterations"] < 8
    with pytest.raises(ValueError, match="patience counts dev scores"):
        parser.fit(train)


def ctrl_c(stage):
    """A callback that interrupts a stage of training after its second pass."""
    seen = []

    def interrupt(record):
        seen.append(record.iteration)
        if seen.count(2) == stage and record.iteration == 2:
            raise KeyboardInterrupt

    return interrupt


def test_interrupted_training_ends_with_the_trees_so_far(banks):
    train = banks[0].part(0, 10)
    with pytest.raises(KeyboardInterrupt, match="no trees were trained yet"):
        DependencyParser(bits=10, max_iter=4, callbacks=[ctrl_c(1)]).fit(train)
    for stage, order in ((2, 1), (3, 2)):
        model = DependencyParser(bits=10, max_iter=4, callbacks=[ctrl_c(stage)]).fit(train).model_
        assert model.training.interrupted
        assert model.encoder.trees.order == order
        assert model.score(train) > 0.5
    assert not DependencyParser(bits=10, max_iter=4, callbacks=[ctrl_c(4)]).fit(train).model_.training.interrupted


@pytest.mark.parametrize(
    ("stage", "said"), [(1, "no trees were trained yet; no model was written; "), (3, "parser.mm was written with the")]
)
def test_interrupted_command(files, tmp_path, monkeypatch, stage, said):
    out, whole = tmp_path / "parser.mm", tmp_path / "whole.mm"
    command = ["parse", "train", str(files / "test.conllu"), "--dev", str(files / "test.conllu"), "--bits", "10"]
    with monkeypatch.context() as patched:
        usual, own = Settings.watchers, ctrl_c(stage)
        patched.setattr(Settings, "watchers", lambda *given: [*usual(*given), own])
        ended = runner.invoke(app, [*command, "--out", str(out)])
    assert ended.exit_code == 130
    assert said in ended.stderr
    assert "--resume resumes from it" in ended.stderr
    assert out.exists() == (stage == 3)
    assert "training resumes from" in runner.invoke(app, [*command, "--out", str(out), "--resume"]).stderr
    run(*command, "--out", str(whole))
    np.testing.assert_array_equal(mm.load(out).weights, mm.load(whole).weights)
    assert {path.name for path in tmp_path.iterdir() if "checkpoint" in path.name} == set()


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
