"""What the components share: a model of a file, batches of documents, and the model inside saved pipelines.

spaCy imports this module whenever a pipeline is made, so it imports the library's models only when one is loaded.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.util import minibatch

FILE = "model.mm"
"""The name of the model file in the folder of the component."""

PART = "model"
"""What ``exclude`` names, as of spaCy's own components, to leave the model out."""


class ModelPipe(Pipe):  # type: ignore[misc]
    """Base class: a component of spaCy that annotates documents by a model.

    Args:
        name: the name in the pipeline.
        model: the name of the model file. It is opened when a model is first needed, and never if the component has
            got one by then, from :meth:`from_disk`, :meth:`from_bytes` or by assignment.
        n_jobs: threads, as scikit-learn reads it.
    """

    def __init__(self, name: str, model: str | None, n_jobs: int | None) -> None:
        self.name, self._n_jobs = name, n_jobs
        # Absolute, so that a change of folder before the first document does not name another file. It is not opened
        # here: spaCy makes components by their config before it reads a saved pipeline, which has its own model.
        self._path = None if model is None else Path(model).absolute()
        self._model: Any = None

    @staticmethod
    @abstractmethod
    def kind() -> Any:
        """Return the class of the models that the component takes."""

    @abstractmethod
    def check(self, model: Any) -> None:
        """Raise ValueError if the component cannot use a model."""

    @abstractmethod
    def annotate(self, docs: Sequence[Doc]) -> None:
        """Write predictions to documents."""

    @property
    def model(self) -> Any:
        """The model; None if none has been loaded or assigned yet.

        Assign a fitted estimator, its ``model_`` or the name of a model file. Reading the attribute opens no file and
        raises no error, as spaCy looks for such attributes when it makes a pipeline.
        """
        return self._model

    @model.setter
    def model(self, given: Any) -> None:
        from maxmargin.integrations.given import given_model

        model = given_model(given, self.kind(), self._n_jobs)
        self.check(model)
        self._model = model

    def load(self) -> Any:
        """Return the model; open its file first if there is no model yet."""
        if self._model is None and self._path is not None and self._path.exists():
            self.model = self._path
        if self._model is None:
            given = "no model was given" if self._path is None else f"there is no model file {str(self._path)!r}"
            raise ValueError(
                f"{self.name}: {given}; name the file of one in the config, {{'model': 'FILE'}}, or assign a trained "
                f"one to nlp.get_pipe({self.name!r}).model"
            )
        return self._model

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a document, and return it."""
        for found in self.pipe([doc]):
            return found
        return doc  # an error handler has taken the error

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of documents, and yield them in order; predictions do not depend on the batches."""
        for docs in minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder, which is made; with ``exclude=["model"]`` the folder alone."""
        Path(path).mkdir(parents=True, exist_ok=True)
        if PART not in exclude:
            self.load().save(Path(path) / FILE)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> ModelPipe:
        """Take the model of a folder that :meth:`to_disk` has written. Nothing in the file is ever executed.

        With ``exclude=["model"]`` the component stays as it is.
        """
        if PART not in exclude:
            self.model = Path(path) / FILE
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the content of the model's file; nothing with ``exclude=["model"]``."""
        if PART in exclude:
            return b""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            return (Path(folder) / FILE).read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> ModelPipe:
        """Take the model whose file has this content; with ``exclude=["model"]`` the component stays as it is."""
        if PART in exclude:
            return self
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / FILE).write_bytes(data)
            return self.from_disk(folder)


def sentences_of(doc: Doc) -> list[list[Token]]:
    """Return the tokens of each sentence without white space; the document is one sentence if it has no bounds."""
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    found = ([token for token in part if not token.is_space] for part in parts)
    return [tokens for tokens in found if tokens]
