"""The commands train, predict and bootstrap, through their parser and as processes."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import commands
import numpy as np
import pytest
from commands import runner
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.alignment import WordAligner, evaluate, read_bitext, read_links, read_references, write_links
from maxmargin.tasks.alignment.cli import blocks, options

LONG = "warning: sentence pair 5 has more than 1000 words on a side and gets no links (1 such pair); split it\n"
ESTIMATED = (
    "warning: confidences are estimated from other languages: take them as a ranking, and check some links, or give "
    "annotated pairs to align train\n"
)
FAST = "--C", "0.1", "--false-negative", "2", "--tol", "0.05", "--jobs", "1"


def text(sentences):
    return "".join(" ".join(words) + "\n" for words in sentences)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, corpus, model):
    """Small files of every kind, and a model."""
    at = tmp_path_factory.mktemp("files")
    train, dev, test = (corpus.select(range(first, first + 80, 4)) for first in (0, 1, 2))
    for name, part in (("train", train), ("dev", dev), ("test", test), ("all", corpus)):
        (at / f"{name}.en").write_text(text(part.source), encoding="utf-8")
        (at / f"{name}.fr").write_text(text(part.target), encoding="utf-8")
        joined = (f"{' '.join(e)} ||| {' '.join(f)}\n" for e, f in zip(part.source, part.target, strict=True))
        (at / f"{name}.both").write_text("".join(joined), encoding="utf-8")
        for form in ("pharaoh", "naacl", "json"):
            with open(at / f"{name}.{form}", "w", encoding="utf-8") as stream:
                write_links(stream, part.references, form)
    for name in ("train.en", "train.fr", "train.naacl", "test.both", "all.en", "all.fr"):
        (at / f"{name}.gz").write_bytes(gzip.compress((at / name).read_bytes()))
    (at / "model").write_bytes(model.read_bytes())
    (at / "odd.en").write_text("the house\n\n\nthe cat sleeps\n" + "a " * 1001 + "\nthe end\n", encoding="utf-8")
    (at / "odd.fr").write_text("la maison\nle\n\n\nun\nla fin\n", encoding="utf-8")
    (at / "short.fr").write_text("un\n", encoding="utf-8")
    (at / "latin.fr").write_bytes(b"un\n" * 7 + b"\xe9t\xe9\n" + b"un\n" * 12)
    (at / "outside").write_text("0-0\n" * 4 + "0-999\n" + "\n" * 15, encoding="utf-8")
    (at / "links20").write_text("0-0\n" * 20, encoding="utf-8")
    (at / "none").write_text("", encoding="utf-8")
    (at / "words").write_text("0-0 hello\n" * 20, encoding="utf-8")
    (at / "blank.en").write_text("\n" * 3, encoding="utf-8")
    (at / "folder").mkdir()
    return at


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


run = partial(commands.run, "align")
failed = partial(commands.failed, "align")

TRAIN = "--source", "train.en", "--target", "train.fr", "--gold", "train.pharaoh"
BITEXT = "--bitext-source", "all.en", "--bitext-target", "all.fr"


def test_train_and_predict(tmp_path):
    out = tmp_path / "model"
    metadata = json.loads(run("train", *TRAIN, *BITEXT, *FAST, "--out", str(out), "--json"))
    assert metadata["model"] == str(out)
    assert metadata["annotated_pairs"] == 20
    assert metadata["bitext_pairs"] == 260  # with the annotated ones, counted once
    assert metadata["status"] == "converged"
    assert metadata["relative_gap"] <= 0.05
    assert 0 <= metadata["held_out_aer"] < 0.2
    lines = run("predict", str(out), "--source", "test.en", "--target", "test.fr")
    assert lines.count("\n") == 20
    (tmp_path / "links").write_text(lines, encoding="utf-8")
    gold = read_references("test.pharaoh")
    learned = evaluate(gold, read_links(tmp_path / "links")).aer
    (tmp_path / "links").write_text(
        run("predict", str(out), "--source", "test.both.gz", "--method", "intersection"), encoding="utf-8"
    )
    assert learned < evaluate(gold, read_links(tmp_path / "links")).aer


def test_the_same_from_every_kind_of_file(tmp_path):
    bitext = "--bitext-source", "all.en", "--bitext-target", "all.fr"
    given = [
        (*TRAIN, *bitext),
        ("--source", "train.both", "--gold", "train.naacl", "--bitext-source", "all.both"),
        ("--source", "train.en.gz", "--target", "train.fr.gz", "--gold", "train.naacl.gz",
         "--bitext-source", "all.en.gz", "--bitext-target", "all.fr.gz"),
        ("--source", "train.both", "--gold", "train.json", *bitext, "--gold-from", "json"),
    ]  # fmt: skip
    files = []
    for number, arguments in enumerate(given):
        run("train", *arguments, *FAST, "--out", str(tmp_path / str(number)))
        files.append((tmp_path / str(number)).read_bytes())
    with open("train.en", encoding="utf-8") as stream:
        run("train", "--source", "-", *TRAIN[2:], *bitext, *FAST, "--out", str(tmp_path / "in"), given=stream.read())
    assert len({*files, (tmp_path / "in").read_bytes()}) == 1


def test_the_report(tmp_path):
    shown = run("train", *TRAIN, *FAST, "--out", str(tmp_path / "model"))
    assert "annotated_pairs" in shown
    assert "converged" in shown
    assert "\x1b" not in shown
    assert mm.load(tmp_path / "model").encoder.models.n_pairs == 20


def test_train_with_dev(tmp_path):
    dev = "--dev-source", "dev.en", "--dev-target", "dev.fr", "--dev-gold", "dev.naacl"
    several = "--C", "0.03,0.1", "--false-negative", "2", "--tol", "0.05"
    metadata = json.loads(
        run("train", *TRAIN, *dev, *several, "--out", str(tmp_path / "model"), "--json", "--jobs", "2")
    )
    assert metadata["C"] in (0.03, 0.1)
    assert metadata["annotated_pairs"] == 40
    assert 0 <= metadata["held_out_aer"] < 0.3


def test_reuse(tmp_path):
    metadata = json.loads(run("train", *TRAIN, *FAST, "--reuse", "model", "--out", str(tmp_path / "model"), "--json"))
    assert metadata["bitext_pairs"] == 260
    assert "--reuse takes existing translation models" in failed(
        "train", *TRAIN, *BITEXT, "--reuse", "model", "--out", str(tmp_path / "model")
    )


def test_extra_links(tmp_path):
    out = str(tmp_path / "model")
    run("train", *TRAIN, *FAST, "--extra", "other=train.naacl", "--reuse", "model", "--out", out)
    test = "--source", "test.both"
    with_it = run("predict", out, *test, "--extra", "other=test.pharaoh")
    (tmp_path / "with").write_text(with_it, encoding="utf-8")
    assert evaluate(read_references("test.pharaoh"), read_links(tmp_path / "with")).aer < 0.1
    assert "sentence pair 1 has no extra column 'other'" in failed("predict", out, *test)
    assert "on the command line --extra other=FILE" in failed("predict", out, *test)
    unknown = failed("predict", out, *test, "--extra", "other=test.pharaoh", "--extra", "x=test.pharaoh")
    assert "the model has no extra column 'x'; it has: other" in unknown
    assert "no extra column 'x'; it has none" in failed("predict", "model", *test, "--extra", "x=test.pharaoh")
    assert "sentence pair 1 has no extra column 'other'" in failed("predict", out, *test, "--extra", "x=test.pharaoh")
    dev = "--dev-source", "dev.both", "--dev-gold", "dev.naacl"
    assert "extra columns" in failed("train", *TRAIN, *FAST, *dev, "--extra", "other=train.naacl", "--out", out)
    both = "--extra", "o=train.naacl", "--dev-extra", "o=dev.naacl"
    run("train", *TRAIN, *FAST, *dev, *both, "--reuse", "model", "--out", out)


@pytest.mark.parametrize(("form", "empty"), [("pharaoh", ""), ("talp", ""), ("json", "[]")])
@pytest.mark.parametrize("flags", [(), ("--confidence",), ("--threshold", "0.6"), ("--confidence", "--threshold", "0")])
def test_a_line_per_line(form, empty, flags):
    """Also for empty and for too long sentences."""
    lines = run(
        "predict", "model", "--source", "odd.en", "--target", "odd.fr", "--to", form, *flags,
        warnings=LONG,
    ).split("\n")  # fmt: skip
    assert lines.pop() == ""
    assert len(lines) == 6
    assert [lines[number].replace('{"links": [], "confidence": []}', "[]") for number in (1, 2, 3, 4)] == [empty] * 4
    assert lines[0] != empty


@pytest.mark.parametrize("method", ["intersection", "union", "grow-diag-final-and", "forward", "backward"])
def test_a_line_per_line_of_the_baselines(method):
    lines = run("predict", "model", "--source", "odd.en", "--target", "odd.fr", "--method", method, warnings=LONG)
    lines = lines.split("\n")
    assert (len(lines), lines[1:5]) == (7, [""] * 4)


def test_no_lines(tmp_path):
    assert run("predict", "model", "--source", "none", "--target", "none") == ""
    assert run("predict", "model", "--source", "none", "--to", "json", "--confidence") == ""
    assert run("predict", "model", "--source", "blank.en", "--target", "blank.en") == "\n\n\n"


def test_formats_agree():
    """All formats, with and without confidences, hold the links that Python predicts."""
    aligner = mm.load("model")
    both = Path("test.both").read_text(encoding="utf-8")
    X = [tuple(line.split(" ||| ")) for line in both.splitlines()]
    wanted = aligner.predict(X)
    for form in ("pharaoh", "naacl", "talp", "json"):
        for flags in ((), ("--confidence",)):
            shown = run("predict", "model", "--source", "-", "--to", form, *flags, given=both)
            Path("found").write_text(shown, encoding="utf-8")
            found = read_links("found", format=form, sentences=20 if form == "naacl" else None)
            for one, links in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one.links, links)
                assert (one.confidence is not None) == bool(flags) or not len(links)
    (few, many) = (run("predict", "model", "--source", "test.both", "--threshold", t) for t in ("0.99", "0.01"))
    assert len(few.split()) < sum(map(len, wanted)) < len(many.split())


def test_bootstrap(tmp_path):
    links = run("bootstrap", *BITEXT, "--tol", "0.05", "--pairs", "100")
    assert links.count("\n") == 260
    (tmp_path / "links").write_text(links, encoding="utf-8")
    assert evaluate(read_references("all.pharaoh"), read_links(tmp_path / "links")).aer < 0.12
    out = str(tmp_path / "model")
    metadata = json.loads(run("bootstrap", *BITEXT, "--tol", "0.05", "--pairs", "100", "--out", out, "--json"))
    assert metadata["annotated_pairs"] == 0
    assert "held_out_aer" not in metadata
    again = run("predict", out, "--source", "all.en", "--target", "all.fr").splitlines()
    same = [first == second for first, second in zip(links.splitlines(), again, strict=True)]
    assert np.mean(same) > 0.95  # the file has no word pairs that are hardly ever linked
    baseline = run("bootstrap", *BITEXT, "--tol", "0.05", "--pairs", "10", "--method", "union")
    assert len(baseline.split()) > len(links.split())


def test_bootstrap_of_other_sentences():
    found = run(
        "bootstrap", "--bitext-source", "all.both", "--source", "odd.en", "--target", "odd.fr", "--pairs", "20",
        "--tol", "0.1", "--to", "talp", "--confidence",
        warnings=ESTIMATED + LONG,
    )  # fmt: skip
    assert found.count("\n") == 6


def test_shard_and_bootstrap_from_the_folder(tmp_path):
    """The links of the text and of the folder are the same; a folder that is there is replaced only if asked."""
    made = str(tmp_path / "shards")
    found = json.loads(run("shard", *BITEXT, "--out", made, "--json"))
    assert (found["folder"], found["bitext_pairs"], found["shards"]) == (made, 260, 1)
    few = "--tol", "0.1", "--pairs", "20"
    links = [run("bootstrap", *text, *few) for text in (BITEXT, ("--bitext-source", made))]
    assert links[0] == links[1]
    assert "overwrite" in failed("shard", *BITEXT, "--out", made)
    again = json.loads(run("shard", *BITEXT, "--out", made, "--shard-pairs", "100", "--overwrite", "--json"))
    assert again["shards"] == 3
    assert again["words"] == found["words"]
    (tmp_path / "shards" / "000001.shard").unlink()
    assert "000001.shard is missing" in failed("bootstrap", "--bitext-source", made, *few)
    assert "--bitext-target" in failed("bootstrap", "--bitext-source", made, "--bitext-target", "all.fr", *few)
    assert "nowhere.en" in failed("shard", "--bitext-source", "nowhere.en", "--out", str(tmp_path / "other"))


def test_bootstrap_on_ray_writes_links_only(tmp_path, monkeypatch):
    """As a process, whose standard output has the links of the same shards in one process, and nothing else."""
    pytest.importorskip("ray", reason="Ray is not installed")
    made = str(tmp_path / "shards")
    run("shard", *BITEXT, "--out", made, "--shard-pairs", "100")
    few = "bootstrap", "--bitext-source", made, "--tol", "0.1", "--pairs", "20", "--jobs", "1"
    command = [sys.executable, "-m", "maxmargin", "align", *few, "--ray", "local", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    bootstrap = import_module("maxmargin.tasks.alignment.cli.bootstrap")
    monkeypatch.setattr(bootstrap, "executor_of", lambda ray, workers: mm.execution.Serial(shards=workers))
    assert done.stdout == run(*few, "--workers", "2")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "--workers needs --ray" in failed(*few, "--workers", "2")


OUT = "--out", "never"
FEW = "bootstrap", *BITEXT, "--tol", "0.05", "--pairs", "20"


def test_inspection(folder):
    found = json.loads(run("inspect", "model", "--top", "3", "--json"))
    model = mm.load(folder / "model")
    assert found["metadata"] == model.describe()
    assert not any(" " in key for key in found["metadata"])
    weights = dict(zip(model.feature_names, model.weights.tolist(), strict=True))
    ranked = sorted(weights, key=weights.__getitem__)
    assert [one["feature"] for one in found["weights"]["positive"]] == ranked[:-4:-1]
    assert found["weights"]["negative"] == [{"feature": name, "weight": weights[name]} for name in ranked[:3]]
    shown = run("inspect", "model", "--top", "3")
    assert "trained_relative_gap" in shown
    assert all(f"{weights[name]:+.4f} {name}" in re.sub(" +", " ", shown) for name in (*ranked[:3], *ranked[-3:]))
    assert "train.en is not a maxmargin model file" in failed("inspect", "train.en")


BARE = "never was written with translation models, but without weights: --reuse never uses them again"
NO_LINKS = "no links were written; with --out what was learned so far is kept"
BEST = "never was written with the best weights so far"


@pytest.mark.parametrize(
    ("at", "after", "arguments", "left"),
    [
        (1, 0, ("train", *TRAIN, *FAST, *OUT, "--start", "none"), BARE),  # in the first run, which chooses settings
        (1, 0, ("train", *TRAIN, *FAST, *OUT), BEST),  # from weights of the package
        (3, 1, ("train", *TRAIN, *FAST, *OUT, "--start", "none"), BEST),  # in a later one
        (13, 0, ("train", *TRAIN, *FAST, *OUT, "--start", "none"), BARE),  # in the last three, for the model itself
        (14, 0, ("train", *TRAIN, *FAST, *OUT, "--start", "none"), BEST),
        (1, 0, (*FEW, *OUT), BEST),
        (1, 0, FEW, NO_LINKS),
    ],
)
def test_what_an_interruption_leaves(at, after, arguments, left, folder, monkeypatch):
    """The best weights so far, or the translation models, which took the time; they can be used again."""
    training = import_module("maxmargin.training.train")
    solve, runs = training.solve, []

    def interrupt(record):
        if len(runs) == at and record.iteration >= after:
            raise KeyboardInterrupt

    def watched(*given, callbacks, **settings):
        runs.append(given)
        return solve(*given, callbacks=[*callbacks, interrupt], **settings)

    with monkeypatch.context() as patch:
        patch.setattr(training, "solve", watched)
        answer = runner.invoke(app, ["align", *arguments])
    assert (answer.exit_code, answer.stdout, len(runs)) == (130, "", at)
    last = answer.stderr.splitlines()[-1]
    if left == NO_LINKS:
        assert last == f"interrupted; {left}"
        return
    assert last.startswith(f"interrupted; {left}; never.checkpoint")
    assert last.endswith("is kept: the same command with --resume resumes from it")
    model = mm.load("never")
    assert model.calibrated == (model.metadata["confidences"] == "calibrated")
    assert model.metadata["status"] == "interrupted"
    assert model.trained == (left == BEST)
    if left == BARE:
        assert "no weights, as its training was interrupted" in failed("predict", "never", "--source", "test.both")
        assert run("predict", "never", "--source", "test.both", "--method", "intersection").count("\n") == 20
        run("train", *TRAIN, "--reuse", "never", *FAST, "--out", "again")
    else:
        assert run("predict", "never", "--source", "test.both").count("\n") == 20
    for one in Path().glob("never*"):
        one.unlink()


def test_models_of_an_interrupted_aligner(corpus, few, monkeypatch):
    """In Python they are in models_."""
    monkeypatch.setattr(import_module("maxmargin.tasks.alignment.training"), "choose_and_train", interrupted)
    aligner = WordAligner()
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(few[0][:5], few[1][:5])
    assert aligner.models_.n_pairs == 5


def test_the_warning_of_an_interrupted_choice(few, models, monkeypatch):
    """It is scikit-learn's, which filters are written for; the model says that it is not calibrated."""
    training = import_module("maxmargin.training.train")
    solve, runs = training.solve, []

    def watched(*given, **settings):
        runs.append(given)
        if len(runs) > 3:
            raise KeyboardInterrupt
        return solve(*given, **settings)

    monkeypatch.setattr(training, "solve", watched)
    aligner = WordAligner(models=models, folds=2, tol=0.1, C=0.1, false_negative=(1, 2))
    with pytest.warns(ConvergenceWarning, match="interrupted while choosing settings"):
        aligner.fit(few[0][:8], few[1][:8])
    assert aligner.model_.metadata["confidences"] == "not calibrated"


