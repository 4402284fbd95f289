"""What online solvers share: regions as compiled passes take them, and errors as the loop takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers.base import NonFiniteError


def needs_ridge(problem: Problem) -> str | None:
    """Why a method for the smooth dual of the penalty form cannot solve the problem, or None."""
    if not isinstance(problem.region, L2) or not np.isfinite(problem.region.C):
        return "it needs a ridge penalty, an L2 region with a finite C; use Extragradient or ProjectedGradient"
    return None


def signs_of(problem: Problem) -> Any:
    """The sign constraints as the compiled passes take them: empty for none."""
    mask = problem.region.nonnegative
    return np.zeros(0, dtype=np.uint8) if mask is None else mask.astype(np.uint8)


def finite_pass(run_pass: Any, *arguments: Any) -> Any:
    """Call a compiled pass; NonFiniteError where it met NaN or infinite numbers."""
    try:
        return run_pass(*arguments)
    except ArithmeticError as error:
        if type(error) is ArithmeticError:
            raise NonFiniteError(str(error)) from None
        raise
