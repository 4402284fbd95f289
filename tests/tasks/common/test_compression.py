"""Compressed files and pipes: all kinds, frame after frame, as they come."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from pathlib import Path

import pytest

from maxmargin.tasks.common.files.compression import SUFFIXES, decompressed, is_ready, plain_name
from maxmargin.tasks.common.files.text import open_output, read_bytes
from maxmargin.tasks.common.tokens.line_formats import recognize
from maxmargin.tasks.reranking.io.features import feature_name
from maxmargin.tasks.reranking.io.files import recognize as recognize_lists
from maxmargin.tasks.reranking.io.lattices import recognize as recognize_lattices
from maxmargin.tasks.segmentation.io.folders import stem_of


def _zstandard(data):
    package = pytest.importorskip("zstandard", reason="zstandard is optional")
    return package.ZstdCompressor(write_checksum=True).compress(data)


PACK = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "Zstandard": _zstandard}
kinds = pytest.mark.parametrize("kind", PACK)


@pytest.fixture
def pipe():
    """The two ends of a pipe."""
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        yield source, sink


def taken(stream, size):
    """So many bytes, by as many calls as it takes."""
    found = b""
    while len(found) < size and (more := stream.read1(1 << 18)):
        found += more
    return found


@pytest.mark.parametrize("first", [b"a\n", b"\n", b"B\n", b"BZ\n", b"BZh9\n", b"BZh9 a b c\n", b"\x1f\n", b"(\n"])
def test_a_short_first_line_comes_while_the_pipe_is_open(pipe, first):
    source, sink = pipe
    sink.write(first)
    stream = decompressed(source, ValueError)
    assert taken(stream, len(first)) == first
    assert not is_ready(stream)
    sink.write(b"more\n")
    assert is_ready(stream)
    assert stream.read1(1 << 18) == b"more\n"
    sink.close()
    assert stream.read() == b""


@kinds
def test_frames_come_while_the_pipe_is_open(pipe, kind):
    source, sink = pipe
    sink.write(PACK[kind](b"one\n"))
    stream = decompressed(source, ValueError)
    assert taken(stream, 4) == b"one\n"
    second = PACK[kind](b"two\n")
    for byte in second:  # its header in pieces, too
        sink.write(bytes([byte]))
    assert taken(stream, 4) == b"two\n"
    sink.close()
    assert stream.read() == b""


def test_flushed_gzip_comes_while_the_pipe_is_open(pipe):
    """However little is asked for at a time: what is left over does not wait for what comes next."""
    source, sink = pipe
    packer, stream = zlib.compressobj(wbits=31), None
    for size in (1 << 18, 3):
        sink.write(packer.compress(b"a line of words\n" * 50) + packer.flush(zlib.Z_SYNC_FLUSH))
        stream = stream or decompressed(source, ValueError)
        found = b""
        while len(found) < 800:
            found += stream.read1(size)
        assert found == b"a line of words\n" * 50
    sink.write(packer.flush())
    sink.close()
    assert stream.read() == b""


@kinds
def test_whole_files(kind, tmp_path):
    pack, data = PACK[kind], b"".join(b"word%d\n" % i for i in range(100_000))
    several = pack(data[:1000]) + pack(b"") + pack(data[1000:])
    padded = several + bytes(8) if kind in ("gzip", "xz") else several
    for content in (pack(data), several, padded):
        (tmp_path / "file").write_bytes(content)
        with open(tmp_path / "file", "rb") as file:
            assert decompressed(file, ValueError).read() == data
        stream = decompressed(io.BytesIO(content), ValueError)
        assert b"".join(iter(lambda stream=stream: stream.read1(777), b"")) == data
    for damaged in (several[:-9], several[:900] + b"x" + several[901:], several + b"rubbish"):
        with pytest.raises(ValueError, match=f"damaged {kind} file"):
            decompressed(io.BytesIO(damaged), ValueError).read()
    with pytest.raises(ValueError, match="expand to more than 100 times"):
        decompressed(io.BytesIO(pack(bytes(1 << 24))), ValueError).read()


def test_plain_files_are_read_as_they_are(tmp_path):
    for content in (b"", b"a", b"a\n" * 100):
        (tmp_path / "file").write_bytes(content)
        with open(tmp_path / "file", "rb") as file:
            stream = decompressed(file, ValueError)
            assert stream is file
            assert is_ready(stream)
            assert stream.read() == content
        assert decompressed(io.BytesIO(content), ValueError).read() == content


def test_plain_names():
    for name in ("x.txt", "x.txt.gz", "x.txt.bz2", "x.txt.xz", "x.txt.zst", "x.txt.GZ"):
        assert plain_name(name) == plain_name(Path(name)) == "x.txt"
    assert plain_name("x.gzip") == "x.gzip"


@pytest.mark.parametrize("end", SUFFIXES)
def test_names_say_how_files_are_packed(tmp_path, end):
    """What is written under such a name is packed so, and what is read under it is known by the rest of the name."""
    if end == ".zst":
        pytest.importorskip("zstandard", reason="zstandard is optional")
    for name in ("out", "out" + end):
        with open_output(tmp_path / name) as stream:
            stream.write(b"words\n" * 1000)
        assert read_bytes(tmp_path / name) == b"words\n" * 1000
    assert (tmp_path / ("out" + end)).stat().st_size < 1000
    assert recognize("x.conllu" + end, b"") == "conllu"
    assert recognize_lists("x.tsv" + end, b"") == "tsv"
    assert recognize_lattices("x.slf" + end, b"") == "slf"
    assert feature_name("folder/lm" + end) == "lm"
    assert stem_of("folder/scan.ply" + end) == "scan"
