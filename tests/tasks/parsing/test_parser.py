"""Parsers: training, prediction, files, commands, refusals."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from banks import conllu
from commands import failed, run, runner
from oracles.enumeration import vertices
from sklearn.base import clone

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.tasks.parsing import DependencyParser, Treebank, read_treebank
from maxmargin.tasks.parsing.encoder.heads import lifted
from maxmargin.tasks.parsing.model import ParserModel
from maxmargin.tasks.parsing.partial import KnownHeads, known_arcs
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
    pairs = zip(train.table.by_sentence(1), train.table.by_sentence(3), strict=True)
    words = [[{"form": form, "upos": tag} for form, tag in zip(*pair, strict=True)] for pair in pairs]
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


def conll(*sentences):
    """The text of sentences given as ``word/tag/head/relation`` with spaces between them."""
    blocks = []
    for sentence in sentences:
        rows = [cell.split("/") for cell in sentence.split()]
        blocks.append("".join(f"{j}\t{w}\t_\t{t}\t_\t_\t{h}\t{r}\t_\t_\n" for j, (w, t, h, r) in enumerate(rows, 1)))
    return "\n".join(blocks) + "\n"


GOOD = "the/DET/2/det cat/NOUN/3/nsubj sleeps/VERB/0/root"
ROOTS = "the/DET/2/det cat/NOUN/0/root sleeps/VERB/0/root"


def test_sentences_with_several_roots(tmp_path):
    train, model = tmp_path / "train.conllu", str(tmp_path / "parser.mm")
    train.write_text(conll(GOOD, ROOTS, GOOD, ROOTS))
    said = failed("parse", "train", str(train), "--out", model, "--bits", "10")
    assert "train.conllu, line 7: this is a second token below the root, 0; 2 of 4 sentences have several" in said
    assert "--several-roots" in said
    bank = read_treebank(train)
    with pytest.raises(ValueError, match="line 7: this is a second token below the root"):
        DependencyParser(bits=10).fit(bank)
    with pytest.raises(ValueError, match="sentence 1, token 2: this is a second token below the root"):
        DependencyParser(bits=10).fit([[{"form": "a"}] * 3] * 2, [([0, 1, 1], ["x"] * 3), ([2, 0, 0], ["x"] * 3)])
    run("parse", "train", str(train), "--out", model, "--bits", "10", "--several-roots", "--passes", "2")
    assert not ParserModel.load(model).encoder.trees.single_root
    assert not DependencyParser.load(model).single_root
    roots = DependencyParser(bits=10, order=1, single_root=False).fit(bank.part(1, 2)).predict(bank.part(1, 2))
    assert roots[0][0].tolist() == [2, 0, 0]
    one = DependencyParser(bits=10, max_iter=2).fit(bank.part(0, 1), dev=bank)  # which may have several
    assert [(heads == 0).sum() for heads, _ in one.predict(bank)] == [1] * 4


def test_heads_that_lead_around_in_a_circle(tmp_path):
    path, good = tmp_path / "cycle.conllu", tmp_path / "good.conllu"
    path.write_text(conll(GOOD, "a/DET/2/det b/NOUN/1/obj c/VERB/0/root"))
    good.write_text(conll(GOOD, GOOD))
    model = str(tmp_path / "parser.mm")
    message = "cycle.conllu, line 5: from here the heads lead around in a circle, not to the root, 0"
    assert message in failed("parse", "train", str(path), "--out", model)
    assert message in failed("parse", "train", str(good), "--dev", str(path), "--out", model)
    run("parse", "train", str(good), "--out", model, "--bits", "10")
    assert message in failed("parse", "evaluate", model, str(path))
    words = conll("the/DET/2/det cat/NOUN/1/nsubj sleeps/VERB/2/root", GOOD)
    path.write_text(words)
    assert "cycle.conllu, line 1: from here" in failed("parse", "evaluate", str(path), str(good))
    assert "cycle.conllu, line 1: from here" in failed("parse", "evaluate", str(good), str(path))


def test_heads_without_relations(tmp_path):
    path, model, out = tmp_path / "bare.conllu", str(tmp_path / "parser.mm"), str(tmp_path / "out.conllu")
    path.write_text(conll(GOOD, "the/DET/2/_ cat/NOUN/3/nsubj sleeps/VERB/0/_"))
    said = failed("parse", "train", str(path), "--out", model, "--bits", "10")
    assert "bare.conllu, line 5: there is no relation, and none at 2 of 6 tokens" in said
    assert "--unlabeled" in said
    run("parse", "train", str(path), "--out", model, "--bits", "10", "--unlabeled", "--passes", "3")
    run("parse", "predict", model, str(path), "--out", out)
    assert [relations for _, relations in read_treebank(out).trees()] == [["_"] * 3] * 2
    ended = runner.invoke(app, ["parse", "evaluate", model, str(path), "--json"])
    assert "warning: the predicted trees have no relations (_): UAS alone says something" in ended.stderr
    assert json.loads(ended.stdout)["UAS"] == 1.0
    assert not DependencyParser.load(model).labeled
    bank = read_treebank(path)
    with pytest.warns(UserWarning, match="the predicted trees have no relations"):
        assert DependencyParser(bits=10, labeled=False).fit(bank).evaluate(bank).uas == 1.0


def test_sentences_without_tags(tmp_path):
    path, model = tmp_path / "words.conllu", str(tmp_path / "parser.mm")
    tagged, bare = conll(GOOD, GOOD), conll(GOOD, GOOD.replace("DET", "_").replace("NOUN", "_"))
    path.write_text(bare)
    command = ["parse", "train", str(path), "--out", model, "--bits", "10", "--passes", "2"]
    place = "words.conllu, line 5: there is no tag (UPOS), and none at 2 of 6 tokens"
    assert f"{place}; a parser learns much from tags" in runner.invoke(app, command).stderr
    assert "warning" not in runner.invoke(app, ["parse", "predict", model, str(path)]).stderr  # as in training
    path.write_text(tagged)
    assert "warning" not in runner.invoke(app, command).stderr
    path.write_text(bare)
    assert f"{place}, unlike in training" in runner.invoke(app, ["parse", "predict", model, str(path)]).stderr
    with pytest.warns(UserWarning, match="line 5: there is no tag"):
        DependencyParser.load(model).predict(read_treebank(path))


def test_heads_that_are_known_in_part(banks, tmp_path):
    rng = np.random.default_rng(0)
    train = banks[0]
    pairs = zip(train.table.by_sentence(1), train.table.by_sentence(3), strict=True)
    words = [[{"form": form, "upos": tag} for form, tag in zip(*pair, strict=True)] for pair in pairs]
    some = []
    for heads, relations in train.trees():
        known = rng.random(len(heads)) < 0.5
        own = [head if there else None for head, there in zip(heads.tolist(), known, strict=True)]
        some.append((own, [name if there else None for name, there in zip(relations, known, strict=True)]))
    with pytest.raises(ValueError, match=r"sentence 0, token \d: the head '_' is not .* partial=True \(--partial\)"):
        DependencyParser(bits=12).fit(words, some)
    parser = DependencyParser(bits=14, max_iter=4, partial=True).fit(words, some)
    assert parser.evaluate(banks[1]).las > 0.8
    assert parser.model_.metadata["left out"] == 0
    whole = DependencyParser(bits=12, max_iter=2, partial=True).fit(train.part(0, 20))
    np.testing.assert_array_equal(whole.coef_, DependencyParser(bits=12, max_iter=2).fit(train.part(0, 20)).coef_)
    path, model = tmp_path / "some.conllu", str(tmp_path / "parser.mm")
    path.write_text(conll(GOOD, "the/DET/_/_ cat/NOUN/3/nsubj sleeps/VERB/_/_", GOOD))
    assert "line 5: the head '_' is not" in failed("parse", "train", str(path), "--out", model)
    said = json.loads(run("parse", "train", str(path), "--out", model, "--partial", "--bits", "10", "--json"))
    assert (said["known heads"], said["left out"], said["relations"]) == (7, 0, 3)
    for sentence, message in (
        ("the/DET/_/_ cat/NOUN/0/root sleeps/VERB/0/root", "line 7: this is a second token below the root"),
        ("the/DET/2/_ cat/NOUN/1/root sleeps/VERB/_/root", "line 5: from here the heads lead around in a circle"),
    ):
        path.write_text(conll(GOOD, sentence))
        assert message in failed("parse", "train", str(path), "--out", model, "--partial")
    path.write_text(conll("the/DET/_/_ cat/NOUN/_/_"))
    assert "there is no relation, and none at 2 of 2" in failed(
        "parse", "train", str(path), "--out", model, "--partial"
    )


def test_known_heads_are_those_of_completions():
    rng, lengths = np.random.default_rng(1), np.array([4, 3, 4, 5, 4])
    best = [mm.structures.ProjectiveTrees.dense([n]) for n in lengths.tolist()]
    heads = np.concatenate([one.decode(one.argmax(rng.normal(size=one.n_parts)).z)[0] for one in best])
    heads[rng.random(len(heads)) < 0.4] = -1
    heads[:4] = [3, 0, 2, 1]  # 1 -> 4 crosses 0 -> 2
    known = KnownHeads.of(heads, lengths, single_root=True)
    assert (known.lifted, known.left_out, known.all_known) == (1, 0, False)
    trees = mm.structures.ProjectiveTrees.dense(lengths)
    given = known_arcs(trees, known.heads)
    offsets, tokens = trees.blocks[0].offsets, trees.token_offsets
    for i, rows in enumerate(vertices(trees)):
        own, said = given[offsets[i] : offsets[i + 1]], known.heads[tokens[i] : tokens[i + 1]]
        agree = ((rows > 0.5) >= (own > 0)).all(axis=1) & ((rows < 0.5) >= (own < 0)).all(axis=1)
        one = trees.select([i])
        right = [bool(((said < 0) | (said == one.decode(row)[0])).all()) for row in rows]
        np.testing.assert_array_equal(agree, right)
        assert agree.any()
    crossing = KnownHeads.of(np.array([3, 4, -1, -1, -1]), np.array([5]), single_root=True)
    assert (crossing.heads.tolist(), crossing.left_out) == ([-1] * 5, 1)


@pytest.mark.parametrize("form", ["bom", "crlf"])
def test_files_of_other_systems(form, tmp_path):
    text = conll(GOOD, GOOD)
    data = b"\xef\xbb\xbf" + text.encode() if form == "bom" else text.replace("\n", "\r\n").encode()
    path, model, out = tmp_path / "train.conllu", str(tmp_path / "parser.mm"), tmp_path / "out.conllu"
    path.write_bytes(data)
    run("parse", "train", str(path), "--out", model, "--bits", "10", "--passes", "2")
    run("parse", "predict", model, str(path), "--out", str(out))
    assert out.read_bytes() == data.removeprefix(b"\xef\xbb\xbf")
    assert json.loads(run("parse", "evaluate", str(out), str(path), "--json"))["LAS"] == 1.0


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
        assert model.metadata["status"] == "interrupted"
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
    path = Path(__file__).parents[3] / "examples" / "dependency_parsing.py"
    spec = importlib.util.spec_from_file_location("dependency_parsing", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    names = [str(files / f"{name}.conllu") for name in ("train", "test")]
    scores = example.main(
        [*names, "--order", "1", "--passes", "2", "--bits", "12", "--out", str(tmp_path / "o.conllu")]
    )
    assert scores["LAS"] > 0.8
