"""The commands train, predict, inspect and export, on made lists and lattices."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import failed, run, runner

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.cli import app
from maxmargin.tasks.reranking import (
    made_lattices,
    made_lists,
    made_transcripts,
    read_nbest,
    write_lattices,
    write_nbest,
    write_texts,
)

TRAIN = ("rerank", "train", "--folds", "2")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of each kind with their references, a lattice file, and models."""
    folder = tmp_path_factory.mktemp("rerank")
    for name, lists in {"train": made_lists(30, 0, size=10), "test": made_lists(10, 1, size=10)}.items():
        assert lists.references is not None
        write_nbest(lists, folder / f"{name}.gz")
        for number in range(2):
            write_texts([one[number] for one in lists.references], folder / f"{name}.ref{number}")
    write_nbest(made_transcripts(20, 0, size=10), folder / "speech.jsonl", "jsonl")
    write_lattices(made_lattices(12, 0), folder / "lattices.jsonl")
    run(*TRAIN, *given(folder), "--method", "mira", "--ngrams", "1", "--out", str(folder / "model"))
    return folder


def given(folder: Path, name: str = "train") -> list[str]:
    return ["--nbest", str(folder / f"{name}.gz"), "--references", *(str(folder / f"{name}.ref{i}") for i in range(2))]


def test_train_says_what_is_gained(files: Path, tmp_path: Path) -> None:
    text = run(*TRAIN, *given(files), "--method", "pro", "--C", "0.01,0.1", "--out", str(tmp_path / "model"))
    assert "pro: held-out BLEU" in text
    assert "chosen" in text
    assert "chrF2 (not tuned)" in text
    assert text.splitlines()[-1].endswith(")")
    assert "the first hypothesis of each list (BLEU " in text
    options = "--norm", "l1", "--levels", "2", "--C", "10", "--out", str(tmp_path / "model")
    run(*TRAIN, *given(files), "--method", "lp7", *options)
    found = json.loads(
        run(*TRAIN, *given(files), "--method", "mert", "--restarts", "2", "--json", "--out", str(tmp_path / "model"))
    )
    assert found["trained_method"] == "mert"
    assert found["trained_held_out"][0]["metric"] == "BLEU"
    assert mm.load(tmp_path / "model").describe() == {name: one for name, one in found.items() if name != "model"}


def test_train_says_what_is_not_known(files: Path, tmp_path: Path) -> None:
    options = "rerank", "train", "--method", "max-margin", "--folds", "0", "--out", str(tmp_path / "model")
    assert run(*options, *given(files)).startswith("nothing was held out")
    assert "held_out" not in run("rerank", "inspect", str(tmp_path / "model"))
    lists = read_nbest(files / "train.gz")
    same = tmp_path / "same.nbest"
    write_nbest(replace(lists, names=("one",), values=np.ones((lists.n_hypotheses, 1))), same)
    text = run(*options, "--nbest", str(same), *given(files)[2:])
    assert text.splitlines()[-1].startswith("warning: all weights are zero")


def test_predict_writes_the_best_texts(files: Path, tmp_path: Path) -> None:
    model, lists = mm.load(files / "model"), read_nbest(files / "test.gz")
    nbest = str(files / "test.gz")
    plain = run("rerank", "predict", str(files / "model"), "--nbest", nbest)
    assert plain.splitlines() == model.best_texts(lists)  # type: ignore[attr-defined]
    scored = [
        line.split("\t")
        for line in run("rerank", "predict", str(files / "model"), "--nbest", nbest, "--scores").splitlines()
    ]
    assert [text for text, _ in scored] == plain.splitlines()
    np.testing.assert_array_equal([float(score) for _, score in scored], [one.max() for one in model.scores(lists)])  # type: ignore[attr-defined]
    out = tmp_path / "best.gz"
    run("rerank", "predict", str(files / "model"), "--nbest", nbest, "--k-best", "3", "--out", str(out))
    again = read_nbest(out)
    assert again.sizes.tolist() == [3] * 10
    wanted = model.k_best_texts(lists, 3)  # type: ignore[attr-defined]
    assert list(again.texts) == [text for one in wanted for text, _ in one]
    np.testing.assert_allclose(again.totals, [score for one in wanted for _, score in one])


def test_standard_input(files: Path) -> None:
    lists = gzip.decompress((files / "test.gz").read_bytes()).decode()
    found = run("rerank", "predict", str(files / "model"), "--nbest", "-", given=lists)
    assert found == run("rerank", "predict", str(files / "model"), "--nbest", str(files / "test.gz"))


