"""Segmentations: the kernels of their own against enumeration and chains, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import vertices
from oracles.structures.segments import outputs, random_segments

from maxmargin.structures import (
    Chain,
    PointStatus,
    Segments,
    TaggedSegments,
    TransitionConstraints,
    candidate_segments,
    token_states,
)
from maxmargin.testing import check_structure

RULES = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
STATES = np.array([[0, 0, 0, 0], [1, 2, 2, 1], [3, 4, 4, 3]])


@RULES
@given(seed=seeds)
def test_states_and_max_marginals_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_segments(rng, 4)
    scores = np.round(rng.normal(size=structure.n_parts), 3)
    scores[rng.random(structure.n_parts) < 0.1 * rng.integers(2)] = -np.inf
    best, found, most = structure.argmax(scores), structure.best_states(scores), structure.max_marginals(scores)
    np.testing.assert_array_equal(found.value, best.value)
    np.testing.assert_array_equal(found.status, best.status)
    width = structure.n_states_each
    for i, rows in enumerate(vertices(structure)):
        own, tokens = structure.parts_of([i]), slice(*structure.blocks[0].offsets[i : i + 2] // width)
        with np.errstate(invalid="ignore"):
            worth = np.where(rows > 0, scores[own] * rows, 0.0).sum(axis=1)
        states = rows[:, : structure.lengths[i] * width] > 0
        wanted = np.max(np.where(states, worth[:, None], -np.inf), axis=0, initial=-np.inf)
        np.testing.assert_allclose(most[tokens].ravel(), wanted, atol=1e-12)
        if best.status[i] == PointStatus.ABSENT:
            assert (found.outputs[i] == -1).all()
        else:
            chosen = best.z[own][: structure.lengths[i] * width].reshape(-1, width)
            np.testing.assert_array_equal(chosen.argmax(axis=1), found.outputs[i])


@RULES
@given(seed=seeds, longest=st.integers(1, 4))
def test_without_scores_of_segments_they_are_chains_of_tags(seed: int, longest: int) -> None:
    """Long enough segments without scores of their own are the label sequences that BIO constraints allow."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, size=3)
    tagged = TaggedSegments(lengths, 3, [1, longest, longest], states=STATES)
    chain = Chain(lengths, 5, constraints=TransitionConstraints.bio(TAGS))
    tokens = rng.normal(size=5 * int(lengths.sum()))
    scores = np.concatenate([tokens, np.zeros(tagged.n_parts - len(tokens))])
    alone = np.concatenate([tokens, np.zeros(chain.n_parts - len(tokens))])
    np.testing.assert_array_equal(tagged.labels(scores).outputs.flat, chain.labels(alone).outputs.flat)
    np.testing.assert_allclose(tagged.marginals(scores).value, chain.marginals(alone).value, atol=1e-12)
    np.testing.assert_allclose(tagged.max_marginals(scores), chain.max_marginals(alone), atol=1e-12)
    given_tags = chain.decode(chain.argmax(alone).z)
    np.testing.assert_array_equal(
        tagged.encode(given_tags).dense()[: len(tokens)], chain.encode(given_tags).dense()[: len(tokens)]
    )
    assert [a.tolist() for a in tagged.decode(tagged.encode(given_tags).dense())] == [a.tolist() for a in given_tags]


def test_tags_keep_the_promises_of_structures() -> None:
    rng = np.random.default_rng(4)
    check_structure(TaggedSegments([3, 0, 4, 1], 3, [1, 3, 2], states=STATES), rng)
    iobes = np.array([[0, 0, 0, 0], [1, 2, 3, -1]])
    check_structure(TaggedSegments([3, 0, 4, 1], 2, [1, 3], states=iobes), rng)


def test_candidates_are_in_the_order_of_the_parts() -> None:
    structure = Segments([4], 1, 3)
    rows = candidate_segments(4, 3)
    assert rows.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]
    for output in outputs(structure):
        z = structure.encode([output]).dense()[structure.starts[2] :]
        np.testing.assert_array_equal(rows[z > 0], output[:, :2])


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"longest": 0}, "longest must be a number between 1"),
        ({"longest": [1, 2, 3]}, "or 2 of them, one per label"),
        ({"states": [[0, 1, 1, 0]]}, r"of shape \(2, 4\)"),
        ({"states": np.full((2, 4), -1)}, "gives no label any tokens"),
        ({"constraints": TransitionConstraints.anything(3)}, "the constraints are for 3 labels, but there are 2"),
        ({"constraints": "bio"}, "constraints must be a TransitionConstraints or None, got str"),
    ],
)
def test_settings_that_are_refused(given_settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Segments([3], **({"n_labels": 2, "longest": 2} | given_settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([0, 2, 0], r"example 0: label 2 at position 1 \(from 0\) is not part of a segment"),
        ([1, 4, 0], r"example 0: label 4 at position 1 \(from 0\) is not part of a segment"),
        ([1, 2, 2], r"segment \(0, 3, 1\) .* is longer than its label allows"),
        ([0, 5, 0], r"example 0 has label 5"),
    ],
)
def test_tags_that_are_refused(tags: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TaggedSegments([3], 3, [1, 2, 2], states=STATES).encode([tags])
    with pytest.raises(ValueError, match="label 0: its states do not tell where segments begin"):
        TaggedSegments([3], 2, 2, states=token_states(2, "I"))
