"""Real data, where it is at hand: beside the project, or where MAXMARGIN_DATA says."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from benchmarks.record import DATA


@pytest.mark.skipif(not (DATA / "letters").is_dir(), reason="the OCR letters are not at hand (set MAXMARGIN_DATA)")
def test_ocr_letters() -> None:
    data = np.load(DATA / "letters" / "letters.npz")
    first = np.flatnonzero(np.r_[True, data["word"][1:] != data["word"][:-1]])
    X = np.split(data["X"].astype(np.float64), first[1:])
    y = np.split(data["y"], first[1:])
    train, test = np.flatnonzero(data["fold"] == 0)[:120], np.flatnonzero(data["fold"] == 1)[:300]
    model = mm.ChainSVM(C=0.03, tol=0.05, n_jobs=2, max_iter=500, classes=range(26))
    model.fit([X[i] for i in train], [y[i] for i in train])
    assert model.solution_.status == "converged"
    # 120 words of 26 letters are little: about 45% of the letters of other words are misread; chance is 96%.
    assert model.score([X[i] for i in test], [y[i] for i in test]) > 0.45