def interrupted(*given):
    raise KeyboardInterrupt


def test_a_warning_says_of_which_run(folder, monkeypatch):
    """That one of the runs that chose settings did not converge is no news of the last one."""
    training = import_module("maxmargin.training.train")
    solve, runs = training.solve, []

    def unsettled(*given, stop, **settings):
        runs.append(given[0].n_examples)
        short = len(runs) == 2 or runs.count(20) == 1  # one that chooses settings by folds, and the first on all pairs
        return solve(*given, stop=replace(stop, max_iter=1) if short else stop, **settings)

    monkeypatch.setattr(training, "solve", unsettled)
    answer = runner.invoke(app, ["align", "train", *TRAIN, *FAST, "--out", "unsettled"])
    assert answer.exit_code == 0
    first, second = answer.stderr.splitlines()
    assert first.startswith("warning: while choosing settings, at C=0.1 and false_negative=2: ")
    assert second.startswith("warning: in a round before the last: ")
    assert re.search(r"status +converged", answer.stdout)


def test_baselines_do_not_train(folder, monkeypatch):
    """bootstrap --method learns translation models alone."""
    whole = run(*FEW, "--method", "intersection")
    monkeypatch.setattr(import_module("maxmargin.training.train"), "solve", interrupted)
    assert run(*FEW, "--method", "intersection") == whole
    assert whole.count("\n") > 20


