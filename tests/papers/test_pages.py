"""Every page of ``docs/papers`` has a command that measures it; at small size the commands run, and print JSON."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.stem for page in (ROOT / "docs" / "papers").glob("*.md") if page.stem != "index")
COMMANDS = ROOT / "benchmarks" / "papers"


@pytest.mark.parametrize("page", PAGES)
def test_command_runs_at_small_size_and_measures_every_block_of_its_page(page: str, tmp_path: Path) -> None:
    command = [sys.executable, str(COMMANDS / f"{page}.py"), "--small", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["benchmark"] == page
    text = (ROOT / "docs" / "papers" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- measured: (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert blocks
    assert all(measured.strip() for _, measured in blocks)
    help_text = subprocess.run([*command[:2], "--help"], capture_output=True, text=True, check=True).stdout
    assert all(block in help_text for block, _ in blocks)
