"""NLTK: :class:`MaxMarginTagger`, a ``TaggerI``. Needs the extra ``maxmargin[nltk]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from maxmargin._messages import shown
from maxmargin.integrations.given import given_model
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.tagging.model import TaggerModel

TaggerI: Any = optional("nltk.tag.api", "nltk").TaggerI


class MaxMarginTagger(TaggerI):  # type: ignore[misc]
    """A trained sequence tagger as a tagger of NLTK.

    It has all that NLTK gives its taggers: ``accuracy``, ``precision``, ``recall``, ``confusion``,
    ``evaluate_per_tag``; it can be pickled.

    Args:
        model: the name of a model file, a fitted :class:`~maxmargin.tasks.tagging.SequenceTagger`, or its ``model_``.
        n_jobs: threads, as scikit-learn reads it; never changes the result.

    Attributes:
        model: the :class:`~maxmargin.tasks.tagging.TaggerModel`.
    """

    def __init__(self, model: Any, *, n_jobs: int | None = None) -> None:
        self.model = given_model(model, TaggerModel, n_jobs)

    @classmethod
    def train(cls, tagged_sents: Iterable[Any], *, dev: Iterable[Any] | None = None, **settings: Any) -> Self:
        """Return a tagger that was trained on tagged sentences.

        Args:
            tagged_sents: lists of pairs ``(token, tag)``, as ``tagged_sents()`` of NLTK's corpora gives them. A token
                is a string, or one string per column, as ``((word, pos), chunk)`` with ``columns=("word", "pos")``. The
                tag None is unknown.
            dev: held-out tagged sentences that choose the stopping point (and C, if there are several).
            settings: those of :class:`~maxmargin.tasks.tagging.SequenceTagger`.
        """
        from maxmargin.tasks.tagging.estimator import SequenceTagger  # predictions do without training

        X, y = _parted("tagged_sents", tagged_sents)
        tagger = SequenceTagger(**settings).fit(X, y, dev=None if dev is None else _parted("dev", dev))
        return cls(tagger, n_jobs=tagger.n_jobs)

    def tag(self, tokens: Iterable[Any]) -> list[tuple[Any, Any]]:
        """Return the tokens of one sentence with their tags, a list of pairs."""
        return self.tag_sents([tokens])[0]

    def tag_sents(self, sentences: Iterable[Iterable[Any]]) -> list[list[tuple[Any, Any]]]:
        """Return the tokens of all sentences with their tags; faster than one :meth:`tag` after the other.

        The sentences are one text, in its order: names in one help to find those in others, if the template has such
        attributes, as the preset "ner".
        """
        given = [_listed("sentences", i, sentence, "tokens") for i, sentence in enumerate(sentences)]
        found = self.model.predict(given)
        return [list(zip(tokens, tags, strict=True)) for tokens, tags in zip(given, found, strict=True)]

    def save(self, path: str | Path) -> None:
        """Write the model to a file that this class and :func:`maxmargin.load` read."""
        self.model.save(path)

    def __repr__(self) -> str:
        return f"<MaxMarginTagger: {len(self.model.labels)} tags>"


def _parted(name: str, sentences: Iterable[Any]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the tokens and the tags of tagged sentences."""
    X: list[list[Any]] = []
    y: list[list[Any]] = []
    for i, sentence in enumerate(sentences):
        pairs: Sequence[Any] = _listed(name, i, sentence, "pairs (token, tag)")
        for j, pair in enumerate(pairs):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"{name}, sentence {i}, token {j}: expected a pair (token, tag), got {shown(pair)}")
        X.append([token for token, _ in pairs])
        y.append([tag for _, tag in pairs])
    return X, y


def _listed(name: str, index: int, sentence: Any, what: str) -> list[Any]:
    if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Iterable):
        remedy = "; split it, for example by nltk.wordpunct_tokenize" if isinstance(sentence, str) else ""
        raise ValueError(f"{name}, sentence {index}: expected a list of {what}, got {shown(sentence)}{remedy}")
    return list(sentence)
