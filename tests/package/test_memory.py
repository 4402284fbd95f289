"""Memory: what there is, and the collector of cycles that is paused."""

from __future__ import annotations

import gc

import pytest

from maxmargin import _memory


def test_memory_is_that_of_the_machine_unless_it_is_set(monkeypatch):
    with pytest.raises(ValueError, match=r"it would need 8 EB of memory, there are \d+(\.\d+)? [GT]B; buy more"):
        _memory.require(8e18, "it", "buy more")
    _memory.require(1e6, "it", "buy more")
    monkeypatch.setattr(_memory, "LIMIT", 10**6)
    with pytest.raises(ValueError, match=r"it would need 1\.5 MB of memory, there are 1 MB; buy more"):
        _memory.require(1.5e6, "it", "buy more")


def test_the_collector_of_cycles_is_paused_and_comes_back():
    assert gc.isenabled()
    with pytest.raises(KeyError), _memory.without_collection():  # noqa: PT012
        with _memory.without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
