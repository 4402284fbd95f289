"""Tables hash by a secret: no input makes them slow, and no result depends on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _kernels as core_kernels
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.tasks import _kernels

ONE, TWO, THREE, MASK = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xABC98388FB8FAC03, (1 << 64) - 1


@pytest.fixture(autouse=True)
def secret():
    """A random secret again after every test."""
    yield
    for module in (core_kernels, _kernels):
        module._use_hash_seed(None)


def folded(a: int, b: int) -> int:
    return (a * b & MASK) ^ (a * b >> 64)


def fixed_hash(text: bytes) -> int:
    """A hash of strings of 16 bytes without a secret, as anyone can compute it."""
    state = THREE ^ (len(text) * ONE & MASK)
    a, b = (int.from_bytes(half, "little") for half in (text[:8], text[8:]))
    mixed = folded(folded(a ^ ONE ^ state, b ^ TWO), THREE)
    return (mixed ^ (mixed >> 32)) & 0xFFFFFFFF


def made_to_collide(n: int) -> list[bytes]:
    """Different strings that have one and the same hash without a secret: a factor of its product is zero."""
    return [b"%08d" % i + TWO.to_bytes(8, "little") for i in range(n)]


def table_of(strings: list[bytes]):
    table, ends = _kernels.StringTable(), np.cumsum([0, *map(len, strings)])
    numbers = np.zeros(len(strings), dtype=np.int32)
    table.number(np.frombuffer(b"".join(strings), dtype=np.uint8), ends[:-1].copy(), ends[1:].copy(), True, numbers)
    return table, numbers


def test_strings_made_to_collide_do_not():
    strings = made_to_collide(3000)
    assert {fixed_hash(text) for text in strings[:50]} == {fixed_hash(strings[0])}
    for seed in (None, 0, 1, 2**64 - 1):
        _kernels._use_hash_seed(seed)
        table, numbers = table_of(strings)
        total, longest = table._probes()
        assert numbers.tolist() == list(range(len(strings)))
        assert total < 3 * len(strings)
        assert longest < 200


def slots_without_a_secret(key: int, size: int) -> int:
    return folded(key ^ ONE, TWO) % size


def test_ngrams_made_to_collide_do_not():
    # Unigrams that stand in the same slot of a table of 2^12 where the hash has no secret.
    words = [w for w in range(1 << 21) if slots_without_a_secret(w, 1 << 12) == 5][:400]
    assert len(words) == 400
    prefixes = np.full(len(words), -1, dtype=np.int32)
    for seed in (None, 0, 1):
        _kernels._use_hash_seed(seed)
        table = _kernels.NgramTable.from_pairs(prefixes, np.array(words, dtype=np.int32))
        total, longest = table._probes()
        assert total < 3 * len(words)
        assert longest < 100


def of_all(seed: int | None, words: list[bytes], texts: list[str]):
    """Everything that tables number or count, with tables that hash by the seed."""
    for module in (core_kernels, _kernels):
        module._use_hash_seed(seed)
    table, numbers = table_of(words)
    grams = _kernels.NgramTable()
    starts = np.array([0, len(numbers)])
    counted = grams.count(starts, numbers, 3, True)
    tokens, offsets = _kernels.words_of_texts(_kernels.StringTable(), texts, True, True)
    lists = np.array([0, len(texts)]), np.array([0, len(texts)])
    bleu, edits = np.zeros((len(texts), 10)), np.zeros((len(texts), 2))
    _kernels.bleu_statistics(tokens, offsets, tokens, offsets, *lists, 4, bleu, 1)
    _kernels.error_statistics(tokens, offsets, tokens, offsets, *lists, edits, 1)
    rows = _kernels.attributes_of_items(table, [[{text: 1.0} for text in texts]], True)
    found = [numbers, *table.strings(), *counted, *grams.pairs(), tokens, offsets, bleu, edits, *rows]
    return [None if one is None else np.asarray(one).tolist() for one in found]


@settings(max_examples=20)
@given(
    st.lists(st.binary(max_size=20), max_size=30),
    st.lists(st.text("ab c,", max_size=30), min_size=1, max_size=5),
)
def test_results_do_not_depend_on_the_secret(words, texts):
    first = of_all(0, words, texts)
    for seed in (1, 2**63, None):
        assert of_all(seed, words, texts) == first


def test_k_best_of_junction_trees_do_not_depend_on_the_secret():
    tree = JunctionTree([4], [2, 3, 2, 2], [[0, 1], [1, 2], [2, 3], [3, 0]], [0, 4])
    scores = np.random.default_rng(0).normal(size=tree.n_parts)
    found = []
    for seed in (0, 1, None):
        core_kernels._use_hash_seed(seed)
        found.append([points.z.tolist() for points in tree.k_best(scores, 20)])
    assert found[0] == found[1] == found[2]
