"""Models as callers give them: an estimator, its model, or the name of a model file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from maxmargin._messages import shown
from maxmargin.models.base import Model

M = TypeVar("M", bound=Model)


def given_model(model: Any, kind: type[M], n_jobs: int | None = None) -> M:
    """Return the model that a caller gave, with a number of threads for predictions.

    Args:
        model: an estimator that is fitted, its ``model_``, or the name of a model file.
        kind: the class that the model must have.
        n_jobs: threads, as scikit-learn reads it.

    Raises:
        ModelFileError: the file is not one of a model of this class.
        FileNotFoundError: there is no such file.
        ValueError: it is something else, or a model of another class.
    """
    if isinstance(model, (str, os.PathLike)):
        if not Path(model).exists():
            raise FileNotFoundError(
                f"there is no model file {shown(str(model))}; give the name of one that save() wrote"
            )
        return kind.load(Path(model), n_jobs=n_jobs)
    found = getattr(model, "model_", model)
    if not isinstance(found, kind):
        raise ValueError(
            f"the model must be a fitted estimator, its {kind.__name__}, or the name of its file, got {shown(model)}"
        )
    return replace(found, n_jobs=n_jobs)
