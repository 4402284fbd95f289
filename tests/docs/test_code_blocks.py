"""Code blocks of the pages: every block is fenced and says its language, and none is only looked at.

Blocks of ``python`` and ``sh`` run, those of a page one after the other in a folder of their own. ``console`` shows
commands that would need the reader's files: their names and options exist. ``cpp`` compiles, ``json`` and ``toml`` are
read. ``text`` and ``math`` show data, output and formulas.

Blocks of a page share variables and files, so that a page is one test: Sybil makes a test of each block, which two
processes of pytest-xdist would share out, and knows nothing of shells, folders and shown commands.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from commands import run, runner, unknown_options
from pages import PAGES, ROOT, blocks, name_of

from maxmargin.cli import app
from maxmargin.tasks.alignment import evaluate, read_links, read_references

RUN = ("python", "sh")
LANGUAGES = (*RUN, "console", "cpp", "json", "toml", "text", "math")
DIRECTIVES = re.compile(r"\{[\w-]+\}")
"""What Sphinx makes of a block, such as a table of contents."""


def pages_with(*languages: str) -> pytest.MarkDecorator:
    """The test runs for every page that has blocks of these languages."""
    found = [page for page in PAGES if any(block.language in languages for block in blocks(page))]
    return pytest.mark.parametrize("page", found, ids=name_of)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_its_language(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES or DIRECTIVES.match(block.language), (
            f"{name_of(page)}, line {block.line}: a block must be fenced and have a language of {', '.join(LANGUAGES)}"
        )


@pages_with(*RUN)
@pytest.mark.timeout(2400)  # a page may take a minute, and the machine may have much else to do
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")  # kernels.md shows one beside a kernel
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "sh":
            shell(block.code, f"{name_of(page)}, after line {block.line}")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
    if page.name == "word-alignment.md":
        compare_figures(page, tmp_path)


def shell(code: str, where: str) -> None:
    """Run lines of a shell; commands of maxmargin in this process, where they start at once."""
    for command, lines in groupby(re.split(r"(?<!\\)\n", code), plain_command):
        if command is None:
            done = subprocess.run(["sh", "-e"], input="\n".join(lines), capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{where}: {done.stderr}"
            continue
        for _ in lines:
            words, to = command
            answer = runner.invoke(app, words)
            assert answer.exit_code == 0, f"{where}: {words}: {answer.output}"
            if to:
                Path(to).write_bytes(answer.stdout_bytes)


def plain_command(line: str) -> tuple[list[str], str] | None:
    """The words of a command of maxmargin and the file that its output goes to, if any; None for other lines."""
    name, *words = shell_words(line) or [""]
    to = words.pop() if words[-2:-1] == [">"] else ""
    words = words[:-1] if to else words
    return None if name != "maxmargin" or re.search(r"[|&;<>$`*?]", "".join(words)) else (words, to)


def shell_words(line: str) -> list[str]:
    """The words and operators of a line without its comment."""
    lexer = shlex.shlex(re.sub(r"(^|\s+)# .*", "", line.replace("\\\n", " ")), posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    return [*lexer]


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


@pages_with("console")
def test_shown_commands_exist(page: Path) -> None:
    for block in blocks(page):
        for words in shown_commands(block.code) if block.language == "console" else ():
            wrong = fault(words)
            assert not wrong, f"{name_of(page)}, after line {block.line}: {' '.join(words)}: {wrong}"


def shown_commands(code: str) -> Iterator[list[str]]:
    """The commands of a block: its lines, or if some begin with "$ " these; without environment, pipes and files."""
    lines = re.split(r"(?<!\\)\n", code)
    typed = [line[2:] for line in lines if line.startswith("$ ")] or lines
    for line in typed:
        for operator, words in groupby(shell_words(line), lambda word: re.fullmatch(r"[|&;<>]+", word) is not None):
            command = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)]
            if not operator and command:
                yield command


def fault(words: list[str]) -> str:
    """What is wrong with a command of this project, if anything; other programs are not looked at."""
    name, *rest = words
    if name == "maxmargin":
        return unknown_options(rest)
    if name == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
        listed = re.findall(r"^\.PHONY: (.*)|^FLAVORS := (.*)", makefile, re.MULTILINE)
        return "" if rest[0] in " ".join(" ".join(names) for names in listed).split() else "no such target"
    if name == "pip" or (Path(name).name == "python" and rest[:2] == ["-m", "pip"]):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked = ",".join(re.findall(r"maxmargin\[(.*?)\]", " ".join(rest))).split(",")
        return "" if {*asked} <= {*project["optional-dependencies"], ""} else "no such extra"
    if Path(name).name == "python" and rest[0] == "-m" and rest[1].startswith("benchmarks."):
        module, *arguments = rest[3:] if rest[1] == "benchmarks.record" else rest[1:]
        return script_fault(benchmark(module), arguments)
    if name == "python" and not rest[0].startswith("-"):
        return script_fault(ROOT / rest[0], rest[1:])
    return ""


def benchmark(module: str) -> Path:
    """The file of a benchmark, or its folder."""
    place = ROOT.joinpath(*module.split("."))
    return place if place.is_dir() else place.with_suffix(".py")


def script_fault(script: Path, arguments: list[str]) -> str:
    """Whether a script of this project does not exist or does not mention an option."""
    if not script.exists():
        return "no such script"
    text = "".join(file.read_text(encoding="utf-8") for file in ([script] if script.is_file() else script.glob("*.py")))
    text += (script.parent / "page.py").read_text(encoding="utf-8") if (script.parent / "page.py").exists() else ""
    missing = [one for one in arguments if one.startswith("--") and f'"{one.split("=")[0]}"' not in text]
    return f"no option {', '.join(missing)}" if missing else ""


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("maxmargin tag train train.txt --out model", ""),
        ("maxmargin tag train train.txt --outt model", "No such option"),
        ("maxmargin tag train train.txt", "'--out' is missing"),
        ("maxmargin tag trian train.txt", "no command"),
        ("maxmargin version now", "too many arguments: now"),
        ("make dome", "no such target"),
        ("python -m pip install maxmargin[plots]", "no such extra"),
        ("python -m benchmarks.letter", "no such script"),
        ("python -m benchmarks.solvers.letters --tool 1", "no option --tool"),
        ("python -m benchmarks.solvers.letters --tol 1", ""),
    ],
)
def test_faults_of_shown_commands_are_found(words: str, wrong: str) -> None:
    found = [fault(one) for one in shown_commands(words)]
    assert len(found) == 1
    assert wrong in found[0]
    assert bool(found[0]) == bool(wrong)


@pages_with("json", "toml")
def test_data_can_be_read(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "json":
            try:
                json.loads(block.code)
            except json.JSONDecodeError:
                for line in block.code.splitlines():
                    json.loads(line)


@pages_with("cpp")
def test_cpp_compiles(page: Path) -> None:
    """As a part of a file that includes the deduction systems."""
    code = "".join(block.code for block in blocks(page) if block.language == "cpp")
    unit = f'#include "maxmargin/deduction/system.hpp"\nnamespace maxmargin::deduction {{\n{code}}}\n'
    command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "cpp/include"]
    done = subprocess.run([*command, "-x", "c++", "-"], input=unit, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
