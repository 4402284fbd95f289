"""Columns that the encoder adds to a table before a template reads it: classes, clusters, gazetteers and mentions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from maxmargin.encoders.base import State
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Gazetteers
from maxmargin.tasks.tagging.encoder.columns.mentions import with_mentions
from maxmargin.tasks.tagging.encoder.columns.word_classes import Coded, WordClasses
from maxmargin.tasks.tagging.encoder.columns.word_clusters import PlainText, WordClusters
from maxmargin.tasks.tagging.encoder.templates.template import MENTION, Template, gazetteer_column

_CLASSES = "word_classes_"


@dataclass(frozen=True, eq=False)
class AddedColumns:
    """What the lines ``!learn``, ``!cluster``, ``!gazetteer`` and ``!mention`` of a template stand for.

    Attributes:
        classes: word classes; None before training, and if the template has none.
        gazetteers: lists of names; None for none.
        clusters: words with similar neighbors; None before training, and without text.
        text: text without labels, from which clusters are learned, as :class:`PlainText` takes it; not in models.
    """

    classes: WordClasses | None = None
    gazetteers: Gazetteers | None = None
    clusters: WordClusters | None = None
    text: Any = None

    def learned(self, table: TokenTable, template: Template, labels: Coded | None) -> tuple[Self, TokenTable]:
        """Return what the labeled sentences teach, and the table with the columns as training takes them.

        Classes and clusters of earlier sentences stay, because the meaning of weights must not change.
        """
        return self.clustered([table], template)._classified(table, template, labels)

    def clustered(self, tables: Iterable[TokenTable], template: Template) -> Self:
        """Return these columns with clusters of the text and the words of the tables, if the template has some."""
        added = template.added.get("cluster")
        if added is None or not template.clusters or self.clusters is not None:
            return self
        text = PlainText.of(((table, added.source) for table in tables), self.text)
        return replace(self, clusters=WordClusters.learn(text), text=None)

    def _classified(self, table: TokenTable, template: Template, labels: Coded | None) -> tuple[Self, TokenTable]:
        """Return these columns with classes of the labels, and the table with the columns."""
        if template.learned is None or self.classes is not None:
            return self, self.columns(table, template)
        if labels is None:
            raise ValueError("the template learns word classes from labels; give labels")
        name, source = template.learned
        new = replace(self, classes=WordClasses.learn(table, labels, source=source))
        # Classes of training sentences come from the other sentences, or they would reveal the labels.
        table = WordClasses.crossed(table, labels, name=name, source=source)
        return new, replace(self, classes=None).columns(table, template)

    def columns(self, table: TokenTable, template: Template) -> TokenTable:
        """Return the table with the columns."""
        if self.classes is not None and template.learned is not None:
            table = self.classes.columns(table, name=template.learned[0])
        added = template.added.get("cluster")
        if self.clusters is not None and added is not None:
            table = self.clusters.columns(table, name=added.name, source=added.source)
        listed = template.added.get("gazetteer")
        if self.gazetteers is not None and listed is not None:
            names = [gazetteer_column(listed, name) for name in self.gazetteers.names]
            table = self.gazetteers.columns(table, names, source=listed.source)
        mention = template.added.get(MENTION)
        return table if mention is None else with_mentions(table, mention)

    def state(self) -> State:
        """Return the entries of a model file."""
        state: State = {} if self.gazetteers is None else self.gazetteers.state()
        state |= {} if self.clusters is None else self.clusters.state()
        if self.classes is not None:
            arrays = {f"{_CLASSES}{name}": array for name, array in self.classes.to_arrays().items()}
            state |= {"word_class_names": list(self.classes.names), **arrays}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any], template: Template) -> Self:
        """The inverse of :meth:`state`; ValueError or KeyError if it is damaged."""
        classes = None
        if template.learned is not None:
            own = {name.removeprefix(_CLASSES): array for name, array in state.items() if name.startswith(_CLASSES)}
            classes = WordClasses.from_arrays(own, state["word_class_names"], template.learned[1])
        gazetteers = Gazetteers.from_state(state) if template.gazetteers else None
        return cls(classes, gazetteers, WordClusters.from_state(state) if template.clusters else None)
