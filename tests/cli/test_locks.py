"""Two trainings to one file: the second is refused, and names the first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from commands import failed, run

from maxmargin._locks import FileInUseError, FileLock

TOKENS = "the DT\ndog NN\n\na DT\ncat NN\n"
HOLD = """
import sys, time
from pathlib import Path
from maxmargin._locks import FileLock
lock = FileLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that trains to ``model``."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "model")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


COMMANDS = {
    "tag train": ("tag", "train", "none"),
    "tag train again": ("tag", "train", "none", "--resume"),
    "align train": ("align", "train", "--source", "n", "--target", "n", "--gold", "n"),
    "align bootstrap": ("align", "bootstrap", "--bitext-source", "n", "--bitext-target", "n"),
    "segment train": ("segment", "train", "--images", "n", "--masks", "n", "--classes", "a,b"),
    "rerank train": ("rerank", "train", "--nbest", "n", "--references", "n"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_second_training_to_one_file_is_refused(command, holder, tmp_path):
    (tmp_path / "link").symlink_to("model")
    for out in (tmp_path / "model", tmp_path / "link"):
        wanted = (
            f"error: {out}: process {holder.pid} is training to this file; wait for it, end it, or give another --out\n"
        )
        assert failed(*command, "--out", str(out)) == wanted


def test_a_process_that_was_killed_is_no_obstacle(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert len(os.listdir(tmp_path)) == 1  # its lock file is still there
    (tmp_path / "tokens").write_text(TOKENS)
    run("tag", "train", str(tmp_path / "tokens"), "--out", str(tmp_path / "model"))
    assert sorted(os.listdir(tmp_path)) == ["model", "tokens"]


def test_the_lock_ends_with_the_command_whatever_ends_it(tmp_path):
    for _ in range(2):
        assert "No such file" in failed("tag", "train", str(tmp_path / "none"), "--out", str(tmp_path / "model"))
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_removed_while_another_waits_for_it(tmp_path, monkeypatch):
    """The lock of a file without a name excludes nobody, so it is taken again."""
    import fcntl

    first, real, calls = FileLock(tmp_path / "model"), fcntl.flock, []

    def flock(file: int, how: int) -> None:
        calls.append(file)
        if len(calls) == 1:
            first.release()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    second = FileLock(tmp_path / "model")
    assert len(calls) == 2
    with pytest.raises(FileInUseError) as raised:
        FileLock(tmp_path / "model")
    assert raised.value.pid == os.getpid()
    second.release()
    assert os.listdir(tmp_path) == []
