"""A function of blocks, computed by several processes or Ray actors, with results in the order of the blocks.

Every worker makes the function itself, so that it loads its model from the file once. A few blocks are under way at a
time, so memory does not grow with their number. Results, warnings and errors come as from one process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.resource_tracker
import os
import pickle
import queue
import signal
import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from maxmargin import _threads
from maxmargin.execution.ray import ActorError, Actors, Ray

Item = TypeVar("Item")
Found = TypeVar("Found")

QUEUED = 2
"""Blocks that a worker has at a time: one that it works on, and the next."""
AHEAD = 4
"""Blocks per worker that have been read and not yet been written."""
_POLL = 0.05
"""Seconds between two looks at an input that has nothing yet."""
_KILLED = 9
"""SIGKILL, which the system sends where memory is short; on Windows, which has no signals, nothing ends like this."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerError(ValueError):
    """A worker ended before its work was done."""


@dataclass(frozen=True)
class Workers:
    """Where blocks are worked on: a setting of commands.

    Attributes:
        count: number of workers; one, without Ray, is this process.
        jobs: threads of all workers together, as ``n_jobs``.
        ray: address of a Ray cluster, ``local`` to start one here; None for processes of this machine.
    """

    count: int = 1
    jobs: int | None = -1
    ray: str | None = None

    @property
    def here(self) -> bool:
        """Whether all work is done by this process."""
        return self.count == 1 and self.ray is None

    @property
    def threads(self) -> int:
        """Threads of each worker."""
        return max(1, _threads.resolve(self.jobs) // self.count)

    def map(
        self,
        make: Callable[[], Callable[[Item], Found]],
        items: Iterable[Item],
        ready: Callable[[], bool] = lambda: True,
    ) -> Generator[Found]:
        """Yield the results of a function, in order.

        Args:
            make: returns the function; called once in every worker, so it and all items and results must be picklable
                unless the work is done here.
            items: what the function is called with; they are taken in this process, a few ahead.
            ready: whether the next item can be taken without waiting; if not, results are awaited first.
        """
        if self.here:
            yield from map(make(), items)
            return
        pool: Pool[Item, Found] = (_Processes if self.ray is None else _RayActors)(self, make)
        with contextlib.closing(pool):
            yield from _in_order(pool, iter(items), ready)


@dataclass(frozen=True)
class Answer(Generic[Found]):
    """What the function said of an item: a result or an error, and warnings."""

    result: Found | None
    error: Exception | None
    warnings: tuple[tuple[str, type[Warning]], ...]

    @classmethod
    def of(cls, function: Callable[[Item], Found], item: Item) -> Answer[Found]:
        """Call the function."""
        result, error = None, None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function(item)
            except Exception as found:
                error = _picklable(found)
        return cls(result, error, tuple((str(one.message), one.category) for one in caught))

    def take(self) -> Found:
        """Warn, and return the result or raise the error."""
        for message, category in self.warnings:
            warnings.warn(message, category, stacklevel=2)
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception class with arguments of its own
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Pool(ABC, Generic[Item, Found]):
    """Several workers; each answers in the order of what it was given."""

    count: int

    @abstractmethod
    def send(self, worker: int, item: Item) -> None:
        """Give a worker one more item."""

    @abstractmethod
    def receive(self, timeout: float | None) -> list[tuple[int, Answer[Found]]]:
        """Return answers that have come, with their workers: at least one, unless there is none in time."""

    @abstractmethod
    def close(self) -> None:
        """End all workers at once."""


def _in_order(pool: Pool[Item, Found], items: Iterator[Item], ready: Callable[[], bool]) -> Iterator[Found]:
    """Yield the results for all items in order; whatever ends the items is raised after the results before it."""
    given: list[deque[int]] = [deque() for _ in range(pool.count)]  # what each worker has, in order
    answers: dict[int, Answer[Found]] = {}
    taken, first, ended, failure = 0, 0, False, None
    while True:
        while first in answers:
            yield answers.pop(first).take()
            first += 1
        if ended and first == taken:
            if failure is not None:
                raise failure
            return
        worker = min(range(pool.count), key=lambda one: len(given[one]))
        room = not ended and taken - first < AHEAD * pool.count and len(given[worker]) < QUEUED
        if room and (first == taken or ready()):
            try:
                item = next(items)
            except StopIteration:
                ended = True
                continue
            except Exception as error:
                ended, failure = True, error
                continue
            pool.send(worker, item)
            given[worker].append(taken)
            taken += 1
            timeout: float | None = 0.0
        else:
            timeout = _POLL if room else None
        for answering, answer in pool.receive(timeout):
            answers[given[answering].popleft()] = answer


class _Processes(Pool[Item, Found]):
    """Processes of this machine."""

    def __init__(self, workers: Workers, make: Callable[[], Callable[[Item], Found]]) -> None:
        self.count = workers.count
        self._processes: list[Any] = []
        self._pipes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        try:
            with _environment(workers.threads), _without_interrupts():
                for _ in range(self.count):
                    ours, theirs = context.Pipe()
                    process = context.Process(target=_serve, args=(theirs, make), daemon=True)
                    self._pipes.append(ours)
                    process.start()
                    self._processes.append(process)
                    theirs.close()
        except BaseException:
            self.close()
            raise

    def send(self, worker: int, item: Item) -> None:
        """Workers read at any time, so this does not wait for them."""
        try:
            self._pipes[worker].send_bytes(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))
        except OSError:
            raise self._ended(worker) from None

    def receive(self, timeout: float | None) -> list[tuple[int, Answer[Found]]]:
        """Wait for all of them at once; the pipe of a worker that has ended says so."""
        found = []
        for pipe in multiprocessing.connection.wait(self._pipes, timeout):
            worker = self._pipes.index(pipe)
            try:
                found.append((worker, pickle.loads(self._pipes[worker].recv_bytes())))
            except (EOFError, OSError):
                raise self._ended(worker) from None
        return found

    def _ended(self, worker: int) -> WorkerError:
        process = self._processes[worker]
        process.join(5)
        code = process.exitcode
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        memory = ", perhaps as memory was short; give fewer --workers" if code == -_KILLED else ""
        return WorkerError(f"worker process {process.pid} {how}{memory}; the output is incomplete")

    def close(self) -> None:
        """A worker ends when its pipe is closed."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(2)
            if process.exitcode is None:
                process.kill()
                process.join()


def _limits(threads: int) -> dict[str, str]:
    return dict.fromkeys(_THREADS, str(threads))


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Let processes that are started take so many threads in libraries that read this when they are imported."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(_limits(threads))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that are started not get Ctrl-C, which the terminal sends to all: this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    multiprocessing.resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Any, make: Callable[[], Callable[[Any], Any]]) -> None:
    """Answer what comes through a pipe until that is closed, which ends the process, whatever it is doing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where it cannot be blocked
    items: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                items.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    function = _Late(make)
    while True:
        answer = Answer.of(function, pickle.loads(items.get()))
        try:
            pipe.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except OSError:
            os._exit(0)


