"""Transition constraints of a tagger: given by the user, or recognized from the labels and the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from maxmargin._callers import callers_level
from maxmargin._messages import quoted, shown
from maxmargin.features.supported import Support
from maxmargin.structures.base import IntArray
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.tasks.common.tokens.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes
from maxmargin.tasks.tagging.encoder.decoder import Decoder
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.labels.repair import has_strict_scheme
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks, tag_and_type

NAMED = ("auto", "bio", "iobes")
"""Constraints that settings name."""

ODD_SHARE = 0.1
"""Share of chunks, and of sentences, that may break the rules of the labels' scheme if these are to be kept."""

SHOWN = 3
"""Number of odd labels that a warning names."""


Blocks = Callable[[], Iterable[tuple[LabeledRows, Any]]]
"""Returns labeled sentences, all at once or in blocks, each with the input that it comes from, for errors."""


def transition_constraints(
    given: Any, forbidden: Any, labels: tuple[Hashable, ...], blocks: Blocks
) -> TransitionConstraints | None:
    """Return the constraints for labels, None for none; ValueError if the data violate those that were asked for.

    Those that are recognized may be violated by a few sentences, which :func:`without_odd` leaves out.

    Args:
        given: None, a TransitionConstraints, or one of :data:`NAMED`.
        forbidden: pairs of labels that may not follow each other.
        labels: all labels.
        blocks: the labeled sentences.
    """
    constraints, names = _given(given, labels), [str(label) for label in labels]
    more = _forbidden(forbidden, names)
    if isinstance(given, str) and given == "auto":
        constraints = _recognized(names, blocks) if len(set(names)) == len(names) else None
        asked = more
    else:
        asked = constraints if more is None else more if constraints is None else constraints & more
    if asked is not None:
        for data, X in blocks():
            check_gold(asked, data, X, labels)
    if more is not None:
        constraints = more if constraints is None else constraints & more
    return None if constraints is None or constraints.allows_all else constraints


def check_unchanged(
    before: TransitionConstraints | None, given: Any, forbidden: Any, labels: tuple[Hashable, ...]
) -> None:
    """Raise ValueError if settings ask for other constraints than those of a model."""
    there = TransitionConstraints.anything(len(labels)) if before is None else before
    more = _forbidden(forbidden, [str(label) for label in labels])
    if isinstance(given, str) and given == "auto":
        wanted = there  # those of the model, but forbidden pairs must be among them
    else:
        wanted = _given(given, labels) or TransitionConstraints.anything(len(labels))
    if (wanted if more is None else wanted & more) != there:
        raise ValueError(
            "constraints and forbidden differ from those of the model; leave them as they were in training, give "
            'constraints="auto" and no forbidden to keep those of the model, or train a new model with fit'
        )


def _given(given: Any, labels: tuple[Hashable, ...]) -> TransitionConstraints | None:
    """Return the constraints that a setting names; None for none and for "auto"."""
    names = [str(label) for label in labels]
    if isinstance(given, TransitionConstraints):
        if given.n_labels != len(labels):
            raise ValueError(f"constraints are for {given.n_labels} labels, there are {len(labels)}")
        return given
    if given is None or (isinstance(given, str) and given == "auto"):
        return None
    if given in ("bio", "iobes"):
        return TransitionConstraints.bio(names) if given == "bio" else TransitionConstraints.iobes(names)
    raise ValueError(
        f"constraints must be None, a TransitionConstraints or one of {', '.join(map(repr, NAMED))}, got {shown(given)}"
    )


def _forbidden(pairs: Any, names: list[str]) -> TransitionConstraints | None:
    """Return the constraints that forbid the given pairs; None if there are none."""
    chosen: Any = [tuple(None if name is None else str(name) for name in pair) for pair in _pairs(pairs)]
    return TransitionConstraints.forbid(names, chosen) if chosen else None


def _recognized(names: list[str], blocks: Blocks) -> TransitionConstraints | None:
    """Return the constraints of the labels' scheme if nearly all sentences satisfy them; warn if not all do."""
    if not look_like_chunks(names):
        return None
    strict = has_strict_scheme(names)
    constraints = TransitionConstraints.iobes(names) if strict else TransitionConstraints.bio(names)
    begin = np.array([tag_and_type(name)[0] in ("B", "S") for name in names])
    wrong = right = odd = known = sentences = 0
    incomplete, first, places = False, "", list[str]()
    for data, X in blocks():
        tokens, given = _violations(constraints, data), data.codes[data.codes >= 0]
        if len(tokens) and not first:
            first = _label(data, X, int(tokens[0]), names)
        places += [_where(data, X, int(token)) for token in tokens[: max(SHOWN - len(places), 0)]]
        wrong, odd = wrong + len(tokens), odd + len(_sentences_of(tokens, data))
        right += int(np.bincount(given, minlength=len(names))[begin].sum())
        known, sentences, incomplete = known + len(given), sentences + len(data.lengths), incomplete or data.incomplete
    few = wrong <= ODD_SHARE * (wrong + right) and odd <= ODD_SHARE * sentences
    if wrong and right:  # otherwise the scheme is another one
        count = f"{wrong} of {known} labels {'does' if wrong == 1 else 'do'} not"
        also = f" (also {'; '.join(places[1:])}{' ...' if wrong > SHOWN else ''})" if places[1:] else ""
        left = f"{odd} sentence{' is' if odd == 1 else 's are'}"
        kept = f"so that {left} left out of training, and predictions keep the rules"
        effect = kept if few else "too many to keep the rules, so that predictions may break them, too"
        warnings.warn(
            f"{first} breaks the {'IOBES' if strict else 'BIO'} rules; {count} follow them{also}, {effect}; "
            "correct them, or let repair (--repair) mend them",
            UserWarning,
            stacklevel=callers_level(),
        )
    if few and incomplete:
        few = not any(_cannot_be_completed(constraints, without_odd(constraints, data)[0]) for data, _ in blocks())
    return constraints if few else None


