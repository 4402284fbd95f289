"""Checks of treebanks before training and scoring: trees, relations, tags. Errors name the first token at fault."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin import _kernels
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.parsing.io.treebank import MISSING, FileError, Treebank


def check_trees(bank: Treebank, *, single_root: bool = False, partial: bool = False) -> None:
    """FileError unless the heads of each sentence lead to the root, with ``single_root`` from one token below it.

    ``partial``: whether heads may be unknown.
    """
    sentences, heads = offsets_of(bank.lengths), bank.known_heads if partial else bank.heads
    i, fault, token = _kernels.dependency_fault(sentences, np.maximum(heads, 0), False, False)
    if fault:
        where = bank.table.where(int(sentences[i]) + token - 1)
        raise FileError(f"{where}: from here the heads lead around in a circle, not to the root, 0; correct the heads")
    roots = np.add.reduceat((heads == 0).astype(np.int64), sentences[:-1])
    if not single_root or (roots <= 1).all():
        return
    first = int(sentences[np.argmax(roots > 1)])
    second = first + int(np.flatnonzero(heads[first:] == 0)[1])
    raise FileError(
        f"{bank.table.where(second)}: this is a second token below the root, 0; {int((roots > 1).sum())} of "
        f"{bank.n_sentences} sentences have several, and a parser that was trained with one root predicts one. Correct "
        "the heads, or train with single_root=False (--several-roots)"
    )


def check_relations(bank: Treebank, *, partial: bool = False) -> None:
    """FileError if a token has no relation, or with ``partial`` if none has one."""
    missing = without_relation(bank)
    if missing.size > (bank.n_tokens - 1 if partial else 0):
        raise FileError(
            f"{bank.table.where(int(missing[0]))}: there is no relation, and none at {len(missing)} of {bank.n_tokens} "
            "tokens; give relations, or train heads alone with labeled=False (--unlabeled)"
        )


def without_relation(bank: Treebank) -> IntArray:
    """The tokens without a relation."""
    codes, names = bank.relations
    return np.flatnonzero(np.array([name in MISSING for name in names], dtype=np.bool_)[codes])


def without_tag(bank: Treebank) -> IntArray:
    """The tokens without a universal tag."""
    codes, names = bank.table.codes(bank.table.columns.index("upos"))
    return np.flatnonzero(np.array([name in MISSING for name in names], dtype=np.bool_)[codes])


def missing_tags(bank: Treebank) -> str:
    """Where tags are missing, and of how many tokens, for a warning; empty if every token has one."""
    missing = without_tag(bank)
    if not missing.size:
        return ""
    return (
        f"{bank.table.where(int(missing[0]))}: there is no tag (UPOS), and none at {len(missing)} of {bank.n_tokens} "
        "tokens"
    )


def gold_heads(one: Treebank, single_root: bool) -> IntArray:
    """Return the heads of one sentence in its file; FileError if they are no projective tree."""
    missing = np.flatnonzero(one.known_heads < 0)
    if missing.size:
        raise FileError(
            f"{one.table.where(int(missing[0]))}: --gold compares with the tree in the file, and this token has no "
            "head; give a file with trees, or leave --gold out"
        )
    check_trees(one, single_root=single_root)
    _, fault, token = _kernels.dependency_fault(offsets_of(one.lengths), one.heads, False, True)
    if fault:
        raise FileError(
            f"{one.table.where(token - 1)}: the arc to this token crosses another, and the parser's trees have no such "
            "arcs; leave --gold out"
        )
    return one.heads


def gold_relation(one: Treebank, token: int, classes: Sequence[str]) -> str:
    """Return the relation of a token, counted from 1, in its file; FileError if the model does not know it."""
    codes, names = one.relations
    name, where = names[codes[token - 1]], one.table.where(token - 1)
    if name in MISSING:
        raise FileError(
            f"{where}: --gold compares with the relation in the file, and this token has none; leave it out"
        )
    if name not in classes:
        raise FileError(f"{where}: {name!r} is not a relation of this model ({', '.join(classes)}); leave --gold out")
    return str(name)