def test_word_error_rates_of_json_lines(files: Path, tmp_path: Path) -> None:
    text = run(*TRAIN, "--nbest", str(files / "speech.jsonl"), "--metric", "wer", "--out", str(tmp_path / "model"))
    assert "WER" in text
    assert "CER (not tuned)" in text


def test_a_file_of_gains_is_a_metric(files: Path, tmp_path: Path) -> None:
    lists = read_nbest(files / "train.gz")
    gains = tmp_path / "gains,1"  # a name that a column of several could have
    gains.write_text("".join(f"{value}\n" for value in lists.values[:, 1]))
    options = "--nbest", str(files / "train.gz"), "--metric", str(gains), "--method", "mert"
    text = run(*TRAIN, *options, "--out", str(tmp_path / "model"))
    assert "gain" in text
    assert re.search(r"\(gain [+-]\d+\.\d{4}, p = ", text)  # gains may be small
    weights = json.loads(run("rerank", "export", str(tmp_path / "model"), "--json"))
    assert set(weights) == set(lists.names)
    gains.write_text("".join("1 2\n" for _ in lists.texts))
    assert "give one gain for each hypothesis" in failed(*TRAIN, *options, "--out", str(tmp_path / "model"))
    assert "is also an input; give another --out" in failed(*TRAIN, *options, "--out", str(gains))
    assert gains.read_text().startswith("1 2\n")


def test_the_plain_layout_keeps_its_options(files: Path, tmp_path: Path) -> None:
    lists = made_lists(12, 0, size=5)
    assert lists.references is not None
    lines, rows = [], []
    for i in range(12):  # short lists are padded
        own = range(int(lists.offsets[i]), int(lists.offsets[i + 1]))
        lines += [lists.texts[at] for at in own] + [""] * (5 - len(own))
        rows += ["\t".join(map(str, lists.values[at])) for at in own] + ["nan"] * (5 - len(own))
    (tmp_path / "best").write_bytes("".join(f"{line} é\n" if line else "\n" for line in lines).encode("latin-1"))
    (tmp_path / "values").write_text("\n".join(rows) + "\n")
    write_texts([one[0] for one in lists.references], tmp_path / "gold")
    options = ["--nbest", str(tmp_path / "best"), "--features", str(tmp_path / "values")]
    gold = ["--references", str(tmp_path / "gold"), "--encoding", "latin-1"]
    run(
        *TRAIN,
        *options,
        *gold,
        "--method",
        "perceptron",
        "--positive",
        "values,1",
        "values,2",
        "--out",
        str(tmp_path / "m"),
    )
    found = run("rerank", "predict", str(tmp_path / "m"), *options)  # list size and encoding as in training
    assert len(found.splitlines()) == 12
    assert all(line.endswith(" é") for line in found.splitlines())


