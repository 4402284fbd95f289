"""Predictions that are resumed where a run was killed: the same file as without the interruption."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from commands import failed, runner

from maxmargin.cli import app
from maxmargin.tasks import tagging
from maxmargin.tasks.alignment.cli.blocks import Aligning
from maxmargin.tasks.common.files import resumable
from maxmargin.tasks.tagging import reading
from maxmargin.tasks.tagging.cli.predict import Labeling

pytestmark = pytest.mark.timeout(120)

TAG = ("--columns", "word,pos,label,_", "--label", "label", "--jobs", "1", "--C", "0.1", "--folds", "0")

KILLED = """
import os, signal, sys, time
from maxmargin.cli import app
from maxmargin.tasks.tagging import reading
reading.ReadOptions.blocks_for.__kwdefaults__["size"] = 300
seconds = float(sys.argv.pop(1))
if seconds:
    signal.setitimer(signal.ITIMER_REAL, seconds)  # whose signal ends the process at once
began = time.perf_counter()
try:
    app(prog_name="maxmargin")
finally:
    print(time.perf_counter() - began, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("resumed")
    train, rest = tagging.load_corpus().split()
    train.select(range(40)).write(at / "train")
    rest.write(at / "tokens")
    given = ("tag", "train", str(at / "train"), *TAG, "--preset", "ner", "--out", str(at / "tagger"))
    assert runner.invoke(app, given).exit_code == 0
    return at


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading.ReadOptions.blocks_for, "__kwdefaults__", {"size": 300})


def arguments(folder, out, *more):
    return ["tag", "predict", str(folder / "tagger"), str(folder / "tokens"), "--out", str(out), *more]


@pytest.fixture
def stopped(folder, tmp_path, monkeypatch):
    """An output that was interrupted after nine blocks, and the whole one."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert runner.invoke(app, arguments(folder, whole)).exit_code == 0
    _interrupted(folder, out, 9, monkeypatch)
    return out, whole.read_bytes()


def _interrupted(folder, out, count, monkeypatch, *more):
    made = Labeling.of_block
    left = iter(range(count))

    def of_block(self, model, block):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return made(self, model, block)

    with monkeypatch.context() as patch:
        patch.setattr(Labeling, "of_block", of_block)
        answer = runner.invoke(app, arguments(folder, out, *more))
    assert answer.exit_code == 130
    assert f"{out}.partial is kept: the same command with --resume resumes" in answer.stderr


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_an_interrupted_run_is_resumed(folder, stopped, more):
    out, whole = stopped
    assert not out.exists()
    answer = runner.invoke(app, arguments(folder, out, "--resume", *more))
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr.startswith(f"note: resumes {out}.partial after 9 blocks, ")
    assert out.read_bytes() == whole
    assert not list(out.parent.glob("out.*"))


def test_compressed_output_is_the_same_file(folder, tmp_path, monkeypatch):
    for name in ("one.gz", "two.gz"):
        if name == "two.gz":
            _interrupted(folder, tmp_path / name, 5, monkeypatch)
        assert runner.invoke(app, arguments(folder, tmp_path / name, "--resume")).exit_code == 0
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


def test_runs_killed_at_any_time(folder, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"

    def run(seconds, path, *more):
        command = [sys.executable, "-c", KILLED, str(seconds), *arguments(folder, path, *more)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    seconds = float(run(0, whole).stderr.split()[-1])
    moments, kills = random.Random(0), 0
    while not kills:
        while run(moments.uniform(0.2, 0.9) * seconds, out, "--resume").returncode != 0 and kills < 4:
            kills += 1
        if not kills:  # it was quicker than the first run: once more, and sooner
            out.unlink()
            seconds /= 2
    if not out.exists():
        assert run(0, out, "--resume").returncode == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("cut", [1, 40, 5000])
def test_blocks_whose_bytes_are_lost_are_made_again(folder, stopped, cut):
    out, whole = stopped
    for end in (".partial", ".journal") if cut < 100 else (".partial",):
        path = out.with_name(f"out{end}")
        os.truncate(path, max(path.stat().st_size - cut, 0))
    assert runner.invoke(app, arguments(folder, out, "--resume")).exit_code == 0
    assert out.read_bytes() == whole


def test_bytes_that_changed_are_made_again(folder, stopped):
    out, whole = stopped
    data = bytearray(out.with_name("out.partial").read_bytes())
    data[len(data) // 2] ^= 1
    out.with_name("out.partial").write_bytes(data)
    answer = runner.invoke(app, arguments(folder, out, "--resume"))
    assert answer.exit_code == 0
    assert out.read_bytes() == whole


def test_another_model_input_or_option_is_refused(folder, stopped, tmp_path):
    out, _ = stopped
    before = out.with_name("out.partial").read_bytes()
    (tmp_path / "tokens").write_bytes((folder / "tokens").read_bytes() + b"\n")
    model = folder / "tagger"
    tagger = tagging.TaggerModel.load(model)
    replace(tagger, weights=2 * tagger.weights).save(tmp_path / "tagger")
    for given, what in (
        ((str(tmp_path / "tagger"), str(folder / "tokens")), "another model"),
        ((str(model), str(tmp_path / "tokens")), "another input"),
        ((str(model), str(folder / "tokens"), "--scores"), "other options"),
    ):
        said = failed("tag", "predict", *given, "--out", str(out), "--resume")
        assert f"{out}.journal: it is of a run with {what}; give the same, or leave --resume out" in said
    assert out.with_name("out.partial").read_bytes() == before


def test_a_run_without_resume_starts_anew(folder, stopped):
    out, whole = stopped
    answer = runner.invoke(app, arguments(folder, out))
    assert answer.stderr == f"note: {out}.partial of an unfinished run is removed; --resume would have resumed it\n"
    assert out.read_bytes() == whole
    answer = runner.invoke(app, arguments(folder, out, "--resume"))
    assert answer.stderr == f"note: starts from the beginning: there is no {out}.journal\n"
    assert out.read_bytes() == whole


def test_standard_input_and_output_cannot_be_resumed(folder):
    for given in (("-", "--out", "x"), (str(folder / "tokens"),)):
        command = ["tag", "predict", str(folder / "tagger"), *given, "--resume"]
        answer = runner.invoke(app, command, input=(folder / "tokens").read_text())
        assert answer.exit_code == 2
        assert "--resume needs --out, and inputs that are files" in answer.stderr


def test_two_runs_to_one_file_are_refused(folder, stopped):
    from maxmargin._locks import FileLock

    out, _ = stopped
    lock = FileLock(out)
    try:
        assert f"{out}: process {os.getpid()} writes this file" in failed(*arguments(folder, out, "--resume"))
    finally:
        lock.release()


def test_errors_leave_nothing(folder, tmp_path):
    path = tmp_path / "wrong"
    path.write_text((folder / "tokens").read_text() + "\none two\n")
    failed("tag", "predict", str(folder / "tagger"), str(path), "--out", str(tmp_path / "out"))
    assert [one.name for one in tmp_path.iterdir()] == ["wrong"]


def test_options_may_be_of_any_command(tmp_path):
    (tmp_path / "model").write_bytes(b"model")
    plain = resumable.Run(True, tmp_path / "model", [], {**vars(Aligning()), "block": None})
    assert json.loads(json.dumps(plain.identity())) == plain.identity()
