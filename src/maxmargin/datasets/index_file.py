"""The index of a folder of shards: one JSON object with a checksum, written last, so that it makes the folder whole."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from maxmargin._files import replacing
from maxmargin.execution import ShardError


def write_index(path: Path, index: dict[str, Any]) -> None:
    """Write an index, with its digest; ``index["format"]`` is the version of its format."""
    with replacing(path) as file:
        file.write(json.dumps({**index, "digest": _digest(index)}, indent=1).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())


def read_index(path: Path, version: int, kind: str | None, again: str) -> dict[str, Any] | None:
    """Read and check an index; None if there is none.

    Args:
        path: its file.
        version: the version of its format.
        kind: what ``index["kind"]`` must be; None for anything.
        again: how the user makes the folder again.

    Raises:
        ShardError: it cannot be read, is damaged, or has another format.
    """
    try:
        index = json.loads(path.read_bytes())
        fits = isinstance(index, dict) and isinstance(index.get("format"), int)
        if not fits or (kind is not None and index.get("kind") != kind):
            raise ValueError(f"it is not the index of a {kind or 'dataset'}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ShardError(f"{path} cannot be read ({error}); {again}") from None
    if index["format"] != version:
        remedy = again if index["format"] < version else "update maxmargin"
        raise ShardError(f"{path} has format {index['format']}, this version of maxmargin reads {version}; {remedy}")
    if index.get("digest") != _digest(index):
        raise ShardError(f"{path} is damaged: its contents do not match their checksum; {again}")
    whole: dict[str, Any] = index
    return whole


def _digest(index: dict[str, Any]) -> str:
    plain = {name: value for name, value in index.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode("ascii")).hexdigest()
