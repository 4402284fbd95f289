"""Good arguments made bad: a value of the right kind goes in, one that is odd in some way comes out."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

HUGE = (2**31, 2**40, 2**62, 2**63, 2**64, 10**12, 10**30, 10**400)
"""Sizes that no memory holds; 2**31 and more, so that none of them could be meant."""


class RaisesInArray:
    """An object that NumPy cannot read."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array here")


class RaisesInLen:
    """A sequence that does not know its length."""

    def __len__(self) -> int:
        raise RuntimeError("no length here")

    def __iter__(self) -> Any:
        raise RuntimeError("no items here")


class ClaimsLength:
    """A sequence that claims more items than it has."""

    def __len__(self) -> int:
        return 2**40

    def __getitem__(self, index: Any) -> Any:
        raise IndexError(index)


class RaisesInRepr:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words here")


class Frame:
    """Looks like a table of pandas: columns, values, a shape and a length."""

    def __init__(self, values: Any) -> None:
        self.values, self.columns, self.index = values, ["a", "b"], [0, 1]
        self.shape = np.shape(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: Any) -> Any:
        return self.values[:, self.columns.index(name)]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype=dtype)


def recursive() -> list[Any]:
    """A list that contains itself."""
    found: list[Any] = [1]
    found.append(found)
    return found


def deep(depth: int) -> Any:
    """A list in a list in a list ..."""
    found: Any = 1.0
    for _ in range(depth):
        found = [found]
    return found


JUNK: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 1,
    lambda: 7,
    *(lambda size=size: size for size in HUGE),
    lambda: -(2**63),
    lambda: -(10**30),
    lambda: 0.5,
    lambda: np.nan,
    lambda: np.inf,
    lambda: -np.inf,
    lambda: 1e308,
    lambda: -1e308,
    lambda: 1e-320,
    lambda: 1j,
    lambda: "",
    lambda: "abc",
    lambda: "3",
    lambda: "\ud800",
    lambda: "x" * 100_000,
    lambda: b"abc",
    lambda: bytearray(b"abc"),
    lambda: memoryview(b"abc"),
    lambda: (),
    lambda: [],
    lambda: {},
    lambda: set(),
    lambda: {1},
    lambda: frozenset([1, 2]),
    lambda: {"a": 1},
    lambda: {"a": 1}.keys(),
    lambda: object(),
    lambda: RaisesInArray(),
    lambda: RaisesInLen(),
    lambda: ClaimsLength(),
    lambda: RaisesInRepr(),
    lambda: Frame(np.ones((2, 2))),
    lambda: iter([1, 2]),
    lambda: (x for x in [1.0, 2.0]),
    lambda: range(3),
    lambda: range(10**12),
    lambda: slice(3),
    lambda: lambda *args, **named: None,
    lambda: ...,
    lambda: NotImplemented,
    lambda: decimal.Decimal("1"),
    lambda: fractions.Fraction(1, 2),
    lambda: datetime.datetime(2020, 1, 1),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.timedelta64(3, "s"),
    lambda: np.float16(1),
    lambda: np.longdouble("1e4000"),
    lambda: np.int8(1),
    lambda: np.uint64(2**63),
    lambda: np.str_("a"),
    lambda: np.bool_(True),
    lambda: np.array(3),
    lambda: np.array(None),
    lambda: np.zeros(0),
    lambda: np.zeros((0, 3)),
    lambda: np.zeros((3, 0)),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.ones((2, 2)),
    lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1.0], dtype=object),
    lambda: np.array([1, 2], dtype="M8[s]"),
    lambda: np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
    lambda: np.broadcast_to(0.0, (10**6, 10**6)),
    lambda: np.broadcast_to(np.int64(0), (2**40,)),
    lambda: np.broadcast_to(1.0, (2**40, 2)),
    lambda: np.broadcast_to(True, (3, 2**40)),
    lambda: [[1, 2], [3]],
    lambda: [[1.0], None],
    lambda: [1, "a", None],
    lambda: recursive(),
    lambda: deep(70),
    lambda: deep(2000),
    lambda: [10**400],
    lambda: [2**63],
    lambda: [np.nan, np.inf],
    lambda: sp.csr_array((3, 2**40)),
    lambda: sp.csc_array((3, 3)),
    lambda: sp.coo_array((2**40, 3)),
    lambda: sp.coo_array((2**40, 2**40)),
    lambda: sp.dok_array((2**40, 2)),
    lambda: sp.lil_array((2, 2)),
    lambda: sp.dia_array((3, 2**40)),
    lambda: sp.coo_array(np.ones(3)),
    lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    lambda: np.matrix([[1.0, 2.0]]),
)


