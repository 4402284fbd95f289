"""Weights of features by name: read from JSON, written as a Moses configuration."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping

from maxmargin.tasks.common.files.text import AnyPath, FileError, problem, read_text

_PART = re.compile(r"(.*),([0-9]+)")


def read_weights(path: AnyPath) -> dict[str, float]:
    """Read weights by the names of features from a file with one JSON object."""
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise problem(path, None, f"not JSON ({error}); write one object of names and numbers") from None
    numbers = isinstance(found, dict) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        for value in found.values()
    )
    if not numbers:
        raise problem(path, None, 'not an object of names and finite numbers; write {"lm": 1.0, "tm": 0.5}')
    return {name: float(value) for name, value in found.items()}


def moses_section(weights: Mapping[str, float], sparse_file: str | None = None) -> str:
    """Return the sections ``[weight]`` and, with sparse features, ``[weight-file]`` of a Moses configuration.

    Args:
        weights: weights of dense features by name; ``LM0`` is the weight of a function with one score, ``TM0,1``,
            ``TM0,2``, ... are those of one with several, in this order.
        sparse_file: the file that has the weights of sparse features.
    """
    functions: dict[str, dict[int, float]] = {}
    for name, weight in weights.items():
        part = _PART.fullmatch(name)
        functions.setdefault(part[1] if part else name, {})[int(part[2]) if part else 1] = weight
    lines = ["[weight]"]
    for name, scores in functions.items():
        if sorted(scores) != list(range(1, len(scores) + 1)):
            raise ValueError(
                f"the scores of {name} are not numbered 1, 2, ...; a Moses configuration needs all of them"
            )
        lines.append(f"{name}= " + " ".join(repr(scores[number]) for number in sorted(scores)))
    if sparse_file is not None:
        lines += ["", "[weight-file]", sparse_file]
    return "\n".join(lines) + "\n"
