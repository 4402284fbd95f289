"""Fingerprints of packed data: which problem a file of intermediate results belongs to.

Everything is hashed by its type, shape and bytes (BLAKE2b, about a gigabyte a second), so that two fingerprints are
equal where training would meet the same numbers. An object of the package is known by its attributes, but for those
that are worked out when first needed, or by what its ``told()`` lists.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._sparse import sp

_SIZE = 16


def digest(*values: Any) -> str:
    """The fingerprint of some values, 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=_SIZE)
    for value in values:
        _add(state, value)
    return state.hexdigest()


def _add(state: Any, value: Any) -> None:
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        plain = value.item() if isinstance(value, np.generic) else value
        _word(state, type(plain).__name__, repr(plain))
    elif isinstance(value, np.ndarray):
        _word(state, "array", value.dtype.str, str(value.shape))
        state.update(repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).data)
    elif sp.issparse(value):
        rows = sp.csr_array(value)
        _word(state, "rows", str(rows.shape))
        for part in (rows.indptr, rows.indices, rows.data):
            _add(state, part)
    elif isinstance(value, (list, tuple)):
        _word(state, "list", str(len(value)))
        for one in value:
            _add(state, one)
    else:
        _word(state, "object", type(value).__qualname__)
        for one in _told(value):
            _add(state, one)


def _word(state: Any, *words: str) -> None:
    for word in words:
        data = word.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)


def _told(value: Any) -> Iterator[Any]:
    """What an object is made of."""
    if hasattr(value, "fingerprint_data"):
        yield from value.fingerprint_data()
    elif dataclasses.is_dataclass(value) or _own(value):
        yield from attributes(value)


def attributes(value: Any, *, numbers: bool = True) -> Iterator[Any]:
    """Names and values of an object's attributes, but for those made when first needed and foreign objects."""
    for name, one in sorted(getattr(value, "__dict__", {}).items()):
        made = isinstance(getattr(type(value), name, None), cached_property)
        if not made and _plain(one) and (numbers or isinstance(one, bool) or not isinstance(one, (int, float))):
            yield name
            yield one


def _plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    kinds = (str, bool, int, float, np.generic, np.ndarray)
    return isinstance(value, kinds) or sp.issparse(value) or dataclasses.is_dataclass(value) or _own(value)


def _own(value: Any) -> bool:
    """Whether an object belongs to the package's Python code."""
    module = type(value).__module__
    return module.startswith("maxmargin.") and not module.endswith("._kernels")
