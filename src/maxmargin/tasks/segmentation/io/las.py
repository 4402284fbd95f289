"""LAS and LAZ files, by the package ``laspy`` with ``lazrs``."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from maxmargin._quiet import quiet
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import AnyPath, FileError, open_output, problem, read_bytes
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.io.points import EXTRA, LABEL, Array, Scan, cut_off, make_scan

SIGNATURE = b"LASF"

_CLASS = "classification"
_CHUNK = 1 << 18
_VLR_SIZE = 54
_LAYERED, _BYTES = 3, 14
_LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}  # layers of each kind of item: points, RGB, RGB and infrared, waves


def read_las(path: AnyPath, label_column: str | int | None = None) -> Scan:
    """Read a scan; see :func:`~maxmargin.tasks.segmentation.io.scans.read_scan`."""
    columns: dict[str, Array] = _guarded(path, lambda: _columns(_open(path)))
    return make_scan(path, "las", columns, _CLASS if label_column is None else label_column)


def _guarded(path: AnyPath, work: Callable[[], Any]) -> Any:
    """Do some work on a file; whatever a damaged one makes laspy raise becomes an error that names the file."""
    try:
        with quiet(), np.errstate(all="ignore"):  # coordinates of absurd scales are checked later
            return work()
    except (FileError, ImportError):
        raise
    except MemoryError:
        raise problem(path, None, "too large for the memory; cut the scan into tiles") from None
    except BaseException as error:  # almost anything, even panics of the decompressor
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        text = str(error) or type(error).__name__
        raise problem(path, None, f"damaged or unsupported LAS file ({text}); copy or write it again") from None


def _columns(las: Any) -> dict[str, Array]:
    columns: dict[str, Array] = {axis: np.asarray(getattr(las, axis), dtype=np.float64) for axis in "xyz"}
    for name in las.point_format.dimension_names:
        values = np.asarray(las[name])
        if name not in ("X", "Y", "Z") and values.ndim == 1:
            columns[name] = values
    return columns


def _open(path: AnyPath) -> Any:
    """Return the points and header of a file, as laspy has them."""
    laspy = optional("laspy", EXTRA)
    optional("lazrs", EXTRA)
    data = read_bytes(path)
    _check_header(path, data)
    # The parallel decompressor takes memory as damaged tables of chunks claim, and aborts the process.
    with laspy.open(io.BytesIO(data), laz_backend=laspy.LazBackend.Lazrs) as reader:
        header = reader.header
        size, begin = header.point_format.size, header.offset_to_point_data
        if not header.are_points_compressed and begin + header.point_count * size > len(data):
            raise cut_off(path, header.point_count, max(0, len(data) - begin) // size)
        # Chunk by chunk: memory grows with what is there, not with what the header claims.
        chunks = [chunk.array for chunk in reader.chunk_iterator(_CHUNK)]
    if not chunks:
        raise problem(path, None, "no points; give a scan with some")
    table = np.concatenate(chunks)
    if len(table) != header.point_count:
        raise cut_off(path, header.point_count, len(table))
    record = laspy.ScaleAwarePointRecord(table, header.point_format, scales=header.scales, offsets=header.offsets)
    return laspy.LasData(header, points=record)


def _check_header(path: AnyPath, data: bytes) -> None:
    """Refuse headers that claim more than the file can have."""
    if len(data) < 227:
        raise problem(path, None, "the header of the LAS file is cut off; copy it again")
    header_size, points_at, n_records = struct.unpack_from("<HII", data, 94)
    if header_size > len(data) or points_at > len(data) or header_size + n_records * _VLR_SIZE > len(data):
        raise problem(path, None, "the LAS file is cut off before the points; copy it again")
    if data[104] & 0xC0:
        _check_compression(path, data, header_size, points_at, n_records)
    if data[25] >= 4 and len(data) >= 247:
        first, count = struct.unpack_from("<QI", data, 235)
        if count and first + count * 60 > len(data):
            raise problem(path, None, "the LAS file is cut off after the points; copy it again")


def _check_compression(path: AnyPath, data: bytes, at: int, points_at: int, n_records: int) -> None:
    """Refuse what would make the decompressor take memory or time without bound."""
    (point_size,) = struct.unpack_from("<H", data, 105)
    damaged = problem(path, None, "the description of the compression in the LAZ file is damaged; copy it again")
    for _ in range(n_records):
        if at + _VLR_SIZE > len(data):
            raise damaged
        user, record, length = struct.unpack_from("<16sHH", data, at + 2)
        at += _VLR_SIZE
        if record == 22204 and user.startswith(b"laszip encoded"):
            break
        at += length
    else:
        raise damaged
    if length < 34 or at + length > len(data) or points_at + 8 > len(data):
        raise damaged
    (chunk_size,) = struct.unpack_from("<I", data, at + 12)
    (n_items,) = struct.unpack_from("<H", data, at + 32)
    if not chunk_size or 34 + 6 * n_items > length:
        raise damaged
    items = [struct.unpack_from("<HHH", data, at + 34 + 6 * item) for item in range(n_items)]
    (table,) = struct.unpack_from("<q", data, points_at)
    if sum(size for _, size, _ in items) != point_size or not points_at + 8 <= table <= len(data) - 8:
        raise damaged
    _, n_chunks = struct.unpack_from("<II", data, table)
    if n_chunks > len(data):
        raise damaged
    (compressor,) = struct.unpack_from("<H", data, at)
    if compressor == _LAYERED:
        layers = sum(size if kind == _BYTES else _LAYERS.get(kind, 0) for kind, size, _ in items)
        at = points_at + 8
        # A chunk is a point, the number of points, the size of each layer, and the layers.
        while at < table:
            begin = at + point_size + 4
            at = begin + 4 * layers
            if at > table or (at := at + sum(struct.unpack_from(f"<{layers}I", data, begin))) > table:
                raise problem(path, None, "the sizes of chunks in the LAZ file are damaged; copy it again")


def write_las(path: AnyPath, scan: Scan, columns: Mapping[str, Array]) -> None:
    """Write a scan with classes and more columns; see :func:`~maxmargin.tasks.segmentation.io.scans.write_scan`.

    The header and all other dimensions of the file that the scan was read from are kept.
    """
    laspy = optional("laspy", EXTRA)
    source = scan.source if scan.format == "las" else None
    las = _new(laspy, scan, LABEL not in columns) if source is None else _guarded(source, lambda: _open(source))
    for name, values in columns.items():
        if len(values) != len(las.points):
            raise FileError(f"{scan.source} has changed: it has {len(las.points)} points now")
        if name == LABEL:
            _set_classes(las, values)
            continue
        if name not in las.point_format.dimension_names:
            las.add_extra_dim(laspy.ExtraBytesParams(name=name[:32], type=np.float32))
        las[name[:32]] = values
    packed = io.BytesIO()
    with quiet():
        las.write(packed, do_compress=plain_name(path).lower().endswith(".laz"))
    with open_output(path) as file:
        file.write(packed.getvalue())


def _set_classes(las: Any, values: Array) -> None:
    limit = 31 if las.point_format.id < 6 else 255
    if values.dtype.kind not in "bui" or int(values.min()) < 0 or int(values.max()) > limit:
        raise ValueError(
            f"classes of LAS files of point format {las.point_format.id} are integers from 0 to {limit}; give the "
            "classes such numbers, as ground=2"
        )
    las.classification = values.astype(np.uint8)


def _new(laspy: Any, scan: Scan, with_labels: bool) -> Any:
    colors = all(name in scan.attributes for name in ("red", "green", "blue"))
    header = laspy.LasHeader(point_format=7 if colors else 6, version="1.4")
    low, high = scan.points.min(axis=0), scan.points.max(axis=0)
    header.offsets = np.floor(low)
    # A millimeter, or more if the scan is too wide for integers of 32 bits.
    header.scales = np.maximum(0.001, (high - np.floor(low)) / 2_000_000_000.0)
    las = laspy.LasData(header)
    las.x, las.y, las.z = scan.points.T
    known = set(las.point_format.dimension_names)
    for name, values in scan.attributes.items():
        if name not in known:
            las.add_extra_dim(laspy.ExtraBytesParams(name=name[:32], type=np.float64))
        las[name[:32]] = values
    if scan.labels is not None and with_labels:
        _set_classes(las, scan.labels)
    return las
