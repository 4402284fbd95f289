"""Damaged and hostile files of every format are read, or refused with a clear error."""

from __future__ import annotations

import pytest
from fuzzed import all_good, targets

pytest.importorskip("PIL", reason="needs the images extra")
pytest.importorskip("tifffile", reason="needs the images extra")
pytest.importorskip("laspy", reason="needs the scans extra")
pytest.importorskip("pyarrow", reason="needs the parquet extra")


@pytest.mark.parametrize("name", targets("files"))
def test_files(name):
    outcomes = all_good("files", name, 100)
    assert outcomes["accepted"], "all inputs are refused, as they are if good files cannot be made"
