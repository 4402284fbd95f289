"""Templates that come with the package: ``pos``, ``chunking`` and ``ner``; see ``docs/tagging-presets.md``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from maxmargin.tasks.tagging.templates import Template

__all__ = ["PRESETS", "Defaults", "defaults", "preset", "preset_text", "usual"]


class Defaults(NamedTuple):
    """What is taken where the user says nothing.

    Attributes:
        C: regularization.
        min_count: attributes that are in fewer tokens are left out.
    """

    C: float = 0.1
    min_count: int = 1


PRESETS = {"chunking": Defaults(0.1, 2), "ner": Defaults(0.1, 2), "pos": Defaults(0.05, 2)}
"""The presets, and the settings that suit them."""


def defaults(name: str | None) -> Defaults:
    """The settings that suit a preset, or attributes of one's own (None)."""
    return Defaults() if name is None else PRESETS.get(name, Defaults())


def preset_text(name: str) -> str:
    """The text of a preset, a template as users write them."""
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return resources.files(__package__).joinpath(f"{name}.template").read_text(encoding="utf-8")


def preset(name: str, columns: Sequence[str]) -> Template:
    """A preset for a table with these columns; ValueError where it needs others."""
    return Template.parse(preset_text(name), columns, f"preset {name}")


def usual(columns: Sequence[str]) -> str:
    """The preset for tokens with these columns, where none is chosen."""
    return "chunking" if "pos" in columns else "pos"
