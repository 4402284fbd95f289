"""The command line, through its parser and as a process."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from commands import failed, run, runner
from data import KINDS, PickOne, picks
from sealed_files import parts, sealed

import maxmargin as mm
from maxmargin._terminal import shown
from maxmargin.cli import app
from maxmargin.tasks.alignment import WordAligner, load_corpus


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A saved model of each kind, and one of a user-defined structure."""
    folder = tmp_path_factory.mktemp("models")
    for kind, (estimator, data) in KINDS.items():
        estimator(C=0.5).fit(*data(3)).save(folder / kind)
    mm.StructuredSVM(PickOne).fit(*picks()).save(folder / "parts")
    return folder


def test_version():
    assert run("version") == run("--version") == f"{mm.__version__}\n"


def test_quiet_commands_print_no_notes(tmp_path):
    (tmp_path / "tokens").write_text("the DT\ndog NN\n\na DT\ncat NN\n")
    command = ["tag", "train", str(tmp_path / "tokens"), "--out", str(tmp_path / "model"), "--resume"]
    note = f"note: training starts from the beginning: there is no {tmp_path / 'model'}.checkpoint\n"
    for quiet in (True, False):  # in turn: one command does not make the next one quiet
        answer = runner.invoke(app, [*command, "--quiet"] if quiet else command)
        assert (answer.exit_code, answer.stderr) == (0, "" if quiet else note)
    assert "No such file" in failed("tag", "predict", "none", "none", "--quiet")  # errors stay


def test_every_command_of_a_task_can_be_quiet():
    import typer

    for task in ("tag", "align", "segment", "rerank"):
        for command in typer.main.get_command(app).commands[task].commands.values():
            assert "--quiet" in [name for one in command.params for name in one.opts], command.name


@pytest.mark.parametrize("kind", [*KINDS, "parts"])
def test_inspect(models, kind):
    text = run("inspect", str(models / kind))
    assert kind in text
    assert "converged" in text


@pytest.mark.parametrize("kind", [*KINDS, "parts"])
def test_inspect_as_json(models, kind):
    metadata = json.loads(run("inspect", str(models / kind), "--json"))
    assert metadata["kind"] == kind
    assert not any(" " in key for key in metadata)
    assert metadata["weights"] > 0
    assert metadata["trained_status"] == "converged"
    assert metadata["trained_C"] == (1.0 if kind == "parts" else 0.5)
    assert ("labels" in metadata) == (kind in ("chain", "grammar", "segments", "tree"))


def test_values_in_the_table():
    values = (0.123456789, 1e-12, 1.0, 3, True, None, "None", [], ["a", None, 0.00012345678], "a\nb")
    found = [shown(value) for value in values]
    assert found == ["0.1235", "1e-12", "1", "3", "True", "-", "None", "-", "a, -, 0.0001235", "a\\nb"]


def test_inspect_a_word_aligner(tmp_path):
    corpus = load_corpus().select(range(12))
    pairs = list(zip(corpus.source, corpus.target, strict=True))
    WordAligner(C=0.1, false_negative=1.0, folds=0, rounds=0).fit(pairs, corpus.references).save(tmp_path / "aligner")
    metadata = json.loads(run("inspect", str(tmp_path / "aligner"), "--json"))
    assert metadata["kind"] == "word alignment"
    assert metadata["trained_C"] == 0.1
    assert (metadata["bitext_pairs"], metadata["fertility"], metadata["trained_status"]) == (12, 2, "converged")
    assert "hmm" in metadata["features"]
    lines = [re.split(r"\s{2,}", line.strip()) for line in run("inspect", str(tmp_path / "aligner")).splitlines()]
    rows = {line[0]: line[-1] for line in lines}
    assert metadata["trained_held_out_aer"] is None
    assert rows["trained_held_out_aer"] == "-"
    assert rows["trained_relative_gap"] == f"{metadata['trained_relative_gap']:.4g}"
    assert rows["extra_columns"] == "-"
    model = mm.load(tmp_path / "aligner")
    assert model.describe() == metadata
    assert metadata["weights"] == len(model.coef_)


def test_unreadable_files(models, tmp_path):
    assert "No such file or directory; check the name" in failed("inspect", str(tmp_path / "missing"))
    assert "directory" in failed("inspect", str(tmp_path)).lower()
    for data in (b"", b"text", (models / "cut").read_bytes()[:-1], b"\x80\x04."):
        (tmp_path / "bad").write_bytes(data)
        for flags in ([], ["--json"]):
            assert str(tmp_path / "bad") in failed("inspect", str(tmp_path / "bad"), *flags)
    odd = tmp_path / "two\nlines"
    odd.write_bytes(b"")
    assert "two\\nlines" in failed("inspect", str(odd))


def test_text_from_a_file_is_escaped(models, tmp_path):
    header, payload = parts((models / "cut").read_bytes())
    header["metadata"] = {"[/red]": "[link=x]a[/bold]\x1b[2J\nb \ud800"}
    (tmp_path / "odd").write_bytes(sealed(header, payload))
    text = run("inspect", str(tmp_path / "odd"))
    assert "\x1b" not in text
    assert "[/red]" in text
    assert json.loads(run("inspect", str(tmp_path / "odd"), "--json"))["kind"] == "cut"


def test_usage_errors():
    for arguments in (["inspect"], ["nonsense"], ["inspect", "a", "--nonsense"], ["version", "extra"]):
        answer = runner.invoke(app, arguments)
        assert answer.exit_code == 2
        assert "Usage" in answer.stderr
    assert "inspect" in runner.invoke(app, ["--help"]).stdout


def test_as_a_process(models, tmp_path):
    command = [sys.executable, "-c", "from maxmargin.cli import app; app()"]
    good = subprocess.run([*command, "inspect", str(models / "chain")], capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert "chain" in good.stdout
    bad = subprocess.run([*command, "inspect", str(tmp_path)], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr
    assert len(bad.stderr.splitlines()) == 1
