"""Damage to files: bytes, lines and numbers changed, gzip around them, and sealed files whose checksum stays true.

Every function takes a generator of random numbers first and returns new bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxmargin import model_file

Generator = np.random.Generator

EXTREME = (
    *("0", "-0", "-1", "1", "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "18446744073709551616", "40000000", "1e308", "-1e308", "1e309"),
    *(
        "1e-320",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "0x1p9999",
        "1_000",
        "٣",
        "1.5",
        "",
        "null",
        "true",
        "[]",
        "{}",
        '""',
    ),
    "9" * 400,
    "9" * 5000,
)
"""Numbers that programs get wrong, and values that are none."""

BYTES = (
    *(
        b"\0",
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\r",
        b"\n",
        b"\n\n",
        b"\t",
        b" ",
        b"  ",
    ),
    *(b"|||", b"=", b"=1 ", b":", b"#", b"'", b'"', b"(", b")", b"{", b"}", b"[", b"]", b",", b"\\", b"-", b"\\ud800"),
    *(
        "é".encode(),
        "\u2028".encode(),
        "\u0085".encode(),
        "\U0010ffff".encode(),
        b"\xe2\x80\x8f",
        b"\x1b[2J",
        b"%[0,0]",
    ),
)
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
LONG = 100_000
"""Characters of a very long token or line."""


def _place(random: Generator, data: bytes) -> int:
    return int(random.integers(0, len(data) + 1))


def _chunk(random: Generator, data: bytes) -> tuple[int, int]:
    begin = _place(random, data)
    longest = (4, 64, max(1, len(data)))[random.integers(3)]
    return begin, min(len(data), begin + int(random.integers(1, longest + 1)))


def flip(random: Generator, data: bytes) -> bytes:
    """A few bits the other way."""
    changed = bytearray(data)
    for _ in range(int(random.integers(1, 6))):
        if changed:
            changed[int(random.integers(len(changed)))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def cut(random: Generator, data: bytes) -> bytes:
    """The beginning, or without a chunk."""
    begin, end = _chunk(random, data)
    return data[:begin] if random.random() < 0.5 else data[:begin] + data[end:]


def repeat(random: Generator, data: bytes) -> bytes:
    """A chunk several times."""
    begin, end = _chunk(random, data)
    times = int(random.choice([2, 3, 50]))
    return data[:begin] + data[begin:end] * times + data[end:]


def splice(random: Generator, data: bytes) -> bytes:
    """Bytes that mean something to parsers, in place of others."""
    begin, end = _chunk(random, data)
    return data[:begin] + BYTES[random.integers(len(BYTES))] + data[begin if random.random() < 0.5 else end :]


def swap_lines(random: Generator, data: bytes) -> bytes:
    """Lines exchanged, repeated, dropped or joined."""
    lines = data.split(b"\n")
    i, j = (int(at) for at in random.integers(0, len(lines), 2))
    kind = random.integers(4)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    elif kind == 2:
        del lines[i]
    else:
        lines[i] += lines.pop(j) if len(lines) > i + 1 and j > i else b""
    return b"\n".join(lines)


def renumber(random: Generator, data: bytes) -> bytes:
    """A number replaced by an extreme one."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return splice(random, data)
    at = found[random.integers(len(found))]
    return data[: at.start()] + EXTREME[random.integers(len(EXTREME))].encode() + data[at.end() :]