def test_gold_in_the_bitext_counts_once(folder):
    """The bitext has all pairs, the annotated ones among them."""
    found = json.loads(run("train", *TRAIN, *BITEXT, *FAST, "--out", "once", "--json"))
    assert found["bitext_pairs"] == 260


@pytest.mark.parametrize(("sides", "said"), [(("fr", "en"), "if the sides are swapped"), (("en", "fr"), "")])
def test_swapped_sides(sides, said, folder):
    answer = runner.invoke(
        app, ["align", "predict", "model", "--source", f"all.{sides[0]}", "--target", f"all.{sides[1]}"]
    )
    assert answer.exit_code == 0
    assert said in answer.stderr
    assert bool(said) == bool(answer.stderr)


def test_lines_of_progress(folder, monkeypatch):
    """Off a terminal, with --verbose: a line for every stage, and in between."""
    monkeypatch.setattr("maxmargin.tasks.common.progress.EVERY", 0.01)
    arguments = ["align", "train", *TRAIN, *FAST, "--out", "watched"]
    quiet = runner.invoke(app, arguments)
    answer = runner.invoke(app, [*arguments, "--verbose"])
    assert (quiet.exit_code, answer.exit_code) == (0, 0)
    assert quiet.stderr == ""
    lines = answer.stderr.splitlines()
    assert all(re.fullmatch(r"\d+:\d\d [a-z ]+(, \d+% done \(\d+ of \d+\))?", line) for line in lines)
    for stage in ("translation models", "choosing settings", "training"):
        assert any(f" {stage}, 0% done (0 of " in line for line in lines)
    assert len(lines) > 4


