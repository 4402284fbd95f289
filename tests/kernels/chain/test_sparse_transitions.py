"""Viterbi with many labels, most of whose transitions score 0: the labels of the plain method, equals included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.structures import Chain
from maxmargin.structures.base import PointStatus


def plain(nodes, pairs):
    """Viterbi; among equals the lowest last label, then the lowest before it, and so on."""
    forward = [nodes[0]]
    for row in nodes[1:]:
        forward.append((forward[-1][:, None] + pairs).max(axis=0) + row)
    labels = [int(np.argmax(forward[-1]))]
    for before in forward[-2::-1]:
        labels.append(int(np.argmax(before + pairs[:, labels[-1]])))
    return labels[::-1], forward[-1].max()


@settings(max_examples=40, deadline=None)
@given(
    k=st.sampled_from([63, 64, 67, 96, 130]),
    length=st.integers(1, 5),
    share=st.sampled_from([0.0, 0.01, 0.1, 0.13, 0.5]),
    forbidden=st.sampled_from([0.0, 0.02, 0.6]),
    whole=st.booleans(),
    column=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_labels_are_those_of_the_plain_method(k, length, share, forbidden, whole, column, seed):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.integers(-2, 3, shape).astype(float) if whole else rng.standard_normal(shape)

    nodes = draw(length, k)
    pairs = np.where(rng.random((k, k)) < share, draw(k, k), 0.0)
    if column:
        pairs[:, k // 2] = draw(k)  # no zero in it
    pairs[(rng.random((k, k)) < forbidden) & (np.arange(k) % 7 > 0)] = -np.inf
    structure = Chain([length], k, transitions="shared")
    found = structure.argmax(np.concatenate([nodes.ravel(), pairs.ravel()]))
    labels, value = plain(nodes, pairs)
    assert structure.decode(found.z)[0].tolist() == labels
    assert found.value[0] == value
    assert structure.labels(nodes.ravel(), pairs).outputs.flat.tolist() == labels


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(wrong):
    k = 80
    pairs = np.zeros((k, k))
    pairs[5, 79] = wrong
    structure = Chain([3], k, transitions="shared")
    plain_scores = np.zeros(3 * k)
    assert structure.argmax(np.concatenate([plain_scores, pairs.ravel()])).status[0] == PointStatus.NONFINITE
    assert structure.labels(plain_scores, pairs).status[0] == PointStatus.NONFINITE