def lengthen(random: Generator, data: bytes) -> bytes:
    """A very long token, line or run of brackets somewhere."""
    what = (b"x", b"9", b" ", b"\n", b"[", b"{", b"(", b'{"a":', b"(((", b"\xc3\xa9", b"a ", b"1 ", b"\\")
    piece, at = what[random.integers(len(what))], _place(random, data)
    return data[:at] + piece * (LONG // len(piece)) + data[at:]


def line_ends(random: Generator, data: bytes) -> bytes:
    """CRLF, a byte order mark, UTF-16, nothing."""
    kind = random.integers(5)
    if kind == 0:
        return data.replace(b"\n", b"\r\n")
    if kind == 1:
        return b"\xef\xbb\xbf" + data
    if kind == 2:
        return data.decode("latin-1").encode("utf-16")
    return data.replace(b"\n", b"\r") if kind == 3 else b""


def zipped(random: Generator, data: bytes) -> bytes:
    """The same compressed: whole, in several members, damaged, or twice."""
    kind = random.integers(4)
    if kind == 0:
        return gzip.compress(data, 1)
    if kind == 1:
        at = _place(random, data)
        return gzip.compress(data[:at], 1) + gzip.compress(data[at:], 1)
    if kind == 2:
        return (flip, cut)[random.integers(2)](random, gzip.compress(data, 1))
    return gzip.compress(gzip.compress(data, 1), 1)


_WAYS: tuple[Callable[[Generator, bytes], bytes], ...] = (
    *(flip, cut, repeat, splice, swap_lines, renumber, renumber, renumber),
    *(flip, cut, repeat, splice, swap_lines, renumber, lengthen, line_ends, zipped),
)


def mutated(random: Generator, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """A file damaged in a few ways, or rarely one of ``others`` instead."""
    if others and random.random() < 0.02:
        data = others[random.integers(len(others))]
    for _ in range(int(random.integers(1, 4))):
        data = _WAYS[random.integers(len(_WAYS))](random, data)
        if len(data) > 20 * LONG:
            break
    return data


_START = 52
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        7,
        2**31 - 1,
        2**31,
        -(2**31),
        2**53,
        2**63 - 1,
        2**63,
        -(2**63),
        2**64,
        10**30,
    ),
    *(40_000_000, 1e308, -1e308, 0.5, -0.0, 1e-320, "", "x", "nan", "inf", "-0x1p+0", "0x1.8p+1", "1", "\ud800", "é\n"),
    *([], [[]], [0], ["x"], [1, 2, 3], {}, {"x": 1}, {"": {}}, "x" * LONG, 10**4000),
)
_TYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", ">f8", "|O", "<f2", 3, None)


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and array section of a good model file or checkpoint."""
    (length,) = struct.unpack_from("<Q", data, 12)
    end = _START + length
    return json.loads(data[_START:end]), data[end + -end % 64 :]


def seal(header: bytes, payload: bytes) -> bytes:
    """A file around any header and arrays whose checksum is true: made to deceive, not damaged."""
    prefix = model_file.MAGIC + struct.pack("<IQ", model_file.VERSION, len(header))
    body = header + bytes(-(_START + len(header)) % 64) + payload
    return prefix + hashlib.sha256(prefix + body).digest() + body


def resealed(random: Generator, data: bytes) -> bytes:
    """A model file or checkpoint with other values inside and a true checksum; sometimes plain damage."""
    if random.random() < 0.05:
        return mutated(random, data)
    header, payload = parts(data)
    changed = bytearray(payload)
    for _ in range(int(random.integers(1, 4))):
        kind = random.random()
        if kind < 0.5:
            _change_value(random, header)
        elif kind < 0.9:
            _change_array(random, header, changed)
        elif kind < 0.95:
            _change_entry(random, header)
        else:
            changed = bytearray(mutated(random, bytes(changed)))
    text = json.dumps(header).encode()
    if random.random() < 0.05:
        text = mutated(random, text)
    if random.random() < 0.02:
        depth = int(random.choice([100, 2000, 100_000]))
        text = text[:-1] + b', "deep": ' + b"[" * depth + b"]" * depth + b"}"
    return seal(text, bytes(changed))


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container of a JSON value with a key or position in it."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            _places(value[key], found)
    return found


def _change_value(random: Generator, header: dict[str, Any]) -> None:
    """One value of the header replaced, removed or copied from another place."""
    found = [(where, key) for where, key in _places(header, []) if where is not header or key != "arrays"]
    if not found:
        return
    where, key = found[random.integers(len(found))]
    kind, old = random.random(), where[key]
    if kind < 0.1:
        del where[key]
    elif kind < 0.25:
        other, name = found[random.integers(len(found))]
        where[key] = json.loads(json.dumps(other[name])) if name in other or isinstance(other, list) else None
    elif kind < 0.4 and isinstance(old, int | float):
        where[key] = old + int(random.integers(-2, 3))
    elif kind < 0.5 and isinstance(old, int | float):
        where[key] = old * float(random.normal()) * 10.0 ** float(random.integers(-3, 4))
    elif kind < 0.5 and isinstance(old, str) and old.startswith(("0x", "-0x")):
        where[key] = float(random.normal() * 10.0 ** float(random.integers(-9, 9))).hex()
    elif kind < 0.55 and isinstance(old, list) and old:
        where[key] = old * int(random.choice([2, 100]))
    else:
        where[key] = _VALUES[random.integers(len(_VALUES))]


def _change_entry(random: Generator, header: dict[str, Any]) -> None:
    """The entry of an array in the header: another type, shape, offset or name."""
    arrays = header.get("arrays")
    if not isinstance(arrays, dict) or not arrays:
        return
    name = list(arrays)[random.integers(len(arrays))]
    kind = random.integers(6)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[f"{name}x"] = arrays.pop(name)
    elif kind == 2:
        arrays[name] = arrays[list(arrays)[random.integers(len(arrays))]]
    elif isinstance(entry := arrays[name], dict):
        arrays[name] = entry = dict(entry)
        if kind == 3:
            entry["dtype"] = _TYPES[random.integers(len(_TYPES))]
        elif kind == 4:
            entry["offset"] = int(random.choice([0, 64, 128, 1, -64, 1 << 40]))
        else:
            sizes = [0, 1, 2, 3, 1 << 31, 1 << 62, -1]
            entry["shape"] = [int(random.choice(sizes)) for _ in range(int(random.integers(0, 4)))]


_NUMBERS = (0, 1, -1, 2, 5, 100, 2**31 - 1, 2**31, 2**53, 2**62, 1e308, -1e308, 1e-320, np.nan, np.inf, -np.inf, 0.5)


def _change_array(random: Generator, header: dict[str, Any], payload: bytearray) -> None:
    """Numbers of one array replaced, exchanged or scaled; or the array cut short."""
    arrays = header.get("arrays")
    if not isinstance(arrays, dict) or not arrays:
        return
    entry = arrays[list(arrays)[random.integers(len(arrays))]]
    try:
        dtype, shape, offset = np.dtype(entry["dtype"]), entry["shape"], entry["offset"]
        count = int(np.prod(shape, dtype=np.int64))
        values = np.frombuffer(bytes(payload), dtype=dtype, count=count, offset=offset).copy()
    except (KeyError, TypeError, ValueError, OverflowError):
        return
    if not len(values) or dtype.kind not in "fiu":
        return
    kind, at = random.random(), random.integers(0, len(values), int(random.integers(1, 4)))
    with np.errstate(all="ignore"):
        if kind < 0.5:
            values[at] = np.array(_NUMBERS)[random.integers(len(_NUMBERS), size=len(at))].astype(dtype)
        elif kind < 0.6:
            values[at] = values[random.permutation(at)]
        elif kind < 0.7:
            values = (values * random.choice([-1.0, 0.0, 0.5, 2.0, 1e6])).astype(dtype)
        elif kind < 0.8:
            values[at] = (values[at] + random.integers(-2, 3, len(at))).astype(dtype)
        elif kind < 0.85:
            values = random.permutation(values)
        elif kind < 0.95:
            values[at] = (values[at] * random.normal(size=len(at))).astype(dtype)
        elif isinstance(shape, list) and len(shape) == 1 and count > 0:
            entry["shape"] = [int(random.integers(0, count))]
    payload[offset : offset + values.nbytes] = values.tobytes()
