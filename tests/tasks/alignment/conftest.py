"""Models that several files of tests share, learned once from the package's own corpus."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from maxmargin.tasks.alignment import BitextModels, WordAligner, load_corpus
from maxmargin.tasks.alignment.confidence import CALIBRATED, Calibration


@pytest.fixture(scope="session")
def corpus():
    return load_corpus()


@pytest.fixture(scope="session")
def models(corpus):
    """Translation models of the whole corpus, whose links they do not see."""
    return BitextModels.learn(corpus.source, corpus.target)


@pytest.fixture(scope="session")
def make(models):
    """An aligner that learns fast: one setting, a rough optimum, translation models that are there."""

    def one(**settings):
        return WordAligner(**{"C": 0.1, "false_negative": 2.0, "folds": 0, "tol": 1e-2, "models": models, **settings})

    return one


@pytest.fixture(scope="session")
def few(corpus):
    """Sixty annotated pairs, from all topics: inputs and references."""
    chosen = corpus.select(range(0, 240, 4))
    return list(zip(chosen.source, chosen.target, strict=True)), chosen.references


@pytest.fixture(scope="session")
def others(corpus):
    """Sixty other pairs."""
    chosen = corpus.select(range(2, 240, 4))
    return list(zip(chosen.source, chosen.target, strict=True)), chosen.references


@pytest.fixture(scope="session")
def aligner(make, few):
    return make().fit(*few)


@pytest.fixture(scope="session")
def model(aligner, tmp_path_factory):
    """The aligner's file, with its confidences as if they were calibrated."""
    path = tmp_path_factory.mktemp("aligner") / "model"
    metadata = {**aligner.model_.metadata, "confidences": CALIBRATED}
    replace(aligner.model_, calibration=asdict(Calibration()), metadata=metadata).save(path, min_probability=0)
    return path
