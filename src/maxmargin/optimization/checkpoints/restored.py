"""The parts of a checkpoint that are not the solver's, checked before a run resumes from them.

Each function takes what a file says and returns what a run carries, or raises a ValueError that says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin.optimization.callbacks import Record
from maxmargin.optimization.certificate import Certificate, Responses
from maxmargin.optimization.checkpoints.saved import MOST, StateDict, array, count, number, require, value_of
from maxmargin.optimization.run import Counters, Run
from maxmargin.problem import ROUNDING, BaseProblem, InexactError
from maxmargin.structures.base import FloatArray

FIELDS = ("iteration", "seconds", "primal", "norm", "argmax", "projections", "limit", "tol")
BOUNDS = ("primal", "dual", "hinge", "radius", "restricted_dual", "primal_rounding", "dual_rounding")
"""The columns of the history: of a record, and of its certificate."""

_INTEGERS = ("iteration", "projections", "limit")
_NEVER_FALL = ("iteration", "seconds", "argmax", "projections")
_AHEAD = 50
"""Certificates are at most so many iterations apart."""

_AGREEMENT = 1e-5
"""Share of the terms of an objective by which it may differ when it is computed again: argmax and projections end at a
tolerance."""


def numbers_of(numbers: Any, called: str) -> StateDict:
    """Numbers by name: integers as they are, floats in hexadecimal."""
    require(isinstance(numbers, dict), f"{called} are not numbers by name")
    found: StateDict = {}
    for name, value in numbers.items():
        require(type(value) in (int, str), f"{called}: {quoted(name)} is not a number")
        found[name] = hexadecimal(value, name) if isinstance(value, str) else value
    return found


def hexadecimal(text: Any, called: str) -> float:
    """A number that is written in hexadecimal."""
    try:
        return float.fromhex(text)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{called} is not a number in hexadecimal: {quoted(text)}") from None


def counters_of(numbers: Any) -> Counters:
    """The work that was done."""
    found = numbers_of(numbers, "counters")
    require(set(found) == set(vars(Counters())), "counters are missing, or others are there")
    argmax = number(found, "argmax", least=0)
    # An integer stays one: it is printed as such.
    return Counters(
        iterations=count(found, "iterations"),
        argmax=argmax if isinstance(found["argmax"], float) else int(argmax),
        projections=count(found, "projections"),
    )


def random_of(random: np.random.Generator, state: Any) -> np.random.Generator:
    """Random numbers that go on from a state; ``random`` has the same kind of generator."""
    kind, now = type(random.bit_generator), random.bit_generator.state
    require(_alike(now, state), "the state of the random numbers has another form")
    # Every other increment gives numbers that soon repeat.
    require(state["state"].get("inc", 1) % 2 == 1, "the state of the random numbers is none that they can have")
    fresh = kind()
    try:
        fresh.state = state
    except (TypeError, ValueError, OverflowError):
        raise ValueError("the state of the random numbers is none that they can have") from None
    return np.random.Generator(fresh)


def _alike(one: Any, other: Any) -> bool:
    """Whether two states have the same keys and kinds of values, numbers from 0 on."""
    if isinstance(one, dict):
        return isinstance(other, dict) and set(one) == set(other) and all(_alike(one[key], other[key]) for key in one)
    return (type(other) is int and other >= 0) if isinstance(one, int) else one == other


def history_of(arrays: Mapping[str, Any], counters: Counters, problem: BaseProblem, minimizes: bool) -> list[Record]:
    """The records of all certificates."""
    rows = value_of(arrays, "history")
    width = len(FIELDS) + len(BOUNDS)
    require(
        isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.ndim == 2 and rows.shape[1] == width,
        f"the history is not a table of {width} columns",
    )
    require(len(rows) <= 2 * (counters.iterations + 1), f"{len(rows)} certificates in {counters.iterations} iterations")
    column = dict(zip(FIELDS, rows.T[: len(FIELDS)], strict=True))
    bound = dict(zip(BOUNDS, rows.T[len(FIELDS) :], strict=True))
    for name, values in column.items():
        fine = np.isfinite(values) & ((values >= 0) | (name == "primal"))
        if name in _INTEGERS:
            fine &= (values == np.floor(values)) & (values <= MOST)
        require(fine.all(), f"{name} in its history is not a possible number")
    for name in _NEVER_FALL:
        require((np.diff(column[name]) >= 0).all(), f"{name} falls in its history")
    for name, now in (("iteration", counters.iterations), ("argmax", counters.argmax)):
        require(not len(rows) or column[name][-1] <= now, f"its history has a larger {name} than its counters")
    require(np.isfinite(bound["primal"]).all() and np.isfinite(bound["hinge"]).all(), "its history has no objective")
    require((bound["dual"] < np.inf).all(), "its history has an infinite or undefined bound")
    for name in ("radius", "restricted_dual"):
        require((np.isnan(bound[name]) | (np.isfinite(bound[name]) & (bound[name] >= 0))).all(), f"{name} is negative")
    for name in ("primal_rounding", "dual_rounding"):
        require((bound[name] >= 0).all(), f"{name} is negative or undefined")
    require((np.diff(bound["dual"]) >= 0).all(), "the lower bound falls in its history")
    require(not minimizes or (np.diff(bound["primal"]) <= 0).all(), "the objective rises in its history")
    return [_record(row, problem.relaxed) for row in rows.tolist()]


def _record(row: list[float], relaxed: bool) -> Record:
    """The record of one row of the history."""
    values: dict[str, Any] = dict(zip(FIELDS, row[: len(FIELDS)], strict=True))
    values |= {name: int(values[name]) for name in _INTEGERS}
    bounds: dict[str, Any] = dict(zip(BOUNDS, row[len(FIELDS) :], strict=True))
    # None was stored as NaN.
    absent = {name: None for name in ("radius", "restricted_dual") if np.isnan(bounds[name])}
    certificate = Certificate(**(bounds | absent), relaxed=relaxed)
    return Record(**values, certificate=certificate, weights=np.zeros(0))


def bounds_of(given: Any, length: int) -> tuple[float, ...]:
    """The best bounds."""
    require(isinstance(given, list) and len(given) == length, f"its bounds are not {length} numbers")
    return tuple(hexadecimal(bound, "a bound") for bound in given)


def check_bounds(
    run: Run,
    weights: FloatArray | None,
    bounds: Sequence[float],
    history: Sequence[Record],
    minimizes: bool,
) -> None:
    """ValueError unless the best bounds are those of the history, and the objective that of the weights.

    The objective is computed from the warm starts of the run, which must fit the structure. One that was found to a
    tolerance may be too large.
    """
    primal, dual, hinge, *rounding = bounds
    require(
        (weights is None) == (not history), "it has weights without a certificate, or a certificate without weights"
    )
    if weights is None:
        require(tuple(bounds) == (math.inf, -math.inf, math.inf, 0.0, 0.0), "it has bounds without a certificate")
        require(all(one is None for one in run.warm), "it has a warm start without a certificate")
        return
    last = history[-1].certificate
    require(
        (primal, dual, hinge, *rounding)
        == (last.primal, last.dual, last.hinge, last.primal_rounding, last.dual_rounding),
        "its bounds are not those of its history",
    )
    size = sum(rounding) / ROUNDING  # of the terms of both bounds
    require(not minimizes or dual <= primal + _AGREEMENT * size, "its lower bound is above its objective")
    try:
        again = run.uncounted().hinge(weights).value  # piece by piece as in the run
    except InexactError:  # as it may have been in the run
        return
    above = _AGREEMENT * size if run.hinge_tol == 0.0 else math.inf
    below = _AGREEMENT * size + run.hinge_tol
    penalty = run.problem.region.penalty(weights)
    require(
        -below <= hinge - again <= above and abs(penalty + hinge - primal) <= _AGREEMENT * size,
        "its objective is not that of its weights",
    )


def responses_of(arrays: Mapping[str, Any], history: Sequence[Record]) -> Responses:
    """What the structures player's points say about weights of any length."""
    if "responses" not in arrays:
        return Responses()
    points = array(arrays, "responses", np.float64, (None, 3))
    require(history and (points >= 0).all() and (points[:, 1] > 0).all(), "its responses are negative")
    return Responses(points)


def warm_of(run: Run, shards: Any, arrays: Mapping[str, Any]) -> list[Any]:
    """Where the next argmax of every shard starts from."""
    pieces = run.session.n_pieces
    n = count({"shards": shards}, "shards", most=pieces)
    require(n in (0, pieces), f"it has {n} pieces, this run {pieces}")
    found: list[Any] = [None] * n
    for name, value in arrays.items():
        if name.startswith("warm."):
            at = name.removeprefix("warm.")
            require(at.isascii() and at.isdecimal() and len(at) < 10 and int(at) < n, f"{quoted(name)} is of no shard")
            require(value.dtype == np.float64 and np.isfinite(value).all(), f"{name} is not made of finite numbers")
            found[int(at)] = np.array(value)
    return found


def next_check_of(given: Any, iterations: int, history: Sequence[Record], watched: bool) -> int:
    """The iteration of the next certificate; the first one of a run that is ``watched`` comes before its first step."""
    require(history or not watched or not iterations, "it has no certificate")
    return count({"next_check": given}, "next_check", most=iterations + _AHEAD if history or not watched else 0)
