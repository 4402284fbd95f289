"""Predictions for batches of columns: a callable for Ray Data, and for tables in other places."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin.datasets.columns import column_of, names_of, takes_columns, with_column
from maxmargin.models.base import Model, load


class BatchPredictor:
    """Adds a column of predictions to batches, by the model of a file: for ``map_batches`` of Ray Data, for example.

    Small and picklable: a process loads the model when it first needs it, and keeps it for later batches. Each batch is
    predicted on its own, so a model whose predictions depend on examples nearby sees those of the batch alone.

    Args:
        path: the model file, which all workers must find under this name.
        input: the column of inputs, as ``predict`` takes them; several names for inputs that are tuples, such as
            ``("source", "target")`` for pairs of sentences.
        output: the column of predictions that is added.
        method: the method of the model that makes them, one result per input.
        n_jobs: threads, as scikit-learn reads it.
        **options: more arguments of the method, such as ``adapt=False`` of aligners.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        input: str | Sequence[str] = "input",
        output: str = "predicted",
        method: str = "predict",
        n_jobs: int | None = 1,
        **options: Any,
    ) -> None:
        self.path = Path(_checks.path("path", path)).absolute()
        self.input, self.output = input if isinstance(input, str) else tuple(input), output
        self.method, self.n_jobs, self.options = method, n_jobs, options

    def __getstate__(self) -> dict[str, Any]:
        """The attributes and the version of the file, by which ``datasets`` tells whether cached results still hold."""
        found = os.stat(self.path) if self.path.exists() else None
        return {**vars(self), "_version": None if found is None else (found.st_mtime_ns, found.st_size)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: value for name, value in state.items() if name != "_version"})

    def __repr__(self) -> str:
        return f"BatchPredictor({str(self.path)!r}, input={self.input!r}, output={self.output!r})"

    def predict(self, inputs: Sequence[Any]) -> list[Any]:
        """The predictions for inputs, made of lists, strings and numbers alone."""
        found = os.stat(self.path)
        model = _loaded(str(self.path), self.n_jobs, found.st_mtime_ns, found.st_size)
        call: Callable[..., Any] | None = getattr(model, self.method, None)
        if call is None:
            raise ValueError(f"a model of class {type(model).__name__} has no method {self.method!r}")
        return [_plain(one) for one in call(inputs, **self.options)] if len(inputs) else []

    def __call__(self, batch: Any) -> Any:
        """The batch with one more column: a dictionary of columns, a data frame of pandas or polars, an Arrow table."""
        if type(batch).__name__ == "LazyRow":  # of datasets of Hugging Face
            raise ValueError("this is one row, and a batch has several; give map() batched=True")
        there = names_of(batch)
        if there is None or not takes_columns(batch):
            raise ValueError(
                "a batch must be a dictionary of columns, a pandas or polars data frame or a pyarrow table, got "
                f"{type(batch).__name__}"
            )
        names = (self.input,) if isinstance(self.input, str) else self.input
        for name in names:
            if name not in there:
                raise ValueError(f"no column {name!r}; there are {', '.join(map(str, there))}: give input= one of them")
        columns = [[_given(one) for one in column_of(batch, name)] for name in names]
        inputs = columns[0] if isinstance(self.input, str) else list(zip(*columns, strict=True))
        return with_column(batch, self.output, self.predict(inputs))


@lru_cache(maxsize=2)
def _loaded(path: str, n_jobs: int | None, changed: int, size: int) -> Model:
    """The model of a file, loaded once as long as the file is the same."""
    return load(path, n_jobs=n_jobs)


def _given(value: Any) -> Any:
    """An input without arrays of objects, which lists of strings become in batches of NumPy arrays."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return [_given(one) for one in value.tolist()]
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [_given(one) for one in value]
    return value


def _plain(value: Any) -> Any:
    """A prediction as lists, strings and numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
