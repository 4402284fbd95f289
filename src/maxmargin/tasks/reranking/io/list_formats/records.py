"""Lists as records, one per input: the hypotheses, references, and lists of scores; in JSON lines or Parquet.

``{"id": "u1", "ref": "the cat", "hyps": ["the cat", "a cat"], "lm": [-3.1, -4.0]}``: a key whose value is a list of
numbers is a feature. A hypothesis may also be ``{"text": "the cat", "features": {"lm": -3.1}}``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, lines_of, problem, refuse_expansion
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.reranking.io.features import Entries, floats
from maxmargin.tasks.reranking.io.inputs import reads_as_number
from maxmargin.tasks.reranking.io.lists import NBestLists

HYPS, TEXT, FEATURES, SPARSE, TOTAL, SEGMENTS = "hyps", "text", "features", "sparse", "total", "segments"
REFERENCES = ("ref", "refs", "reference", "references")
SOURCES = ("source", "src")
IDS = ("id", "utt_id")
RESERVED = frozenset((HYPS, FEATURES, SPARSE, TOTAL, SEGMENTS, *REFERENCES, *SOURCES, *IDS))


def parse_json(path: AnyPath, data: bytes, names: Sequence[str] | None) -> NBestLists:
    """Return the lists of JSON lines; FileError names the line of an error."""
    lines = ((number, line) for number, line in enumerate(lines_of(data), start=1) if line.strip())
    return _Records(path, "line", names).read((number, load_object(path, number, line)) for number, line in lines)


def parse_parquet(path: AnyPath, data: bytes, names: Sequence[str] | None) -> NBestLists:
    """Return the lists of a Parquet file with list columns; FileError names the row of an error."""
    pyarrow, parquet = optional("pyarrow", "parquet"), optional("pyarrow.parquet", "parquet")
    try:
        refuse_expansion(path, len(data), _expanded(parquet.read_metadata(pyarrow.BufferReader(data))))
        table = parquet.read_table(pyarrow.BufferReader(data))
        if len(set(table.column_names)) < len(table.column_names):
            raise problem(path, None, "two columns of one name; give each column its own name")
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise problem(
            path, None, f"not a Parquet file that can be read ({quoted(str(error))}); write it again"
        ) from None
    rows = (
        (row + 1, {name: column[row] for name, column in columns.items() if column[row] is not None})
        for row in range(table.num_rows)
    )
    return _Records(path, "row", names).read(rows)


def _expanded(metadata: Any) -> int:
    """Return the bytes of the columns of a Parquet file once it is read: repeated values are stored once.

    Of groups of rows only: where the metadata of a column are damaged, asking for them ends the process.
    """
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    return sum(max(group.total_byte_size, 8 * group.num_rows * group.num_columns) for group in groups)


def load_object(path: AnyPath, line: int, text: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; FileError if it is not one, or has a key twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise problem(path, line, f"the key {quoted(key)} comes twice; give each key once")
        return found

    try:
        record = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        message = f"not JSON at column {error.colno} ({error.msg}); write one object per line"
        raise problem(path, line, message) from None
    except FileError:
        raise
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        raise problem(path, line, "JSON that is too large to read; write one object per line") from None
    if not isinstance(record, dict):
        raise problem(path, line, "not a JSON object; write one object per line")
    if b"\\ud" in text.lower() and not _is_text(record):
        raise problem(path, line, r"an escape such as \ud800 alone; write both halves of the character")
    return record


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """Return a JSON value for a message, not too long."""
    try:
        return quoted(json.dumps(value, ensure_ascii=False))[1:-1]
    except (TypeError, ValueError):
        return quoted(repr(value))[1:-1]


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def references_of(record: dict[str, Any], wrong: Callable[[str], FileError]) -> tuple[str, ...] | None:
    """Return the references of a record, None if it has none; ``wrong`` makes the error from a message."""
    value = next((record[key] for key in REFERENCES if key in record), None)
    if value is None:
        return None
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise wrong(f"the reference is {shown(value)}; give a text or a list of texts")
    return tuple(text.strip() for text in texts)


class _Records:
    """Lists collected record by record.

    Args:
        path: the file, for errors.
        unit: what errors call a record.
        names: the dense features to take; None for all.
    """

    def __init__(self, path: AnyPath, unit: str, names: Sequence[str] | None) -> None:
        self.path, self.unit = path, unit
        self.asked = None if names is None else set(names)
        self.names = names
        self.numbers: list[int] = []  # of records
        self.texts: list[str] = []
        self.counts: list[int] = []
        self.ids: dict[str, int] = {}
        self.scores: dict[str, list[Any]] = {}
        self.once: dict[str, list[Any]] = {}  # references, sources, totals and segments, in all records or in none
        self.entries: dict[str, _Named] = {FEATURES: _Named(), SPARSE: _Named()}

    def wrong(self, number: int, message: str) -> FileError:
        return problem(self.path, number, message, unit=self.unit)

    def read(self, records: Iterable[tuple[int, dict[str, Any]]]) -> NBestLists:
        for number, record in records:
            self.numbers.append(number)
            self.add(number, record)
        if not self.numbers:
            raise problem(self.path, None, f'no lists; write {{"{HYPS}": [...]}}, a {self.unit} per input')
        return self.lists()

    def add(self, number: int, record: dict[str, Any]) -> None:
        hypotheses = record.get(HYPS)
        if not isinstance(hypotheses, list) or not hypotheses:
            what = "no hypotheses" if hypotheses is None or hypotheses == [] else f"'{HYPS}' is {shown(hypotheses)}"
            raise self.wrong(number, f"{what}; give '{HYPS}', a list of one or more texts")
        count = len(hypotheses)
        self.counts.append(count)
        if all(type(one) is str for one in hypotheses):
            self.texts += [one.strip() for one in hypotheses]
            self.entries[FEATURES].skip(count)
        else:
            for hypothesis in hypotheses:
                self.entries[FEATURES].add(self._object(number, hypothesis))
        identity = next((record[key] for key in IDS if key in record), str(len(self.counts) - 1))
        if not isinstance(identity, (str, int)) or isinstance(identity, bool):
            raise self.wrong(number, f"the id is {shown(identity)}; give a string or an integer")
        if (before := self.ids.setdefault(str(identity), number)) != number:
            raise self.wrong(
                number, f"id {quoted(str(identity))} is that of {self.unit} {before} too; give each its own"
            )
        self._scores(number, record, count)
        self._once(number, record, count)
        sparse = self._listed(number, record, SPARSE, count, "an object from names to numbers")
        if sparse is None:
            self.entries[SPARSE].skip(count)
            return
        for one in sparse:
            if not isinstance(one, dict):
                raise self.wrong(number, f"'{SPARSE}' has {shown(one)}; give an object from names to numbers")
            self.entries[SPARSE].add(self._values(number, one))

    def _object(self, number: int, hypothesis: Any) -> dict[str, float]:
        if not isinstance(hypothesis, dict) or not isinstance(hypothesis.get(TEXT), str):
            message = (
                f'a hypothesis is {shown(hypothesis)}; give texts, or {{"{TEXT}": ..., "{FEATURES}": ...}} for all'
            )
            raise self.wrong(number, message)
        self.texts.append(hypothesis[TEXT].strip())
        features = hypothesis.get(FEATURES)
        if features is not None and not isinstance(features, dict):
            raise self.wrong(number, f"'{FEATURES}' of a hypothesis is {shown(features)}; give an object of numbers")
        beside = {key: value for key, value in hypothesis.items() if key not in (TEXT, FEATURES) and is_number(value)}
        found = {key: value for key, value in (features or {}).items() if value is not None}
        if twice := beside.keys() & found.keys():
            raise self.wrong(number, f"feature {quoted(min(twice))} comes twice in a hypothesis; give it once")
        return self._values(number, {**beside, **found})

    def _values(self, number: int, given: dict[str, Any]) -> dict[str, float]:
        for name, value in given.items():
            if value is not None and not is_number(value):
                raise self.wrong(number, f"feature {quoted(name)} is {shown(value)}; give a finite number")
        return {name: value for name, value in given.items() if value is not None}

    def _scores(self, number: int, record: dict[str, Any], count: int) -> None:
        """Keys whose values are lists of numbers."""
        found = set()
        for key, value in record.items():
            if key in RESERVED or not isinstance(value, list) or (self.asked is not None and key not in self.asked):
                continue
            if not set(map(type, value)) <= {int, float}:
                if not any(is_number(one) or reads_as_number(one) for one in value):
                    continue  # something else, such as words
                odd = next(one for one in value if not is_number(one))
                raise self.wrong(number, f"{quoted(key)} has {shown(odd)}; give numbers, one per hypothesis")
            if len(value) != count:
                numbers, texts = count_of(len(value), "number"), "1 hypothesis" if count == 1 else f"{count} hypotheses"
                raise self.wrong(number, f"{quoted(key)} has {numbers} for {texts}; give one per hypothesis")
            if len(self.counts) == 1:
                self.scores[key] = []
            elif key not in self.scores:
                raise self.wrong(
                    number,
                    f"feature {quoted(key)} is not in {self.unit} {self.numbers[0]}; give all inputs the same features",
                )
            self.scores[key].append(value)
            found.add(key)
        if missing := [key for key in self.scores if key not in found]:
            raise self.wrong(
                number,
                f"feature {quoted(missing[0])} is missing, and {self.unit} {self.numbers[0]} has it; give all inputs "
                "the same features",
            )

    def _once(self, number: int, record: dict[str, Any], count: int) -> None:
        """What all records have or none."""
        given: dict[str, Any] = {}
        if (references := references_of(record, lambda message: self.wrong(number, message))) is not None:
            given["references"] = references
        source = next((record[key] for key in SOURCES if key in record), None)
        if source is not None:
            if not isinstance(source, str):
                raise self.wrong(number, f"the source is {shown(source)}; give a text")
            given["source"] = source.strip()
        totals = self._listed(number, record, TOTAL, count, "a number")
        if totals is not None:
            if not all(map(is_number, totals)):
                raise self.wrong(number, f"'{TOTAL}' is {shown(totals)}; give a number per hypothesis")
            given[TOTAL] = totals
        segments = self._listed(number, record, SEGMENTS, count, "a text")
        if segments is not None:
            if not all(isinstance(one, str) for one in segments):
                raise self.wrong(number, f"'{SEGMENTS}' is {shown(segments)}; give a text per hypothesis")
            given[SEGMENTS] = segments
        if len(self.counts) == 1:
            self.once = {what: [] for what in given}
        if odd := given.keys() ^ self.once.keys():
            what = min(odd)
            has = "is there" if what in given else "is missing"
            raise self.wrong(
                number, f"'{what}' {has}, unlike in {self.unit} {self.numbers[0]}; give it for all inputs or for none"
            )
        for what, value in given.items():
            self.once[what].append(value)

    def _listed(self, number: int, record: dict[str, Any], key: str, count: int, what: str) -> list[Any] | None:
        value = record.get(key)
        if value is not None and (not isinstance(value, list) or len(value) != count):
            raise self.wrong(
                number, f"'{key}' is {shown(value)}; give a list with {what} for each of {count} hypotheses"
            )
        return value

    def lists(self) -> NBestLists:
        offsets = offsets_of(self.counts)
        owner = np.repeat(np.array(self.numbers), self.counts)
        columns = {name: self._array(name, values) for name, values in self.scores.items()}
        entries, dense, sparse_names, sparse = self.entries[FEATURES], np.zeros((len(owner), 0)), list[str](), None
        names = list(columns)
        if entries.number:
            found, dense, sparse_names, sparse = entries.table(owner, self._finite).divided(
                self.path, self.names, unit=self.unit
            )
            names += found
        more = self.entries[SPARSE]
        if more.number:
            table = more.table(owner, self._finite)
            rows = sp.csr_array((table.values, table.columns, table.starts), shape=(len(owner), len(table.names)))
            sparse = rows if sparse is None else sp.csr_array(sp.hstack([sparse, rows], format="csr"))
            sparse_names += table.names
        both = [*names, *sparse_names]
        if len(set(both)) < len(both):
            name = next(name for at, name in enumerate(both) if name in both[:at])
            raise problem(self.path, None, f"feature {quoted(name)} is given in two ways; give it once")
        totals = self.once.get(TOTAL)
        return NBestLists(
            texts=self.texts,
            offsets=offsets,
            names=tuple(names),
            values=np.column_stack([*columns.values(), dense]) if columns else dense,
            ids=list(self.ids),
            sparse_names=tuple(sparse_names),
            sparse=sparse,
            references=self.once.get("references"),
            segments=None if SEGMENTS not in self.once else list(chain.from_iterable(self.once[SEGMENTS])),
            sources=self.once.get("source"),
            totals=None if totals is None else self._array(TOTAL, totals),
        )

    def _array(self, name: str, values: list[list[Any]]) -> FloatArray:
        flat = list(chain.from_iterable(values))
        owner = np.repeat(np.array(self.numbers), self.counts)
        return self._finite(flat, owner, lambda _: name)

    def _finite(self, flat: list[Any], lines: Any, name: Any) -> FloatArray:
        """Numbers as an array; FileError names the record of one that is not finite."""
        array = floats(flat)
        if not np.isfinite(array).all():
            at = int(np.argmin(np.isfinite(array)))
            raise self.wrong(int(lines[at]), f"feature {quoted(name(at))} is {flat[at]!s:.40}; give a finite number")
        return array


class _Named:
    """Named values of hypotheses, one after the other."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.starts, self.columns, self.values = [0], list[int](), list[Any]()

    def add(self, values: dict[str, float]) -> None:
        self.columns += [self.number.setdefault(name, len(self.number)) for name in values]
        self.values += values.values()
        self.starts.append(len(self.columns))

    def skip(self, count: int) -> None:
        self.starts += [len(self.columns)] * count

    def table(self, lines: Any, finite: Any) -> Entries:
        names, starts = list(self.number), np.array(self.starts, dtype=np.int64)
        owner = np.repeat(lines, np.diff(starts))
        values = finite(self.values, owner, lambda at: names[self.columns[at]])
        columns, width = np.array(self.columns, dtype=np.int64), np.ones(len(names), dtype=np.int64)
        return Entries(starts, columns, values, names, width, lines)
