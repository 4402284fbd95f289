"""Training that is killed and started again ends with the same model: short runs of ``robustness/durability.py``.

Taggers that are killed are in ``tasks/tagging/cli/test_tag_resume.py``, fits in memory in
``optimization/test_checkpoint.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.robustness import command_inputs, durability

NAMES = ("align train", "segment train", "fit, Extragradient, files")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    pytest.importorskip("skimage", reason="needs the images extra")
    folder = tmp_path_factory.mktemp("inputs")
    command_inputs.write_inputs(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_killed_and_resumed(name, inputs):
    training = next(one for one in durability.TRAININGS if one.name == name)
    found = durability.measure(training, inputs, 1, np.random.default_rng(len(name)))
    assert found["different"] == []
