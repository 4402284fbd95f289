"""Templates that come with the package: ``pos``, ``chunking`` and ``ner``; see ``docs/tasks/tagging-presets.md``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from maxmargin._messages import shown
from maxmargin.tasks.tagging.encoder.templates.template import Template

__all__ = ["PRESETS", "Defaults", "columns_needed", "defaults", "preset", "preset_text"]


class Defaults(NamedTuple):
    """Settings that apply unless the user gives others.

    Attributes:
        C: regularization.
        min_count: attributes of fewer tokens are dropped.
    """

    C: float = 0.3
    min_count: int = 1


PRESETS = {"chunking": Defaults(0.1, 2), "ner": Defaults(0.05, 2), "pos": Defaults(0.05, 2)}
"""The presets and their default settings."""

_COLUMNS = ("word", "pos")
"""The columns that presets may use."""


def defaults(name: str | None) -> Defaults:
    """Return the default settings of a preset, or those without a preset (None)."""
    return Defaults() if name is None else PRESETS.get(name, Defaults())


def preset_text(name: str) -> str:
    """Return the template text of a preset."""
    if name not in PRESETS:
        raise ValueError(f"no preset {shown(name)}; choose one of {', '.join(PRESETS)}")
    return resources.files(__package__).joinpath(f"{name}.template").read_text(encoding="utf-8")


def columns_needed(name: str) -> tuple[str, ...]:
    """Return the columns that tokens must have for a preset."""
    return Template.parse(preset_text(name), _COLUMNS, f"preset {name}").columns_needed


def preset(name: str, columns: Sequence[str], gazetteers: Sequence[str] = (), clusters: bool = False) -> Template:
    """Return a preset for a table with these columns, gazetteers, and perhaps clusters; ValueError if it needs more."""
    if missing := [one for one in columns_needed(name) if one not in columns]:
        raise ValueError(
            f"the preset {name} needs the column {missing[0]!r}, and tokens have {', '.join(columns) or 'none'}; name "
            "the columns of tokens with columns=, or give a template"
        )
    return Template.parse(preset_text(name), columns, f"preset {name}", gazetteers, clusters)
