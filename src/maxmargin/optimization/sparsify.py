"""Sparser weights of the same certified quality, for regions whose solutions are sparse.

Multiplicative and averaged weights come close to zero without reaching it. Setting the smallest to zero stays inside
the region; how many may go is found by bisection, one argmax pass each, about ``log2`` of the number of weights.
"""

from __future__ import annotations

import numpy as np

from maxmargin.optimization.certificate import Certificate, primal_rounding
from maxmargin.optimization.run import Run
from maxmargin.structures.base import FloatArray

SHARE_OF_GAP = 0.01
"""How much of the gap a run that did not converge may lose."""


def sparsify(run: Run, weights: FloatArray, certificate: Certificate, tol: float) -> tuple[FloatArray, Certificate]:
    """The weights with the most zeros found whose gap is still within ``tol`` (or hardly above that of all weights).

    ``tol`` is the run's for a method that stops there, 0 for one that is exact anyway.
    """
    region = run.problem.region
    by_size = np.argsort(np.abs(weights), kind="stable")
    most = max(certificate.dual + tol * abs(certificate.primal), certificate.primal + SHARE_OF_GAP * certificate.gap)
    best = weights, certificate
    fine, coarse = int((weights == 0.0).sum()), len(weights) + 1  # numbers of zeros: known to be fine, known not to be
    while coarse - fine > 1:
        zeros = (fine + coarse) // 2
        cut = weights.copy()
        cut[by_size[:zeros]] = 0.0
        hinge = run.hinge(cut)
        primal = region.penalty(cut) + hinge.value
        if primal <= most:
            fine = zeros
            rounding = (primal_rounding(primal, hinge), certificate.dual_rounding)
            best = cut, Certificate(primal, certificate.dual, hinge.value, certificate.relaxed, None, None, *rounding)
        else:
            coarse = zeros
    return best