@pytest.mark.parametrize("workers", ["1", "2"])
def test_lines_of_progress_count_all_blocks(workers, folder, monkeypatch):
    monkeypatch.setattr("maxmargin.tasks.common.progress.EVERY", 0.002)
    answer = runner.invoke(
        app, ["align", "predict", "model", *PAIRS, "--block", "4", "--workers", workers, "--verbose"]
    )
    assert answer.exit_code == 0
    done = [int(found) for found in re.findall(r"^\d+:\d\d aligning, (\d+) done$", answer.stderr, re.MULTILINE)]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] > 4  # more than one block


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TRAIN[:2], "--target", "short.fr", "--gold", "links20", *OUT), "train.en has 20 lines and short.fr has 1"),
        (("--source", "train.en", "--target", "missing", "--gold", "links20", *OUT), "missing: No such file"),
        (("--source", "train.en", "--target", "folder", "--gold", "links20", *OUT), "folder: Is a directory"),
        ((*TRAIN[:2], "--target", "latin.fr", "--gold", "links20", *OUT), "latin.fr, line 8: byte 0xe9 is not UTF-8"),
        (("--source", "train.en", "--gold", "links20", *OUT), "train.en, line 1: no ' ||| '"),
        ((*TRAIN[:4], "--gold", "outside", *OUT), "outside, line 5: link 0-999 lies outside sentence pair 5"),
        ((*TRAIN[:4], "--gold", "missing", *OUT), "missing: No such file"),
        ((*TRAIN[:4], "--gold", "words", *OUT), "words, line 1: "),
        ((*TRAIN[:4], "--gold", "all.pharaoh", *OUT), "all.pharaoh has links of 260 sentence pairs and there are 20"),
        ((*TRAIN[:4], "--gold", "all.naacl", *OUT), "all.naacl, line "),
        ((*TRAIN, "--bitext-target", "all.fr", *OUT), "--bitext-target needs --bitext-source"),
        ((*TRAIN, *BITEXT[:3], "short.fr", *OUT), "all.en has 260 lines and short.fr has 1"),
        ((*TRAIN, "--dev-gold", "dev.naacl", *OUT), "--dev-source and --dev-gold belong together"),
        ((*TRAIN, "--dev-source", "dev.both", *OUT), "--dev-source and --dev-gold belong together"),
        ((*TRAIN, "--dev-target", "dev.fr", *OUT), "--dev-target needs --dev-source"),
        ((*TRAIN, "--dev-source", "dev.both", "--dev-gold", "outside", *OUT), "outside, line 5"),
        ((*TRAIN, "--dev-extra", "x=links20", *OUT), "--dev-extra needs --dev-source"),
        ((*TRAIN, "--extra", "links20", *OUT), "--extra links20: write NAME=FILE"),
        ((*TRAIN, "--extra", "=links20", *OUT), "--extra =links20: write NAME=FILE"),
        ((*TRAIN, "--extra", "x=", *OUT), "--extra x=: write NAME=FILE"),
        ((*TRAIN, "--extra", "x=links20", "--extra", "x=links20", *OUT), "the name x is given twice"),
        ((*TRAIN, "--extra", "x=outside", *OUT), "outside, line 5"),
        ((*TRAIN, "--extra", "x=missing", *OUT), "missing: No such file"),
        (("--source", "-", "--target", "-", "--gold", "links20", *OUT), "standard input (-) can be read only once"),
        (("--source", "-", "--target", "train.fr", "--gold", "-", *OUT), "standard input (-) can be read only once"),
        (("--source", "-", *TRAIN[2:], "--extra", "x=-", *OUT), "standard input (-) can be read only once"),
        ((*TRAIN, "--out", "folder"), "folder is a folder; give --out a file"),
        ((*TRAIN, "--out", "missing/model"), "missing/model: its folder does not exist"),
        ((*TRAIN, "--reuse", "train.en", *OUT), "train.en is not a maxmargin model file"),
        ((*TRAIN, "--reuse", "missing", *OUT), "missing: No such file"),
        ((*TRAIN, "--C", "-1", *OUT), "C must be a finite number > 0"),
        ((*TRAIN, "--C", "nan", *OUT), "C must be a finite number > 0"),
        ((*TRAIN, "--C", "0.1,x", *OUT), "--C 0.1,x: give a number, or several separated by commas, as 0.1,0.3,1"),
        ((*TRAIN, "--false-negative", "", *OUT), "--false-negative : give a number, or several separated by commas"),
        ((*TRAIN, "--false-negative", "0", *OUT), "false_negative must be a finite number > 0"),
        ((*TRAIN, "--jobs", "0", *OUT), "n_jobs must be None or a non-zero integer"),
        (("--source", "none", "--gold", "none", *OUT), "no sentence pairs to learn from"),
    ],
)  # fmt: skip
def test_refused_train(arguments, message, folder):
    assert message in failed("train", *arguments)
    assert not (folder / "never").exists()


