"""The base class of all estimators, and what they predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator of scikit-learn whose inputs are lists of examples of any size, not a matrix with a row for each.

    It is neither a classifier nor a regressor, as its outputs are structures: cross-validation must not stratify them.
    """

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn 1.6 and later."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


class Outputs(list[Any]):
    """A list of an output per example, which NumPy takes as such; ``cross_val_predict`` needs that."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return an array of objects, or of numbers or strings if the outputs are such, shape ``(n_examples,)``."""
        if self and all(np.isscalar(one) for one in self):
            return np.array(list(self), dtype=dtype)
        found = np.empty(len(self), dtype=object)
        for at, one in enumerate(self):  # an assignment of the whole would read lists of one length as a matrix
            found[at] = one
        return found
