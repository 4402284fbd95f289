"""The base class of all estimators."""

from __future__ import annotations

from typing import Any

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
