"""The project's own small English corpus: parts of speech, chunks and names for every token.

The text is ``data/english.tsv``, four columns parted by TAB and a blank line between sentences. The guideline that the
labels follow is in ``docs/tagging-corpus.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from maxmargin.tasks.common.text import AnyPath
from maxmargin.tasks.tagging.files import open_output, read_tagged

COLUMNS = ("word", "upos", "chunk", "name")
"""The columns of the file."""

PATH = Path(__file__).parent / "data" / "english.tsv"


@dataclass(frozen=True, eq=False)
class TaggedCorpus:
    """Sentences whose tokens have three labels each; the four lists have the same shape.

    Attributes:
        tokens: words of each sentence.
        upos: parts of speech, the tags of Universal Dependencies.
        chunks: base phrases as ``B-NP``, ``I-NP``, ..., ``O``.
        names: persons, places and organizations as ``B-PER``, ``I-PER``, ..., ``O``.
        path: the file that holds the sentences, and perhaps more of them.
    """

    tokens: list[list[str]]
    upos: list[list[str]]
    chunks: list[list[str]]
    names: list[list[str]]
    path: Path = PATH

    def __len__(self) -> int:
        return len(self.tokens)

    def select(self, indices: Iterable[int]) -> TaggedCorpus:
        """The sentences at ``indices``, in that order."""
        chosen = list(indices)
        tokens, upos, chunks, names = (
            [column[i] for i in chosen] for column in (self.tokens, self.upos, self.chunks, self.names)
        )
        return TaggedCorpus(tokens, upos, chunks, names, self.path)

    def split(self, every: int = 5) -> tuple[TaggedCorpus, TaggedCorpus]:
        """A training and a test part: sentences ``every``, ``2 every``, ... (counted from 1) are test.

        The sentences of the built-in corpus stand topic by topic, so both parts hold every topic.
        """
        if every < 2:
            raise ValueError(f"every={every} leaves no sentences for training; give 2 or more")
        test = range(every - 1, len(self), every)
        return self.select(i for i in range(len(self)) if i not in test), self.select(test)

    def write(self, out: AnyPath | BinaryIO) -> None:
        """Write the sentences as a file of the columns word, upos, chunk and name.

        ``out`` is a binary stream, or the name of a file, packed if it ends in ``.gz``; ``-`` is standard output.
        """
        sentences = zip(self.tokens, self.upos, self.chunks, self.names, strict=True)
        text = "\n".join("".join("\t".join(row) + "\n" for row in zip(*one, strict=True)) for one in sentences)
        with open_output(out) as stream:
            stream.write(text.encode())


def load_corpus() -> TaggedCorpus:
    """The built-in sentences; each call gives lists of its own."""
    table = read_tagged(PATH, format="columns", columns=COLUMNS, label="name").table
    assert table is not None  # columns have one
    tokens, upos, chunks, names = (table.by_sentence(at) for at in range(len(COLUMNS)))
    return TaggedCorpus(tokens, upos, chunks, names)
