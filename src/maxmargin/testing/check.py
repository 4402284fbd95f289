"""Checks that a structure keeps its contract: for authors of structures, and for tests of the built-in ones."""

from __future__ import annotations

import numpy as np

from maxmargin import _checks
from maxmargin.structures.base import FloatArray, IntArray, PointStatus, Structure


def check_structure(structure: Structure, rng: np.random.Generator, *, rounds: int = 5, k: int = 3) -> None:
    """Try a structure on random scores and points; AssertionError naming the contract it breaks.

    Checks, per round: the argmax has the value it reports and no output seen scores higher; ``encode`` undoes
    ``decode``; ``select`` agrees with the whole batch; the projection is certified by the argmax; the k best, unless
    refused with a ValueError, are sorted, distinct and start with the argmax; no output seen beats the slack-rescaled
    maximum; marginals, if supported, are feasible and the gradient of the log-partition function, which is at least
    the argmax. For a relaxed structure, whose argmax need not be an output, the value is a bound and ``predict`` gives
    the outputs. At the end: ``categorical`` is declared as the outputs are.
    """
    _checks.instance("structure", structure, Structure, "a Structure")
    _checks.instance("rng", rng, np.random.Generator, "np.random.default_rng(seed)")
    rounds, k = _checks.integer("rounds", rounds, least=1), _checks.integer("k", k, least=1)
    n, parts = structure.n_examples, structure.n_parts
    vertices: list[FloatArray] = []
    for _ in range(rounds):
        scores = _admissible(structure, rng.normal(size=parts))
        best = structure.argmax(scores)
        assert best.z.shape == (parts,), "argmax: z must be a packed vector of shape (n_parts,)"
        assert best.value.shape == best.status.shape == (n,), "argmax: one value and status per example"
        worth = structure.by_example(scores * best.z)
        np.testing.assert_allclose(best.value, worth, atol=1e-9, err_msg="argmax: value must be scores'z")
        output = structure.predict(scores).z if structure.relaxed else best.z
        vertices.append(output)
        for other in vertices:
            assert (structure.by_example(scores * other) <= worth + 1e-9).all(), "argmax: another output scores higher"
        np.testing.assert_allclose(
            structure.encode(structure.decode(output)), output, atol=1e-12, err_msg="encode(decode(z)) must be z"
        )
        _check_select(structure, scores, best.value, rng)
        _check_projection(structure, rng.normal(size=parts))
        _check_slack(structure, scores, vertices, rng)
        if not structure.marginals_unsupported:
            _check_marginals(structure, scores, best.value, rng.normal(size=parts))
        try:
            ranks = structure.k_best(scores, k)
        except ValueError:
            continue
        _check_ranks(structure, worth, [points.z for points in ranks], [points.value for points in ranks])
    for score in (-1.0, 1.0):
        scores = np.zeros(parts)
        scores[structure.variable_parts] = score
        vertices.append(structure.predict(scores).z)
    _check_categorical(structure, np.array([z[structure.variable_parts] for z in vertices]))


def _admissible(structure: Structure, scores: FloatArray) -> FloatArray:
    """Scores whose best vertices are outputs: if scores of the other parts must have one sign, they are given it."""
    signs = structure.edge_sign
    for b, sign in enumerate(signs if isinstance(signs, tuple) else [signs] * (len(structure.blocks) - 1), start=1):
        block = slice(structure.starts[b], structure.starts[b + 1])
        if sign:
            scores[block] = sign * np.abs(scores[block])
    return scores


def _check_categorical(structure: Structure, outputs: FloatArray) -> None:
    """``outputs``: variable parts of some outputs, one row each."""
    n_states, ends = structure.n_states, structure.blocks[0].offsets
    if structure.categorical:
        begin = np.cumsum(n_states) - n_states
        fits = n_states.sum() == ends[-1] and np.isin(ends, [*begin, ends[-1]]).all()
        assert fits, "states_per_variable: must add up to the parts of the first block of each example"
        assert _one_hot(outputs, begin), "categorical is True, but an output has a variable without exactly one state"
        return
    assert (n_states == 1).all(), "categorical is False: states_per_variable must be 1"
    uniform = (np.arange(0, ends[-1], size) for size in range(2, int(ends[-1]) + 1) if ends[-1] % size == 0)
    for begin in (ends[:-1], *uniform):
        sizes = np.diff(begin, append=ends[-1])
        if sizes.max(initial=0) > 1 and sizes.min() > 0:
            assert not _one_hot(outputs, begin), (
                "categorical is False, but all outputs seen choose exactly one part of each group of consecutive parts "
                f"that begin at {begin[:8].tolist()}: declare categorical = True and states_per_variable, or Hamming "
                "loss counts every wrong choice twice"
            )