def junk(random: np.random.Generator) -> Any:
    """Something of any kind."""
    return JUNK[random.integers(len(JUNK))]()


def spoiled(random: np.random.Generator, value: Any) -> Any:
    """The value in another form or with something wrong in it; now and then something else altogether."""
    large = hasattr(value, "shape") and np.prod(value.shape, dtype=np.float64) > 1e6  # spoiled before
    if large or random.random() < 0.25:
        return junk(random)
    if isinstance(value, np.ndarray):
        try:
            return _array(random, value)
        except (OverflowError, ValueError):
            return junk(random)
    if isinstance(value, (list, tuple)):
        return _list(random, value)
    if isinstance(value, dict) and value:
        return _dict(random, value)
    if isinstance(value, bool):
        return _one(random, [not value, int(value), str(value), np.bool_(value), None, 2, float(value)])
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64) and abs(int(value)) < 2**60:
        return _integer(random, int(value))
    if isinstance(value, float):
        return _one(random, [np.nan, np.inf, -np.inf, -value, 0.0, 1e308, 1e-320, str(value), [value], None, -1, 10**400])
    if isinstance(value, str) and len(value) < 1000 and value.isascii():
        return _one(random, ["", value + "x", value.upper(), value.encode(), list(value), None, value * 20_000, "\0", 0])
    if sp.issparse(value):
        return _sparse(random, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(random, value)
    if callable(value):
        odd = junk(random)
        return _one(random, [lambda *args, **named: odd, None, 3])
    return junk(random)


def _one(random: np.random.Generator, choices: list[Any]) -> Any:
    return choices[random.integers(len(choices))]


def _integer(random: np.random.Generator, value: int) -> Any:
    near = [value + 1, value - 1, -value, 0, -1, float(value), value + 0.5, str(value), [value], np.int64(value), 2]
    return _one(random, [*near, *HUGE, np.array(value), None])


def _array(random: np.random.Generator, value: np.ndarray[Any, Any]) -> Any:
    way = random.integers(5)
    if way == 0:
        return _dtype(random, value)
    if way == 1:
        return _shape(random, value)
    if way == 2:
        return _entries(random, value)
    if way == 3 and value.ndim:
        return spoiled(random, value.tolist())
    return _form(random, value)


def _dtype(random: np.random.Generator, value: np.ndarray[Any, Any]) -> Any:
    kinds = ["O", "U", "S", "c16", "?", "f2", "g", ">f8", "<f4", ">i4", "i1", "u1", "u8", "i4", "M8[s]", "m8[s]"]
    kind = kinds[random.integers(len(kinds))]
    with np.errstate(all="ignore"):
        try:
            return value.astype(kind)
        except (TypeError, ValueError, OverflowError):
            return value.astype(object)


def _shape(random: np.random.Generator, value: np.ndarray[Any, Any]) -> Any:
    one = value.flat[0] if value.size else 0.0
    ways: list[Callable[[], Any]] = [
        lambda: value.ravel(),
        lambda: value[None],
        lambda: value[..., None],
        lambda: value[0],
        lambda: value[:0],
        lambda: value[..., :0],
        lambda: value[:-1],
        lambda: value[..., :-1],
        lambda: np.concatenate([value, value]),
        lambda: np.concatenate([value, value], axis=-1),
        lambda: value.T,
        lambda: np.squeeze(value),
        lambda: np.broadcast_to(one, (10**6, 10**6)),
        lambda: np.broadcast_to(one, (2**40, *value.shape[1:])),
        lambda: np.broadcast_to(one, (*value.shape[:-1], 2**40)),
        lambda: np.array(one),
    ]
    try:
        return ways[random.integers(len(ways))]()
    except (IndexError, ValueError):
        return value[None]


def _entries(random: np.random.Generator, value: np.ndarray[Any, Any]) -> Any:
    if not value.size:
        return value
    changed = value.copy()
    if value.dtype.kind == "f":
        odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, -1.0, 1e-320]
        if random.random() < 0.3:
            with np.errstate(all="ignore"):
                return changed * [1e300, 1e308, 1e150, -1.0][random.integers(4)]
    elif value.dtype.kind == "b":
        return ~changed
    else:
        odd = [-1, 2**62, 2**63 - 1, -(2**63), 2**31, 2**40, 99, 0]
    changed.flat[random.integers(value.size)] = odd[random.integers(len(odd))]
    return changed