class _Late:
    """A function that is made when it is first called, so that an error of making it is one of the call."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = make
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, item: Any) -> Any:
        if self._function is None:
            self._function = self._make()
        return self._function(item)


class _RayActors(Pool[Item, Found]):
    """Actors of a Ray cluster, whose machines find the model file under the same name."""

    def __init__(self, workers: Workers, make: Callable[[], Callable[[Item], Found]]) -> None:
        self.count = workers.count
        cluster = Ray(workers.count, None if workers.ray == "local" else workers.ray)
        self._actors = Actors(cluster, _Actor, make, environment=_limits(workers.threads))

    def send(self, worker: int, item: Item) -> None:
        """One more call of the actor."""
        self._actors.send(worker, item)

    def close(self) -> None:
        """Kill the actors."""
        self._actors.close()

    def receive(self, timeout: float | None) -> list[tuple[int, Answer[Found]]]:
        """Wait for any of them."""
        try:
            return self._actors.receive(timeout)
        except ActorError as error:
            raise WorkerError(f"a Ray worker ended: {error}; the output is incomplete") from None


class _Actor:
    """What runs in a Ray worker."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._function = _Late(make)

    def call(self, item: Any) -> Answer[Any]:
        """Answer an item."""
        return Answer.of(self._function, item)
