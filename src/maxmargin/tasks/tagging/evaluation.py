"""Scores of a model or of a file of predictions on a file of gold labels."""

from __future__ import annotations

import numpy as np

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.files.text import FileError, count_of
from maxmargin.tasks.tagging.io.files import TaggedText, read_tagged
from maxmargin.tasks.tagging.metrics.scores import TagScores, evaluate_codes
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.tasks.tagging.reading import ReadOptions, block_labels, check_annotated, labels_of, rows_of


def score_model(model: TaggerModel, gold: str, options: ReadOptions) -> TagScores:
    """Return the scores of a model on a file of gold labels, which is read block by block."""
    place: dict[str, int] = {}
    codes, found, lengths = [], [], []
    for text, rows in rows_of(model, options.blocks_for(gold, model, labeled=True)):
        own, names = block_labels(text)
        numbers = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int32)
        codes.append(numbers[own])
        found.append(model.best(rows))
        lengths.append(text.tokens.lengths)
    check_annotated(text, list(place))
    known = [str(label) for label in model.labels]
    offsets = offsets_of(np.concatenate(lengths))
    gold_codes, best = (np.concatenate(some).astype(np.int64) for some in (codes, found))
    return evaluate_codes(gold_codes, best, offsets, known, gold_labels=list(place))


def score_file(predicted: str, gold: str, options: ReadOptions, *, column: int | None = None) -> TagScores:
    """Return the scores of a file of predictions; ``column`` is the column of its labels, from 1."""
    text = options.read(gold, labeled=True)
    codes, names = labels_of(text)
    system, found, known = _predictions(predicted, text, options, column)
    _check_same_tokens(system, text)
    if not set(known) & set(names):
        raise FileError(
            f"{system.source}: none of its labels, such as {known[0]!r}, is a gold label; give --predicted-column if "
            "other columns follow the labels"
        )
    union = list(dict.fromkeys([*known, *names]))
    place = {name: at for at, name in enumerate(union)}
    moved = np.array([place[name] for name in names], dtype=np.int64)
    return evaluate_codes(moved[codes], found.astype(np.int64), text.sentences, union)


def _predictions(
    path: str, gold: TaggedText, options: ReadOptions, column: int | None
) -> tuple[TaggedText, IntArray, list[str]]:
    """Return a file of predictions, their codes and the names of these."""
    if gold.format == "json":
        text = read_tagged(path, format="json", labeled=False)
        return text, *_record_labels(text)
    if gold.format in ("conllu", "slash"):
        if column is not None:
            raise FileError(
                f"--predicted-column applies to files of columns, and {gold.source} is {gold.format}; leave it out"
            )
        label = gold.label if gold.format == "conllu" else None
        text = read_tagged(path, format=gold.format, label=label, labeled=True, join=bool(options.join))
        codes, names = labels_of(text)
    else:
        # In CRFsuite's format, predictions are labels, one per line, perhaps followed by scores.
        text = read_tagged(path, format="columns", labeled=False)
        width = len(text.columns)
        at = column or (1 if gold.format == "crfsuite" else width)
        if at > width:
            raise FileError(
                f"{text.source}: {count_of(width, 'column')}, and --predicted-column is {at}; give a smaller one"
            )
        codes, names = text.codes_of(text.columns[at - 1])
    return text, codes.astype(np.int64), names


def _record_labels(text: TaggedText) -> tuple[IntArray, list[str]]:
    """Return the predictions of JSON lines as codes and names."""
    place: dict[str, int] = {}
    codes: list[int] = []
    for number, (record, length) in enumerate(zip(text.records, text.tokens.lengths.tolist(), strict=True), 1):
        found = record.get("predicted")
        if not isinstance(found, list) or len(found) != length or not all(isinstance(name, str) for name in found):
            raise FileError(
                f"{text.source}, object {number}: no list 'predicted' with a label for each of its "
                f"{count_of(length, 'token')}; give a file written by tag predict"
            )
        codes.extend(place.setdefault(name, len(place)) for name in found)
    return np.array(codes, dtype=np.int64), list(place)


def _check_same_tokens(system: TaggedText, gold: TaggedText) -> None:
    """Raise FileError, naming the lines of both, if two files have different tokens or sentences."""
    sides = system.tokens, gold.tokens
    n = min(side.n_tokens for side in sides)
    if system.table is not None and gold.table is not None:
        strings, numbered = _kernels.StringTable(), []
        at = gold.columns.index("word") if "word" in gold.columns else 0
        if at >= len(system.columns):
            raise FileError(
                f"{system.source}: {count_of(len(system.columns), 'column')}, and words are in column {at + 1}"
            )
        for table in (system.table, gold.table):
            numbers = np.empty(table.n_tokens, dtype=np.int32)
            strings.number(table.bytes, *table.places(at), True, numbers)
            numbered.append(numbers)
        differ = numbered[0][:n] != numbered[1][:n]
        if differ.any():
            token = int(np.argmax(differ))
            words = [strings.text(int(numbers[token])).decode("utf-8") for numbers in numbered]
            raise FileError(
                f"{system.tokens.where(token)}: the token {words[0]!r}, and {gold.tokens.where(token)} has "
                f"{words[1]!r}; give the same tokens in both files"
            )
    if sides[0].n_tokens != sides[1].n_tokens:
        raise FileError(
            f"{system.source} has {count_of(sides[0].n_tokens, 'token')} and {gold.source} has {sides[1].n_tokens}, "
            f"equal up to {sides[0].where(n - 1)} and {sides[1].where(n - 1)}; give the same tokens in both files"
        )
    ends = []
    for tokens in sides:
        last = np.zeros(n, dtype=bool)
        last[tokens.sentences[1:][tokens.lengths > 0] - 1] = True
        ends.append(last)
    if (ends[0] != ends[1]).any():
        token = int(np.argmax(ends[0] != ends[1]))
        ending, other = (system, gold) if ends[0][token] else (gold, system)
        raise FileError(
            f"{ending.tokens.where(token)}: a sentence ends here, but not at {other.tokens.where(token)}; give the "
            "same sentences in both files"
        )
