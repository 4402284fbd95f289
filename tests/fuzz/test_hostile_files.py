"""Files that ask for more memory, time or room on the screen than their size justifies."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import sys
import zipfile
import zlib

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import model_file
from maxmargin._messages import LONGEST, FileContentError, quoted, shortened
from maxmargin.models.base import SPARSE_FLOOR, SPARSE_LIMIT
from maxmargin.tasks.alignment.io.bitext import read_bitext
from maxmargin.tasks.alignment.io.link_files import open_links, read_links
from maxmargin.tasks.alignment.metrics.files import evaluate_files
from maxmargin.tasks.common.files.text import EXPANSION, FileError, read_bytes
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.lattices import read_lattices
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.tagging.io.files import read_tagged


def refused(read, path, message):
    with pytest.raises(FileError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) <= LONGEST


def test_messages():
    assert shortened("abc") == "abc"
    long = shortened("file, line 7: " + 10_000 * "x" + "; do this")
    assert len(long) == LONGEST
    assert long.startswith("file, line 7: x")
    assert long.endswith("x; do this")
    assert len(str(FileContentError("y" * 10**6))) == LONGEST
    assert quoted("a\x1b") == repr("a\\x1b")
    assert quoted(b"\xff") == repr("\ufffd")
    for value in ("z" * 10**6, b"z" * 10**6, [1] * 10**6, 10**4000):
        assert len(quoted(value)) <= 42
    assert quoted(None) == "None"


LINES = {
    "a link": (open_links, b"0-0 " + 100_000 * b"x"),
    "a score": (read_lattices, b"((('a',-" + 100_000 * b"1" + b"x,1),),)"),
    "an edge": (read_lattices, b"((('a'," + 100_000 * b"(" + b",1),),)"),
    "a feature": (read_nbest, b"0 ||| a ||| lm= " + 100_000 * b"x" + b" ||| 0\n"),
    "an object": (lambda path: read_nbest(path, format="jsonl"), b'{"hyps": ' + 100_000 * b"[" + b"}"),
    "tokens": (lambda path: read_tagged(path, format="json"), b'{"tokens": ' + 100_000 * b"[" + b"}"),
    "a class": (lambda path: parse_classes(file=path), 100_000 * b"x" + b"=1\n"),
    "blanks": (lambda path: parse_classes(file=path), b"a" + 100_000 * b" " + b"b#=1\n"),
}


@pytest.mark.parametrize("name", LINES)
def test_long_lines(name, tmp_path):
    read, content = LINES[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    refused(read, path, ";")


def test_compressed_files(tmp_path, monkeypatch):
    path = tmp_path / "file.gz"
    content = (1 << 24) * b"\n"
    path.write_bytes(gzip.compress(content, 1))
    wanted = rf"expand to more than 100 times as many.*decompress it first, or set .*{EXPANSION} to a number above 100"
    refused(read_bitext, path, wanted)
    monkeypatch.setenv(EXPANSION, "2000")
    assert read_bytes(path) == content
    for wrong in ("x", "nan", "0.5"):
        monkeypatch.setenv(EXPANSION, wrong)
        with pytest.raises(ValueError, match=f"{EXPANSION} must be a number >= 1, got '{wrong}'; unset it for 100"):
            read_bytes(path)
    monkeypatch.delenv(EXPANSION)
    small = (1 << 21) * b"\n"  # small enough whatever the ratio, in several members
    path.write_bytes(gzip.compress(small, 1) + gzip.compress(b"x"))
    assert read_bytes(path) == small + b"x"


def compressions():
    """Functions that compress, by the names of the kinds in errors."""
    found = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
    with contextlib.suppress(ImportError):
        found["Zstandard"] = importlib.import_module("zstandard").compress
    return found


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "Zstandard"])
def test_kinds_of_compression(name, tmp_path):
    compress = compressions().get(name) or pytest.skip("needs the zstd extra")
    path = tmp_path / "file"
    text = b"".join(b"%d words\n" % number for number in range(10_000))
    packed = compress(text)
    path.write_bytes(packed + compress(b"more"))  # several streams in one file
    assert read_bytes(path) == text + b"more"
    for damaged in (packed[:-9], packed[:30], packed[:-30] + 30 * b"x"):
        path.write_bytes(damaged)
        refused(read_bytes, path, rf"damaged {name} file \(.*\); copy or compress it again")
    path.write_bytes(compress((1 << 24) * b"\n"))
    refused(read_bytes, path, "expand to more than 100 times as many")


def test_what_only_looks_compressed(tmp_path):
    path = tmp_path / "file"
    for text in (b"", b"B", b"BZh", b"BZhora is a name\n", b"(\xb5"):
        path.write_bytes(text)
        assert read_bytes(path) == text


def test_zstandard_without_its_package(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"\x28\xb5\x2f\xfd and more than that")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"zstandard is not installed; run: pip install 'maxmargin\[zstd\]'"):
        read_bytes(path)


def test_a_compressed_pipe(tmp_path, monkeypatch):
    """Whose first bytes come one by one, and whose size is not known."""

    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(1)

    class Stream:
        buffer = Slow(bz2.compress(b"some words\n" * 1000))

    monkeypatch.setattr(sys, "stdin", Stream())
    assert read_bytes("-") == b"some words\n" * 1000


def test_archives(tmp_path):
    pytest.importorskip("PIL", reason="needs the images extra")
    from maxmargin.tasks.segmentation.io.images import read_image

    path = tmp_path / "image.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        content = io.BytesIO()
        np.save(content, np.zeros((1 << 12, 1 << 13)))
        archive.writestr("image.npy", content.getvalue())
    refused(read_image, path, "expand to more than 100 times as many")
    path = tmp_path / "image.png"
    header = (20_000).to_bytes(4, "big") * 2
    for depth in (8, 16):  # read by Pillow, and by the library

        def chunk(name, content):
            return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")

        chunks = chunk(b"IHDR", header + bytes([depth, 2, 0, 0, 0])) + chunk(b"IDAT", zlib.compress(bytes(1000)))
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b""))
        refused(read_image, path, "pixels")


def test_a_sentence_far_away(tmp_path):
    path = tmp_path / "links"
    path.write_text("1 1 1 S\n2 1 1 S\n40000000 1 1 S\n")
    refused(
        read_links, path, "line 3: sentence 40000000 in a file of 3 links; correct the number, or give the sentences"
    )
    path.write_text("1 1 1 S\n1000 1 1 S\n")
    assert len(read_links(path)) == 1000


def test_few_weights_of_very_many(tmp_path):
    X, y = [np.eye(3)[[0, 1, 2]]] * 3, [["a", "b", "a"]] * 3
    path = tmp_path / "model"
    mm.ChainSVM(tol=0.1).fit(X, y).save(path)
    header, arrays = model_file.read(path)
    del header["arrays"]
    header["encoder"]["n_features"] = 80_000_000
    model_file.write(path, header, {**arrays, "weights": np.ones(200), "positions": np.arange(200)})
    with pytest.raises(mm.ModelFileError, match="need 160000004 weights, too many for the 200 it has"):
        mm.load(path)
    high, low = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    header["encoder"]["n_features"] = 3
    model_file.write(path, header, {**arrays, "weights": np.ones(4), "positions": np.array([0, high, low, 5])})
    with pytest.raises(mm.ModelFileError, match="positions of its weights are not increasing"):
        mm.load(path)


def test_sparse_weights_that_save_writes_can_be_loaded(tmp_path):
    width = SPARSE_FLOOR // 2 + 10
    model = mm.ChainSVM(tol=0.1).fit([np.eye(2)] * 2, [["a", "b"]] * 2).model_
    assert SPARSE_LIMIT * 4 < SPARSE_FLOOR
    for columns in (1000, width):
        encoder = type(model.encoder).from_state({**model.encoder.state(), "n_features": columns})
        weights = np.zeros(encoder.n_weights)
        weights[[1, -1]] = 1.0
        mm.Model(weights, encoder).save(tmp_path / "model")
        assert np.array_equal(mm.load(tmp_path / "model").weights, weights)
        assert ("positions" in model_file.read(tmp_path / "model")[1]) == (columns == 1000)


def test_files_that_are_compared_name_no_sentences_beyond_their_links(tmp_path):
    few, far = tmp_path / "few.naacl", tmp_path / "far.naacl"
    few.write_text("1 1 1\n")
    far.write_text("40000000 1 1\n")
    for gold, predicted in ((few, far), (far, few)):
        with pytest.raises(ValueError, match="line 1: sentence 40000000 in a file of 1 link"):
            evaluate_files(str(gold), [str(predicted)])
