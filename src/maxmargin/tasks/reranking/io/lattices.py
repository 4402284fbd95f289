"""Lattices of files: their class, and functions that read and write them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.structures._arrays import example_numbers
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import (
    STANDARD_INPUT,
    AnyPath,
    name_of,
    once,
    open_output,
    paths_of,
    problem,
    read_text,
)
from maxmargin.tasks.reranking.io.inputs import check_count, read_references
from maxmargin.tasks.reranking.io.lattice_formats import json_lines, plf, slf
from maxmargin.tasks.reranking.io.lattice_formats.arcs import Arcs

FORMATS = {"plf": plf.parse, "slf": slf.parse, "json": json_lines.parse}
"""Formats of lattices and their parsers."""

SUFFIXES = {".plf": "plf", ".slf": "slf", ".lat": "slf", ".jsonl": "json", ".json": "json"}
"""Ends of names, besides ``.gz``; of a folder, files with other names are left aside."""


@dataclass(frozen=True, eq=False)
class Lattices:
    """Lattices with the same features on their edges.

    Attributes:
        lattices: one per input.
        names: names of the features, the columns of each lattice.
        ids: the name of each input.
        references: for each input one or more references; None if they are not known.
    """

    lattices: Sequence[WordLattice]
    names: tuple[str, ...]
    ids: Sequence[str]
    references: Sequence[tuple[str, ...]] | None = None

    def __len__(self) -> int:
        return len(self.lattices)

    def select(self, lattices: npt.ArrayLike) -> Self:
        """Return some of the lattices, in the given order."""
        chosen = example_numbers(lattices, len(self)).tolist()
        return replace(
            self,
            lattices=[self.lattices[at] for at in chosen],
            ids=[self.ids[at] for at in chosen],
            references=None if self.references is None else [self.references[at] for at in chosen],
        )


def read_lattices(
    paths: AnyPath | Sequence[AnyPath],
    *,
    format: str | None = None,
    references: AnyPath | Sequence[AnyPath] = (),
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Lattices:
    """Read lattices; FileError names file and line of a cycle, an end that is not reached, or anything malformed.

    Args:
        paths: files, or folders of files, which are taken in the order of their names.
        format: "plf", "slf" or "json"; None to recognize it by name and content, file by file.
        references: files with a line per lattice; they replace those of the lattices.
        names: the features to take, in this order; None for all.
        encoding: of all texts.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    files = list(_files(paths))
    if not files:
        raise ValueError("no files of lattices; give at least one")
    gold_files = paths_of(references)
    once([*files, *gold_files])
    found: list[tuple[AnyPath, Arcs]] = []
    for path in files:
        data = read_text(path, encoding)
        before = len(found)
        found += [(path, arcs) for arcs in FORMATS[format or recognize(path, data)](path, data)]
        if len(found) == before:
            raise problem(path, None, "no lattices; give a file that has some")
    lattices = [arcs.lattice(path) for path, arcs in found]
    wanted = found[0][1].names if names is None else tuple(names)
    ids = _ids(found)
    result = Lattices(
        [
            replace(lattice, features=_columns(path, arcs, wanted, names is None, found[0]))
            for (path, arcs), lattice in zip(found, lattices, strict=True)
        ],
        wanted,
        ids,
        _references(found),
    )
    if not gold_files:
        return result
    golds = read_references(gold_files, encoding)
    check_count(files[0], ids, len(golds), "reference", name_of(gold_files[0]), things="lattice")
    return replace(result, references=golds)


def _files(paths: AnyPath | Sequence[AnyPath]) -> Iterator[AnyPath]:
    for path in paths_of(paths):
        if str(path) == STANDARD_INPUT or not os.path.isdir(path):
            yield path
            continue
        inside = sorted(one for one in Path(path).iterdir() if _suffix(one) in SUFFIXES and one.is_file())
        if not inside:
            raise problem(path, None, f"no file of lattices in this folder; their names end in {', '.join(SUFFIXES)}")
        yield from inside