def test_lattices(files: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text('{"acoustic": 1, "lm": 3}')
    lattices, model = str(files / "lattices.jsonl"), str(tmp_path / "model")
    options = "--lattices", lattices, "--metric", "wer", "--weights", str(tmp_path / "weights")
    for method in ("mert", "mira"):
        assert "WER" in run(*TRAIN, *options, "--method", method, "--out", model)
    best = run("rerank", "predict", model, "--lattices", lattices).splitlines()
    assert len(best) == 12
    (tmp_path / "weights").write_text(f'{{"lm": {10**400}}}')
    assert "not an object of names and finite numbers" in failed(*TRAIN, *options, "--out", model)
    several = run("rerank", "predict", model, "--lattices", lattices, "--k-best", "2").splitlines()
    assert [line.split(" ||| ")[1] for line in several[::2]] == best


def test_inspect(files: Path) -> None:
    text = run("rerank", "inspect", str(files / "model"), "--top", "3")
    assert "trained_method" in text
    assert "held out: BLEU" in text
    found = json.loads(run("rerank", "inspect", str(files / "model"), "--json"))
    assert found["metadata"]["dense"] == ["tm", "lm", "distortion", "length"]
    assert set(found["weights"]) == {"positive", "negative"}


def test_export(files: Path, tmp_path: Path) -> None:
    model = mm.load(files / "model")
    weights = json.loads(run("rerank", "export", str(files / "model"), "--json"))
    assert weights == {**model.dense_weights, **model.sparse_weights()}  # type: ignore[attr-defined]
    both = "--sparse", str(tmp_path / "ini"), "--out", str(tmp_path / "ini")
    assert "give two files" in failed("rerank", "export", str(files / "model"), "--moses-ini", *both)
    assert "no features of Moses; give --json" in failed("rerank", "export", str(files / "model"), "--moses-ini")


def test_export_to_moses(files: Path, tmp_path: Path) -> None:
    lists, path = read_nbest(files / "train.gz"), str(tmp_path / "model")
    counts = sp.csr_array([[float(text.count("a"))] for text in lists.texts])
    write_nbest(replace(lists, sparse_names=("pp_a",), sparse=counts), tmp_path / "sparse.gz")
    options = "--references", str(files / "train.ref0"), "--method", "mira", "--out", path
    run(*TRAIN, "--nbest", str(tmp_path / "sparse.gz"), *options)
    assert "give --sparse FILE" in failed("rerank", "export", path, "--moses-ini")
    lines = run("rerank", "export", path, "--moses-ini", "--sparse", str(tmp_path / "weights")).splitlines()
    weights = json.loads(run("rerank", "export", path, "--json"))
    assert lines[0] == "[weight]"
    assert float(lines[1].removeprefix("tm= ")) == weights["tm"]
    assert lines[-2:] == ["[weight-file]", str(tmp_path / "weights")]
    assert (tmp_path / "weights").read_text() == f"pp_a {weights['pp_a']!r}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "mart"], "no method is called 'mart'"),
        (["--metric", "blue"], "neither a file nor one of bleu"),
        (["--method", "pro", "--norm", "l1"], "pro has no setting norm"),
        (["--levels", "2", "--within", "0.1"], "give one of them"),
        (["--levels", "2"], "levels and within choose several good hypotheses"),
        (["--C", "x"], "--C x: give a number"),
        (["--normalize", "unit"], "normalize must be one of"),
        (["--positive", "x"], "no dense feature is called 'x'"),
        (["--phrases"], "no phrase segments"),
        (["--features", "nowhere"], "nowhere: No such file"),
        (["--lattices", "x"], "give --nbest or --lattices, one of them"),
        (["--weights", "x"], "--weights is for lattices"),
    ],
)
def test_bad_options(options: list[str], message: str, files: Path, tmp_path: Path) -> None:
    assert message in failed(*TRAIN, *given(files), *options, "--out", str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_bad_files(files: Path, tmp_path: Path) -> None:
    out = "--out", str(tmp_path / "model")
    bad = tmp_path / "bad"
    bad.write_text("0 ||| a b ||| lm= 1 tm= 2 ||| 3\n0 ||| a ||| lm= 1 ||| 3\n")
    gold = "--references", str(files / "train.ref0")
    assert f"{bad}, line 2: " in failed(*TRAIN, "--nbest", str(bad), *gold, *out)
    assert "has no references; give --references" in failed(*TRAIN, "--nbest", str(files / "train.gz"), *out)
    wrong = failed(*TRAIN, "--nbest", str(files / "test.gz"), *gold, *out)
    assert "10 lists" in wrong
    assert "30 references" in wrong
    model = str(files / "model")
    other = tmp_path / "other"
    other.write_text("0 ||| a ||| lm= 1 ||| 3\n")
    assert "lack the feature 'tm'" in failed("rerank", "predict", model, "--nbest", str(other))
    for arguments in (["--nbest", str(other), "--lattices", "x"], ["--lattices", "x", "--features", "y"]):
        assert "lattices" in failed("rerank", "predict", model, *arguments)
    bad.write_text("[1]")
    lattices = "--lattices", str(files / "lattices.jsonl"), "--weights", str(bad)
    assert "not an object of names and finite numbers" in failed(*TRAIN, *lattices, *out)
    bad.write_text('{"none": 1}')
    assert "no feature of the lattices is called 'none'" in failed(*TRAIN, *lattices, *out)
    assert "give --moses-ini or --json" in failed("rerank", "export", model)
    assert "is also an input" in failed(*TRAIN, *given(files), "--out", str(files / "train.gz"))


def test_help_names_every_verb() -> None:
    text = runner.invoke(app, ["rerank", "--help"]).stdout
    assert all(verb in text for verb in ("train", "predict", "evaluate", "inspect", "export"))


def test_many_values_end_at_the_next_option(files: Path, tmp_path: Path) -> None:
    hypotheses = tmp_path / "hypotheses"
    write_texts(read_nbest(files / "test.gz").texts[::10], hypotheses)
    gold: list[Any] = [str(files / "test.ref0"), str(files / "test.ref1")]
    options = ["--hypotheses", str(hypotheses), "--metric", "bleu", "--json"]
    found = [
        run("rerank", "evaluate", "--references", *gold, *options),
        run("rerank", "evaluate", "--references", gold[0], "--references", gold[1], *options),
    ]
    assert found[0] == found[1]
    assert json.loads(found[0])["references"] == 2