PAIRS = "--source", "test.en", "--target", "test.fr"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing", *PAIRS), "missing: No such file"),
        (("folder", *PAIRS), "folder: Is a directory"),
        (("test.en", *PAIRS), "test.en is not a maxmargin model file"),
        (("matching", *PAIRS), "matching cannot be loaded: it holds a model of kind 'matching'"),
        (("cut", *PAIRS), "cut is truncated or damaged"),
        (("model", "--source", "test.en", "--target", "short.fr"), "test.en has 20 lines and short.fr has 1"),
        (("model", "--source", "test.en", "--target", "latin.fr"), "latin.fr, line 8: byte 0xe9 is not UTF-8"),
        (("model", "--source", "test.en"), "test.en, line 1: no ' ||| '"),
        (("model", "--source", "missing"), "missing: No such file"),
        (("model", "--source", "-", "--target", "-"), "standard input (-) can be read only once"),
        (("model", "--source", "-", "--target", "test.fr", "--extra", "x=-"), "standard input (-) can be read"),
        (("model", *PAIRS, "--extra", "links20"), "--extra links20: write NAME=FILE"),
        (("model", *PAIRS, "--extra", "x=outside"), "outside, line 5"),
        (("model", *PAIRS, "--method", "union", "--confidence"), "--method union has no confidences"),
        (("model", *PAIRS, "--jobs", "0"), "n_jobs must be None or a non-zero integer"),
    ],
)  # fmt: skip
def test_refused_predict(arguments, message, folder):
    if not (folder / "matching").exists():
        mm.MatchingSVM().fit([np.ones((2, 2, 1))], [[(0, 0)]]).save(folder / "matching")
        (folder / "cut").write_bytes((folder / "model").read_bytes()[:-1])
    assert message in failed("predict", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bitext-source", "missing"), "missing: No such file"),
        (("--bitext-source", "all.en", "--bitext-target", "short.fr"), "all.en has 260 lines and short.fr has 1"),
        (("--bitext-source", "-", "--bitext-target", "-"), "standard input (-) can be read only once"),
        (("--bitext-source", "-", "--source", "-"), "standard input (-) can be read only once"),
        ((*BITEXT, "--target", "test.fr"), "--target needs --source"),
        ((*BITEXT, "--out", "never", "--source", "test.both"), "--out writes a model, --source asks for links"),
        ((*BITEXT, *OUT, "--confidence"), "--out writes a model, --confidence is about links; omit one of them"),
        ((*BITEXT, *OUT, "--threshold", "0"), "--out writes a model, --threshold is about links"),
        ((*BITEXT, *OUT, "--to", "pharaoh"), "--out writes a model, --to is about links"),
        ((*BITEXT, *OUT, "--method", "union"), "--out writes a model, --method is about links"),
        ((*BITEXT, "--json"), "--json reports on a model, but without --out links are written"),
        ((*BITEXT, "--out", "folder"), "folder is a folder"),
        ((*BITEXT, "--out", "missing/model"), "its folder does not exist"),
        (("--bitext-source", "none"), "no pair with 1 to 1000 words on both sides"),
        (("--bitext-source", "blank.en", "--bitext-target", "blank.en"), "no pair with 1 to 1000 words on both sides"),
        ((*BITEXT, "--reuse", "none"), "none is not a maxmargin model file"),
        ((*BITEXT, "--method", "union", "--threshold", "0.5", "--pairs", "5"), "--method union has no confidences"),
    ],
)
def test_refused_bootstrap(arguments, message, folder):
    assert message in failed("bootstrap", *arguments)
    assert not (folder / "never").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model", *PAIRS, "--threshold", "1.5"),
        ("predict", "model", *PAIRS, "--threshold", "-0.1"),
        ("predict", "model", *PAIRS, "--to", "xml"),
        ("predict", *PAIRS),
        ("predict", "model"),
        ("train", *TRAIN),
        ("train", *TRAIN, *OUT, "--fertility", "0"),
        ("train", *TRAIN, *OUT, "--seed", "-1"),
        ("train", *TRAIN, *OUT, "--tol", "nan"),
        ("predict", "model", *PAIRS, "--threshold", "nan"),
        ("bootstrap",),
        ("bootstrap", *BITEXT, "--pairs", "0"),
    ],
)
def test_usage_errors(arguments):
    answer = runner.invoke(app, ["align", *arguments])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert "Usage" in answer.stderr
    assert isinstance(answer.exception, SystemExit)


