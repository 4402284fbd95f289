"""The training problem over all outputs: its optimum by a general solver, and slack rescaled maxima."""

from __future__ import annotations

from functools import cache
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures import Points, Structure
from maxmargin.structures.base import FloatArray
from oracles import enumeration

vertices = cache(enumeration.vertices)


def optimum(problem: Problem) -> float:
    """The optimum with a ridge and signs, by a quadratic program with a slack per example and a row per output."""
    structure, region, n = problem.structure, problem.region, problem.n_weights
    assert isinstance(region, L2)
    assert np.isinf(region.radius)
    k = structure.n_examples
    matrix, rows, rhs = problem.features.to_sparse(), [], []
    for i, outputs in enumerate(vertices(structure)):
        parts = structure.parts_of([i])
        gold = problem.gold[parts]
        for output in outputs if problem.scale[i] > 0.0 else []:
            loss = float(problem.costs[parts] @ (output - gold)) / problem.scale[i]
            wrong = float(np.abs(output - gold).sum() > 0)
            factor, constant = {"margin": (1.0, loss), "slack": (loss, loss), "none": (wrong, wrong)}[problem.rescaling]
            rows.append(np.append(factor * ((output - gold) @ matrix[parts]), -np.eye(k)[i]))
            rhs.append(-constant)
    signs = np.flatnonzero(region.nonnegative) if region.nonnegative is not None else []
    rows += [-np.eye(n + k)[at] for at in (*signs, *range(n, n + k))]
    rhs += [0.0] * (len(signs) + k)
    quadratic, linear = np.append(np.full(n, region.curvature), np.zeros(k)), np.zeros(n + k)
    (quadratic if problem.slack == "quadratic" else linear)[n:] = problem.scale
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    cones, upper = [clarabel.NonnegativeConeT(len(rhs))], sp.csc_matrix(sp.diags_array(quadratic))
    answer = clarabel.DefaultSolver(upper, linear, sp.csc_matrix(np.array(rows)), np.array(rhs), cones, options).solve()
    return float(answer.obj_val)


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
