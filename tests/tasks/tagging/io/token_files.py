"""What tests of token files share."""

from __future__ import annotations

import gzip
import io

from maxmargin.tasks.tagging.io.files import write_tagged


def written(text, labels, **settings) -> str:
    stream = io.BytesIO()
    write_tagged(text, labels, out=stream, **settings)
    return stream.getvalue().decode()


def put(folder, content: str, packed: bool):
    path = folder / "content"
    data = content.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path
