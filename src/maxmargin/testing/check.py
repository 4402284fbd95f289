"""Does a structure keep its promises? For authors of structures, and for the tests of the built-in ones."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray, PointStatus, Structure


def check_structure(structure: Structure, rng: np.random.Generator, *, rounds: int = 5, k: int = 3) -> None:
    """Try a structure on random scores and points; AssertionError with the broken promise.

    Checks, per round: the argmax is worth its value and no other argmax seen is worth more; ``encode`` undoes
    ``decode``; ``select`` agrees with the whole batch; the projection is certified by the argmax; the k best are
    sorted, distinct and start with the argmax.
    """
    n, parts = structure.n_examples, structure.n_parts
    vertices: list[FloatArray] = []
    for _ in range(rounds):
        scores = _admissible(structure, rng.normal(size=parts))
        best = structure.argmax(scores)
        assert best.z.shape == (parts,), "argmax: z must be a packed vector"
        assert best.value.shape == best.status.shape == (n,), "argmax: one value and status per example"
        worth = structure.by_example(scores * best.z)
        np.testing.assert_allclose(best.value, worth, atol=1e-9, err_msg="argmax: value must be scores'z")
        vertices.append(best.z)
        for other in vertices:
            assert (structure.by_example(scores * other) <= worth + 1e-9).all(), "argmax: another output is worth more"
        np.testing.assert_allclose(
            structure.encode(structure.decode(best.z)), best.z, atol=1e-12, err_msg="encode(decode(z)) must be z"
        )
        _check_select(structure, scores, best.value, rng)
        _check_projection(structure, rng.normal(size=parts))
        ranks = structure.k_best(scores, k)
        _check_ranks(structure, ranks[0].value, worth, [points.z for points in ranks], [p.value for p in ranks])


def _admissible(structure: Structure, scores: FloatArray) -> FloatArray:
    """Scores for which the best vertices are outputs: where the other parts must attract, theirs are <= 0."""
    if structure.loss_on_decisions_only:
        scores[structure.starts[1] :] = -np.abs(scores[structure.starts[1] :])
    return scores


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


def _check_ranks(
    structure: Structure, first: FloatArray, best: FloatArray, z: list[FloatArray], value: list[FloatArray]
) -> None:
    np.testing.assert_allclose(first, best, atol=1e-9, err_msg="k_best: rank 0 must be the argmax")
    for i in range(len(z) - 1):
        assert (value[i + 1] <= value[i] + 1e-9).all(), "k_best: must be sorted"
        present = value[i + 1] > -np.inf
        for earlier in z[: i + 1]:
            moved = structure.by_example(np.abs(earlier - z[i + 1]))
            assert (moved[present] > 0.5).all(), "k_best: outputs must be distinct"
