"""Random lists, and comparisons of what was written with what was read."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from maxmargin._sparse import sp
from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks.reranking import NBestLists

WORD = st.text(
    st.characters(exclude_characters="\0|", exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=5
).filter(lambda word: word.split() == [word] and not word.startswith("\ufeff"))
TEXT = st.lists(WORD, max_size=4).map(" ".join)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
NAME = st.text(st.sampled_from("abcXYZ0189.~-é"), min_size=1, max_size=4)


@st.composite
def nbest_lists(draw, *, references: bool = False, sparse: bool = False, unnamed: bool = False) -> NBestLists:
    """Lists of up to four inputs; with ``references`` also sources, with ``unnamed`` without any feature or total."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    n = sum(sizes)
    names = [] if unnamed else draw(st.lists(NAME, max_size=3, unique=True))
    several = draw(st.booleans()) and not unnamed
    names += ["TM0,1", "TM0,2"] * several
    values = np.array(draw(st.lists(NUMBER, min_size=n * len(names), max_size=n * len(names)))).reshape(n, len(names))
    fields = {}
    if sparse:
        rows = np.array(draw(st.lists(st.integers(0, 3), min_size=2 * n, max_size=2 * n)), dtype=float).reshape(n, 2)
        rows[0] = [1.0, 0.0]  # both occur, and neither is everywhere
        rows = np.vstack([rows[:-1], [0.0, 2.0]]) if n > 1 else rows
        kept = rows.any(axis=0) & (rows == 0).any(axis=0)
        if kept.any():
            found = tuple(name for name, keep in zip(("w_a~b", "w_c"), kept, strict=True) if keep)
            fields |= {"sparse_names": found, "sparse": sp.csr_array(rows[:, kept])}
    if not unnamed and draw(st.booleans()):
        fields["totals"] = np.array(draw(st.lists(NUMBER, min_size=n, max_size=n)))
    if references:
        count = draw(st.integers(1, 2))
        fields["references"] = [tuple(draw(TEXT) for _ in range(count)) for _ in sizes]
        fields["sources"] = [draw(TEXT) for _ in sizes]
    if draw(st.booleans()) and not unnamed:
        others = st.sampled_from(["", "1:0-1:0-0", "1:0-0:0-1 2:1-1:2-2"])
        fields["segments"] = ["1:0-0:0-0", *(draw(others) for _ in range(n - 1))]
    return NBestLists(
        texts=[draw(TEXT) for _ in range(n)],
        offsets=offsets_of(sizes),
        names=tuple(names),
        values=values,
        ids=[str(3 * at + 1) for at in range(len(sizes))],
        **fields,
    )


def same_lists(first: NBestLists, second: NBestLists, *without: str) -> None:
    """Assert that two sets of lists are equal but for some fields."""
    for name in ("texts", "names", "ids", "references", "segments", "sources"):
        if name not in without:
            one, two = getattr(first, name), getattr(second, name)
            assert (None if one is None else list(one)) == (None if two is None else list(two)), name
    assert first.offsets.tolist() == second.offsets.tolist()
    assert np.array_equal(first.values, second.values)
    assert first.values.shape == second.values.shape
    if "totals" not in without:
        assert (first.totals is None) == (second.totals is None)
        assert first.totals is None or np.array_equal(first.totals, second.totals)
    assert named(first) == named(second)


def named(lists: NBestLists) -> list[dict[str, float]]:
    """The sparse features of each hypothesis by name."""
    if lists.sparse is None:
        return []
    rows = sp.csr_array(lists.sparse).toarray()
    return [{name: value for name, value in zip(lists.sparse_names, row, strict=True) if value} for row in rows]
