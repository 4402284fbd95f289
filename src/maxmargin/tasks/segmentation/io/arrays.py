"""Arrays in npz and npy files: read without pickles, and refused before memory is taken if too large."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from maxmargin._messages import quoted
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, open_output, problem, refuse_expansion

ZIP, NPY = b"PK\x03\x04", b"\x93NUMPY"
"""How npz and npy files begin."""

MAX_BYTES = 1 << 33
"""The largest array that is read."""

ALWAYS = 1 << 27
"""Bytes that an archive of any size may expand to: masks often have one value nearly everywhere."""

# What damaged archives make zipfile and numpy raise.
_BROKEN = (
    *(ValueError, OSError, EOFError, KeyError, TypeError, NotImplementedError, RuntimeError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, RecursionError, MemoryError, OverflowError),
)


def read_arrays(path: AnyPath, data: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an npz file by name, or that of an npy file under the name ``array``.

    Args:
        path: the file's name, for messages.
        data: its content.
    """
    if data.startswith(NPY):
        return {"array": _array(path, "array", io.BytesIO(data), len(data))}
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            refuse_expansion(path, len(data), sum(info.file_size for info in archive.infolist()), ALWAYS)
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    name = info.filename.removesuffix(".npy")
                    with archive.open(info) as member:
                        arrays[name] = _array(path, name, cast(BinaryIO, member), info.file_size)
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if not arrays:
        raise problem(path, None, "a zip file without arrays; write it with numpy.savez_compressed")
    return arrays


def named_array(path: AnyPath, data: bytes, names: Sequence[str]) -> npt.NDArray[Any]:
    """Return the only array of an npz or npy file, or the first of the given names that it has."""
    arrays = read_arrays(path, data)
    for name in names:
        if name in arrays:
            return arrays[name]
    if len(arrays) > 1:
        raise problem(
            path,
            None,
            f"{count_of(len(arrays), 'array')} ({', '.join(sorted(arrays))}); name the one to read {names[0]!r}",
        )
    return next(iter(arrays.values()))


def write_arrays(path: AnyPath, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an npz file, compressed."""
    with open_output(path) as file:
        np.savez_compressed(file, **cast(dict[str, Any], dict(arrays)))


def _array(path: AnyPath, name: str, file: BinaryIO, size: int) -> npt.NDArray[Any]:
    """Return the array of one npy stream of ``size`` bytes."""
    try:
        version = npy.read_magic(file)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(file)
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if dtype.hasobject:
        raise problem(
            path, None, f"array {quoted(name)} holds Python objects; save numbers, for example with .astype(float)"
        )
    count = math.prod(shape)
    # Sizes are compared before memory is taken: a header may claim anything.
    if count * dtype.itemsize > min(size, MAX_BYTES) or not all(0 <= length <= MAX_BYTES for length in shape):
        what = "cut off" if count * dtype.itemsize <= MAX_BYTES else "too large"
        raise problem(path, None, f"array {quoted(name)} of shape {quoted(shape)} is {what}; write the file again")
    content = file.read(count * dtype.itemsize)
    if len(content) != count * dtype.itemsize:
        raise problem(path, None, f"array {quoted(name)} is cut off; copy or write the file again")
    array = np.frombuffer(content, dtype=dtype, count=count)
    return array.reshape(shape, order="F" if fortran else "C").copy()


def _damaged(path: AnyPath, error: Exception) -> FileError:
    if isinstance(error, FileError):
        return error
    return problem(path, None, f"damaged npz file ({error}); copy or write it again")
