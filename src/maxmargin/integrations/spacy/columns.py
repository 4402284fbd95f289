"""Columns of a model's tokens, read from attributes of spaCy's tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from spacy.tokens import Doc, Token

from maxmargin._messages import quoted

COLUMNS = {
    "word": "text",
    "form": "text",
    "lemma": "lemma_",
    "pos": "tag_",
    "xpos": "tag_",
    "upos": "pos_",
    "feats": "morph",
}
"""The attribute of tokens that a column is read from, unless the user names another."""

_SET_BY_COMPONENTS = {"lemma_": "LEMMA", "tag_": "TAG", "pos_": "POS", "morph": "MORPH"}


class TokenColumns:
    """Where the columns of a model are read from.

    Args:
        component: the name of the component, for errors.
        given: the attribute of tokens for each of some columns, ``{"pos": "pos_"}``; ``"_.name"`` for an extension.
    """

    def __init__(self, component: str, given: Mapping[str, str] | None) -> None:
        self.component, self.given = component, tuple(given or ())
        self.paths = {**COLUMNS, **(given or {})}

    def check(self, columns: Sequence[str] | None) -> None:
        """Raise ValueError if columns of a model cannot be read; None means that it takes something else."""
        if columns is None:
            raise ValueError(
                f"{self.component}: the model takes attributes or matrices of tokens, which documents do not have; "
                "give one that was trained on words, with a preset or a template"
            )
        for column in self.given:
            if column not in columns:
                raise ValueError(
                    f"{self.component}: the config names the column {column!r}, which the model does not read; it "
                    f"reads {', '.join(columns)}"
                )
        for column in columns:
            path = self.paths.get(column)
            if path is None:
                raise ValueError(
                    f"{self.component}: the model uses the column {column!r}; say in the config which attribute of "
                    f"tokens that is, {{'columns': {{{column!r}: 'ATTRIBUTE'}}}}"
                )
            if not (Token.has_extension(path[2:]) if path.startswith("_.") else hasattr(Token, path)):
                raise ValueError(
                    f"{self.component}: the column {column!r} is to be read from {path!r}, which is not an attribute "
                    "of tokens; 'tag_', 'pos_', 'lemma_' are some, and '_.NAME' is an extension"
                )

    def cells(self, columns: Sequence[str], sentences: list[list[Token]]) -> list[list[tuple[str, ...]]]:
        """Return the cells of all tokens; ValueError if a document lacks what a component before must set."""
        paths = [self.paths[column] for column in columns]
        docs: dict[int, Doc] = {id(tokens[0].doc): tokens[0].doc for tokens in sentences}
        for column, path in zip(columns, paths, strict=True):
            for doc in docs.values() if path in _SET_BY_COMPONENTS else ():
                if not doc.has_annotation(_SET_BY_COMPONENTS[path]):
                    raise ValueError(
                        f"{self.component}: the model uses the column {column!r}, read from token.{path}, which no "
                        f"token of {quoted(doc.text)} has; put a component that sets it before this one"
                    )
        getters = [attrgetter(path) for path in paths]
        return [[tuple(str(get(token)) for get in getters) for token in tokens] for tokens in sentences]
