"""The command line as tests use it: through its parser, in this process."""

from __future__ import annotations

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
