"""The aligner on real text, where it is at hand: beside the project, or where MAXMARGIN_DATA says."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.record import DATA
from maxmargin.tasks.alignment import WordAligner, evaluate, read_bitext
from maxmargin.tasks.alignment.io.sentences import read_annotated

HANSARDS = DATA / "alignment" / "hansards"


@pytest.mark.skipif(not HANSARDS.is_dir(), reason="the Hansards are not at hand (set MAXMARGIN_DATA)")
def test_hansards():
    """Learned from 60 pairs and a small bitext, clearly better than the translation models it asks."""
    gold = [read_annotated(*(HANSARDS / f"{name}.{end}" for end in ("e", "f", "wa"))) for name in ("train", "dev")]
    X, y = ([one for part in parts for one in part] for parts in zip(*gold, strict=True))
    bitext = read_bitext(HANSARDS / "bitext.e.gz", HANSARDS / "bitext.f.gz")
    some = list(islice(zip(bitext.source, bitext.target, strict=True), 0, 5 * 5000, 5))
    aligner = WordAligner(C=0.1, false_negative=2.0, folds=3, tol=1e-2, n_jobs=2).fit(
        X[:60], y[:60], bitext=[*some, *X[60:]]
    )
    error = evaluate(y[60:], aligner.predict(X[60:])).aer
    baselines = [
        evaluate(y[60:], aligner.align_hmm(X[60:], method=method)).aer
        for method in ("intersection", "grow-diag-final-and", "union")
    ]
    assert error < 0.12
    assert error < 0.9 * min(baselines)
    assert aligner.held_out_.aer == pytest.approx(error, abs=0.05)
