"""LAS and LAZ files: dimensions, classes, headers that stay, and damaged files."""

from __future__ import annotations

import io
import struct
import sys

import numpy as np
import pytest
from attempts import read_or_refuse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import read_scan, write_scan

laspy = pytest.importorskip("laspy", reason="needs the scans extra")
pytest.importorskip("lazrs", reason="needs the scans extra")

N = 60
RNG = np.random.default_rng(0)
XYZ = RNG.integers(0, 100_000, (N, 3)) / 1000 + np.array([500_000.0, 4_000_000.0, 100.0])


def made(point_format, version, *, compressed=False, points=N):
    """The bytes of a file, and what laspy holds of it."""
    header = laspy.LasHeader(point_format=point_format, version=version)
    header.offsets, header.scales = np.array([500_000.0, 4_000_000.0, 0.0]), np.full(3, 0.001)
    header.add_extra_dim(laspy.ExtraBytesParams(name="height", type=np.float32))
    las = laspy.LasData(header)
    las.x, las.y, las.z = XYZ[:points].T
    las.intensity = np.arange(points, dtype=np.uint16)
    las.classification = np.arange(points, dtype=np.uint8) % 7
    las.height = np.arange(points) / 2
    stream = io.BytesIO()
    las.write(stream, do_compress=compressed)
    return stream.getvalue()


KINDS = [(0, "1.2"), (3, "1.2"), (6, "1.4"), (7, "1.4")]


@pytest.mark.parametrize("compressed", [False, True], ids=["las", "laz"])
@pytest.mark.parametrize(("point_format", "version"), KINDS)
def test_read_and_write(saved, tmp_path, point_format, version, compressed):
    path = saved(made(point_format, version, compressed=compressed), "a.laz" if compressed else "a.las")
    scan = read_scan(path)
    np.testing.assert_allclose(scan.points, XYZ, atol=1e-9)
    assert scan.labels.tolist() == [number % 7 for number in range(N)]
    assert scan.attributes["intensity"].tolist() == list(range(N))
    assert scan.attributes["height"].tolist() == [number / 2 for number in range(N)]
    assert "classification" not in scan.attributes
    assert read_scan(path, "intensity").labels.tolist() == list(range(N))
    out = tmp_path / ("b.laz" if compressed else "b.las")
    write_scan(out, scan, np.arange(N) % 5, columns={"p_ground": np.arange(N) / N})
    again = read_scan(out)
    np.testing.assert_array_equal(again.points, scan.points)
    assert again.labels.tolist() == [number % 5 for number in range(N)]
    np.testing.assert_allclose(again.attributes["p_ground"], np.arange(N) / N, rtol=1e-6)
    for name, values in scan.attributes.items():
        np.testing.assert_array_equal(again.attributes[name], values)
    with laspy.open(path) as before, laspy.open(out) as after:
        assert after.header.point_format.id == before.header.point_format.id
        np.testing.assert_array_equal(after.header.scales, before.header.scales)
        assert after.header.are_points_compressed == compressed


def test_new_files(tmp_path):
    scan = Scan(XYZ, {"intensity": np.arange(N), "own": np.arange(N) / 8}, np.arange(N) % 3)
    write_scan(tmp_path / "a.laz", scan)
    found = read_scan(tmp_path / "a.laz")
    np.testing.assert_allclose(found.points, XYZ, atol=5.1e-4)
    assert found.labels.tolist() == [number % 3 for number in range(N)]
    assert found.attributes["own"].tolist() == [number / 8 for number in range(N)]
    with pytest.raises(ValueError, match=r"point format 6 are integers from 0 to 255; .* ground=2"):
        write_scan(tmp_path / "a.laz", scan, np.full(N, 300))
    (tmp_path / "b.las").write_bytes(made(0, "1.2"))
    old = read_scan(tmp_path / "b.las")
    with pytest.raises(ValueError, match="integers from 0 to 31"):
        write_scan(tmp_path / "c.las", old, np.full(N, 40))


@pytest.mark.parametrize("compressed", [False, True], ids=["las", "laz"])
@given(share=st.floats(0, 0.999))
def test_cut_anywhere(tmp_path_factory, compressed, share):
    content = made(6, "1.4", compressed=compressed)
    path = tmp_path_factory.getbasetemp() / "cut.las"
    path.write_bytes(content[: int(share * len(content))])
    assert read_or_refuse(read_scan, path) is None


@pytest.mark.parametrize("compressed", [False, True], ids=["las", "laz"])
@given(data=st.data())
def test_changed_bytes(tmp_path_factory, compressed, data):
    content = bytearray(made(6, "1.4", compressed=compressed))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.las"
    path.write_bytes(content)
    found = read_or_refuse(read_scan, path)
    assert found is None or len(found) <= N  # the header may say that there are fewer


def test_headers_that_claim_too_much(saved):
    content = bytearray(made(6, "1.4"))
    huge = content[:]
    struct.pack_into("<Q", huge, 247, 1 << 40)
    with pytest.raises(FileError, match="cut off: the header says 1099511627776 points"):
        read_scan(saved(bytes(huge), "a.las"))
    huge = content[:]
    struct.pack_into("<I", huge, 100, 1 << 31)
    with pytest.raises(FileError, match="cut off before the points"):
        read_scan(saved(bytes(huge), "a.las"))
    huge = bytearray(made(6, "1.4", compressed=True))
    struct.pack_into("<Q", huge, 247, 1 << 40)
    with pytest.raises(FileError, match=r"a\.laz: "):
        read_scan(saved(bytes(huge), "a.laz"))


def test_no_points_and_missing_packages(saved, monkeypatch):
    with pytest.raises(FileError, match="no points"):
        read_scan(saved(made(6, "1.4", points=0), "a.las"))
    path = saved(made(6, "1.4"), "a.las")
    monkeypatch.setitem(sys.modules, "laspy", None)
    with pytest.raises(ImportError, match=r"laspy is not installed; run: pip install 'maxmargin\[scans\]'"):
        read_scan(path)
