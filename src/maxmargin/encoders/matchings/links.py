"""Base of the encoders of matchings: links that are known in part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.partial import PartialLinks
from maxmargin.encoders.rows import KernelRowsEncoder
from maxmargin.structures.base import Structure
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.matchings.matching import Matching
from maxmargin.structures.matchings.pairing import Pairing


class LinkEncoder(KernelRowsEncoder):
    """Encodes graphs some of whose edges are chosen, its links."""

    def is_partial(self, output: Any) -> bool:
        """:class:`PartialLinks` and :class:`PartialParts`."""
        return isinstance(output, PartialLinks) or super().is_partial(output)

    def known_parts(self, structure: Structure, output: Any, index: int) -> Given:
        """See :meth:`Encoder.known_parts`; nothing yet of :class:`PartialLinks`, which are looked up together."""
        if not isinstance(output, PartialLinks):
            return super().known_parts(structure, output, index)
        return np.zeros(int(np.diff(structure.blocks[0].offsets[index : index + 2])[0]), dtype=np.int8)

    def given(self, batch: Batch, y: Sequence[Any]) -> Given:
        """See :meth:`Encoder.given`; links that :class:`PartialLinks` do not name are absent or free, as they say."""
        structure = batch.structure
        assert isinstance(structure, (Matching, Pairing))
        found = super().given(batch, y)
        nothing = np.zeros((0, 2), dtype=np.int64)
        marked: dict[str, list[Any]] = {name: [nothing] * len(y) for name in ("links", "possible", "absent")}
        otherwise = np.zeros(len(y), dtype=bool)  # whether links that are not named are absent
        for index, one in enumerate(y):
            if not isinstance(one, PartialLinks):
                continue
            if (one.possible is None) == (one.absent is None):
                raise ValueError(
                    f"example {index}: PartialLinks needs either the possible links or the absent ones; an empty list "
                    "says that there are none"
                )
            for name in ("links", "possible" if one.absent is None else "absent"):
                what = "the links" if name == "links" else f"the {name} links"
                marked[name][index] = checks.pairs(getattr(one, name), index, what, "(k, 2) of pairs of nodes")
            otherwise[index] = one.absent is None
        found[np.repeat(otherwise, np.diff(structure.blocks[0].offsets))] = -1
        places = {name: structure.places(links) for name, links in marked.items()}
        found[places["possible"][2]] = 0
        found[places["links"][2]] = 1
        _, example, absent = places["absent"]
        both = np.flatnonzero(found[absent] > 0)
        if both.size:
            raise ValueError(f"example {int(example[both[0]])}: a link is both there and absent; name it once")
        found[absent] = -1
        return found
