"""Training that was killed or interrupted and goes on ends with the same weights, bit for bit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import runner

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.optimization.checkpoints.checkpointer import FileCheckpointer
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.tagging.io.corpus import load_corpus

LONG = ("--tol", "1e-9", "--max-iter", "200", "--save-every", "0", "--columns", "word,pos,label,_", "--label", "label")
NONE = "nothing was written, and no checkpoint was saved yet"
CONVERGES = ("--tol", "0.1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    train, rest = load_corpus().split()
    train.select(range(20)).write(folder / "train")
    rest.select(range(10)).write(folder / "dev")
    hidden = [
        line.replace("\tB-NP\t", "\t?\t") if at % 5 == 0 else line
        for at, line in enumerate((folder / "train").read_text().split("\n"))
    ]
    (folder / "some").write_text("\n".join(hidden))
    return folder


def arguments(files: Path, out: Path, *options: str, train: str = "train") -> list[str]:
    return ["tag", "train", str(files / train), "--out", str(out), *LONG, *options]


def finished(given: list[str]) -> str:
    """What a run that ends well says on standard error."""
    answer = runner.invoke(app, given)
    assert answer.exit_code == 0, answer.output
    return str(answer.stderr)


def killed(given: list[str], save: Path, saves: int) -> bool:
    """Start a process, and kill it once it has written its checkpoint so many times; False if it was done before."""
    process = subprocess.Popen([sys.executable, "-c", "from maxmargin.cli import app; app()", *given])
    seen: set[int] = set()
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            seen.add(save.stat().st_mtime_ns)
        if len(seen) >= saves:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.0005)
    assert process.returncode == 0
    return False


def test_training_that_is_killed_goes_on_to_the_same_model(files, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "killed"
    finished(arguments(files, whole, "--jobs", "1"))
    first = arguments(files, out, "--jobs", "1")
    again = arguments(files, out, "--jobs", "2", "--resume")
    save = tmp_path / "killed.checkpoint"
    times = [killed(first, save, 1), killed(again, save, 3), killed(again, save, 5)]
    assert times[0]
    if all(times):  # a machine that is slow to look may see the end
        assert save.exists()
        assert not out.exists()
        assert f"training resumes from {save}" in finished(again)
    assert np.array_equal(mm.load(whole).weights, mm.load(out).weights)
    assert not list(tmp_path.glob("*checkpoint*"))


def interrupt(monkeypatch: pytest.MonkeyPatch, certificates: int) -> None:
    """Ctrl-C at a certificate of the process, counted from 1."""
    save, left = FileCheckpointer.save_if_due, [certificates]

    def save_or_stop(self, carry):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        save(self, carry)

    monkeypatch.setattr(FileCheckpointer, "save_if_due", save_or_stop)


CASES = {
    "plain": (("--C", "1"), "train"),
    "dev and C": (("--C", "0.1,1", "--patience", "4", "--dev"), "train"),
    "unknown": (("--unknown", "?", "--tol", "0.01"), "some"),
    "perceptron": (("--solver", "perceptron"), "train"),
    "mira": (("--solver", "mira", "--max-iter", "20"), "train"),
    "subgradient": (("--solver", "subgradient", "--max-iter", "30"), "train"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("certificates", [1, 6])
def test_training_that_is_interrupted_goes_on_to_the_same_model(files, tmp_path, monkeypatch, case, certificates):
    options, train = CASES[case]
    options = (*options, str(files / "dev")) if options[-1] == "--dev" else options
    whole, out = files / f"{case} whole", tmp_path / "model"
    if not whole.exists():
        finished(arguments(files, whole, *options, train=train))
    given = arguments(files, out, *options, train=train)
    with monkeypatch.context() as patch:
        interrupt(patch, certificates)
        answer = runner.invoke(app, given)
    if answer.exit_code == 0:
        assert certificates > 3  # it was done before
    else:
        assert answer.exit_code == 130
        assert answer.stderr.endswith("with --resume resumes from it\n") or certificates == 1
        if out.exists():
            assert mm.load(out).metadata["status"] == "interrupted"
        else:
            assert certificates == 1
        finished([*given, "--resume"])
    assert np.array_equal(mm.load(whole).weights, mm.load(out).weights)
    assert not list(tmp_path.glob("*checkpoint*"))


def test_notes_of_what_training_begins_with(files, tmp_path, monkeypatch):
    out = tmp_path / "model"
    given = arguments(files, out)
    save = tmp_path / "model.checkpoint"
    assert f"training starts from the beginning: there is no {save}" in finished([*given, "--resume"])
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        assert runner.invoke(app, given).exit_code == 130
    assert save.exists()
    other = tmp_path / "model.checkpoint-notes"
    other.write_text("not ours")
    answer = runner.invoke(app, [*given, "--C", "2", "--resume"])
    assert answer.exit_code == 2
    assert f"{save}: this checkpoint is of another run" in answer.stderr
    assert save.exists()
    assert f"{save} of an unfinished run is removed; --resume would have resumed" in finished(given)
    assert not save.exists()
    assert other.read_text() == "not ours"


def test_a_damaged_checkpoint_is_refused(files, tmp_path):
    save = tmp_path / "model.checkpoint"
    save.write_bytes(b"nonsense")
    answer = runner.invoke(app, [*arguments(files, tmp_path / "model"), "--resume"])
    assert answer.exit_code == 2
    assert "is not a checkpoint, or it is truncated or damaged" in answer.stderr


def test_a_damaged_checkpoint_with_one_before_it(files, tmp_path, monkeypatch):
    out, whole, save = tmp_path / "model", tmp_path / "whole", tmp_path / "model.checkpoint"
    finished(arguments(files, whole))
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        assert runner.invoke(app, arguments(files, out)).exit_code == 130
    before = Path(f"{save}.previous")
    save.write_bytes(save.read_bytes()[:-9])
    said = finished([*arguments(files, out), "--resume"])
    assert "warning: " in said
    assert f"training resumes from the checkpoint before it, {before}" in said
    assert np.array_equal(mm.load(whole).weights, mm.load(out).weights)
    assert not list(tmp_path.glob("*checkpoint*"))


def test_an_interruption_before_anything_was_saved(files, tmp_path, monkeypatch):
    def stop(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.tasks.tagging.training.train_tagger", stop)
    answer = runner.invoke(app, arguments(files, tmp_path / "model"))
    assert (answer.exit_code, answer.stderr) == (130, f"interrupted; {NONE}\n")


def test_a_model_that_cannot_be_written_leaves_the_checkpoint(files, tmp_path, monkeypatch):
    """A full disk must not cost the training: the checkpoint goes only once the model is there."""

    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(mm.Model, "save", full)
        answer = runner.invoke(app, arguments(files, tmp_path / "model", *CONVERGES))
        assert (answer.exit_code, "No space left" in answer.stderr) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {"model.checkpoint", "model.checkpoint.previous"}
    answer = runner.invoke(app, arguments(files, tmp_path / "model", *CONVERGES, "--resume"))
    assert answer.exit_code == 0, answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_newest_checkpoint_is_the_one_that_is_named(tmp_path):
    saves = Checkpoints(tmp_path / "model")
    assert saves.summary() == NONE
    for age, end in enumerate(("", "-10", "-9", "-0-2")):
        path = tmp_path / f"model.checkpoint{end}"
        path.touch()
        os.utime(path, ns=(0, 10**18 + age))
    (tmp_path / "model.checkpoint-else").touch()
    assert saves.summary().startswith(f"no model was written; {tmp_path / 'model.checkpoint-0-2'} is kept")
    os.utime(tmp_path / "model.checkpoint-9", ns=(0, 2 * 10**18))
    assert saves.summary().startswith(f"no model was written; {tmp_path / 'model.checkpoint-9'} is kept")
