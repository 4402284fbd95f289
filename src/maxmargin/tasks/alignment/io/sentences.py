"""Sentence pairs and references as users give them, checked and converted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._callers import callers_level
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.io.bitext import Bitext, read_bitext
from maxmargin.tasks.alignment.io.link_files import open_links
from maxmargin.tasks.alignment.io.links import (
    Prediction,
    Reference,
    as_links,
    as_positions,
    pack,
    refuse_outside,
    sentence_of,
)
from maxmargin.tasks.common.files.text import AnyPath, count_of, name_of, words_of

LONGEST_ALIGNED = 1000
"""Sentence pairs with more words on a side are not aligned, as the cost grows with the cube of the length."""


@dataclass(frozen=True, eq=False)
class SentencePair:
    """Two sentences that translate each other.

    Attributes:
        source: the source words.
        target: the target words.
        extra: extra feature columns: for each name, links, for example of another aligner. The feature of a link is 1,
            or its confidence. All pairs of a fit, and those of later predictions, need the same names.
    """

    source: Sequence[str]
    target: Sequence[str]
    extra: Mapping[str, IntArray | Prediction] = field(default_factory=dict)


@_memory.without_collection()
def as_pairs(X: Iterable[Any], called: str = "sentence pair") -> list[SentencePair]:
    """Convert sentence pairs; strings are split at ASCII white space, like files.

    Here and below, errors call a pair ``called`` and a number from 1.
    """
    found = []
    given = X if type(X) in (list, Bitext) else _checks.listed(f"{called}s", X, "a list of pairs", sized=False)
    for number, x in enumerate(given):
        if isinstance(x, SentencePair):
            source, target, extra = x.source, x.target, x.extra
        else:
            try:
                if isinstance(x, str | Set | Mapping):  # strings of two letters, and collections without order
                    raise TypeError
                source, target = x
            except Exception:  # the caller's code, and what is no pair
                raise ValueError(
                    f"{called} {number + 1} must be a SentencePair or two sentences, got {type(x).__name__}"
                ) from None
            extra = {}
        sides = []
        for words in (source, target):
            listed = words_of(words) if isinstance(words, str) else words
            if not isinstance(listed, (list, tuple)) and isinstance(listed, Sequence):
                _memory.require(8.0 * len(listed), f"{called} {number + 1}", "give a string or a list of strings")
            if not isinstance(listed, Sequence) or not all(map(_is_word, listed)):
                raise ValueError(f"{called} {number + 1}: a sentence must be a string or a list of strings")
            sides.append(listed)
        columns = _checked(extra, f"{called} {number + 1}", *map(len, sides)) if extra else {}
        found.append(SentencePair(sides[0], sides[1], columns))
    return found


def read_pairs(
    source: AnyPath, target: AnyPath | None = None, *, extra: Mapping[str, AnyPath] | None = None
) -> list[SentencePair]:
    """Read sentence pairs with extra columns.

    Args:
        source: source sentences, or lines ``source ||| target`` if ``target`` is None.
        target: target sentences.
        extra: for each name of an extra column a file of links.
    """
    return _with_extra(read_bitext(source, target), extra)


def read_annotated(
    source: AnyPath,
    target: AnyPath | None,
    gold: AnyPath,
    *,
    extra: Mapping[str, AnyPath] | None = None,
    format: str | None = None,
    first: int | None = None,
    skip_bad: bool = False,
) -> tuple[list[SentencePair], list[Reference]]:
    """Read annotated sentence pairs: those of :func:`read_pairs`, and their references in ``gold``.

    ``format`` is the format of ``gold``, None recognizes it; ``first`` the number of the first word there, 0 or 1, None
    for that of the format. With ``skip_bad``, pairs with a link outside their sentences are left out, with a warning.
    """
    bitext = read_bitext(source, target)
    links = open_links(gold, format=format, first=first)
    bad: list[int] = []
    if skip_bad:
        inside, numbers = links.inside(bitext)
        if inside is not links:
            bad = numbers.tolist()
            warn_of_bad(name_of(gold), len(links.table.links) - len(inside.table.links), bad)
        links = inside
    pairs, references = _with_extra(bitext, extra), links.references(bitext=bitext)
    skipped = set(bad)
    kept = [at for at in range(len(pairs)) if at not in skipped] if skipped else range(len(pairs))
    return [pairs[at] for at in kept], [references[at] for at in kept]


def _with_extra(bitext: Bitext, extra: Mapping[str, AnyPath] | None) -> list[SentencePair]:
    links = {name: open_links(path).predictions(bitext=bitext) for name, path in (extra or {}).items()}
    return [
        SentencePair(source, target, {name: found[number] for name, found in links.items()})
        for number, (source, target) in enumerate(bitext)
    ]


def _is_word(word: object) -> bool:
    return isinstance(word, str)


def _checked(extra: Any, pair: str, n_source: int, n_target: int) -> dict[str, Prediction]:
    """The extra columns of a pair as predictions with links inside the pair."""
    if not isinstance(extra, Mapping) or not all(map(_is_word, extra)):
        raise ValueError(f"{pair}: extra columns must be a dictionary from names to links")
    found = {}
    for name, given in extra.items():
        where = f"{pair}, extra column {name!r}"
        try:
            links = as_positions(given.links) if isinstance(given, Prediction) else as_links(given)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: links must be pairs (source position, target position), from 0") from None
        if len(links) and (links >= (n_source, n_target)).any():
            raise ValueError(f"{where}: a link is outside its {n_source} source and {n_target} target words")
        confidence = given.confidence if isinstance(given, Prediction) else None
        if confidence is not None and (np.shape(confidence) != (len(links),) or not np.isfinite(confidence).all()):
            raise ValueError(f"{where}: there must be a finite confidence for each of its {len(links)} links")
        found[name] = Prediction(links, confidence)
    return found


@_memory.without_collection()
def as_references(y: Sequence[Any], n: int, called: str = "sentence pair") -> list[Reference]:
    """Convert the references of ``n`` pairs; plain links are all sure."""
    y = _checks.listed("references", y, f"a list, one for each {called}")
    if len(y) != n:
        raise ValueError(f"there are {n} {called}s but {len(y)} references; give one for each")
    found = []
    for number, one in enumerate(y):
        try:
            links = one.links if isinstance(one, Prediction) else one
            found.append(one if isinstance(one, Reference) else Reference.of(links))
        except ValueError as error:
            why = f": {error}" if isinstance(one, str) else ""
            raise ValueError(
                f"{called} {number + 1}: a reference must be a Reference, (source, target) positions from 0, or a "
                f"string such as '0-0 1p2'{why}"
            ) from None
    return found


def require_inside(
    pairs: Sequence[SentencePair], references: Sequence[Reference], called: str = "sentence pair"
) -> None:
    """Refuse references with links outside their pairs."""
    n_source, n_target = sizes_of(pairs).T
    for links in ([one.sure for one in references], [one.possible for one in references]):
        refuse_outside(*pack(links, called), n_source, n_target, called)


def sizes_of(pairs: Sequence[SentencePair]) -> IntArray:
    """Numbers of source and target words, shape ``(n, 2)``."""
    return np.array([(len(pair.source), len(pair.target)) for pair in pairs], dtype=np.int64).reshape(-1, 2)


def extra_names(pairs: Sequence[SentencePair], dev: Sequence[SentencePair] = ()) -> tuple[str, ...]:
    """The names of the extra columns, which must be the same for all pairs."""
    names = tuple(sorted(pairs[0].extra)) if pairs else ()
    for called, some in (("sentence pair", pairs), ("dev pair", dev)):
        for number, pair in enumerate(some):
            if tuple(sorted(pair.extra)) != names:
                raise ValueError(
                    f"{called} {number + 1} has the extra columns {sorted(pair.extra)}, the first sentence pair "
                    f"{list(names)}; give the same to all"
                )
    return names


def require_extra(pairs: Sequence[SentencePair], names: Sequence[str]) -> None:
    """Refuse pairs whose extra columns are not those of a model."""
    wanted = set(names)
    for number, pair in enumerate(pairs):
        if pair.extra.keys() == wanted:
            continue
        for name in names:
            if name not in pair.extra:
                raise ValueError(
                    f"sentence pair {number + 1} has no extra column {name!r}, which the model was trained with; give "
                    f"its links: extra={{{name!r}: ...}}, on the command line --extra {name}=FILE"
                )
        unknown = min(pair.extra.keys() - wanted)
        known = f"it has: {', '.join(names)}" if names else "it has none"
        raise ValueError(
            f"sentence pair {number + 1}: the model has no extra column {unknown!r}; {known}; omit {unknown!r}"
        )


def extra_column(pairs: Sequence[SentencePair], name: str) -> FloatArray:
    """An extra column of all cells of pairs from :func:`as_pairs`: 1, or the confidence, at links, 0 elsewhere."""
    n_source, n_target = sizes_of(pairs).T
    values: list[npt.ArrayLike] = []
    links = []
    for pair in pairs:
        given = pair.extra[name]
        one = given if isinstance(given, Prediction) else Prediction(as_links(given))
        links.append(one.links)
        values.append(np.ones(len(one.links)) if one.confidence is None else one.confidence)
    start, flat = pack(links)
    of = sentence_of(start)
    grid_start = offsets_of(n_source * n_target)
    column = np.zeros(int(grid_start[-1]))
    if len(flat):
        column[grid_start[of] + flat[:, 0] * n_target[of] + flat[:, 1]] = np.concatenate(values)
    return column


def too_long(pair: SentencePair) -> bool:
    """Whether a pair is too long to be aligned."""
    return max(len(pair.source), len(pair.target)) > LONGEST_ALIGNED


def alignable(pairs: Sequence[SentencePair]) -> list[SentencePair]:
    """The pairs, with those that are too long emptied, so that they get no links."""
    return [
        SentencePair([], [], {name: np.zeros((0, 2), dtype=np.int64) for name in pair.extra})
        if too_long(pair)
        else pair
        for pair in pairs
    ]


def learnable(pairs: Sequence[SentencePair], references: Sequence[Reference]) -> list[Reference]:
    """The references of :func:`alignable` pairs: without links for pairs that are too long."""
    none = Reference.of([])
    return [none if too_long(pair) else one for pair, one in zip(pairs, references, strict=True)]


def warn_of_bad(name: str, n_links: int, pairs: Sequence[int]) -> None:
    """Warn of links outside their sentences, and of the pairs that have them."""
    first = f"; the first is pair {pairs[0] + 1}" if pairs else ""
    warnings.warn(
        f"{name}: {count_of(n_links, 'link')} outside the sentences; {count_of(len(pairs), 'pair')} left out{first}",
        UserWarning,
        stacklevel=callers_level(),
    )


def warn_of_long(
    pairs: list[SentencePair], consequence: str = "gets no links", called: str = "sentence pair", *, first: int = 1
) -> None:
    """Warn if pairs, of which the first has number ``first``, are too long."""
    long = [number for number, pair in enumerate(pairs) if too_long(pair)]
    if long:
        warnings.warn(
            f"{called} {long[0] + first} has more than {LONGEST_ALIGNED} words on a side and {consequence} "
            f"({count_of(len(long), 'such pair')}); split it",
            UserWarning,
            stacklevel=callers_level(),
        )
