"""Blocks worked on by several processes: in order, bounded, and ended cleanly."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from functools import partial

import pytest
from commands import run, runner

from maxmargin.cli import app
from maxmargin.tasks import alignment, tagging
from maxmargin.tasks.common import workers
from maxmargin.tasks.common.workers import WorkerError, Workers

pytestmark = pytest.mark.timeout(120)

TAG = ("--columns", "word,pos,label,_", "--label", "label", "--jobs", "1", "--C", "0.1", "--folds", "0")


def make(base):
    """What workers call: squares, after a while."""
    return partial(square, base)


def square(base, item):
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02 * (item % 3))
    if item == 7:
        warnings.warn("seven", UserWarning, stacklevel=1)
    if item < 0:
        raise ValueError(f"{item} is negative")
    return os.getpid(), base + item * item


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tagger whose labels depend on sentences nearby, an aligner, and texts."""
    at = tmp_path_factory.mktemp("workers")
    train, rest = tagging.load_corpus().split()
    train.select(range(60)).write(at / "train")
    rest.write(at / "tokens")
    for name, preset in (("tagger", "ner"), ("plain", "chunking")):
        given = ("tag", "train", str(at / "train"), *TAG, "--preset", preset, "--out", str(at / name))
        assert runner.invoke(app, given).exit_code == 0
    part = alignment.load_corpus().select(range(60))
    for side, sentences in (("en", part.source), ("fr", part.target)):
        (at / side).write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    with open(at / "links", "w", encoding="utf-8") as file:
        alignment.write_links(file, part.references)
    align = ("--C", "0.1", "--false-negative", "2", "--tol", "1e-2", "--jobs", "1")
    bitext = ("--source", str(at / "en"), "--target", str(at / "fr"), "--gold", str(at / "links"))
    assert runner.invoke(app, ["align", "train", *bitext, *align, "--out", str(at / "aligner")]).exit_code == 0
    return at


def test_results_come_in_order_from_several_processes_and_a_few_items_are_taken_ahead():
    taken = 0

    def items():
        nonlocal taken
        for taken in range(1, 31):
            yield taken - 1

    found, processes, ahead = [], set(), []

    def read():
        for process, value in Workers(2).map(partial(make, 5), items()):
            found.append(value)
            processes.add(process)
            ahead.append(taken - len(found))

    with pytest.warns(UserWarning, match="seven"):
        read()
    assert max(ahead) <= 2 * workers.AHEAD
    assert found == [5 + item * item for item in range(30)]
    assert len(processes) == 2
    assert os.getpid() not in processes


@pytest.mark.parametrize("failing", ["function", "items"])
def test_errors_come_after_the_results_before_them(failing):
    def items():
        yield from range(5)
        if failing == "items":
            raise ValueError("-3 is negative")
        yield -3
        yield from itertools.count()

    found = []
    with pytest.raises(ValueError, match="-3 is negative"):
        found.extend(value for _, value in Workers(2).map(partial(make, 0), items()))
    assert found == [0, 1, 4, 9, 16]


def test_a_worker_that_dies_is_named_and_the_others_end():
    processes, results = set(), Workers(2).map(partial(make, 0), [0, 1, 2, 0, 1, 2, "die", *range(100)])
    with pytest.raises(WorkerError, match=r"worker process [0-9]+ was ended by signal 9, perhaps as memory was short"):
        processes.update(process for process, _ in results)
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_results_are_not_held_back_while_the_input_waits():
    come = itertools.cycle([False] * 3 + [True])
    results = Workers(2).map(partial(make, 0), iter(range(4)), ready=lambda: next(come))
    assert [value for _, value in results] == [0, 1, 4, 9]


@pytest.mark.parametrize("options", [(), ("--probabilities",), ("--k-best", "2")])
def test_tag_predict_writes_the_same_bytes(folder, options, monkeypatch):
    from maxmargin.tasks.tagging import reading

    monkeypatch.setattr(reading.ReadOptions.blocks_for, "__kwdefaults__", {"size": 700})
    command = ("tag", "predict", str(folder / "tagger"), str(folder / "tokens"), *options)
    answer = runner.invoke(app, [*command, "--jobs", "1"])
    monkeypatch.setattr(reading.ReadOptions.blocks_for, "__kwdefaults__", {"size": 1500})
    several = runner.invoke(app, [*command, "--workers", "2"])
    assert several.exit_code == answer.exit_code == 0
    assert several.stdout_bytes == answer.stdout_bytes
    assert several.stderr == answer.stderr


def test_align_predict_and_score_write_the_same_bytes(folder):
    bitext = (str(folder / "aligner"), "--source", str(folder / "en"), "--target", str(folder / "fr"))
    for command in (("align", "predict", *bitext, "--block", "7", "--confidence"), ("align", "score", *bitext)):
        run(*command, "--workers", "2", "--out", str(folder / "out.gz"))
        assert gzip.decompress((folder / "out.gz").read_bytes()).decode() == run(*command)


def _processes(group):
    """Return the processes of a group, without those that have ended."""
    found = subprocess.run(["ps", "-eo", "pgid,stat,pid"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in found.splitlines()[1:]]
    return [line[2] for line in lines if line[0] == str(group) and not line[1].startswith("Z")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_all_processes(folder, number):
    command = [sys.executable, "-m", "maxmargin", "tag", "predict", str(folder / "plain"), "-", "--workers", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write((folder / "tokens").read_bytes())
        process.stdin.flush()
        first = process.stdout.read(200)  # the input is still open
        # Ctrl-C goes to all processes of a terminal, the others to one.
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        rest, said = process.stdout.read(), process.stderr.read().decode()
        process.wait(20)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert said == ("" if number == signal.SIGKILL else "interrupted; the output is incomplete\n")
    assert (first + rest).endswith(b"\n")
    for _ in range(100):
        if not (left := _processes(process.pid)):
            break
        time.sleep(0.1)
    assert not left


def test_a_worker_that_is_killed_ends_the_command_with_an_error(folder):
    command = [sys.executable, "-m", "maxmargin", "tag", "predict", str(folder / "plain"), "-", "--workers", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write((folder / "tokens").read_bytes())
        process.stdin.flush()
        process.stdout.read(200)
        for one in _processes(process.pid):
            with open(f"/proc/{one}/cmdline", "rb") as file:
                if b"spawn_main" in file.read():
                    os.kill(int(one), signal.SIGKILL)
        process.stdin.write((folder / "tokens").read_bytes())
        process.stdin.close()
        said = process.stderr.read().decode()
        process.wait(20)
    assert process.returncode == 2
    assert re.fullmatch(r"error: worker process [0-9]+ was ended by signal 9, perhaps as .*; the output is .*\n", said)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("local_ray")
def test_ray_writes_the_same_bytes(folder):
    bitext = (str(folder / "aligner"), "--source", str(folder / "en"), "--target", str(folder / "fr"))
    command = ("align", "predict", *bitext, "--block", "7", "--confidence")
    one, several = (run(*command, *more) for more in ((), ("--workers", "2", "--ray", "local")))
    assert one == several
    results = Workers(2, ray="local").map(partial(make, 0), [0, 1, 2, "die", *range(100)])
    with pytest.raises(WorkerError, match="a Ray worker ended"):
        list(results)
