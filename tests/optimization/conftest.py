from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Hundreds of small files, none of which has to outlive the machine."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
