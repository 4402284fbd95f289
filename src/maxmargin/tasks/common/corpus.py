"""Annotated corpora: parallel lists with one entry per sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self


@dataclass(frozen=True, eq=False)
class AnnotatedCorpus:
    """Base class of corpora; every field of a subclass that is a list has one entry per sentence.

    Attributes:
        test_every: by default, :meth:`split` takes every so many-th sentence for testing.
    """

    test_every: ClassVar[int] = 5

    def _lists(self) -> dict[str, list[Any]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, list)}

    def __len__(self) -> int:
        return len(next(iter(self._lists().values())))

    def select(self, indices: Iterable[int]) -> Self:
        """Return the sentences at ``indices``, in that order."""
        chosen = list(indices)
        return replace(self, **{name: [entries[i] for i in chosen] for name, entries in self._lists().items()})

    def split(self, every: int | None = None) -> tuple[Self, Self]:
        """Return a training and a test part: sentences ``every``, ``2 every``, ... (counted from 1) are test.

        The built-in corpora are ordered by topic, so both parts cover every topic.
        """
        every = self.test_every if every is None else every
        if every < 2:
            raise ValueError(f"every={every} leaves no sentences for training; give 2 or more")
        test = range(every - 1, len(self), every)
        return self.select(i for i in range(len(self)) if i not in test), self.select(test)
