"""Run commands of the command line, in this process or in one of its own, and check arguments without running."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from maxmargin.cli import app

runner = CliRunner()


def run(*arguments: str, given: str | None = None, warnings: str = "") -> str:
    """What a command writes that does well, with these warnings."""
    answer = runner.invoke(app, list(arguments), input=given)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == warnings
    return answer.stdout


def failed(*arguments: str, given: str | None = None) -> str:
    """The one line that a failing command writes."""
    answer = runner.invoke(app, list(arguments), input=given)
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: ")
    assert answer.stderr.count("\n") == 1
    assert isinstance(answer.exception, SystemExit)
    return answer.stderr


def process(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    code = "from maxmargin.cli import app; app()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], input=given, capture_output=True, text=True, check=False
    )


def unknown_options(words: list[str]) -> str:
    """What is wrong with the names and the number of a command's arguments, if anything; no value is looked at."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, *words = words or [""]
        if name not in command.commands:
            return f"no command {name!r}"
        command = command.commands[name]
    context = command.context_class(command)
    try:
        given, left, _ = command.make_parser(context).parse_args(list(words))
    except Exception as error:
        return f"{getattr(error, 'message', '') or error}"
    if left:
        return f"too many arguments: {' '.join(left)}"
    absent = [one.opts[0] for one in command.params if one.required and not given.get(one.name)]
    return f"{absent[0]!r} is missing" if absent else ""
