"""Model files taken apart and put together again, with a true checksum, and refused when they are loaded."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from data import PickOne

import maxmargin as mm
from maxmargin import model_file

START = 52


def parts(data: bytes) -> tuple[dict, bytes]:
    """Header and array section of a good file."""
    (length,) = struct.unpack_from("<Q", data, 12)
    end = START + length
    return json.loads(data[START:end]), data[end + -end % 64 :]


def sealed(
    header: dict | bytes, payload: bytes, *, version: int = model_file.VERSION, length: int | None = None
) -> bytes:
    """A file with a true checksum around any header and arrays: made to deceive, not damaged."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    prefix = model_file.MAGIC + struct.pack("<IQ", version, len(text) if length is None else length)
    body = text + bytes(-(START + len(text)) % 64) + payload
    return prefix + hashlib.sha256(prefix + body).digest() + body


def changed(data: bytes, change: Callable[[dict], object]) -> bytes:
    """A good file whose header was changed by a function, with a true checksum."""
    header, payload = parts(data)
    change(header)
    return sealed(header, payload)


def refused(path: Path, data: bytes, message: str | None = None) -> None:
    path.write_bytes(data)
    with pytest.raises(mm.ModelFileError, match=message) as caught:
        mm.load(path, structure=PickOne)
    assert str(path) in str(caught.value)
