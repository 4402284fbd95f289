"""The component ``maxmargin_parser``: heads and relations of a dependency parser."""

# Without "from __future__ import annotations": spaCy reads the types of the factory's arguments.

from collections.abc import Iterable, Sequence
from typing import Any, Dict, Optional  # noqa: UP035 (older versions of spaCy read these alone)

import numpy as np
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Token

from maxmargin.integrations.spacy.columns import TokenColumns
from maxmargin.integrations.spacy.component import ModelPipe, sentences_of

ROOT, OF_SPACE = "ROOT", "dep"
"""The relations that spaCy gives to roots and to tokens of white space."""

DEFAULTS: dict[str, Any] = {"model": None, "columns": {}, "n_jobs": None}


def make_parser(
    nlp: Language,
    name: str,
    model: Optional[str],  # noqa: UP045
    columns: Dict[str, str],  # noqa: UP006
    n_jobs: Optional[int],  # noqa: UP045
) -> "MaxMarginParser":
    """Return the component; the arguments are those of :class:`MaxMarginParser`."""
    return MaxMarginParser(name, model, columns, n_jobs)


Language.factory(
    "maxmargin_parser", default_config=DEFAULTS, assigns=["token.dep", "token.head", "doc.sents"], func=make_parser
)


class MaxMarginParser(ModelPipe):
    """Writes the trees of a :class:`~maxmargin.tasks.parsing.ParserModel` to documents: ``token.head``, ``token.dep_``.

    Sentences are those that a component before has set, such as ``sentencizer``, else the document is one. Tokens of
    white space hang on the token before them, with the relation ``dep``, and those at the beginning on the first token.

    Args:
        name: the name in the pipeline.
        model: the name of the model file, which is opened at the first document.
        columns: the attribute of tokens that a column of the model is read from, see
            :class:`~maxmargin.integrations.spacy.tagger.MaxMarginTagger`; ``feats`` is ``morph``.
        n_jobs: threads, as scikit-learn reads it.
    """

    def __init__(
        self,
        name: str = "maxmargin_parser",
        model: str | None = None,
        columns: dict[str, str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.columns = TokenColumns(name, columns)
        super().__init__(name, model, n_jobs)

    @staticmethod
    def kind() -> Any:
        """See :meth:`ModelPipe.kind`."""
        from maxmargin.tasks.parsing.model import ParserModel

        return ParserModel

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations of the model, with that of roots as spaCy writes it; none before it is loaded."""
        return () if self._model is None else tuple(_relation(label) for label in self._model.classes_)

    def check(self, model: Any) -> None:
        """See :meth:`ModelPipe.check`."""
        self.columns.check(model.columns)

    def annotate(self, docs: Sequence[Doc]) -> None:
        """See :meth:`ModelPipe.annotate`."""
        by_doc = [sentences_of(doc) for doc in docs]
        sentences = [tokens for own in by_doc for tokens in own]
        model = self.load()
        names = ["form" if column == "word" else column for column in model.columns]
        cells = self.columns.cells(model.columns, sentences)
        given = [[{name: cell or "_" for name, cell in zip(names, row, strict=True)} for row in one] for one in cells]
        trees = iter(model.predict(given) if given else [])
        for doc, own in zip(docs, by_doc, strict=True):
            _set_trees(doc, [(tokens, *next(trees)) for tokens in own])

    def score(self, examples: Iterable[Any], **options: Any) -> dict[str, Any]:
        """Return the attachment scores of spaCy, for ``nlp.evaluate``."""
        return dict(Scorer.score_deps(examples, "dep", ignore_labels=("punct", OF_SPACE)))


def _set_trees(doc: Doc, trees: list[tuple[list[Token], Any, list[str]]]) -> None:
    """Write trees, whose heads are counted from 1 in their sentence, to a document; sentences begin where they do."""
    if not trees:
        return
    heads = np.full(len(doc), -1, dtype=np.int64)
    relations = [OF_SPACE] * len(doc)
    for tokens, found, names in trees:
        places = np.array([token.i for token in tokens])
        found = np.asarray(found)
        heads[places] = np.where(found == 0, places, places[found - 1])
        for at, name in zip(places.tolist(), names, strict=True):
            relations[at] = _relation(name)
    words = np.flatnonzero(heads >= 0)
    space = np.flatnonzero(heads < 0)
    heads[space] = words[np.maximum(np.searchsorted(words, space) - 1, 0)]
    codes = np.array([doc.vocab.strings.add(name) for name in relations], dtype=np.uint64)
    offsets = (heads - np.arange(len(doc))).astype(np.uint64)  # as spaCy takes them: signed numbers, bit for bit
    doc.from_array([HEAD, DEP], np.stack([offsets, codes], axis=1))


def _relation(name: str) -> str:
    return ROOT if name == "root" else name
