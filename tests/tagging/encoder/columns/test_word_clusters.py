"""Clusters of words: compiled passes and merges against slow twins, text files, model files, taggers that use them."""

from __future__ import annotations

import gzip
import math
from itertools import pairwise

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks import _kernels
from maxmargin.tasks.tagging import FileError, SequenceTagger, TokenTable
from maxmargin.tasks.tagging.encoder.columns.word_clusters import PlainText, WordClusters, _merges, _neighbors


def f(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


def objective(counts: np.ndarray) -> float:
    """Return the log-likelihood of the bigram model of classes, without what depends on the words alone."""
    return sum(f(x) for x in counts.flat) - sum(f(x) for x in counts.sum(0)) - sum(f(x) for x in counts.sum(1))


def class_counts(row: list[int], classes: np.ndarray, k: int) -> np.ndarray:
    counts = np.zeros((k, k))
    for first, second in pairwise(row):
        counts[classes[first], classes[second]] += 1
    return counts


def slow_pass(row: list[int], classes: np.ndarray, n_free: int, k_free: int, k: int) -> int:
    """Put each word where the whole objective is largest."""
    moved = 0
    for word in range(n_free):
        own, scores = classes[word], []
        for c in range(k_free):
            classes[word] = c
            scores.append(objective(class_counts(row, classes, k)))
        best = own
        for c in range(k_free):
            if scores[c] > scores[best] + 1e-8:
                best = c
        classes[word] = best
        moved += best != own
    return moved


def slow_merges(counts: np.ndarray, k_free: int) -> list[list[int]]:
    """Merge the pair that keeps the whole objective largest."""
    counts, alive, pairs = counts.astype(float), list(range(k_free)), []
    while len(alive) > 1:
        best: tuple[float, int, int, np.ndarray] | None = None
        for at, a in enumerate(alive):
            for b in alive[at + 1 :]:
                merged = counts.copy()
                merged[a] += merged[b]
                merged[b] = 0
                merged[:, a] += merged[:, b]
                merged[:, b] = 0
                score = objective(merged)
                if best is None or score > best[0] + 1e-8:
                    best = score, a, b, merged
        assert best is not None
        counts = best[3]
        alive.remove(best[2])
        pairs.append([best[1], best[2]])
    return pairs


def some_text(seed: int, n: int, sentences: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, size=sentences)
    habit = rng.dirichlet(np.full(n + 2, 0.3), size=n + 2)
    habit[:, n] = 0.0  # the boundary
    places, bounds = [], [0]
    for length in lengths:
        word = int(rng.integers(n))
        for _ in range(length):
            word = int(rng.choice(n + 2, p=habit[word] / habit[word].sum()))
            places.append(word)
        bounds.append(len(places))
    return np.array(places, dtype=np.int32), np.array(bounds)


@pytest.mark.parametrize("seed", range(6))
def test_passes_and_merges_are_those_of_the_slow_twins(seed):
    n, k = 9, 4
    places, sentences = some_text(seed, n, 40)
    row = [n]
    for first, last in pairwise(sentences):
        row += [*places[first:last].tolist(), n] if first < last else []
    after, before = _neighbors(places, sentences, n)
    classes = np.concatenate([np.arange(n) % k, [k, k + 1]]).astype(np.int32)
    twin = classes.copy()
    for _ in range(3):
        moved = _kernels.exchange_words(*after, *before, k + 2, 2, n, classes)
        assert moved == slow_pass(row, twin, n, k, k + 2)
        np.testing.assert_array_equal(classes, twin)
    counts = class_counts(row, twin, k + 2)
    assert _merges(after, classes, k).tolist() == slow_merges(counts, k)
    # Every word alone: the tree of words that Brown's method finds.
    alone = np.arange(n + 2, dtype=np.int32)
    assert _merges(after, alone, n).tolist() == slow_merges(class_counts(row, alone, n + 2), n)


def test_words_with_the_same_neighbors_are_in_the_same_class():
    rng = np.random.default_rng(0)
    kinds = [
        ["the", "a"],
        ["cat", "dog", "cow"],
        ["runs", "sleeps"],
        ["Anna", "Bert", "Carl"],
        ["in"],
        ["Oslo", "Rome"],
    ]
    ways = [(0, 1, 2), (3, 2), (3, 2, 4, 5), (0, 1, 2, 4, 5)]
    text = [[str(rng.choice(kinds[kind])) for kind in ways[rng.integers(4)]] for _ in range(400)]
    found = WordClusters.learn(PlainText.of([], text), len(kinds))
    path = dict(zip(found.words.names, [found.paths[c] for c in found.classes], strict=True))
    assert len(set(found.paths)) == len(kinds)
    for kind in kinds:
        assert len({path[word] for word in kind}) == 1
    assert len({path[kind[0]] for kind in kinds}) == len(kinds)


def test_cells():
    text = PlainText.of([], [["Rome", "in", "1999", "rare"], ["rome", "In", "2004"]] * 3 + [["once"]])
    found = WordClusters.learn(text, 3)
    table = TokenTable.of_lists([["Rome", "ROME", "1870", "ONCE", "once", "IN"], []], ["word"])
    cells = found.columns(table, name="new", source="word").by_sentence(1)
    path = dict(zip(found.words.names, [found.paths[c] for c in found.classes], strict=True))
    assert cells == [[path["Rome"], path["rome"], path["0000"], "", "", path["in"]], []]
    assert repr(found) == "WordClusters(6 words, 3 classes)"
    again = WordClusters.from_state(found.state())
    assert (again.words.names, again.paths) == (found.words.names, found.paths)


@pytest.mark.parametrize("text", [[], [[]], [["a"]], [["a", "a", "a"]]])
def test_little_text(text):
    found = WordClusters.learn(PlainText.of([], text))
    table = TokenTable.of_lists([["a", "b"]], ["word"])
    assert found.columns(table, name="new", source="word").by_sentence(1) == [["", ""]]


def test_files(tmp_path):
    plain, packed, split = tmp_path / "plain", tmp_path / "packed.gz", tmp_path / "split"
    plain.write_text("The cat, the dog.\n\nA cow\n")
    packed.write_bytes(gzip.compress(b"A cow\n"))
    split.write_text("The cat , the U.S. dog .\n")
    found = PlainText.of([], [plain, str(packed), ["one", "more"]])
    assert [found.words.name(number) for number in found.numbers] == [
        *("The", "cat", ",", "the", "dog", ".", "A", "cow", "A", "cow", "one", "more")
    ]
    assert np.diff(found.sentences).tolist() == [6, 0, 2, 0, 2, 0, 2]
    assert "U.S." in PlainText.of([], split).words.names
    assert repr(PlainText.of([], found)) == repr(found) != repr(PlainText.of([], plain))
    plain.write_text("\n")
    with pytest.raises(FileError, match="plain: it has no words; give text with a sentence per line"):
        PlainText.of([], plain)
    with pytest.raises(FileError, match="check the name of the file"):
        PlainText.of([], [tmp_path / "none"])
    with pytest.raises(ValueError, match="text 0: expected the name of a file or a list of words, got 3"):
        PlainText.of([], [3])
    with pytest.raises(ValueError, match="text must be a file, several, or sentences as lists of words, got 3"):
        PlainText.of([], 3)


PEOPLE = ["Ada", "Bo", "Cy", "Di", "Eva", "Flo", "Gus", "Hal"]
TOWNS = ["Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Riga", "Baku", "Doha"]
X = [["we", "saw", word, "there"] for word in (*PEOPLE[:4], *TOWNS[:4])]
Y = [["O", "O", label, "O"] for label in ["B-PER"] * 4 + ["B-LOC"] * 4]
TEXT = [["in", town, "it", "rains"] for town in TOWNS] * 4 + [["then", who, "said", "yes"] for who in PEOPLE] * 4


TEMPLATE = "!cluster cluster word\nU0:%x[0,word]\nU1:%filled[0,cluster]\nU2:%prefix(2)[0,cluster]"


def test_taggers_find_what_only_text_knows(tmp_path):
    tagger = SequenceTagger(template=TEMPLATE, text=TEXT, C=1.0).fit(X, Y)
    new = [["we", "saw", "Riga", "there"], ["we", "saw", "Flo", "there"]]
    assert tagger.predict(new) == [["O", "O", "B-LOC", "O"], ["O", "O", "B-PER", "O"]]
    tagger.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(new) == tagger.predict(new)
    before = tagger.model_.extractor.added.clusters
    assert tagger.partial_fit(X[:2], Y[:2]).model_.extractor.added.clusters is before


@pytest.mark.parametrize("preset", ["ner", "pos", "chunking"])
def test_presets_use_text(preset):
    given = [[(word, "N") for word in words] for words in X]
    settings = {"preset": preset, "columns": ("word", "pos"), "text": TEXT}
    taggers = [SequenceTagger(n_jobs=jobs, **settings).fit(given, Y) for jobs in (1, 2)]
    assert any(name.startswith("UK6:") for name in taggers[0].attributes_)
    np.testing.assert_array_equal(taggers[0].coef_, taggers[1].coef_)


def test_text_that_nothing_uses_is_refused():
    with pytest.raises(ValueError, match="the template does not use it; add the lines '!cluster cluster word'"):
        SequenceTagger(template="U:%x[0,word]", text=TEXT).fit(X, Y)
    with pytest.raises(ValueError, match="attributes of tokens cannot use text; leave text out"):
        SequenceTagger(text=TEXT).fit([[{"w": word} for word in words] for words in X], Y)
    # Without text, lines that use clusters are left out.
    assert all(name.startswith("U0") for name in SequenceTagger(template=TEMPLATE).fit(X, Y).attributes_)


@pytest.mark.parametrize("key", ["cluster_paths", "cluster_classes"])
def test_damaged_model_files_are_refused(key):
    state = WordClusters.learn(PlainText.of([], TEXT), 3).state()
    state[key] = state[key][1:]
    with pytest.raises(ValueError, match="clusters of words are damaged; save the model again"):
        WordClusters.from_state(state)


def test_wrong_arguments_of_the_kernels():
    n, k = 5, 2
    after, before = _neighbors(*some_text(0, n, 9), n)
    classes = np.array([0, 1, 0, 1, 0, 2, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="or one that is fixed"):
        _kernels.exchange_words(*after, *before, k + 2, 2, n + 1, classes)
    with pytest.raises(ValueError, match="both directions must have the same neighbors"):
        _kernels.exchange_words(*after, before[0], before[1], before[2] + 1, k + 2, 2, n, classes)
    with pytest.raises(ValueError, match="n_classes must be between 1 and 4096, got 5000"):
        _kernels.exchange_words(*after, *before, 5000, 2, n, classes)
    with pytest.raises(ValueError, match="counts must not be negative"):
        _kernels.merge_classes(np.full((3, 3), -1), 1, np.zeros(2, dtype=np.int32))
