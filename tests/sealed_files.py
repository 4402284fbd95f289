"""Model files taken apart and put together again, with a true checksum."""

from __future__ import annotations

import hashlib
import json
import struct

from maxmargin import model_file

START = 52


def parts(data: bytes) -> tuple[dict, bytes]:
    """Header and array section of a good file."""
    (length,) = struct.unpack_from("<Q", data, 12)
    end = START + length
    return json.loads(data[START:end]), data[end + -end % 64 :]


def sealed(header: dict, payload: bytes) -> bytes:
    """A file with a true checksum: made to deceive, not damaged."""
    text = json.dumps(header).encode()
    prefix = model_file.MAGIC + struct.pack("<IQ", model_file.VERSION, len(text))
    body = text + bytes(-(START + len(text)) % 64) + payload
    return prefix + hashlib.sha256(prefix + body).digest() + body