def test_a_folder_that_cannot_be_written_to(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for verb in (("train", *TRAIN), ("bootstrap", *BITEXT)):
        assert failed(*verb, *OUT) == "error: never: no permission to write to its folder; give another --out\n"


def test_warnings_come_before_the_error(monkeypatch):
    def full(*args, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(blocks, "write_links", full)
    answer = runner.invoke(app, ["align", "predict", "model", "--source", "odd.en", "--target", "odd.fr"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == LONG + "error: No space left on device; free some space\n"


def test_predictions_that_are_interrupted(monkeypatch):
    def stop(*args, **settings):
        raise KeyboardInterrupt

    for module in (blocks, options):
        monkeypatch.setattr(module, "write_links", stop)
    for verb in (("predict", "model", *PAIRS), ("symmetrize", "--forward", "links20", "--backward", "links20")):
        answer = runner.invoke(app, ["align", *verb])
        assert (answer.exit_code, answer.stderr) == (130, "interrupted; the output is incomplete\n")


def test_estimated_confidences_are_told(tmp_path):
    model = str(tmp_path / "model")
    run(*FEW, "--out", model, "--C", "0.05", "--false-negative", "3")
    assert (mm.load(model).metadata["C"], mm.load(model).metadata["false_negative"]) == (0.05, 3.0)
    answer = runner.invoke(app, ["align", "predict", model, *PAIRS, "--confidence"])
    assert answer.exit_code == 0
    assert "warning: confidences are estimated from other languages: take them as a ranking" in answer.stderr
    assert "confidences" not in runner.invoke(app, ["align", "predict", model, *PAIRS]).stderr


def test_settings_that_are_not_chosen_are_told(tmp_path):
    one = ("--source", "one.both", "--gold", "one.pharaoh", "--reuse", "model", "--C", "0.1,0.2")
    Path("one.both").write_text("the house ||| la maison\n", encoding="utf-8")
    Path("one.pharaoh").write_text("0-0 1-1\n", encoding="utf-8")
    answer = runner.invoke(app, ["align", "train", *one, "--out", str(tmp_path / "model")])
    assert answer.exit_code == 0
    assert answer.stderr.startswith(
        "warning: there are no held-out pairs to choose settings by: C=0.2 and false_negative=2 are"
    )


def test_a_file_that_cannot_be_written(monkeypatch, tmp_path):
    from maxmargin import model_file

    def full(*args, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_file, "replacing", full)
    out = str(tmp_path / "model")
    answer = runner.invoke(app, ["align", "train", *TRAIN, *FAST, "--reuse", "model", "--out", out])
    said = answer.stderr.splitlines()
    assert answer.exit_code == 2
    assert said[-1].startswith(f"error: {out}: No space left on device; free some space; nothing was written")
    assert all("the checkpoint could not be written: No space left on device; train" in line for line in said[:-1])


def test_as_processes(folder, tmp_path):
    out = str(tmp_path / "model")
    made = commands.process("align", "train", *TRAIN, *BITEXT, *FAST, "--out", out)
    assert (made.returncode, made.stderr) == (0, "")
    assert "\x1b" not in made.stdout
    assert mm.load(out).metadata["status"] == "converged"
    text = (folder / "test.en").read_text()
    refused = commands.process("align", "predict", out, "--source", "-", "--target", "latin.fr", given=text)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: latin.fr, line 8: ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_reader_that_stops_early():
    """As in ``maxmargin align predict ... | head -1``, with much or little to write: the command ends, that is all."""
    code = "from maxmargin.cli import app; app()"
    # More than a pipe holds (64 KiB): else the command may be done before its reader has gone.
    Path("much.both").write_text(20 * Path("all.both").read_text(encoding="utf-8"), encoding="utf-8")
    much = ["predict", "model", "--source", "much.both", "--threshold", "0"]
    little = ["symmetrize", "--forward", "links20", "--backward", "links20"]
    report = ["evaluate", "--gold", "links20", "--predicted", "links20", "--json"]
    for verb in (much, little, report):
        command = [sys.executable, "-c", code, "align", *verb]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            if verb is much:
                assert running.stdout.readline()
            running.stdout.close()
            complaint = running.stderr.read()
        assert (running.returncode, complaint) == (141, "")


# ---- score, lexicon, update


def test_score(folder):
    values = run("score", "model", "--source", "test.both").split()
    found = mm.load("model").score_pairs(read_bitext("test.en", "test.fr"))
    assert values == [f"{value:.4f}" for value in found]
    assert run("score", "model", "--source", "test.en", "--target", "test.fr").split() == values


def test_lexicon(folder):
    rows = [line.split("\t") for line in run("lexicon", "model", "--min-probability", "0.3", "--top", "2").splitlines()]
    assert len(rows) > 100
    assert all(len(row) == 5 and max(float(row[2]), float(row[3])) >= 0.3 for row in rows)
    (row,) = [line.split("\t") for line in run("lexicon", "model", "--source-word", "House", "--top", "1").splitlines()]
    assert row[:2] == ["house", "maison"]
    assert "no translation of 'zorp' has a probability of at least 0.01" in failed(
        "lexicon", "model", "--source-word", "zorp"
    )
    lines = run("lexicon", "model", "--moses", "lex").splitlines()
    assert [line.split(":")[0] for line in lines] == ["wrote lex.f2e", "wrote lex.e2f"]
    assert "maison house" in Path("lex.f2e").read_text(encoding="utf-8")
    assert "house maison" in Path("lex.e2f").read_text(encoding="utf-8")


def test_files_of_links_are_not_overwritten(folder):
    before = Path("outside").read_bytes()
    extra = "--extra", "x=outside", "--out", "outside"
    for verb in (("train", *TRAIN), ("predict", "model", *PAIRS), ("score", "model", *PAIRS)):
        assert "--out outside is also an input" in failed(*verb, *extra)
    assert Path("outside").read_bytes() == before


def test_update(folder):
    given = "--bitext-source", "news.both", "--out", "updated", "--json"
    Path("news.both").write_text("the zorp is there ||| la zorpe est là\na zorp ||| une zorpe\n" * 2, encoding="utf-8")
    found = json.loads(run("update", "model", *given))
    assert found["new_pairs"] == 2
    assert (found["new_source_words"], found["new_target_words"]) == (1, 1)
    assert run("lexicon", "updated", "--source-word", "zorp", "--top", "1").startswith("zorp\tzorpe\t")
    again = json.loads(run("update", "updated", "--bitext-source", "news.both", "--out", "again", "--json"))
    assert again["new_pairs"] == 0
    small = json.loads(run("update", "model", *given, "--min-probability", "0.5"))
    assert small["megabytes"] < found["megabytes"]
    message = failed("update", "model", "--bitext-source", "news.both", "--out", "news.both")
    assert "is also an input" in message
