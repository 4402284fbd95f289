"""Small corpora, and label sequences scored one by one: what tests of the tagger share."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

WORDS = "U00:%x[0,0]\nU01:%x[-1,0]\nB\n"
PAIRS = "U00:%x[0,0]\nB01:%x[0,0]\n"
"""A template whose pairs of labels see the word."""

CHUNKS = ("B-X", "I-X", "O")


def markov(n=12, *, seed=0, labels=("a", "b", "c"), longest=6, noise=0.25, shortest=1):
    """Words that mostly tell their label, and labels that mostly go round."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(shortest, longest + 1, size=n):
        label, words, found = int(rng.integers(len(labels))), [], []
        for _ in range(length):
            label = (label + 1) % len(labels) if rng.random() < 0.8 else int(rng.integers(len(labels)))
            reported = label if rng.random() > noise else int(rng.integers(len(labels)))
            words.append(f"w{reported}{rng.integers(3)}")
            found.append(labels[label])
        X.append(words)
        y.append(found)
    return X, y


def chunked(n=12, *, seed=0, longest=6):
    """Sentences with labels of chunks that satisfy the constraints."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(1, longest + 1, size=n):
        labels, words = [], []
        for _ in range(length):
            constraints = CHUNKS if labels and labels[-1] != "O" else ("B-X", "O")
            labels.append(constraints[rng.integers(len(constraints))])
            words.append(labels[-1][0].lower() + str(rng.integers(2)) if rng.random() < 0.8 else "noise")
        X.append(words)
        y.append(labels)
    return X, y


def dictionaries(X):
    """Feature dictionaries of words, with a number among them."""
    return [[{"word": word, "size": 0.5 + t} for t, word in enumerate(sentence)] for sentence in X]


def matrices(X, *, edges=False, seed=0):
    """Dense features of words; with features of neighbors on demand."""
    rng = np.random.default_rng(seed)
    table = {word: rng.standard_normal(4) for word in sorted({word for sentence in X for word in sentence})}
    found = [np.array([table[word] for word in sentence]).reshape(-1, 4) for sentence in X]
    if not edges:
        return found
    return [mm.FeatureSequence(x, np.tanh(x[1:, :2] * x[:-1, :2]).reshape(-1, 2)) for x in found]


def _kinds():
    (words, y), (chunks, gold) = (
        ([x[:5] for x in X], [labels[:5] for labels in y]) for X, y in (markov(14, seed=1), chunked(14, seed=2))
    )
    columns = [[(word, word[:1]) for word in sentence] for sentence in words]
    some = {"constraints": None, "forbidden": [("O", "I-X"), (None, "I-X")], "classes": ["B-X", "I-X", "O", "P"]}
    return {
        "words": (words, y, {"template": WORDS}),
        "second order": (words, y, {"template": WORDS, "order": 2}),
        "pairs see words": (words, y, {"template": PAIRS}),
        "columns": (columns, y, {"preset": "chunking"}),
        "named columns": (columns, y, {"template": "U:%x[0,kind]\n", "columns": "word,kind"}),
        "dictionaries": (dictionaries(words), y, {}),
        "names": ([[[word] for word in x] for x in words], [["abc".index(one) for one in labels] for labels in y], {}),
        "dense": (matrices(words), [[(one, 1, None) for one in labels] for labels in y], {}),
        "sparse": ([sp.csr_array(x) for x in matrices(words)], y, {}),
        "edge features": (matrices(words, edges=True), y, {}),
        "constraints": (chunks, gold, {"template": WORDS}),
        "constraints, second order": (chunks, gold, {"template": WORDS, "order": 2}),
        "constraints, pairs": (chunks, gold, {"template": PAIRS}),
        "no constraints": (chunks, gold, {"template": WORDS, "constraints": None}),
        "forbidden": (chunks, gold, {"template": WORDS, **some}),
    }


KINDS = _kinds()
"""Sentences, labels and settings of taggers of every kind."""


def legal_outputs(model, length, known=None):
    """All label sequences of a length that the constraints and the known labels allow."""
    constraints = model.weight_layout.constraints
    found = []
    for codes in product(range(model.weight_layout.n_labels), repeat=length):
        if known is not None and any(k >= 0 and c != k for k, c in zip(known, codes, strict=True)):
            continue
        if constraints is not None and codes:
            steps = all(constraints.pairs[a, b] for a, b in pairwise(codes))
            if not (steps and constraints.first[codes[0]] and constraints.last[codes[-1]]):
                continue
        found.append(codes)
    return found


def score_of(model, rows, sentence, codes):
    """The score of one label sequence from the weights, attribute by attribute."""
    layout, k = model.weight_layout, model.weight_layout.n_labels
    own, pairs, rest = layout.split(model.weights)

    def attributes(of, support, weights, row, column):
        total = 0.0
        for at in range(of.starts[row], of.starts[row + 1]):
            feature = of.columns[at]
            places = range(support.starts[feature], support.starts[feature + 1])
            value = 1.0 if of.values is None else of.values[at]
            total += sum(value * weights[p] for p in places if support.columns[p] == column)
        return total

    first = int(rows.offsets[sentence])
    total = sum(attributes(rows.tokens, layout.support, own, first + t, c) for t, c in enumerate(codes))
    for t, (a, b) in enumerate(pairwise(codes)):
        total += pairs[a, b]
        if layout.edge_support is not None:
            row = int(rows.edge_offsets[sentence]) + t
            total += attributes(rows.edges, layout.edge_support, rest, row, a * k + b)
    if layout.order == 2:
        total += sum(rest[a, b, c] for a, b, c in zip(codes, codes[1:], codes[2:], strict=False))
    return float(total)


def table_of_scores(model, X, known=None):
    """For each sentence its label sequences with their scores: pairs ``(codes, score)``."""
    rows = model.extractor.rows(X)
    found = []
    for i, length in enumerate(rows.lengths.tolist()):
        given = None if known is None else [-1 if label is None else model.codes[label] for label in known[i]]
        outputs = legal_outputs(model, length, given)
        found.append([(codes, score_of(model, rows, i, codes)) for codes in outputs])
    return found


def named_rows(attributes, vocabulary):
    """Rows by name, from the matrix."""
    matrix = attributes.matrix
    assert matrix.has_canonical_format
    assert matrix.shape == (attributes.n_rows, attributes.n_columns)
    return [
        {vocabulary.name(column): value for column, value in zip(row.indices, row.data, strict=True)}
        for row in (matrix[[i]] for i in range(attributes.n_rows))
    ]
