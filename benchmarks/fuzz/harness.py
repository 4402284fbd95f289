"""Random inputs for one target after the other, in processes of their own, and what became of each.

A target takes a generator of random numbers, makes one input from it and hands that to the library. The outcome is
good if the library accepts the input or refuses it with a clear error; it is bad if the process dies, takes too long
or too much memory, or raises anything else. An input is known by its number: the same one can be run again alone.
"""

from __future__ import annotations

import faulthandler
import linecache
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin

PACKAGE = str(Path(maxmargin.__file__).parent)
LONGEST_MESSAGE = 1000
ADDRESS_SPACE = 8 << 30
"""Bytes that a worker may map, so that no input takes the machine down."""

BAD = ("crash", "hang", "memory", "unclear")
KEPT = 20
"""Bad inputs of a target that are reported one by one."""


@dataclass(frozen=True)
class Target:
    """A way into the library.

    Attributes:
        name: of the target, unique in its module.
        call: makes an input from random numbers and hands it to the library; it may set the input up, but an error of
            its own counts as one of the library.
        refuses: the errors that refuse an input; subclasses count if the library defines them.
        seconds: an input that takes longer counts as a hang.
        megabytes: an input that makes the process grow by more counts as too much memory.
        compiled: whether errors come from compiled code; others must come from a ``raise`` in the library.
    """

    name: str
    call: Callable[[np.random.Generator], Any]
    refuses: tuple[type[Exception], ...] = (ValueError,)
    seconds: float = 5.0
    megabytes: float = 500.0
    compiled: bool = False


@dataclass
class Report:
    """What became of the inputs of one target."""

    name: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, Any]] = field(default_factory=list)

    def add(self, number: int, outcome: str, detail: str = "") -> None:
        """Count one input."""
        self.inputs += 1
        self.outcomes[outcome] += 1
        if outcome in BAD and len(self.bad) < KEPT:
            self.bad.append({"number": number, "outcome": outcome, "detail": detail[-2000:]})

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = {name: self.outcomes[name] for name in ("accepted", "refused", *BAD)}
        return {"target": self.name, "inputs": self.inputs, **counts, **({"bad": self.bad} if self.bad else {})}


def outcome_of(target: Target, seed: int, number: int) -> tuple[str, str]:
    """Run one input in this process: the outcome, and details if it is bad."""
    random = np.random.default_rng([seed, zlib.crc32(target.name.encode()), number])
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    outcome, detail = "accepted", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.call(random)
    except Exception as error:
        unclear = _unclear(target, error)
        outcome, detail = ("unclear", f"{unclear}\n{traceback.format_exc()}") if unclear else ("refused", "")
    grown = (_memory("VmHWM") - before) / 1024
    if grown > target.megabytes:
        return "memory", f"{grown:.0f} MB; {outcome}: {detail}"
    return outcome, detail


def run(module: str, name: str, inputs: int, seed: int) -> Report:
    """All inputs of one target of a module that has ``targets()``; a process that dies is followed by another."""
    report, spawn = Report(f"{module}.{name}"), multiprocessing.get_context("spawn")
    number = 0
    while number < inputs:
        with tempfile.NamedTemporaryFile("r") as trace:
            ours, theirs = spawn.Pipe(duplex=False)
            worker = spawn.Process(target=_work, args=(module, name, number, inputs, seed, theirs, trace.name))
            worker.start()
            theirs.close()
            number, limit, done = _follow(ours, worker, report, number, inputs)
            if not done:
                hung = worker.is_alive()
                if hung:
                    os.kill(worker.pid or 0, signal.SIGABRT)  # faulthandler writes where it was
                    worker.join(10)
                    worker.kill()
                worker.join()
                what = f"no answer in {limit:g} s" if hung else f"exit code {worker.exitcode}"
                where = trace.read().partition("\nExtension modules")[0]
                report.add(number, "hang" if hung else "crash", f"{what}\n{where}")
                number += 1
            worker.join()
    return report


def _follow(ours: Any, worker: Any, report: Report, number: int, inputs: int) -> tuple[int, float, bool]:
    """Collect outcomes until the end, a death or a hang: the input that was under way, its limit, whether all is done.

    The worker sends the seconds that an input may take when it is ready, then outcomes.
    """
    limit = 120.0  # to import and set up
    while number < inputs:
        try:
            if not ours.poll(limit):
                return number, limit, False
            message = ours.recv()
        except EOFError:
            worker.join(10)
            return number, limit, False
        if isinstance(message, float):
            limit = message
        else:
            report.add(number, *message)
            number += 1
    return number, limit, True


def _work(module: str, name: str, first: int, inputs: int, seed: int, outcomes: Any, trace: str) -> None:
    """The worker process."""
    with open(trace, "w") as file:
        faulthandler.enable(file)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        target = find(module, name)
        # Room for a busy machine: the process is stopped late, but CPU time decides what counts as too long.
        outcomes.send(4 * target.seconds + 10.0)
        for number in range(first, inputs):
            began = time.process_time()
            outcome, detail = outcome_of(target, seed, number)
            if (seconds := time.process_time() - began) > target.seconds:
                outcome, detail = "hang", f"{seconds:.1f} s; {outcome}: {detail}"
            outcomes.send((outcome, detail))


def find(module: str, name: str) -> Target:
    """A target by the names of its module and its own."""
    return next(target for target in targets(module) if target.name == name)


def targets(module: str) -> list[Target]:
    """The targets of a module of this folder."""
    return list(import_module(f"benchmarks.fuzz.{module}").targets())


def _unclear(target: Target, error: Exception) -> str:
    """Why the error is not a clear refusal; empty if it is."""
    kind = type(error)
    of_ours = isinstance(error, target.refuses) and kind.__module__.partition(".")[0] == "maxmargin"
    if kind not in target.refuses and not of_ours:
        return f"{kind.__name__} is not among {', '.join(one.__name__ for one in target.refuses)}"
    if not 0 < len(str(error)) <= LONGEST_MESSAGE:
        return f"a message of {len(str(error))} characters"
    if not target.compiled:
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE):
            return f"raised in {file}"
        text = linecache.getline(file, line).lstrip()
        if not text.startswith(("raise ", "raise\n")) and "_kernels." not in text:  # kernels are of the library
            return "not raised by the library but passed on"
    return ""


def _memory(entry: str) -> int:
    """Kilobytes of this process, an entry of /proc/self/status."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{entry}:")[1].split()[0])
