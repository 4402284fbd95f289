"""Weights in the form of a Moses configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PART = re.compile(r"(.*),([0-9]+)")


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
