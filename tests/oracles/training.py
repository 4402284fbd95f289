"""The training problem over all outputs: its optimum by a general solver, and slack rescaled maxima."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import clarabel
import numpy as np

from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures import Points, Structure
from maxmargin.structures.base import FloatArray
from oracles import enumeration
from oracles.reference import conic

vertices = cache(enumeration.vertices)


def rows(problem: Problem) -> Iterator[tuple[int, FloatArray, float]]:
    """Example, change of features and loss of every output, as rescaled: the hinge is the largest ``a'w + b``."""
    matrix = problem.features.to_sparse()
    for i, outputs in enumerate(vertices(problem.structure)):
        parts = problem.structure.parts_of([i])
        gold = problem.gold[parts]
        for output in outputs if problem.scale[i] > 0.0 else []:
            loss = float(problem.costs[parts] @ (output - gold)) / problem.scale[i]
            wrong = float(np.abs(output - gold).sum() > 0)
            factor, constant = {"margin": (1.0, loss), "slack": (loss, loss), "none": (wrong, wrong)}[problem.rescaling]
            yield i, factor * ((output - gold) @ matrix[parts]), constant


def optimum(problem: Problem) -> float:
    """The optimum with a ridge and signs, by a quadratic program with a slack per example and a row per output."""
    region, n, k = problem.region, problem.n_weights, problem.structure.n_examples
    assert isinstance(region, L2)
    assert np.isinf(region.radius)
    signs = np.flatnonzero(region.nonnegative) if region.nonnegative is not None else []
    bounds = [-np.eye(n + k)[at] for at in (*signs, *range(n, n + k))]
    matrix = [*(np.append(a, -np.eye(k)[i]) for i, a, _ in rows(problem)), *bounds]
    rhs = np.append([-b for _, _, b in rows(problem)], np.zeros(len(bounds)))
    quadratic, linear = np.append(np.full(n, region.curvature), np.zeros(k)), np.zeros(n + k)
    (quadratic if problem.slack == "quadratic" else linear)[n:] = problem.scale
    return conic(np.diag(quadratic), linear, np.array(matrix), rhs, [clarabel.NonnegativeConeT(len(rhs))])[1]


def slack_argmax(
    self: Structure, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, **_: Any
) -> Points:
    """:meth:`Structure.slack_argmax`, exact for every structure that can be enumerated."""
    z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
    for i, outputs in enumerate(vertices(self)):
        parts = self.parts_of([i])
        worth = (outputs @ costs[parts] + constants[i]) * (margin[i] + outputs @ scores[parts])
        z[parts], value[i] = outputs[np.argmax(worth)], worth.max()
    return Points(z, value, np.zeros(self.n_examples, dtype=np.int8))
