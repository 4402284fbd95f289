"""Shards in Ray actors: the only module that imports Ray, when a run begins.

Each shard has an actor, which opens its pieces itself, from files or from an object that is put into Ray's store once.
A call goes to all actors at once, its arguments are sent once, and the shards' sums are added in order: the same bits
as :class:`maxmargin.execution.Serial` on the same shards, one round trip a call.

An actor that dies, or does not answer within the time limit, is replaced: the shard is loaded again, the last snapshot
of its memories restored, and the calls since are repeated, which gives the same bits. A snapshot is taken after every
``SNAPSHOT`` calls that changed a memory; where solvers keep nothing with the data there is nothing to repeat.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin import _checks, _memory, _threads
from maxmargin.execution.pieces import HeldPieces, PieceSource, ShardError
from maxmargin.execution.session import Executor, Session, Shard, Total, Work

SNAPSHOT = 20
"""Calls that changed a memory after which memories are saved."""

LOG_BYTES = 1 << 28
"""Or as soon as their arguments take this much memory."""

SENT_TWICE = 100_000
"""Larger arguments, in bytes, go through Ray's store, once for all actors."""

REPLACEMENTS = 5
"""So many actors in a row may fail in one call before the run gives up."""


class Ray(Executor):
    """Shards in the actors of a Ray cluster (``pip install "maxmargin[ray]"``).

    Args:
        workers: how many shards, each in an actor of its own.
        address: that of a cluster, for example "auto" or "ray://host:10001"; None for the cluster that this process is
            connected to, or that the environment names (``RAY_ADDRESS``), or else a new one on this machine.
        threads: threads of every worker; None shares the cores evenly. Does not change the result.
        time_limit: seconds after which a worker that has not answered is replaced; None waits.
    """

    def __init__(
        self,
        workers: int = 2,
        address: str | None = None,
        threads: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.workers = self.shards = _checks.integer("workers", workers, least=1)
        if address is not None and not isinstance(address, str):
            raise ValueError(f'address must be that of a Ray cluster, such as "auto", or None, got {address!r}')
        self.address, self.threads, self.time_limit = address, threads, time_limit
        if threads is not None:
            _checks.integer("threads", threads, least=1)
        if time_limit is not None:
            _checks.positive("time_limit", time_limit)
        self.idle = Idle()

    def __getstate__(self) -> dict[str, Any]:
        """The settings; actors are not copied."""
        return {**vars(self), "idle": Idle()}

    def __repr__(self) -> str:
        names = ("workers", "address", "threads", "time_limit")
        given = [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) is not None]
        return f"Ray({', '.join(given)})"

    def open(self, source: PieceSource) -> Session:
        """Start an actor for every shard; ValueError if Ray is not installed or its cluster cannot be reached."""
        return _RaySession(source, self, connected(self))


def connected(settings: Ray) -> Any:
    """The module of Ray, connected to a cluster; ValueError if it is not installed, or there is no such cluster."""
    try:
        import ray
    except ImportError:
        raise ValueError('executor=Ray(...) needs Ray, which is not installed: pip install "maxmargin[ray]"') from None
    if ray.is_initialized():
        _require_same(ray, settings.address)
        return ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    # A new one, "local", also if somebody else has started a cluster on this machine.
    address = settings.address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        cores = max(os.cpu_count() or 1, settings.workers)
        quiet |= {"include_dashboard": False, "num_cpus": cores}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ray.init(address=address, **quiet)
        except Exception as error:  # of no class of its own, if processes do not start in time
            where = "on this machine" if address == "local" else f"at {address!r}"
            raise ValueError(f"no Ray cluster {where}: {error}") from None
    _given[0] = settings.address
    return ray


_given: list[str | None] = [None]
"""The address by which this process was connected to a cluster."""


