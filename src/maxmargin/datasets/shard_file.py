"""The file of one shard: a JSON description and raw arrays, which are mapped into memory instead of read.

Layout, all integers little-endian::

    bytes 0-7     magic  89 4D 4D 44 41 54 41 0A   ("\\x89MMDATA\\n")
    bytes 8-11    format version, uint32
    bytes 12-19   length of the header in bytes, uint64
    bytes 20-27   length of the whole file in bytes, uint64
    bytes 28-59   SHA-256 digest of bytes 0-27 and of everything after byte 59
    then          header: one JSON object, UTF-8
    then          zero bytes up to the next multiple of 64
    then          the arrays, each beginning at a multiple of 64 after the start of this section

``header["arrays"]`` lists dtype, shape and offset of each array. The digest is compared when a process opens the file
for the first time, which reads all of it once; what a header says of arrays is checked every time.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._files import replacing
from maxmargin.execution import ShardError

MAGIC = b"\x89MMDATA\n"
VERSION = 1
_PREFIX = struct.Struct("<8sIQQ")
_START = _PREFIX.size + hashlib.sha256().digest_size
_ALIGN = 64
_MAX_HEADER = 1 << 28
_CHUNK = 1 << 24
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_AGAIN = "copy it again, or build the dataset anew"


def _padding(length: int) -> int:
    return -length % _ALIGN


def write(path: Path, header: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> tuple[int, str]:
    """Write a shard file, whole or not at all: its length in bytes and its digest in hexadecimal.

    Raises:
        OSError: the file cannot be written.
    """
    table: list[dict[str, Any]] = []
    chunks: list[bytes | memoryview] = []
    offset = 0
    for array in arrays:
        plain = np.ascontiguousarray(array).reshape(array.shape)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        if plain.dtype.str not in _DTYPES:
            raise TypeError(f"an array has dtype {plain.dtype}, which shard files do not hold")
        data = plain.reshape(-1).view(np.uint8).data
        table.append({"dtype": plain.dtype.str, "shape": list(plain.shape), "offset": offset})
        chunks += [data, bytes(_padding(len(data)))]
        offset += len(data) + _padding(len(data))
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode("ascii")
    gap = bytes(_padding(_START + len(text)))
    length = _START + len(text) + len(gap) + offset
    prefix = _PREFIX.pack(MAGIC, VERSION, len(text), length)
    digest = hashlib.sha256(prefix)
    for chunk in (text, gap, *chunks):
        digest.update(chunk)
    try:
        with replacing(path) as file:
            file.writelines([prefix, digest.digest(), text, gap, *chunks])
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno is None:
            raise
        # The dataset's path, not that of the temporary file; OSError picks the subclass by the number.
        raise OSError(error.errno, error.strerror, str(path)) from None
    return length, digest.hexdigest()


def read(path: Path, digest: str, *, verify: bool) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """Map a shard file: its header and read-only arrays, which keep the mapping alive.

    Args:
        path: the file.
        digest: the digest that it must have, in hexadecimal.
        verify: whether to compare the whole contents with it, not only what the file says of itself.

    Raises:
        ShardError: the file is missing, cannot be read, is damaged, or is another one.
    """
    view = _mapped(path)
    if len(view) < _START or bytes(view[:8]) != MAGIC:
        raise ShardError(f"{path} is not a shard of a dataset; {_AGAIN}")
    _, version, header_length, length = _PREFIX.unpack_from(view)
    if version != VERSION:
        remedy = "build the dataset anew" if version < VERSION else "update maxmargin"
        raise ShardError(f"{path} has shard format {version}, this version of maxmargin reads {VERSION}; {remedy}")
    if length != len(view) or header_length > min(_MAX_HEADER, len(view) - _START):
        raise ShardError(f"{path} is truncated: it has {len(view)} bytes instead of {length}; {_AGAIN}")
    if bytes(view[_PREFIX.size : _START]).hex() != digest:
        raise ShardError(f"{path} is not the file that the dataset's index names: their checksums differ; {_AGAIN}")
    if verify and _digest(view) != digest:
        raise ShardError(f"{path} is damaged: its contents do not match their checksum; {_AGAIN}")
    begin = _START + header_length
    try:
        header = json.loads(bytes(view[_START:begin]).decode("utf-8"))
        table = header["arrays"]
        payload = view[begin + _padding(begin) :]
        return header, [_array(entry, payload) for entry in table]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise ShardError(f"{path} is damaged: its header makes no sense; {_AGAIN}") from None


_verified: dict[tuple[str, str], tuple[int, int, int]] = {}
"""Files whose contents were compared with a digest in this process, and how they were then: inode, size and time."""


def read_once(path: Path, digest: str) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """Map a shard file as :func:`read` does; its contents are compared if this process has not done so before."""
    known = _verified.get((str(path), digest))
    stamp = _stamp(path)
    found = read(path, digest, verify=known is None or known != stamp)
    _verified[str(path), digest] = stamp
    return found


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def _mapped(path: Path) -> memoryview:
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ShardError(f"{path} is empty; {_AGAIN}")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        if isinstance(error, ShardError):
            raise
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise ShardError(f"{path} {what}; {_AGAIN}") from None


def _digest(view: memoryview) -> str:
    digest = hashlib.sha256(view[: _PREFIX.size])
    for begin in range(_START, len(view), _CHUNK):
        digest.update(view[begin : begin + _CHUNK])
    return digest.hexdigest()


def _array(entry: Any, payload: memoryview) -> npt.NDArray[Any]:
    dtype, shape, offset = entry["dtype"], entry["shape"], entry["offset"]
    if dtype not in _DTYPES or not isinstance(shape, list) or len(shape) > 8:
        raise ValueError
    # Sides are bounded one by one, so that a zero beside a huge one cannot hide it and the product stays small.
    if not all(type(number) is int and 0 <= number <= len(payload) for number in [*shape, offset]):
        raise ValueError
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if offset % _ALIGN or offset + size > len(payload):
        raise ValueError
    return np.frombuffer(payload[offset : offset + size], dtype=dtype).reshape(shape)
