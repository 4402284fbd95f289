"""Settings and fixtures that all tests share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

import maxmargin

settings.register_profile("maxmargin", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("maxmargin")


# Jobs in the background of a shell ignore Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The many objects of a collection are all kept: looking for garbage among them takes a third of its time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--threads", type=int, help="threads of kernels in tests that do not set a number (default: 1)")
    parser.addoption("--site", help="folder of the built site, for tests that look at it (default: they are skipped)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests on Ray first, one after the other, so that a single process of pytest-xdist starts Ray, and once.

    Those that leave the Ray of this machine for another cluster are the last of them.
    """

    def turn(item: pytest.Item) -> int:
        names = getattr(item, "fixturenames", ())
        return (1 if "other_cluster" in names else 0) if "local_ray" in names else 2

    items.sort(key=turn)


@pytest.fixture(autouse=True, scope="session")
def kernel_threads(request: pytest.FixtureRequest):
    with maxmargin.threads(request.config.getoption("threads")):
        yield


@pytest.fixture(scope="session")
def local_ray() -> Iterator[Any]:
    """Ray, which starts on this machine when it is first used, once for all tests that this process runs."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def fitted() -> dict[str, tuple[Any, Any, Any]]:
    """A trained estimator of each kind with its data; never trained again."""
    from data import KINDS

    return {kind: (estimator().fit(*data()), *data()) for kind, (estimator, data) in KINDS.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture
def saved(tmp_path):
    """Writes a file and returns its name."""

    def save(content: str | bytes, name: str = "file") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return save