def _require_same(ray: Any, address: str | None) -> None:
    """ValueError if this process is connected to another cluster than the one at an address."""
    now = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", "local", now, _given[0]):
        raise ValueError(
            f"this process is connected to the Ray cluster at {now!r}, not to the one at {address!r}; call "
            "ray.shutdown() first, or leave the address at None"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Messages of Python go nowhere, those of processes that are started not to standard output, but beside it."""
    aside = contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO())
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # no such stream
            out = os.dup(1)
            stack.callback(os.close, out)
            stack.callback(os.dup2, out, 1)
            os.dup2(2, 1)
        for one in aside:
            stack.enter_context(one)
        yield


class Idle:
    """Actors of the last run, which the next one takes over: starting one takes seconds.

    Ray ends them when nobody refers to them any more, as when the executor is gone.
    """

    def __init__(self) -> None:
        self.actors: list[Any] = []
        self.job = self.options = None

    def take(self, ray: Any, options: Any) -> Any:
        """An actor of the same cluster and options; None if there is none."""
        job = ray.get_runtime_context().get_job_id()
        if (job, options) != (self.job, self.options):
            self.actors, self.job, self.options = [], job, options
        return self.actors.pop() if self.actors else None


class _Worker:
    """The actor of one shard."""

    run = ""
    failure: Exception | None = None

    def load(self, run: str, source: PieceSource | bytes, threads: int, home: str = "") -> None:
        """Begin a run with the pieces of a source, or of one as bytes; calls say what is wrong with it.

        ``home``: the node of the run, so that errors can say that they are about the files of another one.
        """
        self.run, self.failure, self.shard, self.threads = "", None, Shard(HeldPieces([])), threads
        self.home = home
        if run:
            _memory.keep_arrays()
        else:
            _memory.give_back()
        try:
            self.shard = Shard(_loads(source) if isinstance(source, bytes) else source)
        except Exception as error:
            self.failure = error
        self.run = run

    def call(self, run: str, verb: str, message: bytes | list[Any], settles: bool) -> tuple[str, Any, bool]:
        """Work on all pieces; first the memories of the last call count if that ``settles``.

        Returns "done" with the result, or "failed" with an exception, and whether some memory changed.
        """
        try:
            if run != self.run:
                raise ShardError(
                    "a worker could not load its pieces: it cannot import their classes, or is out of memory; see the "
                    "logs of Ray there"
                )
            if self.failure is not None:
                raise self.failure
            shard = self.shard
            if settles:
                shard.commit()
            before = list(shard.memories)
            work, args, eager, turn = _unpacked(message)
            with _threads.threads(self.threads), np.errstate(over="ignore", invalid="ignore"):
                result: Any = shard.sums(work, args, eager=eager) if verb == "sums" else None
                if verb == "each":
                    result = list(shard.each(work, args, eager=eager, turn=turn))
            return "done", result, shard.differs(before)
        except Exception as error:
            return "failed", _portable(self._located(error)), False

    def _located(self, error: Exception) -> Exception:
        """The error; one about a file says on which machine that is looked for, unless it is where the run is."""
        import ray

        if not isinstance(error, ShardError) or ray.get_runtime_context().get_node_id() == self.home:
            return error
        util: Any = ray.util
        node = util.get_node_ip_address()
        return ShardError(f"{error} (on node {node} of the Ray cluster: files must have the same paths there as here)")

    def memories(self, settles: bool) -> tuple[Exception | None, bytes]:
        """What is wrong with the source, and the memories of all pieces as bytes: two objects, one of them small."""
        if settles:
            self.shard.commit()
        wrong = None if self.failure is None else _portable(self._located(self.failure))
        return wrong, _dumps(self.shard.memories)

    def restore(self, blob: bytes) -> None:
        """Set the memories of all pieces."""
        self.shard.restore(_loads(blob))


def _dumps(value: Any) -> bytes:
    from ray import cloudpickle

    pickler: Any = cloudpickle
    found: bytes = pickler.dumps(value)
    return found


def _loads(blob: bytes) -> Any:
    from ray import cloudpickle

    return cloudpickle.loads(blob)


def _packed(given: Any) -> list[Any]:
    """What a call sends, as bytes, followed by the large arrays in it, which workers then map instead of copying."""
    from ray import cloudpickle

    arrays: list[Any] = []

    def apart(buffer: pickle.PickleBuffer) -> bool:
        """Keep small arrays among the rest."""
        raw = buffer.raw()
        if raw.nbytes > SENT_TWICE:
            arrays.append(np.frombuffer(raw, dtype=np.uint8))
        return raw.nbytes <= SENT_TWICE

    pickler: Any = cloudpickle
    return [pickler.dumps(given, protocol=5, buffer_callback=apart), *arrays]


def _unpacked(message: bytes | list[Any]) -> Any:
    return _loads(message) if isinstance(message, bytes) else pickle.loads(message[0], buffers=message[1:])


def _portable(error: Exception) -> Exception:
    """The error itself, or one with its text if it cannot be sent."""
    try:
        _loads(_dumps(error))
    except Exception:
        return ShardError(f"{type(error).__name__}: {error}")
    return error


class _Place:
    """One shard's actor, and what it takes to replace it."""

    def __init__(
        self, ray: Any, source: Any, options: dict[str, Any], threads: int, called: str, actor: Any = None
    ) -> None:
        self.ray, self.source, self.options, self.threads, self.called = ray, source, options, threads, called
        self.run = uuid.uuid4().hex
        self.snapshot: Any = None
        self.log: list[tuple[str, Any]] = []
        self.start(actor)

    def start(self, actor: Any = None) -> None:
        """Another actor, by default a new one, with the memories that the last one had."""
        self.actor = self.ray.remote(_Worker).options(**self.options).remote() if actor is None else actor
        home = self.ray.get_runtime_context().get_node_id()
        self.actor.load.remote(self.run, self.source, self.threads, home)
        if self.snapshot is not None:
            self.actor.restore.remote(self.snapshot)
        for number, (verb, blob) in enumerate(self.log):
            self.call(verb, blob, number > 0)

    def call(self, verb: str, blob: Any, settles: bool) -> Any:
        """Ask the actor to work."""
        return self.actor.call.remote(self.run, verb, blob, settles)

    def stop(self) -> None:
        """End the actor."""
        with contextlib.suppress(Exception):
            self.ray.kill(self.actor)


class _RaySession(Session):
    def __init__(self, source: PieceSource, settings: Ray, ray: Any) -> None:
        super().__init__(source, settings.workers)
        self.ray, self.time_limit, self.idle = ray, settings.time_limit, settings.idle
        cores = int(ray.cluster_resources().get("CPU", 1.0))
        threads = settings.threads or max(1, cores // self.n_shards)
        options = {"max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
        edges = self.shard_edges.tolist()
        self.places: list[_Place] = []
        try:
            for number in range(self.n_shards):
                own: Any = source.between(edges[number], edges[number + 1])
                own = ray.put(own) if isinstance(own, HeldPieces) else _dumps(own)
                called = f"shard {number} of {self.n_shards}"
                self.places.append(_Place(ray, own, options, threads, called, self.idle.take(ray, options)))
        except BaseException:
            self.close()
            raise
        self._settled = False

    def sums(self, work: Work, *args: Any, eager: bool = False) -> tuple[Any, ...]:
        """All shards at once; their sums are added in order."""
        total = Total()
        for result in self._call("sums", (work, args, eager, None)):
            if result is not None:
                total.add(result)
        return tuple(total.values or ())

    def each(self, work: Work, *args: Any, eager: bool = False, turn: int | None = None) -> Iterator[Any]:
        """All shards at once; the results of a shard are taken together."""
        for results in self._call("each", (work, args, eager, turn)):
            yield from results

    def _call(self, verb: str, given: tuple[Any, ...]) -> list[Any]:
        """One round trip; memories count once every shard has answered."""
        message = _packed(given)
        size = sum(map(len, message))
        blob: Any = self.ray.put(message) if size > SENT_TWICE else message[0]
        settles, self._settled = self._settled, False
        began = time.monotonic()
        waiting = [place.call(verb, blob, settles) for place in self.places]
        answers = []
        for place, ref in zip(self.places, waiting, strict=True):

            def again(place: _Place = place) -> Any:
                return place.call(verb, blob, bool(place.log))

            answers.append(self._answer(place, ref, again, began))
        for status, result, _ in answers:
            if status == "failed":
                raise result
        self._settled = True
        for place, (_, _, changed) in zip(self.places, answers, strict=True):
            if changed:
                place.log.append((verb, blob))
        if any(len(place.log) >= SNAPSHOT or len(place.log) * size > LOG_BYTES for place in self.places):
            self._save()
        return [result for _, result, _ in answers]

    def _answer(self, place: _Place, ref: Any, again: Callable[[], Any], began: float) -> Any:
        """The answer of a shard; from another actor, asked ``again``, if the first one fails."""
        errors, reason = self.ray.exceptions, ""
        for _ in range(REPLACEMENTS):
            try:
                left = None if self.time_limit is None else max(0.0, began + self.time_limit - time.monotonic())
                return self.ray.get(ref, timeout=left)
            except errors.GetTimeoutError:
                reason = f"no answer within {self.time_limit:g} seconds"
                place.stop()
            except (errors.RayActorError, errors.ObjectLostError) as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            place.start()
            began = time.monotonic()
            ref = again()
        place.stop()
        raise ShardError(
            f"{place.called}: {REPLACEMENTS} workers in a row failed, the last one with {reason}; give workers more "
            "memory, a longer time_limit, or more and so smaller shards"
        )

    def _save(self) -> list[Any]:
        """Take a snapshot of all memories, where they are, so that calls before need not be repeated."""
        began, settles, found = time.monotonic(), self._settled, []
        self._settled = False

        def ask(place: _Place, settles: bool) -> tuple[Any, Any]:
            there, blob = place.actor.memories.options(num_returns=2).remote(settles)
            return there, blob

        waiting = [ask(place, settles) for place in self.places]
        for place, (there, blob) in zip(self.places, waiting, strict=True):
            kept = [blob]

            def again(place: _Place = place, kept: list[Any] = kept) -> Any:
                there, kept[0] = ask(place, bool(place.log))
                return there

            if (wrong := self._answer(place, there, again, began)) is not None:
                raise wrong
            place.snapshot, place.log = kept[0], []
            found.append(kept[0])
        return found

    def snapshot(self) -> Callable[[], list[Any]]:
        """Kept where they are until they are asked for."""
        saved = self._save()
        return lambda: [memory for blob in self.ray.get(saved) for memory in _loads(blob)]

    def restore(self, memories: Sequence[Any]) -> None:
        """In all shards."""
        edges = self.shard_edges.tolist()
        for number, place in enumerate(self.places):
            place.snapshot = _dumps(list(memories[edges[number] : edges[number + 1]]))
            place.log = []
            place.actor.restore.remote(place.snapshot)
        self._settled = False

    def close(self) -> None:
        """Let the actors forget their pieces, for the next run."""
        for place in self.places:
            with contextlib.suppress(Exception):
                place.actor.load.remote("", HeldPieces([]), 1)
                self.idle.actors.append(place.actor)
        self.places = []


class ActorError(RuntimeError):
    """An actor ended before its work was done; the message is Ray's."""


class Actors:
    """Actors without shards, each of which answers its own calls in order: for blocks of predictions.

    Args:
        settings: the cluster, and how many actors.
        kind: their class, whose method ``call`` they answer with.
        args: what it is made with.
        environment: variables of their processes.
    """

    def __init__(self, settings: Ray, kind: type, *args: Any, environment: dict[str, str]) -> None:
        self._ray = connected(settings)
        actor = self._ray.remote(num_cpus=1, runtime_env={"env_vars": environment})(kind)
        self._actors = [actor.remote(*args) for _ in range(settings.workers)]
        self._waiting: dict[Any, int] = {}

    def send(self, number: int, item: Any) -> None:
        """One more call of an actor."""
        self._waiting[self._actors[number].call.remote(item)] = number

    def receive(self, timeout: float | None) -> list[tuple[int, Any]]:
        """Answers that have come, with their actors: one at least, unless there is none in time; or ActorError."""
        done, _ = self._ray.wait(list(self._waiting), num_returns=1, timeout=timeout)
        try:
            return [(self._waiting.pop(one), self._ray.get(one)) for one in done]
        except self._ray.exceptions.RayError as error:
            raise ActorError(str(error).splitlines()[0]) from None

    def close(self) -> None:
        """Kill the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
