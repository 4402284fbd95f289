"""A run resumes from damaged and hostile checkpoints, or refuses them with a clear error."""

from __future__ import annotations

import os

import pytest
from fuzzed import all_good, targets

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", targets("checkpoints"))
def test_checkpoints(name, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # none of the files has to outlive the machine
    all_good("checkpoints", name, 50)
