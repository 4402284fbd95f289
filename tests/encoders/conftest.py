from __future__ import annotations

import pytest
from data import KINDS


@pytest.fixture(scope="session")
def fitted():
    """A trained estimator of each kind with its data; never trained again."""
    return {kind: (estimator().fit(*data()), *data()) for kind, (estimator, data) in KINDS.items()}
