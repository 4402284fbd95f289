"""Names of the hashed features of parsers: one name is one weight, and says all that its feature sees."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.features.hashed import HashedTrees
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.tasks import _kernels
from maxmargin.tasks.parsing.encoder.names import tree_features
from maxmargin.tasks.parsing.encoder.relation_names import _Sentence
from maxmargin.tasks.parsing.encoder.templates import ATTRIBUTES, relation_templates, tree_templates
from maxmargin.tasks.parsing.encoder.tokens import Nodes, TokenNumbers

BITS = 30
"""So many weights that no two of these features share one."""

N_VALUES = 3
KNOWN = TokenNumbers(tuple({f"{name}{k}": k for k in range(1, N_VALUES + 1)} for name in ATTRIBUTES))


def sentence(n: int, seed: int, unknown: float = 0.05) -> Nodes:
    """A sentence of tokens with random attributes, some of them unknown."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, N_VALUES + 1, size=(n + 1, len(ATTRIBUTES))).astype(np.int32)
    numbers[rng.random(numbers.shape) < unknown] = -1
    numbers[0] = 0
    kinds = rng.integers(0, 4, size=n + 1).astype(np.uint8)
    kinds[0] = 0
    return Nodes(np.array([n]), numbers, kinds)


def tree_names(nodes: Nodes, order: int, some: int = 400) -> list[tuple[int, str]]:
    """Columns and names of the features of some parts of the trees over a sentence."""
    n = int(nodes.lengths[0])
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
    second = order == 2
    trees = ProjectiveTrees(
        nodes.lengths, np.array(arcs), np.array([0, len(arcs)]), siblings=second, grandparents=second
    )
    features = HashedTrees(trees, nodes.numbers, nodes.tags, nodes.kinds, tree_templates(order), BITS)
    named = tree_features(features, KNOWN)
    parts = np.sort(np.random.default_rng(0).permutation(trees.n_parts)[:some])
    rows = features.part_rows(parts)
    found = []
    for row, part in enumerate(parts.tolist()):
        columns = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist()
        found += zip(columns, (name.what for name, _ in named(part, columns)), strict=True)
    return found


def some_heads(n: int, seed: int) -> np.ndarray:
    """Heads without cycles: each token hangs on one that came before it in a random order."""
    rng = np.random.default_rng(seed)
    order, heads = rng.permutation(n) + 1, np.zeros(n, dtype=np.int64)
    for at, token in enumerate(order.tolist()):
        heads[token - 1] = 0 if at == 0 else order[rng.integers(at)]
    return heads


def relation_names(nodes: Nodes, heads: np.ndarray) -> list[list[tuple[int, str]]]:
    """Columns and names of the features of the relation of each token."""
    own = _Sentence(nodes, heads, KNOWN)
    mask = (1 << BITS) - 1
    return [[(hashed & mask, text) for hashed, text in own.features(token)] for token in range(1, len(heads) + 1)]


def check_one_to_one(found: list[tuple[int, str]]) -> None:
    pairs = set(found)
    assert len(pairs) > 1000
    assert len({name for _, name in pairs}) == len(pairs), "a name stands for two weights"
    assert len({column for column, _ in pairs}) == len(pairs), "a weight has two names"


@pytest.mark.parametrize("order", [1, 2])
def test_one_name_of_a_tree_is_one_weight(order):
    """Over sentences of several lengths, so that distances, places and counts are in all groups."""
    found: list[tuple[int, str]] = []
    for n, seed in ((1, 0), (4, 1), (9, 2), (9, 3), (18, 4), (42, 5)) if order == 1 else ((2, 0), (6, 1), (17, 2)):
        found += tree_names(sentence(n, seed), order, 150)
    check_one_to_one(found)


def test_one_name_of_a_relation_is_one_weight():
    """And the columns are those that the kernel makes."""
    starts, terms = relation_templates()
    found = []
    for n, seed in ((1, 0), (2, 1), (5, 2), (9, 3), (9, 4), (20, 5)):
        nodes, heads = sentence(n, seed), some_heads(n, seed)
        given = nodes.lengths, nodes.numbers, nodes.kinds, heads
        rows, columns = _kernels.relation_rows(*given, starts, terms, BITS, 1)
        for token, own in enumerate(relation_names(nodes, heads)):
            assert sorted({column for column, _ in own}) == sorted(set(columns[rows[token] : rows[token + 1]].tolist()))
            found += own
    check_one_to_one(found)


@pytest.mark.parametrize("attribute", [name for name in ATTRIBUTES if name != "upos"])
def test_another_attribute_of_a_token_moves_the_names_that_mention_it(attribute):
    """A feature gets another weight where its name says the new value, and nowhere else."""
    place = ATTRIBUTES.index(attribute)
    nodes = sentence(6, 7, unknown=0.0)
    nodes.numbers[:, place] = np.minimum(nodes.numbers[:, place], N_VALUES - 1)  # the last value is new
    changed = Nodes(nodes.lengths, nodes.numbers.copy(), nodes.kinds)
    changed.numbers[3, place] = N_VALUES
    heads = np.array([2, 0, 2, 3, 3, 5])
    trees = [tree_names(one, 2, 150) for one in (nodes, changed)]
    relations = [[pair for own in relation_names(one, heads) for pair in own] for one in (nodes, changed)]
    moved = 0
    for before, after in (trees, relations):
        for (old, name), (new, other) in zip(before, after, strict=True):
            assert (old != new) == (name != other) == (f"={attribute}{N_VALUES}" in other)
            moved += old != new
    assert moved > 5