def _one_hot(outputs: FloatArray, begin: IntArray) -> bool:
    """Whether all groups of columns that begin at ``begin`` have one 1 and zeros in each row."""
    whole = bool(np.isin(outputs, (0.0, 1.0)).all())
    return whole and bool((np.add.reduceat(outputs, begin, axis=1) == 1.0).all() if len(begin) else True)


def _check_slack(
    structure: Structure, scores: FloatArray, vertices: list[FloatArray], rng: np.random.Generator
) -> None:
    costs = np.zeros(structure.n_parts)
    costs[structure.variable_parts] = rng.integers(0, 3, size=structure.starts[1])
    margin, constants = rng.normal(size=structure.n_examples), np.zeros(structure.n_examples)
    points = structure.slack_argmax(scores, margin, costs, constants)

    def product(z: FloatArray) -> FloatArray:
        """``loss(z) score(z)`` where the score is positive, else 0."""
        return structure.by_example(costs * z) * np.maximum(structure.by_example(scores * z) + margin, 0.0)

    exact = points.status == PointStatus.OK
    np.testing.assert_allclose(
        points.value[exact], product(points.z)[exact], atol=1e-9, err_msg="slack_argmax: value must be the product"
    )
    for other in vertices:
        assert (product(other) <= points.value + 1e-9).all(), "slack_argmax: another output has a larger product"


def _check_marginals(structure: Structure, potentials: FloatArray, best: FloatArray, direction: FloatArray) -> None:
    points = structure.marginals(potentials)
    assert (points.status == PointStatus.OK).all(), "marginals: finite potentials must give a distribution"
    assert (points.value >= best - 1e-9).all(), "marginals: the log-partition function is below the largest score"
    step = 1e-5
    ahead, behind = (structure.marginals(potentials + sign * step * direction).value for sign in (1, -1))
    np.testing.assert_allclose(
        (ahead - behind) / (2 * step),
        structure.by_example(points.z * direction),
        atol=1e-6,
        err_msg="marginals: z must be the gradient of the value",
    )
    np.testing.assert_allclose(
        structure.project(points.z, tol=1e-9).z, points.z, atol=1e-6, err_msg="marginals: z must be feasible"
    )


def _check_select(structure: Structure, scores: FloatArray, value: FloatArray, rng: np.random.Generator) -> None:
    chosen = rng.integers(0, structure.n_examples, size=structure.n_examples + 1)
    found = structure.select(chosen).argmax(scores[structure.parts_of(chosen)])
    np.testing.assert_allclose(found.value, value[chosen], atol=1e-9, err_msg="select: must give the same examples")


def _check_projection(structure: Structure, point: FloatArray) -> None:
    points = structure.project(point, tol=1e-9)
    assert (points.status == PointStatus.OK).all(), "project: did not reach the tolerance"
    residual = point - points.z
    gap = structure.argmax(residual).value - structure.by_example(residual * points.z)
    assert (gap <= 1e-8 * (1.0 + np.abs(point).max())).all(), "project: the argmax of the residual improves on it"
    distance = 0.5 * structure.by_example(residual**2)
    np.testing.assert_allclose(points.value, distance, atol=1e-9, err_msg="project: value must be half the distance^2")


def _check_ranks(structure: Structure, best: FloatArray, z: list[FloatArray], value: list[FloatArray]) -> None:
    np.testing.assert_allclose(value[0], best, atol=1e-9, err_msg="k_best: rank 0 must be the argmax")
    for i in range(len(z) - 1):
        assert (value[i + 1] <= value[i] + 1e-9).all(), "k_best: must be sorted"
        present = value[i + 1] > -np.inf
        for earlier in z[: i + 1]:
            moved = structure.by_example(np.abs(earlier - z[i + 1]))
            assert (moved[present] > 0.5).all(), "k_best: outputs must be distinct"