def _suffix(path: AnyPath) -> str:
    return os.path.splitext(plain_name(path).lower())[1]


def recognize(path: AnyPath, data: bytes) -> str:
    """Return the format of a file of lattices by its name or its first character."""
    if (form := SUFFIXES.get(_suffix(path))) is not None:
        return form
    first = data.lstrip()[:1]
    if not first:
        raise problem(path, None, "no lattices; give a file that has some")
    return {b"(": "plf", b"{": "json"}.get(first, "slf")


def _ids(found: list[tuple[AnyPath, Arcs]]) -> list[str]:
    """The ids that files give, otherwise the name of a file that has one lattice, otherwise numbers from 0."""
    times: dict[str, int] = {}
    for path, _ in found:
        times[str(path)] = times.get(str(path), 0) + 1
    several = len(times) > 1
    ids: dict[str, str] = {}
    for number, (path, arcs) in enumerate(found):
        stem = os.path.basename(plain_name(path)).rpartition(".")[0]
        default = stem if several and stem and times[str(path)] == 1 else str(number)
        one = default if arcs.id is None else arcs.id
        where = f"{name_of(path)}, line {arcs.line}"
        if (before := ids.setdefault(one, where)) != where:
            raise problem(path, arcs.line, f"id {quoted(one)} is that of {before} too; give each lattice its own")
    return list(ids)


def _columns(path: AnyPath, arcs: Arcs, wanted: tuple[str, ...], all_of: bool, first: tuple[AnyPath, Arcs]) -> Any:
    if arcs.names == wanted:
        return arcs.values
    where = f"{name_of(first[0])}, line {first[1].line}"
    for name in wanted:
        if name not in arcs.names:
            there = ", ".join(arcs.names) or "none"
            beside = f", unlike that of {where}" if all_of else ""
            message = (
                f"the lattice has no feature {quoted(name)}{beside}; it has {there:.300}; give all the same features"
            )
            raise problem(path, arcs.line, message)
    if all_of:
        name = next(name for name in arcs.names if name not in wanted)
        message = f"the lattice has feature {quoted(name)}, unlike that of {where}; give all the same features"
        raise problem(path, arcs.line, message)
    return np.ascontiguousarray(arcs.values[:, [arcs.names.index(name) for name in wanted]])


def _references(found: list[tuple[AnyPath, Arcs]]) -> list[tuple[str, ...]] | None:
    given = [arcs.references for _, arcs in found if arcs.references is not None]
    if given and len(given) < len(found):
        first = found[0][1].references is None
        path, odd = next(one for one in found if (one[1].references is None) != first)
        what = "a reference" if first else "no reference"
        message = f"{what}, unlike the first lattice; give references for all lattices or for none"
        raise problem(path, odd.line, message)
    return given or None


def write_lattices(lattices: Lattices, out: AnyPath | BinaryIO) -> None:
    """Write lattices as JSON lines, compressed if the name ends in ``.gz``; ``-`` is standard output."""
    lines = []
    for at, (name, lattice) in enumerate(zip(lattices.ids, lattices.lattices, strict=True)):
        edges = np.asarray(lattice.edges).reshape(-1, 2)
        values = lattice.features.toarray() if sp.issparse(lattice.features) else np.asarray(lattice.features)
        last = int(edges.max(initial=0))
        end = last if lattice.end is None else int(lattice.end)
        record: dict[str, Any] = {"id": name}
        if lattices.references is not None:
            given = lattices.references[at]
            record["ref"] = given[0] if len(given) == 1 else list(given)
        record |= {"nodes": max(last, end, lattice.start) + 1, "start": int(lattice.start), "end": end}
        record["edges"] = {
            "from": edges[:, 0].tolist(),
            "to": edges[:, 1].tolist(),
            "word": [None] * len(edges) if lattice.words is None else list(lattice.words),
            "features": {name: values[:, column].tolist() for column, name in enumerate(lattices.names)},
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    with open_output(out) as stream:
        stream.write("".join(lines).encode())
