"""The code blocks of the README and the guides run as they stand; benchmarks and examples can be imported."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the blocks that run."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    namespace: dict[str, object] = {}
    for language, code in blocks(page):
        if language == "sh":
            done = subprocess.run(["sh", "-e"], input=code, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        else:
            exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "script", sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/*.py")]), ids=lambda script: script.name
)
def test_scripts_can_be_imported(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they import is there; running them is for people."""
    monkeypatch.syspath_prepend(str(script.parent))
    assert runpy.run_path(str(script), run_name="imported")
