"""Templates that come with the package: ``pos``, ``chunking`` and ``ner``; see ``docs/tagging-presets.md``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from maxmargin.tasks.tagging.templates import Template

__all__ = ["PRESETS", "preset", "preset_text"]

PRESETS = ("chunking", "ner", "pos")


def preset_text(name: str) -> str:
    """The text of a preset, a template as users write them."""
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return resources.files(__package__).joinpath(f"{name}.template").read_text(encoding="utf-8")


def preset(name: str, columns: Sequence[str]) -> Template:
    """A preset for a table with these columns; ValueError where it needs others."""
    return Template.parse(preset_text(name), columns, f"preset {name}")
