"""Weights to start from, by the names of their features: those of the package, or of a model of another language pair.

Posteriors, positions, spelling and frequencies mean the same in every language, so their weights travel. Those of word
pairs (the group ``lexical``) and of extra columns do not, and are left out. The weights of the package were learned
from its English-French pairs (``benchmarks/alignment/weights.py``); they are symmetric, so that it does not matter
which language is the source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Self

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES
from maxmargin.tasks.alignment.encoder.features import GROUPS, LinkFeatures
from maxmargin.tasks.alignment.encoder.link_model import LinkModel

FILE = "weights.json"
VERSION = 1
"""To be raised if a feature changes without changing its name."""

BOUND = ("extra", "lexical")
"""Groups of features that belong to one language pair, or to one user."""

TRAVELING = tuple(group for group in GROUPS if group not in BOUND)

_OTHER = {"source": "target", "forward": "backward", "row": "column"}
_OTHER |= {second: first for first, second in _OTHER.items()}
_FURTHER = re.compile(r"^cost of a \w+ link")


@dataclass(frozen=True)
class StartWeights:
    """Weights by the names of features."""

    weights: Mapping[str, float]

    @classmethod
    def of(cls, names: Sequence[str], weights: FloatArray) -> Self:
        """The weights of a model, without those of its languages."""
        pairs = zip(names, weights.tolist(), strict=True)
        return cls({name: weight for name, weight in pairs if name.partition(":")[0] not in BOUND})

    @classmethod
    def packaged(cls) -> Self:
        """The weights of the package."""
        text = resources.files("maxmargin.tasks.alignment").joinpath("data", FILE).read_text(encoding="utf-8")
        found = json.loads(text)
        if found["version"] != VERSION:
            raise ValueError(f"{FILE} has version {found['version']}, this is {VERSION}: install maxmargin again")
        return cls(found["weights"])

    def carried(self, link_model: LinkModel) -> FloatArray:
        """The weights in the layout of a model, 0 for names without one; further links cost as much as a second one."""
        second = ((name, _FURTHER.sub("cost of a second link", name)) for name in link_model.names)
        return np.array([self.weights.get(name, self.weights.get(other, 0.0)) for name, other in second])

    def symmetric(self) -> StartWeights:
        """The mean with the weights of the same model with source and target exchanged."""
        mirrored = {name: self.weights[self._mirrored(name)] for name in self.weights}
        return StartWeights({name: 0.5 * (weight + mirrored[name]) for name, weight in self.weights.items()})

    def _mirrored(self, name: str) -> str:
        found = re.sub(r"\b(\w+)\b", lambda word: _OTHER.get(word[0], word[0]), name)
        if found in self.weights:
            return found
        group, _, columns = found.partition(": ")
        return f"{group}: {', '.join(reversed(columns.split(', ')))}"


def traveling_model(fertility: int) -> LinkModel:
    """The layout of the weights that travel."""
    return LinkModel(LinkFeatures(groups=TRAVELING, posterior_names=POSTERIOR_NAMES), fertility)
