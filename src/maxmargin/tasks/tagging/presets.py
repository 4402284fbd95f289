"""Templates that come with the library: parts of speech, chunks, names. Described in docs/tagging-presets.md."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from maxmargin.tasks.tagging.templates import Template

PRESETS = ("chunking", "ner", "pos")


def preset_text(name: str) -> str:
    """The text of a preset's template; ValueError naming those there are."""
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return files("maxmargin.tasks.tagging").joinpath("data", f"{name}.template").read_text(encoding="utf-8")


def preset_template(name: str, columns: Sequence[str]) -> Template:
    """A preset for tokens with the given columns."""
    return Template.parse(preset_text(name), columns, f"preset {name}")
