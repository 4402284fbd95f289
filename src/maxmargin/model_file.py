"""The model file format: JSON and raw arrays, nothing that can execute. Described in docs/reference/model-format.md.

Layout, all integers little-endian::

    bytes 0-7     magic  89 4D 4D 4F 44 45 4C 0A   ("\\x89MMODEL\\n")
    bytes 8-11    format version, uint32
    bytes 12-19   length of the header in bytes, uint64
    bytes 20-51   SHA-256 digest of bytes 0-19 and of everything after byte 51
    then          header: one JSON object, UTF-8
    then          zero bytes up to the next multiple of 64
    then          the arrays, each beginning at a multiple of 64 after the start of this section

``header["arrays"]`` gives name, dtype, shape and offset of each array. The digest finds any damage; a file that was
made to deceive is not trusted either: reading checks all of it before a single array is used, and needs memory in
proportion to the file's own size.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from maxmargin._files import replacing
from maxmargin._messages import FileContentError

MAGIC = b"\x89MMODEL\n"
VERSION = 2
CHECKPOINT = "checkpoint"
"""The kind of checkpoint files, where model files have that of their model."""
_PREFIX = struct.Struct("<8sIQ")
_START = _PREFIX.size + hashlib.sha256().digest_size
_ALIGN = 64
_MAX_HEADER = 1 << 28
_GIVE = "give a file written by save() or by a train command"
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1")


class ModelFileError(FileContentError):
    """The file is not a model file that this version can read."""


def _padding(length: int) -> int:
    return -length % _ALIGN


def _digest(*chunks: bytes | memoryview) -> bytes:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def write(
    path: str | Path, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], previous: Sequence[Path] = ()
) -> None:
    """Write a model file. A file that was there is replaced only when the new one is complete.

    Args:
        path: the file.
        header: its header, as plain JSON values.
        arrays: its arrays.
        previous: where the files that were there before are kept, the newest first.

    Raises:
        OSError: the file cannot be written.
    """
    table, offset = {}, 0
    chunks: list[bytes | memoryview] = []  # the arrays as they stand: copies could be as large as all else
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        if plain.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} has dtype {plain.dtype}, which model files do not hold")
        data = plain.reshape(-1).view(np.uint8).data
        table[name] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "offset": offset}
        chunks += [data, bytes(_padding(len(data)))]
        offset += len(data) + _padding(len(data))
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode("ascii")
    prefix = _PREFIX.pack(MAGIC, VERSION, len(text))
    body = [text, bytes(_padding(_START + len(text))), *chunks]
    try:
        with replacing(path, previous) as file:
            file.writelines([prefix, _digest(prefix, *body), *body])
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno is None:
            raise
        # The user's path, not that of the temporary file; OSError picks the subclass by the number.
        raise OSError(error.errno, error.strerror, str(path)) from None


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read and check a model file: header and read-only arrays.

    Raises:
        ModelFileError: the file is not a model file, is truncated or damaged, or has a newer version.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as opened:
        whole = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        file: BinaryIO = opened if whole else io.BytesIO(opened.read())  # a pipe has no size
        size = os.fstat(opened.fileno()).st_size if whole else file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(_START)
        if not start.startswith(MAGIC):
            raise ModelFileError(f"{path} is not a maxmargin model file; {_GIVE}")
        if len(start) < _START:
            raise ModelFileError(f"{path} is truncated: it ends inside its first {_START} bytes; copy it again")
        _, version, length = _PREFIX.unpack_from(start)
        if version != VERSION:
            remedy = "train the model again" if version < VERSION else "update maxmargin"
            raise ModelFileError(
                f"{path} has model format {version}, this version of maxmargin reads {VERSION}; {remedy}"
            )
        if length > min(_MAX_HEADER, size - _START):
            raise ModelFileError(
                f"{path} is truncated or damaged: its header should have {length} bytes; copy it again"
            )
        text = file.read(length)
        header = _header(text)
        begin = _START + length
        padding = file.read(_padding(begin))
        pieces = _pieces(file, header, max(size - begin - len(padding), 0))
    if start[_PREFIX.size :] != _digest(start[: _PREFIX.size], text, padding, *pieces.values()):
        raise ModelFileError(f"{path} is truncated or damaged: its contents do not match their checksum; copy it again")
    if header is None:
        raise ModelFileError(f"{path} is damaged: its header is not JSON; {_GIVE}")
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), dict):
        raise ModelFileError(f"{path} is damaged: its header names no arrays; {_GIVE}")
    return header, {name: _array(path, name, entry, pieces) for name, entry in header["arrays"].items()}


def _header(text: bytes) -> Any:
    """Return the header, None if it is not JSON."""
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None


def _pieces(file: BinaryIO, header: Any, size: int) -> dict[int, bytes]:
    """Return the rest of a file in pieces that begin where arrays do, by their offsets.

    Each array has its own memory, so that those which are not needed any more do not stay with the others. The header
    may be damaged.
    """
    entries = header.get("arrays") if isinstance(header, dict) else None
    entries = list(entries.values()) if isinstance(entries, dict) else []
    offsets = [entry.get("offset") for entry in entries if isinstance(entry, dict)]
    bounds = sorted({0, size, *(offset for offset in offsets if type(offset) is int and 0 < offset < size)})
    found = {first: file.read(last - first) for first, last in itertools.pairwise(bounds)}
    found[bounds[-1]] = file.read()  # nothing, unless the file has grown
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are distinct: readers disagree on what a second one means."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _finite(text: str) -> float:
    """A JSON number; NaN and infinity are none."""
    value = float(text)
    if not np.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _array(path: str | Path, name: str, entry: Any, pieces: dict[int, bytes]) -> npt.NDArray[Any]:
    try:
        dtype, shape, piece = entry["dtype"], entry["shape"], pieces[entry["offset"]]
        if dtype not in _DTYPES or not isinstance(shape, list) or len(shape) > 8:
            raise ValueError
        # Sides are bounded one by one, so that a zero beside a huge one cannot hide it and the product stays small.
        most = sum(map(len, pieces.values()))
        if not all(type(number) is int and 0 <= number <= most for number in shape):
            raise ValueError
        size = np.dtype(dtype).itemsize * math.prod(shape)
        if type(entry["offset"]) is not int or entry["offset"] % _ALIGN or size > len(piece):
            raise ValueError
        return np.frombuffer(memoryview(piece)[:size], dtype=dtype).reshape(shape)
    except (KeyError, TypeError, ValueError):
        raise ModelFileError(f"{path} is damaged: array {name!r} does not fit the file; {_GIVE}") from None
