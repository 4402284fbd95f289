"""Systems that lack what Linux has: commands run there, too, and give the same files."""

from __future__ import annotations

import ctypes
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from maxmargin import _locks, _memory, _scratch, _terminal

TOKENS = "the DT\ndog NN\n\na DT\ncat NN\n"
LACKS = """
import ctypes, os, select, signal, sys

for module, names in {
    os: "sched_getaffinity pwrite preadv sysconf link O_NOFOLLOW O_CLOEXEC",
    signal: "SIGHUP SIGALRM SIGKILL setitimer pthread_sigmask",
}.items():
    for name in names.split():
        delattr(module, name)
for name in ("fcntl", "resource"):
    sys.modules[name] = None

def no_socket(*given):
    raise OSError("not a socket")

select.select = no_socket
plain = ctypes.CDLL

class CDLL(plain):
    def __init__(self, name, *more, **options):
        if name is None:
            raise TypeError("give the name of a library")
        super().__init__(name, *more, **options)

ctypes.CDLL = CDLL
"""


def test_commands_without_the_calls_of_posix(tmp_path):
    """As on Windows: no locks of files, no SIGHUP, no timers, no reading at a place, no C library by name."""
    (tmp_path / "lacks").mkdir()
    (tmp_path / "lacks" / "sitecustomize.py").write_text(LACKS)
    (tmp_path / "tokens").write_text(TOKENS)

    def run(*command: str, lacking: bool) -> bytes:
        path = {"PYTHONPATH": str(tmp_path / "lacks")} if lacking else {}
        return subprocess.run(
            [sys.executable, *command], env={**os.environ, **path}, cwd=tmp_path, check=True, stdout=subprocess.PIPE
        ).stdout

    tag = ("-m", "maxmargin", "tag")
    assert run("-c", "import signal; print(hasattr(signal, 'SIGHUP'))", lacking=True) == b"False\n"
    run(*tag, "train", "tokens", "--out", "model", "--jobs", "1", lacking=True)
    assert not list(tmp_path.glob(".*"))
    wanted = run(*tag, "predict", "model", "tokens", lacking=False)
    assert b"dog" in wanted
    for workers in ("1", "2"):
        assert run(*tag, "predict", "model", "tokens", "--workers", workers, lacking=True) == wanted


def test_where_files_cannot_be_locked_two_processes_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(_locks, "fcntl", None)
    for lock in [_locks.FileLock(tmp_path / "model") for _ in range(2)]:
        lock.release()
    assert not os.listdir(tmp_path)


def test_arrays_in_a_file_that_threads_must_seek_in(monkeypatch):
    monkeypatch.setattr(_scratch, "_POSITIONED", False)
    slots = [_scratch.Slot() for _ in range(8)]

    def keep(number: int) -> bool:
        arrays = [np.full(3000 + number, number), np.arange(number, dtype=np.int8), np.zeros(0)]
        slots[number].write(arrays)
        return all(np.array_equal(a, b) for a, b in zip(slots[number].read(), arrays, strict=True))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(keep, [*range(8)] * 5))


def test_the_memory_of_windows(monkeypatch):
    class Kernel:
        @staticmethod
        def GlobalMemoryStatusEx(given):
            status = given._obj
            status.total = 123 << 30
            return status.length == 64

    monkeypatch.setattr(ctypes, "windll", type("Libraries", (), {"kernel32": Kernel}), raising=False)
    assert _memory._of_windows() == 123 << 30


def test_commands_print_utf8_where_the_code_page_lacks_letters(monkeypatch):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp1252", newline="\r\n")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(_terminal.os, "name", "nt")
    _terminal.use_utf8()
    print("дом")
    stream.flush()
    assert written.getvalue() == "дом\n".encode()
