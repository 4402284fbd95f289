"""Transition constraints from the names of labels."""

from itertools import pairwise, product

import numpy as np
import pytest

from maxmargin.structures import TransitionConstraints

BIO = ("O", "B-NP", "I-NP", "B-VP", "I-VP", "X")
IOBES = ("O", "B-NP", "I-NP", "E-NP", "S-NP", "B-VP", "E-VP", "X")


def constraints(rules, labels):
    return not rules.broken(labels, [len(labels)]).any()


def bio_sequence(names):
    """The rule, read from left to right."""
    open_type = None
    for name in names:
        if name.startswith("I-") and open_type != name[2:]:
            return False
        open_type = name[2:] if name[:2] in ("B-", "I-") else None
    return True


def iobes_sequence(names):
    open_type = None
    for name in names:
        if (name[:2] in ("I-", "E-")) != (open_type is not None):
            return False
        if open_type is not None and name[2:] != open_type:
            return False
        open_type = name[2:] if name[:2] in ("B-", "I-") else None
    return open_type is None


@pytest.mark.parametrize(
    ("make", "labels", "rule"),
    [(TransitionConstraints.bio, BIO, bio_sequence), (TransitionConstraints.iobes, IOBES, iobes_sequence)],
    ids=["bio", "iobes"],
)
def test_schemes_allow_exactly_their_sequences(make, labels, rule):
    rules = make(labels)
    count = 0
    for length in range(4):
        for sequence in product(range(len(labels)), repeat=length):
            count += 1
            assert constraints(rules, sequence) == rule([labels[at] for at in sequence]), sequence
    assert count > 200


def test_bilou_is_iobes_by_other_names():
    bilou = tuple({"E": "L", "S": "U"}.get(name[0], name[0]) + name[1:] for name in IOBES)
    assert bilou != IOBES
    assert TransitionConstraints.iobes(bilou) == TransitionConstraints.iobes(IOBES)
    assert hash(TransitionConstraints.iobes(bilou)) == hash(TransitionConstraints.iobes(IOBES))
    assert TransitionConstraints.iobes(IOBES) != TransitionConstraints.anything(len(IOBES))


def test_labels_of_no_scheme_are_free():
    for make in (TransitionConstraints.bio, TransitionConstraints.iobes):
        assert make(("NN", "VB", "-", "B-", "BX", "Be-X")).allows_all
    bare = TransitionConstraints.bio(("B", "I", "O"))
    assert bare.pairs.tolist() == [[True, True, True], [True, True, True], [True, False, True]]
    assert bare.first.tolist() == [True, False, True]


def test_forbidden_pairs_and_ends():
    rules = TransitionConstraints.forbid(("A", "B", "C"), [("A", "B"), (None, "C"), ("B", None)])
    assert np.argwhere(~rules.pairs).tolist() == [[0, 1]]
    assert rules.first.tolist() == [True, True, False]
    assert rules.last.tolist() == [True, False, True]
    assert rules.broken([0, 1, 2, 0, 1], [0, 2, 0, 3]).tolist() == [False, True, True, False, True]
    assert rules.broken([], []).tolist() == rules.broken([], [0, 0]).tolist() == []
    both = rules & TransitionConstraints.forbid(("A", "B", "C"), [("C", "C")])
    assert np.argwhere(~both.pairs).tolist() == [[0, 1], [2, 2]]
    assert repr(both) == "TransitionConstraints(3 labels; forbidden: 2 pairs, 1 first, 1 last)"
    assert TransitionConstraints.forbid(("A", "B"), []).allows_all


def test_reachable_labels():
    rng = np.random.default_rng(0)
    rules = TransitionConstraints(rng.random((4, 4)) < 0.3, rng.random(4) < 0.5, rng.random(4) < 0.5)
    for longest in (0, 1, 5):
        ahead, back = rules.reachable(longest)
        assert ahead.shape == back.shape == (longest, 4)
        for t, label in product(range(longest), range(4)):
            begins = [y for y in product(range(4), repeat=t + 1) if rules.first[y[0]] and y[-1] == label]
            ends = [y for y in product(range(4), repeat=t + 1) if rules.last[y[-1]] and y[0] == label]
            for found, sequences in ((ahead[t, label], begins), (back[t, label], ends)):
                assert found == any(all(rules.pairs[a, b] for a, b in pairwise(y)) for y in sequences)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TransitionConstraints(np.ones((2, 2)), [True] * 2, [True] * 2),
            r"pairs must be an array of booleans, got shape \(2, 2\) of float64",
        ),
        (lambda: TransitionConstraints(np.ones((2, 3), bool), [True] * 2, [True] * 2), "pairs must be a square array"),
        (lambda: TransitionConstraints(np.ones((0, 0), bool), [], []), "pairs must be a square array"),
        (lambda: TransitionConstraints(np.ones((2, 2), bool), [True], [True] * 2), r"first must have shape \(2,\)"),
        (lambda: TransitionConstraints(np.ones((2, 2), bool), [True] * 2, [1, 0]), "last must be an array of booleans"),
        (lambda: TransitionConstraints.bio("B-X"), "labels must be a sequence of strings"),
        (lambda: TransitionConstraints.bio([1, 2]), "labels must be a sequence of strings"),
        (lambda: TransitionConstraints.bio([]), "labels must not be empty"),
        (lambda: TransitionConstraints.iobes(["O", "B-X", "O"]), "label 'O' comes twice"),
        (lambda: TransitionConstraints.forbid(["A"], [("A", "Z")]), "there is no label 'Z'"),
        (lambda: TransitionConstraints.forbid(["A"], ["AA"]), "must be a pair of labels"),
        (lambda: TransitionConstraints.forbid(["A"], [(None, None)]), "name at least one label"),
        (
            lambda: TransitionConstraints.anything(2) & TransitionConstraints.anything(3),
            "2 and on 3 labels",
        ),
        (lambda: TransitionConstraints.anything(2).broken([0.5], [1]), "labels must be integers"),
    ],
)
def test_bad_rules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rules_cannot_be_changed():
    rules = TransitionConstraints.anything(2)
    with pytest.raises(ValueError, match="read-only"):
        rules.pairs[0, 0] = False