def _form(random: np.random.Generator, value: np.ndarray[Any, Any]) -> Any:
    readonly = value.copy()
    readonly.flags.writeable = False
    twice = np.repeat(value, 2, axis=0)[::2] if value.ndim else value
    ways: list[Callable[[], Any]] = [
        lambda: readonly,
        lambda: np.asfortranarray(value),
        lambda: twice,
        lambda: np.flip(value),
        lambda: np.ma.masked_array(value, mask=np.arange(value.size).reshape(value.shape) == 0),
        lambda: np.ma.masked_array(value),
        lambda: np.matrix(value),
        lambda: value.tolist(),
        lambda: tuple(value.tolist()),
        lambda: iter(value.tolist()),
        lambda: Frame(value),
        lambda: memoryview(np.ascontiguousarray(value)),
        lambda: _sparse(random, sp.coo_array(value)),
        lambda: sp.csr_array(value),
    ]
    try:
        return ways[random.integers(len(ways))]()
    except (TypeError, ValueError):
        return value.tolist()


def _sparse(random: np.random.Generator, value: Any) -> Any:
    form = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"][random.integers(7)]
    try:
        if value.format in ("csr", "csc"):
            value.check_format(full_check=True)  # spoiled before: scipy would read outside its arrays
        found = value.asformat(form)
    except (TypeError, ValueError):
        return value
    way = random.integers(6)
    if way == 0:
        return found.astype(complex)
    if way == 1 and len(value.shape) == 2:
        return sp.csr_array((found.shape[0], 2**40))
    if way == 2 and form in ("csr", "csc") and found.nnz:
        found.indices[0] = [2**30, -1, 99][random.integers(3)]
    if way == 3 and form in ("csr", "csc"):
        found.indptr[-1] = [2**30, -1, 0][random.integers(3)]
    if way == 4 and form in ("csr", "csc", "coo") and found.nnz and found.dtype.kind == "f":
        found.data[0] = [np.nan, np.inf, 1e308][random.integers(3)]
    return found


def _list(random: np.random.Generator, value: Any) -> Any:
    items = list(value)
    if not items:
        return _one(random, [[None], [1], (), "", {}, [[]], [junk(random)]])
    at = int(random.integers(len(items)))
    way = random.integers(12)
    if way < 5:
        items[at] = spoiled(random, items[at])
        return type(value)(items) if type(value) in (list, tuple) else items
    if way == 5:
        items[at] = junk(random)
        return items
    if way == 6:
        return items[:at] + items[at + 1 :]
    if way == 7:
        return items + items[:1]
    if way == 8:
        return _one(random, [[], (), None, items[0], [items], dict(enumerate(items))])
    if way == 9:
        return _one(random, [tuple(items), iter(items), (item for item in items), items[::-1]])
    if way == 10:
        found = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            found[place] = item
        return found
    items.append(items)
    return items


def _dict(random: np.random.Generator, value: dict[Any, Any]) -> Any:
    keys = list(value)
    key = keys[random.integers(len(keys))]
    way = random.integers(4)
    if way == 0:
        return {name: one for name, one in value.items() if name != key}
    if way == 1:
        return {**value, key: spoiled(random, value[key])}
    if way == 2:
        return {**value, "another": junk(random)}
    return _one(random, [list(value.items()), keys, {}, {3: value[key]}])


def _fields(random: np.random.Generator, value: Any) -> Any:
    names = [field.name for field in dataclasses.fields(value) if field.init]
    if not names:
        return junk(random)
    name = names[random.integers(len(names))]
    return dataclasses.replace(value, **{name: spoiled(random, getattr(value, name))})
