"""Output goes to regular files: links are followed, devices, pipes, sockets and folders are refused and stay."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import failed

import maxmargin as mm
from maxmargin import _files

KINDS = ("a device", "a pipe", "a socket", "a folder")


def special(folder: Path, kind: str) -> Path:
    """Something that is not a regular file."""
    path = folder / "special"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "a folder":
        path.mkdir()
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError as error:
            pytest.skip(f"device nodes cannot be made here: {error.strerror}")
    return path


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the socket, whose name must stay
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("through_link", [False, True], ids=["itself", "through a link"])
def test_what_is_not_a_regular_file_is_refused_and_stays(kind, through_link, tmp_path):
    path = special(tmp_path, kind)
    before, given = path.stat(), path
    if through_link:
        given = tmp_path / "link"
        given.symlink_to(path)
    with pytest.raises(OSError, match=f"this is {kind}"), _files.replacing(given) as file:
        file.write(b"text")
    line = failed("tag", "train", "none", "--out", str(given))
    said = f"{given}: this is {kind}, and only regular files are written; give another --out"
    assert line == f"error: {f'{given} is a folder; give --out a file' if kind == 'a folder' else said}\n"
    assert path.stat() == before
    assert not [name for name in os.listdir(tmp_path) if name not in ("special", "link")]


COMMANDS = {
    "tag predict": ("tag", "predict", "none", "none", "--out"),
    "tag evaluate": ("tag", "evaluate", "none", "none", "--confusion"),
    "align train": ("align", "train", "--source", "n", "--target", "n", "--gold", "n", "--out"),
    "align bootstrap": ("align", "bootstrap", "--bitext-source", "n", "--bitext-target", "n", "--out"),
    "align show": ("align", "show", "--source", "n", "--target", "n", "--links", "n", "--html"),
    "segment train": ("segment", "train", "--images", "n", "--masks", "n", "--classes", "a,b", "--out"),
    "segment report": ("segment", "report", "n", "--images", "n", "--masks", "n", "--html"),
    "rerank train": ("rerank", "train", "--nbest", "n", "--references", "n", "--out"),
    "rerank predict": ("rerank", "predict", "n", "--nbest", "n", "--out"),
    "rerank export": ("rerank", "export", "n", "--moses-ini", "--sparse"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_refuse_it_before_they_read_anything(command, tmp_path):
    path = special(tmp_path, "a pipe")
    assert f"{path}: this is a pipe, and only regular files are written" in failed(*command, str(path))
    assert path.is_fifo()


def test_a_model_is_not_saved_to_a_pipe(tmp_path):
    path = special(tmp_path, "a pipe")
    model = mm.ChainSVM().fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(OSError, match="this is a pipe"):
        model.save(path)
    assert path.is_fifo()


def test_what_becomes_a_pipe_while_the_file_is_written_stays(tmp_path):
    replacing = _files.replacing(tmp_path / "special")
    replacing.__enter__().write(b"text")
    special(tmp_path, "a pipe")
    with pytest.raises(OSError, match="this is a pipe"):
        replacing.__exit__(None, None, None)
    assert (tmp_path / "special").is_fifo()
    assert os.listdir(tmp_path) == ["special"]


@pytest.mark.parametrize("target", ["there", "missing"])
def test_links_stay_and_their_files_are_replaced_or_made(target, tmp_path):
    (tmp_path / "there").write_text("before")
    link = tmp_path / "link"
    link.symlink_to(target)
    with _files.replacing(link) as file:
        file.write(b"text")
    assert link.is_symlink()
    assert (tmp_path / target).read_text() == "text"


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links"), _files.replacing(tmp_path / "one"):
        pass
    assert "symbolic links" in failed("tag", "train", "none", "--out", str(tmp_path / "one"))
    assert (tmp_path / "one").is_symlink()


def test_an_interrupt_before_the_block_begins_leaves_nothing(tmp_path):
    code = """
import atexit, os, sys
from maxmargin import _files

opened = _files.replacing(sys.argv[1])
opened.__enter__()
assert len(os.listdir(os.path.dirname(sys.argv[1]))) == 1
atexit._run_exitfuncs()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], check=True)
    assert not os.listdir(tmp_path)
