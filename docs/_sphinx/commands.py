"""Pages of the command line, from the commands themselves."""

from __future__ import annotations

import re
from typing import Any

import typer.main

from maxmargin.cli import app

INDEX = """\
Command line
============

``maxmargin GROUP COMMAND``, with these groups and commands. ``--help`` after any of them prints what its page says.

{commands}

.. toctree::
   :hidden:

{pages}
"""

GUIDES = {
    "align": "word-alignment",
    "parse": "dependency-parsing",
    "rerank": "reranking",
    "segment": "segmentation",
    "tag": "tagging",
}
"""The page of ``docs/tasks`` about each group."""


def pages() -> dict[str, str]:
    """The text of each page, in reStructuredText, by its file name."""
    root: Any = typer.main.get_command(app)
    top = root.context_class(root, info_name="maxmargin")
    groups = {name: found for name, found in sorted(root.commands.items()) if hasattr(found, "commands")}
    single = {name: found for name, found in root.commands.items() if name not in groups}
    texts = {f"{name}.rst": _page(group, name, top) for name, group in groups.items()}
    texts["general.rst"] = _titled("maxmargin", "=") + "".join(
        [_options(root, top), *(_command(found, name, top) for name, found in single.items())]
    )
    rows = [
        f"* - :doc:`maxmargin {group} <{group}>`\n  - {_links(found.commands, group)}"
        for group, found in groups.items()
    ]
    rows.append(f"* - :doc:`maxmargin <general>`\n  - {_links(single, '')}")
    table = ".. list-table::\n   :widths: auto\n\n" + _indented("\n".join(rows))
    names = "\n".join(f"   {name}" for name in [*groups, "general"])
    texts["index.rst"] = INDEX.format(commands=table, pages=names)
    return texts


def _page(group: Any, name: str, top: Any) -> str:
    inside = group.context_class(group, info_name=name, parent=top)
    guide = f"The guide: :doc:`/tasks/{GUIDES[name]}`.\n\n"
    head = _titled(f"maxmargin {name}", "=") + f"{_text(group.help)}\n\n{guide}"
    return head + "".join(_command(command, verb, inside) for verb, command in group.commands.items())


def _command(command: Any, name: str, parent: Any) -> str:
    context = command.context_class(command, info_name=name, parent=parent)
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    usage = re.sub(r"\{(\w+)\}", lambda argument: argument[1].upper(), usage)
    words = context.command_path
    return (
        f".. _{_label(words)}:\n\n"
        + _titled(words.split(" ", 1)[1], "-")
        + f".. code-block:: none\n\n   {usage}\n\n{_paragraphs(command.help)}\n\n"
        + _options(command, context)
    )


def _options(command: Any, context: Any) -> str:
    lines = [f".. program:: {context.command_path}\n"]
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is None:
            continue
        names, help = record
        alternatives = ", ".join(names.split(" / "))
        if not names.startswith("-"):
            alternatives = parameter.name.upper()
        lines.append(f".. option:: {alternatives}\n\n   {_text(help)}\n")
    return "\n".join(lines) + "\n"


def _titled(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}\n\n"


def _label(words: str) -> str:
    return words.replace(" ", "-")


def _links(commands: dict[str, Any], group: str) -> str:
    return ", ".join(f":ref:`{name} <{_label(' '.join(f'maxmargin {group} {name}'.split()))}>`" for name in commands)


def _indented(text: str, by: str = "   ") -> str:
    return "".join(f"{by}{line}\n" if line else "\n" for line in text.splitlines())


def _paragraphs(help: str | None) -> str:
    return "\n\n".join(_text(" ".join(part.split())) for part in re.split(r"\n\s*\n", (help or "").replace("\b", "")))


def _text(help: str | None) -> str:
    """Plain text as reStructuredText; names of options and what is in backticks are code."""
    pieces = re.split(r"(``?[^`]+``?|(?<![\w-])--?[A-Za-z][\w-]*)", " ".join((help or "").split()))
    return "".join(
        f"``{one.strip('`')}``" if at % 2 else re.sub(r"([\\*`|_<>])", r"\\\1", one) for at, one in enumerate(pieces)
    )
