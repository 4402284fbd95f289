"""The built-in English corpus: a part of speech, a chunk label and a name label for every token.

The text is ``data/english.tsv``, four columns separated by TAB, with a blank line between sentences. The annotation
guideline is ``docs/tasks/tagging-corpus.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from maxmargin.tasks.common.corpus import AnnotatedCorpus
from maxmargin.tasks.common.files.text import AnyPath, open_output
from maxmargin.tasks.tagging.io.files import read_tagged

COLUMNS = ("word", "upos", "chunk", "name")
"""Columns of the file."""

PATH = Path(__file__).parents[1] / "data" / "english.tsv"


@dataclass(frozen=True, eq=False)
class TaggedCorpus(AnnotatedCorpus):
    """Sentences whose tokens have three labels each; the four lists have the same shape.

    Attributes:
        tokens: words of each sentence.
        upos: parts of speech of Universal Dependencies.
        chunks: base phrases as ``B-NP``, ``I-NP``, ..., ``O``.
        names: persons, places and organizations as ``B-PER``, ``I-PER``, ..., ``O``.
        path: the file that contains the sentences.
    """

    tokens: list[list[str]]
    upos: list[list[str]]
    chunks: list[list[str]]
    names: list[list[str]]
    path: Path = PATH

    def write(self, out: AnyPath | BinaryIO) -> None:
        """Write the sentences as a file with the columns word, upos, chunk and name.

        ``out`` is a binary stream or a file name, compressed if it ends in ``.gz``; ``-`` is standard output.
        """
        sentences = zip(self.tokens, self.upos, self.chunks, self.names, strict=True)
        text = "\n".join("".join("\t".join(row) + "\n" for row in zip(*one, strict=True)) for one in sentences)
        with open_output(out) as stream:
            stream.write(text.encode())


def load_corpus() -> TaggedCorpus:
    """Return the built-in sentences; each call returns new lists."""
    table = read_tagged(PATH, format="columns", columns=COLUMNS, label="name").table
    assert table is not None  # columns have one
    tokens, upos, chunks, names = (table.by_sentence(at) for at in range(len(COLUMNS)))
    return TaggedCorpus(tokens, upos, chunks, names)
