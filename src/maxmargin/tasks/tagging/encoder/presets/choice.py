"""The preset for labels if none is given: by what the labels are, not by the columns of the tokens.

Labels that mark runs of tokens (``B-PER``, ``I-NP``, ``O``) are names or phrases. Types that corpora commonly use say
which; for others the share of tokens outside decides: most tokens of a text are outside of names, and few are outside
of phrases. All other labels are tags of single tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks, tag_and_type

NAME_TYPES = frozenset(
    {
        "PER",
        "PERS",
        "PERSON",
        "LOC",
        "LOCATION",
        "ORG",
        "ORGANIZATION",
        "ORGANISATION",
        "MISC",
        "MISCELLANEOUS",
        "GPE",
        "FAC",
        "FACILITY",
        "NORP",
        "PRODUCT",
        "EVENT",
        "WORK_OF_ART",
        "LAW",
        "LANGUAGE",
        "DATE",
        "TIME",
        "MONEY",
        "PERCENT",
        "QUANTITY",
        "ORDINAL",
        "CARDINAL",
        "CITY",
        "COUNTRY",
        "GEO",
        "GENE",
        "PROTEIN",
        "DNA",
        "RNA",
        "CELL_LINE",
        "CELL_TYPE",
        "CHEMICAL",
        "DISEASE",
        "DRUG",
        "SPECIES",
    }
)
"""Types of names that corpora commonly use."""
PHRASE_TYPES = frozenset(
    {
        "NP",
        "VP",
        "PP",
        "ADJP",
        "ADVP",
        "SBAR",
        "PRT",
        "CONJP",
        "INTJ",
        "LST",
        "UCP",
        "NC",
        "VC",
        "PC",
        "AC",
        "NX",
        "VX",
        "PX",
        "ADJX",
        "ADVX",
        "BASENP",
        "CLAUSE",
    }
)
"""Types of phrases that corpora commonly use."""
MOSTLY = 0.5
"""Types that are in neither list are those of names if a larger share of the tokens is outside."""
SHOWN = 4
"""Types that a reason names."""


class Choice(NamedTuple):
    """A preset and why it was chosen."""

    preset: str
    reason: str


def chosen_preset(labels: Sequence[Hashable], counts: npt.NDArray[Any], columns: Sequence[str]) -> Choice:
    """Return the preset for labeled tokens.

    Args:
        labels: all labels.
        counts: number of tokens of each label.
        columns: names of the columns of tokens.
    """
    parted = [tag_and_type(label) if isinstance(label, str) else ("", "") for label in labels]
    # Labels without a scheme, PER PER O, have their type where others have the tag.
    whole = "O" in labels and all(not kind for _, kind in parted)
    kinds = [str(label) if whole else kind for label, (_, kind) in zip(labels, parted, strict=True)]
    count, known = counts.tolist(), int(counts.sum())
    outside = sum(n for n, (tag, _) in zip(count, parted, strict=True) if tag == "O")
    names = sum(n for n, kind in zip(count, kinds, strict=True) if kind.upper() in NAME_TYPES)
    phrases = sum(n for n, kind in zip(count, kinds, strict=True) if kind.upper() in PHRASE_TYPES)
    inside = max(known - outside, 1)
    if not look_like_chunks(labels) and not (whole and 2 * names > inside):
        return Choice("pos", "labels are tags of tokens")
    types = sorted({kind for kind in kinds if kind and kind != "O"})
    listed = ", ".join(types[:SHOWN]) + (", ..." if len(types) > SHOWN else "")
    share = outside / max(known, 1)
    if names > phrases or (names == phrases and share > MOSTLY):
        return Choice("ner", f"labels mark names ({listed or 'no types'}; {share:.0%} of the tokens are outside)")
    what = f"labels mark phrases ({listed or 'no types'}; {share:.0%} of the tokens are outside)"
    if "pos" in columns:
        return Choice("chunking", what)
    return Choice("pos", f"{what}, and there is no column pos, which the preset chunking needs")
