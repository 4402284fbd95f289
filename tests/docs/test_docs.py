"""Links of pages lead somewhere, the architecture names every room, benchmarks and examples can be imported."""

from __future__ import annotations

import re
import runpy
import subprocess
import sysconfig
from pathlib import Path

import pytest
from pages import PAGES, ROOT, name_of

from maxmargin import __version__


def test_the_command_is_installed() -> None:
    command = Path(sysconfig.get_path("scripts"), "maxmargin")
    assert subprocess.run([command, "version"], capture_output=True, text=True, check=True).stdout == f"{__version__}\n"


def test_architecture_names_every_room() -> None:
    """Every package at the top, every folder of kernels, and every part of a task."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package, kernels = ROOT / "src" / "maxmargin", ROOT / "cpp" / "include" / "maxmargin"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {path.name for path in kernels.iterdir()}
    rooms |= {path.parent.name for path in package.glob("solvers/*/__init__.py")}
    assert rooms <= set(re.findall(r"\w+(?=/)", text))
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("_")}
    assert modules <= set(re.findall(r"\w+\.py", text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "script", sorted([*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/*.py")]), ids=lambda script: script.name
)
def test_scripts_can_be_imported(script: Path) -> None:
    """Imports only; running the scripts takes too long for a test."""
    assert runpy.run_path(str(script), run_name="imported")
