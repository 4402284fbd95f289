"""Features of word pairs and words against their slow twins, column by column."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks import alignment as twin

import maxmargin as mm
from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.encoder.features import _COLUMNS, GROUPS, Evidence, LinkFeatures, WordFeatures
from maxmargin.tasks.alignment.encoder.link_model import LinkModel
from maxmargin.tasks.alignment.translation.words import IndexedBitext

WORDS = ["the", "The", "house", "maison", "Président", "president", "1998", "1,998", "36e", ".", ",", "?", "a", "école"]
WORDS += ["", "İstanbul", "ﬁn", "中文", "e\u0301cole", "parliament", "parlement", "aaaa", "aaab", "y" * 70, "\ud800"]


def evidence(shapes, *, seed=0, pairs=1000.0, n_lexical=0, n_extra=0, dull=0.0, tokens=None, **changes) -> Evidence:
    """Random evidence for pairs of the given shapes; a share `dull` of the numbers is 0."""
    rng = np.random.default_rng(seed)
    J, K = [j for j, _ in shapes], [k for _, k in shapes]
    n_source, n_target, cells = sum(J), sum(K), sum(j * k for j, k in shapes)

    def numbers(n, power=4):
        return rng.random(n) ** power * (rng.random(n) >= dull)

    def counts(n):
        return np.floor(pairs ** rng.random(n) * (rng.random(n) >= dull))

    e, f = counts(n_source), counts(n_target)
    start = np.concatenate([[0], np.cumsum(J)]), np.concatenate([[0], np.cumsum(K)])
    smaller = [
        np.minimum.outer(e[start[0][i] : start[0][i + 1]], f[start[1][i] : start[1][i + 1]]).ravel()
        for i in range(len(shapes))
    ]
    drawn = [[WORDS[i] for i in rng.integers(0, len(WORDS), n)] for n in (n_source, n_target)]
    words = zip(drawn if tokens is None else tokens, start, strict=True)
    sides = [[side[first:last] for first, last in pairwise(begin.tolist())] for side, begin in words]
    fields = {
        "bitext": IndexedBitext.of(*sides),
        **{f"{model}_{way}": numbers(cells) for model in ("model1", "hmm") for way in ("forward", "backward")},
        "null_source": numbers(n_source),
        "null_target": numbers(n_target),
        "joint_count": np.floor(numbers(cells) * np.concatenate([*smaller, np.zeros(0)])),
        "count_source": e,
        "count_target": f,
        "n_pairs": pairs,
        "lexical": rng.integers(-2, n_lexical, cells).astype(np.int32) if n_lexical else None,
        "extra": rng.standard_normal((cells, n_extra)) if n_extra else None,
    }
    return Evidence(**{**fields, **changes})


def all_columns(case: Evidence) -> np.ndarray:
    groups = twin.link_features(case)
    return np.concatenate([groups[group] for group in _COLUMNS], axis=1)


SHAPES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=0, max_size=4)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    SHAPES, st.integers(0, 1000), st.sampled_from([0.0, 1.0, 2.0, 30.0, 1000.0, 1e6]), st.sampled_from([0.0, 0.5, 1])
)
def test_every_column_is_that_of_the_twin(shapes, seed, n_pairs, dull):
    case = evidence(shapes, seed=seed, pairs=n_pairs, dull=dull)
    features = LinkFeatures()
    found = features.matrix(case)
    assert found.shape == (case.n_cells, features.n_features)
    if case.n_cells:
        expected = all_columns(case)
        for column, name in enumerate(features.names):
            np.testing.assert_allclose(found[:, column], expected[:, column], atol=1e-8, err_msg=name)
    for side in ("source", "target"):
        words = WordFeatures(side)
        np.testing.assert_allclose(words.matrix(case), twin.word_features(case, side), atol=1e-12)


def test_long_sentences_and_wide_rows():
    case = evidence([(3, 70), (40, 33), (1, 1), (1, 64), (65, 1)], seed=3)
    np.testing.assert_allclose(LinkFeatures().matrix(case), all_columns(case), atol=1e-8)


ANY = st.lists(st.text(max_size=12), min_size=1, max_size=4)
ALIKE = st.lists(st.text("ab", max_size=70), min_size=2, max_size=3)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.tuples(ANY, ANY) | ALIKE.map(lambda words: (words, words[::-1])))
def test_orthography_of_any_text(tokens):
    case = evidence([tuple(map(len, tokens))], tokens=tokens)
    for group in ("orthography", "identical"):
        found = LinkFeatures(groups=(group,)).matrix(case)
        np.testing.assert_allclose(found, twin.link_features(case)[group], atol=1e-12)


def test_identical_words_that_stand_once_find_each_other():
    source, target = ["In", "1998", "Paris", "and", "1,500", "a", "a"], ["a", "1.500", "paris", "en", "1998", "."]
    case = evidence([(7, 6)], tokens=[source, target])
    features = LinkFeatures(groups=("identical",))
    found = dict(zip(features.names, features.matrix(case).T.reshape(-1, 7, 6), strict=True))
    assert np.argwhere(found["identical: same letters"]).tolist() == [[1, 4], [2, 2]]
    assert np.argwhere(found["identical: same letters, digits"]).tolist() == [[1, 4]]
    assert np.argwhere(found["identical: same digits only"]).tolist() == [[4, 1]]
    assert found["identical: same letters elsewhere"][1].tolist() == [1, 1, 1, 1, 0, 1]


def test_groups_are_switched_on_and_off():
    case = evidence([(4, 5), (2, 11)], n_lexical=7, n_extra=2)
    whole, names = LinkFeatures().matrix(case), LinkFeatures().names
    for group in _COLUMNS:
        alone = LinkFeatures(groups=(group,))
        columns = [i for i, name in enumerate(names) if name.startswith(f"{group}: ")]
        assert alone.names == [names[i] for i in columns]
        np.testing.assert_array_equal(alone.matrix(case), whole[:, columns])
        rest = LinkFeatures(groups=tuple(other for other in _COLUMNS if other != group))
        np.testing.assert_array_equal(rest.matrix(case), np.delete(whole, columns, axis=1))
    assert LinkFeatures(groups=()).matrix(case).shape == (case.n_cells, 0)
    assert LinkFeatures(groups=("hmm", "bias")) == LinkFeatures(groups=("bias", "hmm"))
    np.testing.assert_array_equal(LinkFeatures(groups=()).scores(case, []), np.zeros(case.n_cells))


def test_the_kernel_has_as_many_columns_as_there_are_names():
    assert _kernels.link_group_sizes() == [len(names) for names in _COLUMNS.values()]
    features = LinkFeatures(groups=GROUPS, n_lexical=3, extra_names=("fast", "slow"))
    assert len(features.names) == features.n_features == len(set(features.names))
    assert features.names[-5:] == [
        *("extra: fast", "extra: slow"),
        *("lexical: word pair 0", "lexical: word pair 1", "lexical: word pair 2"),
    ]
    named = LinkFeatures(groups=("lexical",), n_lexical=2, lexical_names=("the le", "of de"))
    assert named.names == ["lexical: the le", "lexical: of de"]


def test_identity_and_user_columns():
    case = evidence([(4, 5), (0, 3), (2, 11)], n_lexical=7, n_extra=2)
    features = LinkFeatures(groups=GROUPS, n_lexical=7, extra_names=("fast", "slow"))
    found = features.matrix(case)
    assert sp.issparse(found)
    assert found.has_sorted_indices
    assert (found.data != 0).all()
    dense = found.toarray()
    np.testing.assert_array_equal(dense[:, :-9], LinkFeatures().matrix(case))
    np.testing.assert_array_equal(dense[:, -9:-7], case.extra)
    np.testing.assert_array_equal(dense[:, -7:], case.lexical[:, None] == np.arange(7))
    only = LinkFeatures(groups=("bias", "extra"), extra_names=("fast", "slow")).matrix(case)
    np.testing.assert_array_equal(only, np.column_stack([np.ones(case.n_cells), case.extra]))


@pytest.mark.parametrize("fertility", [1, 2, 3])
@pytest.mark.parametrize("shapes", [[], [(0, 3)], [(0, 3), (4, 5), (2, 0), (2, 11)]])
def test_parts_of_pairs_with_an_empty_side(shapes, fertility):
    case = evidence(shapes, n_lexical=7)
    sparse = LinkModel(LinkFeatures(groups=(*_COLUMNS, "lexical"), n_lexical=7), fertility)
    dense = LinkModel(LinkFeatures(groups=tuple(_COLUMNS)), fertility)
    batch = sparse.batch(case)
    found = sparse.features(case, batch).to_sparse()
    assert found.has_sorted_indices
    n, found = dense.links.n_features, found.toarray()
    np.testing.assert_array_equal(np.delete(found, range(n, n + 7), axis=1), dense.features(case, batch).rows.dense)
    expected = np.zeros((batch.n_parts, 7))
    expected[batch.cells] = case.lexical[:, None] == np.arange(7)
    np.testing.assert_array_equal(found[:, n : n + 7], expected)


def test_features_of_parts_are_not_copied():
    case = evidence([(20, 30)] * 40, n_lexical=7)
    model = LinkModel(LinkFeatures(groups=(*_COLUMNS, "lexical"), n_lexical=7), 2)
    batch = model.batch(case)
    _ = batch.structure, batch.cells, batch.source_slots, batch.target_slots, case._batch
    tracemalloc.start()
    rows = model.features(case, batch).rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * (rows.starts.nbytes + rows.columns.nbytes + rows.values.nbytes)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(SHAPES, st.integers(0, 100), st.booleans(), st.booleans())
def test_scores_are_those_of_the_matrix(shapes, seed, lexical, extra):
    case = evidence(shapes, seed=seed, n_lexical=5, n_extra=3)
    groups = (*_COLUMNS, *(("lexical",) if lexical else ()), *(("extra",) if extra else ()))
    features = LinkFeatures(groups=groups, n_lexical=5, extra_names=("a", "b", "c"))
    weights = np.random.default_rng(seed).standard_normal(features.n_features)
    np.testing.assert_allclose(features.scores(case, weights), features.matrix(case) @ weights, atol=1e-10)


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(5)
    case = evidence([tuple(shape) for shape in rng.integers(0, 12, (60, 2))], n_lexical=5, n_extra=1)
    features = LinkFeatures(groups=GROUPS, n_lexical=5, extra_names=("a",))
    weights = rng.standard_normal(features.n_features)

    def everything():
        sparse = features.matrix(case)
        words = [WordFeatures(side).matrix(case) for side in ("source", "target")]
        made = [LinkFeatures().matrix(case), features.scores(case, weights)]
        return [sparse.data, sparse.indices, sparse.indptr, *words, *made]

    alone = everything()
    for threads in (2, 3):
        with mm.threads(threads):
            for one, other in zip(alone, everything(), strict=True):
                assert one.tobytes() == other.tobytes()


def test_pairs_do_not_depend_on_their_batch():
    case = evidence([(4, 5)], seed=8)
    twice = Evidence(
        **{name: np.concatenate([value, value]) for name, value in vars(case).items() if isinstance(value, np.ndarray)}
        | {"bitext": case.bitext.select([0, 0]), "n_pairs": case.n_pairs}
    )
    found = LinkFeatures().matrix(twice)
    np.testing.assert_array_equal(found[:20], found[20:])
    np.testing.assert_array_equal(found[:20], LinkFeatures().matrix(case))


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-12, 1.0, 1e8, 1e300, -1.0])
@pytest.mark.parametrize("n_pairs", [0.0, 1.0, 1e-300, 1e8, 1e300])
def test_finite_for_any_finite_input(scale, n_pairs):
    case = evidence([(3, 4), (1, 1), (0, 2), (2, 0), (0, 0)], seed=1)
    changed = {
        name: value * scale
        for name, value in vars(case).items()
        if isinstance(value, np.ndarray) and value.dtype == np.float64
    }
    wild = evidence([(3, 4), (1, 1), (0, 2), (2, 0), (0, 0)], seed=1, **changed | {"n_pairs": n_pairs})
    found = LinkFeatures().matrix(wild)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 5.0
    for side in ("source", "target"):
        assert np.isfinite(WordFeatures(side).matrix(wild)).all()


def test_no_pairs_and_empty_sides():
    for shapes in ([], [(0, 0)], [(0, 3)], [(3, 0)]):
        case = evidence(shapes, n_lexical=2)
        assert LinkFeatures().matrix(case).shape == (0, LinkFeatures().n_features)
        assert LinkFeatures(groups=GROUPS, n_lexical=2).matrix(case).shape[0] == 0
        assert LinkFeatures().scores(case, np.zeros(LinkFeatures().n_features)).shape == (0,)
        assert len(WordFeatures("source").matrix(case)) == sum(j for j, _ in shapes)


@pytest.mark.parametrize(
    "name", ["model1_forward", "hmm_backward", "joint_count", "null_source", "count_target", "extra"]
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(name, value):
    case = evidence([(2, 2), (2, 3)], n_extra=1, n_lexical=2)
    bad = np.array(getattr(case, name))
    bad[-1] = value
    case = evidence([(2, 2), (2, 3)], n_extra=1, n_lexical=2, **{name: bad})
    features = LinkFeatures(groups=GROUPS, n_lexical=2, extra_names=("a",))
    calls = [
        lambda: LinkFeatures().matrix(case),
        lambda: features.matrix(case),
        lambda: features.scores(case, np.ones(features.n_features)),
        lambda: WordFeatures("target").matrix(case),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"sentence pair 2: .*NaN or infinity; give finite"):
            call()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hmm_forward": np.zeros(5)}, "all grids must have the same size"),
        ({"null_target": np.zeros(2)}, "nulls must have one entry per word"),
        ({"n_pairs": np.nan}, "n_pairs must be finite and not negative"),
        ({"n_pairs": -1}, "n_pairs must be finite and not negative"),
        ({"lexical": np.zeros(5, dtype=np.int32)}, "must have one entry per cell or none"),
        ({"lexical": np.zeros(6)}, "incompatible function arguments"),
        ({"extra": np.zeros((5, 1))}, "must have one row per cell"),
    ],
)
def test_evidence_that_does_not_fit(changes, message):
    """The kernels check what they get."""
    with pytest.raises((TypeError, ValueError), match=message):
        LinkFeatures().matrix(evidence([(2, 3)], **changes))


def test_words_that_are_none():
    with pytest.raises(ValueError, match="words must be strings, got 7; split"):
        IndexedBitext.of([["a", 7]], [["b"]])


def test_evidence_that_lacks_what_the_features_need():
    case = evidence([(2, 3)], n_extra=1, n_lexical=4)
    with pytest.raises(ValueError, match="has 1 extra columns where 2 are named; give the same"):
        LinkFeatures(groups=("extra",), extra_names=("a", "b")).matrix(case)
    with pytest.raises(ValueError, match="has 0 extra columns where 1 are named"):
        LinkFeatures(groups=("extra",), extra_names=("a",)).matrix(evidence([(2, 3)]))
    with pytest.raises(ValueError, match="has no lexical column; give it, or omit"):
        LinkFeatures(groups=("lexical",), n_lexical=2).matrix(evidence([(2, 3)]))
    with pytest.raises(ValueError, match="but there are 1 word pairs"):
        LinkFeatures(groups=("lexical",), n_lexical=1).matrix(case)
    with pytest.raises(ValueError, match=r"weights must have shape \(101,\)"):
        LinkFeatures().scores(case, np.ones(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": ("dice",)}, "there is no group 'dice' of features; use some of bias, association"),
        ({"groups": ("bias", "bias")}, "names a group twice"),
        ({"groups": "bias"}, "must be a tuple of names"),
        ({"n_lexical": -1}, "n_lexical must be an integer"),
        ({"n_lexical": 2, "lexical_names": ("a",)}, "has 1 names for 2 word pairs"),
    ],
)
def test_settings_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinkFeatures(**arguments)
    with pytest.raises(ValueError, match="side must be"):
        WordFeatures("left")
