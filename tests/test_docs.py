"""The code blocks of the README and the guides run as printed; benchmarks and examples can be imported."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sysconfig
from itertools import groupby
from pathlib import Path

import pytest
from commands import run, runner

from maxmargin import __version__
from maxmargin.cli import app
from maxmargin.tasks.alignment import evaluate, read_links, read_references

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the code blocks that are run."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
@pytest.mark.timeout(2400)  # a page may take a minute, and the machine may have much else to do
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")  # kernels.md shows one beside a kernel
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    namespace: dict[str, object] = {}
    for language, code in blocks(page):
        if language == "sh":
            shell(code)
        else:
            exec(compile(code, str(page), "exec"), namespace)
    if page.name == "word-alignment.md":
        compare_figures(page, tmp_path)


def shell(code: str) -> None:
    """Run lines of a shell; commands of maxmargin in this process, where they start at once."""
    for command, lines in groupby(re.split(r"(?<!\\)\n", code), plain_command):
        if command is None:
            done = subprocess.run(["sh", "-e"], input="\n".join(lines), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            continue
        for _ in lines:
            words, to = command
            answer = runner.invoke(app, words)
            assert answer.exit_code == 0, f"{words}: {answer.output}"
            if to:
                Path(to).write_bytes(answer.stdout_bytes)


def plain_command(line: str) -> tuple[list[str], str] | None:
    """The words of a command of maxmargin and the file that its output goes to, if any; None for other lines."""
    lexer = shlex.shlex(re.sub(r"\s+# .*", "", line.replace("\\\n", " ")), posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    name, *words = [*lexer] or [""]
    to = words.pop() if words[-2:-1] == [">"] else ""
    words = words[:-1] if to else words
    return None if name != "maxmargin" or re.search(r"[|&;<>$`*?]", "".join(words)) else (words, to)


def test_the_command_is_installed() -> None:
    command = Path(sysconfig.get_path("scripts"), "maxmargin")
    assert subprocess.run([command, "version"], capture_output=True, text=True, check=True).stdout == f"{__version__}\n"


def compare_figures(page: Path, folder: Path) -> None:
    """Compare the page's tables of AER, precision and recall with the files that its commands wrote to a folder.

    The last code span in a row's first cell is a file of links, or options of ``predict`` for the page's model. A
    single link changes a figure by up to 0.07, so the last printed digit may differ by one.
    """
    rows = re.findall(r"^\|[^|]*`([^`|]+)` *\| *([0-9.]+) *\| *([0-9.]+) *\| *([0-9.]+) *\|$", page.read_text(), re.M)
    assert {"mine.links", "hmm.links", "adapted.links", "as-is.links", "--threshold 0.9"} <= {row[0] for row in rows}
    references = read_references(folder / "test.links")
    for name, *printed in rows:
        if name.startswith("--"):
            options = ["--source", str(folder / "test.en"), "--target", str(folder / "test.fr"), *name.split()]
            (folder / "options.links").write_text(run("align", "predict", str(folder / "en-fr.mm"), *options))
        links = read_links(folder / ("options.links" if name.startswith("--") else name))
        scores = evaluate(references, links)
        found = [100 * value for value in (scores.aer, scores.precision, scores.recall)]
        assert found == pytest.approx([float(one) for one in printed], abs=0.1), f"{page.name}: {name}"


def test_architecture_names_every_room() -> None:
    """Every package at the top, every folder of kernels, and every part of a task."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package, kernels = ROOT / "src" / "maxmargin", ROOT / "cpp" / "include" / "maxmargin"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {path.name for path in kernels.iterdir()}
    rooms |= {path.parent.name for path in package.glob("solvers/*/__init__.py")}
    assert rooms <= set(re.findall(r"\w+(?=/)", text))
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("_")}
    assert modules <= set(re.findall(r"\w+\.py", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "script", sorted([*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/*.py")]), ids=lambda script: script.name
)
def test_scripts_can_be_imported(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports only; running the scripts takes too long for a test."""
    packed = (script.parent / "__init__.py").exists()
    monkeypatch.syspath_prepend(str(script.parent.parent if packed else script.parent))
    assert runpy.run_path(str(script), run_name="imported")
