"""What online solvers share: regions as compiled passes take them, and errors as the loop takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import InexactError, Problem
from maxmargin.solvers.base import NonFiniteError


def signs_of(problem: Problem) -> Any:
    """The sign constraints as the compiled passes take them: empty for none."""
    mask = problem.region.nonnegative
    return np.zeros(0, dtype=np.uint8) if mask is None else mask.astype(np.uint8)


def finite_pass(run_pass: Any, *arguments: Any) -> Any:
    """Call a compiled pass; NonFiniteError where it met NaN or infinite numbers, InexactError where no output."""
    try:
        return run_pass(*arguments)
    except LookupError as error:
        raise InexactError(f"{error}, so that no certificate would hold") from None
    except ArithmeticError as error:
        if type(error) is ArithmeticError:
            raise NonFiniteError(str(error)) from None
        raise