def without_odd(constraints: TransitionConstraints | None, data: LabeledRows) -> tuple[LabeledRows, IntArray]:
    """Return the sentences whose known labels satisfy the constraints, and their numbers."""
    every = np.arange(len(data.lengths))
    if constraints is None:
        return data, every
    odd = _sentences_of(_violations(constraints, data), data)
    kept = np.setdiff1d(every, odd)
    return (data.select(kept) if odd.size else data), kept


def _sentences_of(tokens: IntArray, data: LabeledRows) -> IntArray:
    """Return the sentences of tokens, each once."""
    return np.unique(np.searchsorted(data.rows.offsets, tokens, side="right") - 1)


def _violations(constraints: TransitionConstraints, data: LabeledRows) -> IntArray:
    """Return the tokens whose known labels violate a constraint."""
    if not data.incomplete:
        return np.flatnonzero(constraints.broken(data.codes, data.lengths))
    runs, known = data.runs(), data.codes >= 0
    wrong = np.zeros(len(known), dtype=bool)
    wrong[known] = constraints.inside.broken(runs.codes, runs.lengths)
    bounds, some = data.rows.offsets, data.lengths > 0
    for at, allowed in ((bounds[:-1][some], constraints.first), (bounds[1:][some] - 1, constraints.last)):
        at = at[known[at]]
        wrong[at] |= ~allowed[data.codes[at]]
    return np.flatnonzero(wrong)


def _cannot_be_completed(constraints: TransitionConstraints, data: LabeledRows) -> str:
    """Return why the unknown labels cannot be completed; empty if they can."""
    k, offsets = constraints.n_labels, data.rows.offsets
    if not data.incomplete:
        return ""
    starts, nothing = np.zeros(int(offsets[-1]) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    rows = TokenRows(Attributes(starts, nothing, None, 0, data.lengths))
    layout = WeightLayout(k, 1, constraints, Support.empty(k))
    try:
        found = Decoder(layout, np.zeros(layout.n_weights)).best(rows, data.codes)
        wrong = np.flatnonzero(constraints.broken(found, data.lengths))
    except ValueError as error:
        return str(error)
    if not wrong.size:
        return ""
    sentence = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
    return f"sentence {sentence}: no labels satisfy the constraints in a sentence of this length; leave it out"


def check_gold(
    constraints: TransitionConstraints,
    data: LabeledRows,
    X: Any,
    labels: tuple[Hashable, ...],
    owner: str = "labels",
    remedy: str = "train without constraints",
) -> None:
    """Raise ValueError for the first token whose label violates a constraint.

    Args:
        constraints: allowed transitions.
        data: labeled sentences.
        X: the input they come from, for errors.
        labels: all labels.
        owner: whose constraints these are, for the error.
        remedy: what to do besides correcting the data.
    """
    wrong = _violations(constraints, data)
    if not wrong.size:
        if reason := _cannot_be_completed(constraints, data):
            raise ValueError(reason)
        return
    token = int(wrong[0])
    raise ValueError(
        f"{_label(data, X, token, labels)} violates the constraints of {owner}; correct the data, or {remedy}"
    )


def _where(data: LabeledRows, X: Any, token: int) -> str:
    """Return the place of a token for messages."""
    if isinstance(X, (TokenTable, AttributeText)):
        return X.where(token)
    sentence = int(np.searchsorted(data.rows.offsets, token, side="right")) - 1
    return f"sentence {sentence}, token {token - int(data.rows.offsets[sentence])}"


def _label(data: LabeledRows, X: Any, token: int, labels: Sequence[Hashable]) -> str:
    """Return the place of a token, its label and the one before for messages."""
    first = token in data.rows.offsets or data.codes[token - 1] < 0
    before = "" if first else f" after {shown(labels[data.codes[token - 1]])}"
    return f"{_where(data, X, token)}: the label {quoted(labels[data.codes[token]])}{before}"


def _pairs(forbidden: Any) -> list[Any]:
    pairs = list(forbidden) if hasattr(forbidden, "__iter__") else [forbidden]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"forbidden must be a list of pairs of labels, got {shown(pair)}")
    return pairs
