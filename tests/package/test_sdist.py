"""The source distribution holds what a build needs, and nothing that lies around. ``make sdist-check`` installs it."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]


def test_the_source_distribution(tmp_path, monkeypatch):
    backend = pytest.importorskip("scikit_build_core.build", reason="needs the build backend, as make installs it")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as archive:
        names = [PurePosixPath(*PurePosixPath(name).parts[1:]) for name in archive.getnames()]
    folders = {part for name in names for part in name.parts[:-1]}
    assert not folders & {"build", "dist", "shared", ".venv", ".git", "__pycache__", ".pytest_cache"}
    assert not {name.suffix for name in names} & {".so", ".o", ".pyc", ".mm", ".checkpoint"}
    needed = ["CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "src/maxmargin/__init__.pyi"]
    needed += ["CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", ".clang-format"]
    needed += [str(path.relative_to(ROOT)) for path in ROOT.glob("cpp/**/*.[ch]pp")]
    needed += [str(path.relative_to(ROOT)) for path in ROOT.glob("src/maxmargin/**/*.py")]
    assert set(needed) <= {str(name) for name in names}
