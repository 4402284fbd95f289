"""Constituency trees: labeled F1 on a treebank, sentences per second, and time of the kernels; prints one JSON object.

    python -m benchmarks.structures.grammar [--data FOLDER] [--passes 8] [--test]

Without --data: the kernels of trees of spans and of derivations, milliseconds of CPU time on one thread by length.

With --data, a folder with ``train.mrg.gz``, bracketed trees in the style of the Penn Treebank: traces, empty nodes and
function tags are dropped, and tags are given (gold). The first 80% of the sentences train, the next 10% are dev data,
on which features and passes were chosen, and with --test the last 10% are scored instead. Bracket scores are those of
evalb with its usual parameters: tokens with tags of punctuation are left out, so are the node TOP and tags; PRT counts
as ADVP; equal nodes over the same tokens count as often as they occur. Compared in the same run:

- all nodes to the right: S over the sentence, VP over each end of it;
- a PCFG read off the training trees, relative frequencies, children by a chain of order 2, by ``Derivations``;
- GrammarSVM with features of spans (after Hall, Durrett and Klein 2014, without their grammar): words and tags at both
  ends, inside and outside, lengths, sequences of tags, punctuation; those of at least two nodes of the training trees.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.timing import significant, timed
from maxmargin.structures import Derivations, Spans

PUNCTUATION = {",", ":", "``", "''", "."}
"""Tags whose tokens evalb leaves out."""
Node = tuple[int, int, str]


class Sentence(NamedTuple):
    """Words and tags of a sentence, and its tree, whose leaves are token numbers."""

    words: list[str]
    tags: list[str]
    tree: Any


def read(path: Path) -> list[Sentence]:
    """The sentences of a file; those without tokens are left out."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [cleaned(tree) for tree in mm.parse_trees(file.read())]
    return [sentence for sentence in found if isinstance(sentence.tree, tuple)]


def cleaned(tree: Any) -> Sentence:
    """A tree without traces, empty nodes, function tags and tags."""
    words: list[str] = []
    tags: list[str] = []

    def walk(node: Any) -> Any:
        label, *children = node
        if len(children) == 1 and isinstance(children[0], str):
            if label == "-NONE-":
                return None
            words.append(children[0])
            tags.append(label)
            return len(words) - 1
        kept = [child for child in map(walk, children) if child is not None]
        return (re.split("[-=|]", label, maxsplit=1)[0] or label, *kept) if kept else None

    cleared = walk(tree)
    return Sentence(words, tags, cleared)


# Scores


def nodes_of(tree: Any) -> list[Node]:
    """The nodes of a tree whose leaves are token numbers."""
    found: list[Node] = []

    def walk(node: Any) -> tuple[int, int]:
        if not isinstance(node, tuple):
            return node, node + 1
        at = len(found)
        found.append((0, 0, ""))
        ends = [walk(child) for child in node[1:]]
        found[at] = ends[0][0], ends[-1][1], node[0]
        return ends[0][0], ends[-1][1]

    walk(tree)
    return found


def counted(sentence: Sentence, tree: Any) -> Counter[Node]:
    """The nodes that evalb counts, over the tokens that it keeps."""
    kept = np.concatenate([[0], np.cumsum([tag not in PUNCTUATION for tag in sentence.tags])]).tolist()
    nodes = ((kept[b], kept[e], "ADVP" if label == "PRT" else label) for b, e, label in nodes_of(tree))
    return Counter(node for node in nodes if node[0] < node[1] and node[2] != "TOP")


def evaluated(sentences: list[Sentence], trees: list[Any]) -> dict[str, float]:
    """Precision, recall and F1 of nodes, and the share of whole trees that are right, in percent."""
    right = given = wanted = whole = 0
    for sentence, tree in zip(sentences, trees, strict=True):
        gold, found = counted(sentence, sentence.tree), counted(sentence, tree)
        right, given, wanted = right + (gold & found).total(), given + found.total(), wanted + gold.total()
        whole += gold == found
    measures = {
        "precision": right / given,
        "recall": right / wanted,
        "F1": 2 * right / (given + wanted),
        "exact": whole / len(trees),
    }
    return {name: round(100 * value, 2) for name, value in measures.items()}


def to_the_right(sentence: Sentence) -> Any:
    """S over the sentence, VP over each of its ends."""
    n = len(sentence.words)
    tree: Any = n - 1
    for begin in range(n - 2, -1, -1):
        tree = ("VP" if begin else "S", begin, tree)
    return tree if n > 1 else ("S", 0)


# A grammar read off the trees


class Pcfg:
    """Relative frequencies of binarized rules; tags are given, and unary rules are joined with the node above."""

    def __init__(self, sentences: list[Sentence]) -> None:
        self.rules: Counter[tuple[str, ...]] = Counter()
        for sentence in sentences:
            self._count(sentence.tree, sentence.tags)
        left: Counter[str] = Counter()
        for rule, times in self.rules.items():
            left[rule[0]] += times
        tags = sorted({tag for sentence in sentences for tag in sentence.tags})
        over = [("tag " + tag,) for tag in tags]
        binary, unary = ([rule for rule in self.rules if len(rule) == size] for size in (3, 2))
        self.all = [*binary, *unary, *over]
        self.symbols = {
            name: i for i, name in enumerate(dict.fromkeys(["TOP", *(s for rule in self.all for s in rule)]))
        }
        numbers = [[self.symbols[name] for name in rule] for rule in self.all]
        sizes = len(binary), len(binary) + len(unary)
        tag_numbers = [row[0] for row in numbers[sizes[1] :]]
        self.arguments = len(self.symbols), numbers[: sizes[0]], numbers[sizes[0] : sizes[1]], tag_numbers
        self.logs = np.array(
            [math.log(self.rules[rule] / left[rule[0]]) for rule in self.all[: sizes[1]]] + [0.0] * len(over)
        )
        self.first_tag, self.tag_numbers = sizes[1], {tag: i for i, tag in enumerate(tags)}

    def _count(self, tree: Any, tags: list[str]) -> None:
        """Rules of a tree: TOP over the sentence, chains of nodes joined."""

        def walk(node: Any) -> str:
            if not isinstance(node, tuple):
                return "tag " + tags[node]
            names = [node[0]]
            while len(node) == 2 and isinstance(node[1], tuple):
                node = node[1]
                names.append(node[0])
            name, children = "+".join(names), [walk(child) for child in node[1:]]
            if len(children) == 1:
                name = "1 " + name  # over one token: apart, so that unary rules have no cycle
            left = name
            while len(children) > 2:
                rest = f"rest of {name} after {children[0]}"
                self.rules[left, children[0], rest] += 1
                left, children = rest, children[1:]
            self.rules[(left, *children)] += 1
            return name

        self.rules["TOP", walk(tree)] += 1

    def parse(self, sentence: Sentence) -> Any:
        """The most probable tree of a sentence with its tags; all to the right if there is none."""
        chart = Derivations([len(sentence.words)], *self.arguments)
        rule = chart.columns % chart.n_rules
        scores = self.logs[rule]
        token = np.cumsum(np.isin(rule, [self.first_tag]))  # the first preterminal of each token begins its list
        tags = np.array([self.first_tag + self.tag_numbers.get(tag, -1) for tag in sentence.tags])
        over = rule >= self.first_tag
        scores[over] = np.where(tags[token[over] - 1] == rule[over], 0.0, -np.inf)
        found = chart.argmax(scores)
        if found.status[0] != 0:
            return to_the_right(sentence)
        return self._tree(chart.decode(found.z)[0].tolist())

    def _tree(self, rows: list[list[int]]) -> Any:
        """The tree of a derivation, without the symbols of its binarization and tags."""
        place = 0

        def build() -> list[Any]:
            nonlocal place
            begin, _, number = rows[place]
            rule = self.all[number]
            place += 1
            children = [child for _ in rule[1:] for child in build()] if number < self.first_tag else [begin]
            name = rule[0].removeprefix("1 ")
            if name == "TOP" or name.startswith(("rest of ", "tag ")):
                return children
            for label in reversed(name.split("+")):
                children = [(label, *children)]
            return children

        return build()[0]


# Features of spans


class Words:
    """Numbers of words and tags: words seen once are numbered by their form."""

    def __init__(self, sentences: list[Sentence]) -> None:
        counts = Counter(word for sentence in sentences for word in sentence.words)
        self.known = {word: i + 1000 for i, word in enumerate(sorted(w for w, times in counts.items() if times > 1))}
        self.tags = {tag: i + 3 for i, tag in enumerate(sorted({t for sentence in sentences for t in sentence.tags}))}

    def word(self, word: str) -> int:
        """The number of a word, or of its form."""
        if word in self.known:
            return self.known[word]
        form = [word[0].isupper(), any(c.isdigit() for c in word), "-" in word, word.endswith("s")]
        ending = ["ed", "ing", "ly", "er", "ion", "al"]
        return (
            3
            + sum(1 << i for i, bit in enumerate(form) if bit)
            + 16 * next((i + 1 for i, end in enumerate(ending) if word.endswith(end)), 0)
        )


MIX = np.uint64(0x9E3779B97F4A7C15)


def mixed(number: int, *columns: np.ndarray) -> np.ndarray:
    """Hash values of a template's columns."""
    found = np.full(len(columns[0]) if columns else 1, number + 1, dtype=np.uint64)
    for column in columns:
        found = (found ^ (found >> np.uint64(29))) * MIX + column.astype(np.uint64)
    return (found ^ (found >> np.uint64(32))) * MIX


def templates(sentence: Sentence, words: Words) -> np.ndarray:
    """Hash values of the features of every span, shape ``(n_spans, n_templates)``."""
    n = len(sentence.words)
    spans = mm.spans_of(n)
    b, e = spans[:, 0] + 2, spans[:, 1] + 2  # two places before and after the sentence
    w = np.array([1, 1, *map(words.word, sentence.words), 2, 2])
    t = np.array([1, 1, *(words.tags.get(tag, 0) for tag in sentence.tags), 2, 2])
    size = e - b
    length = np.minimum(size, 5) + (size > 5) + (size > 8) + (size > 12) + (size > 20) + (size > 30)
    one = size == 1
    first, last, before, after = t[b], t[e - 1], t[b - 1], t[e]
    second, butlast = np.where(one, 0, t[b + 1]), np.where(one, 0, t[e - 2])
    w_first, w_last, w_before, w_after = w[b], w[e - 1], w[b - 1], w[e]
    inside = tag_counts(sentence, spans)
    sequence = np.where(size <= 8, tag_sequences(t[2 : n + 2], spans), 0)
    columns = [
        (), (length,), (first,), (last,), (before,), (after,), (w_first,), (w_last,), (w_before,), (w_after,),
        (first, last), (before, first), (last, after), (before, after), (first, last, length), (before, after, length),
        (first, length), (last, length), (before, length), (after, length), (w_first, length), (w_last, length),
        (w_first, w_last), (w_first, last), (first, w_last), (before, first, last, after), (before, first, last),
        (first, last, after), (before, first, after), (before, last, after), (before, w_first), (w_before, first),
        (w_last, after), (last, w_after), (w_before, w_first), (w_last, w_after), (first, second), (butlast, last),
        (first, second, last), (first, butlast, last), (t[b - 2], before), (after, t[e + 1]), (before, first, second),
        (butlast, last, after), (w_before, after), (before, w_after), (w_before, w_after), (sequence,),
        (sequence, before), (sequence, after), (inside,), (inside, first), (inside, before), (inside, after),
        (w_first, after), (w_first, before, after), (w_last, before, after), (inside, first, last),
    ]  # fmt: skip
    found = [mixed(i, *own) for i, own in enumerate(columns)]
    return np.stack([np.broadcast_to(values, len(spans)) for values in found], axis=1)


def tag_counts(sentence: Sentence, spans: np.ndarray) -> np.ndarray:
    """One number for what a span has inside its ends: verbs, commas, conjunctions, colons, quotes, prepositions."""
    groups = [
        ("VBD", "VBZ", "VBP", "MD"), ("VB", "VBN", "VBG"), (",",), ("CC",), (":",), ("``", "''"), ("IN", "TO"),
        ("WDT", "WP", "WRB"), ("NN", "NNS", "NNP", "NNPS", "PRP"),
    ]  # fmt: skip
    found = np.zeros(len(spans), dtype=np.int64)
    for group in groups:
        sums = np.concatenate([[0], np.cumsum([tag in group for tag in sentence.tags])])
        found = 3 * found + np.minimum(sums[spans[:, 1]] - sums[spans[:, 0]], 2)
    return found + 1


def tag_sequences(tags: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """A hash value of all tags of each span."""
    n = len(tags)
    table = np.zeros((n + 1, n + 1), dtype=np.uint64)
    for size in range(1, n + 1):
        begin = np.arange(n - size + 1)
        table[begin, begin + size] = (table[begin, begin + size - 1] + tags[begin + size - 1].astype(np.uint64)) * MIX
    return table[spans[:, 0], spans[:, 1]].astype(np.int64)


class SpanFeatures:
    """Hash values to columns: those that at least two nodes of the training trees have."""

    def __init__(self, sentences: list[Sentence], least: int = 2) -> None:
        self.words = Words(sentences)
        seen = []
        for sentence in sentences:
            rows = mm.spans_of(len(sentence.words)).tolist()
            number = {tuple(span): row for row, span in enumerate(rows)}
            nodes = sorted({number[node[:2]] for node in nodes_of(sentence.tree)})
            seen.append(templates(sentence, self.words)[nodes].ravel())
        values, times = np.unique(np.concatenate(seen), return_counts=True)
        self.values = values[times >= least]

    def rows(self, sentence: Sentence) -> sp.csr_array:
        """The features of all spans of a sentence, one row each."""
        found = templates(sentence, self.words)
        place = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        kept = self.values[place] == found
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return sp.csr_array(
            (np.ones(int(starts[-1])), place[kept].astype(np.int32), starts), shape=(len(found), len(self.values))
        )


def treebank(folder: Path, passes: int, test: bool, most: int | None) -> dict[str, Any]:
    """Scores and times of all parsers."""
    sentences = read(folder / "train.mrg.gz")[:most]
    ends = [len(sentences) * share // 10 for share in (8, 9)]
    train, held_out = sentences[: ends[0]], sentences[ends[1] :] if test else sentences[ends[0] : ends[1]]
    result: dict[str, Any] = {
        "sentences": {"train": len(train), "test" if test else "dev": len(held_out)},
        "to the right": evaluated(held_out, [to_the_right(sentence) for sentence in held_out]),
    }
    begun = cpu()
    pcfg = Pcfg(train)
    learned = cpu()
    trees = [pcfg.parse(sentence) for sentence in held_out]
    result["PCFG"] = evaluated(held_out, trees) | {
        "rules": len(pcfg.all),
        "learning, CPU s": significant(learned - begun),
        "sentences/s of CPU": significant(len(held_out) / (cpu() - learned)),
    }
    begun = cpu()
    features = SpanFeatures(train)
    X = [features.rows(sentence) for sentence in train]
    made = cpu()
    svm = mm.GrammarSVM(loss=mm.losses.Hamming(1.0, 2.0), solver=mm.Mira(), max_iter=passes, random_state=0, n_jobs=1)
    svm.fit(X, [sentence.tree for sentence in train])
    trained = cpu()
    X_new = [features.rows(sentence) for sentence in held_out]
    new = cpu()
    trees = svm.predict(X_new)
    parsed = cpu()
    result["GrammarSVM"] = evaluated(held_out, trees) | {
        "features": len(features.values),
        "labels": len(svm.classes_),
        "features, CPU s": significant(made - begun),
        "training, CPU s": significant(trained - made),
        "features, sentences/s of CPU": significant(len(held_out) / (new - trained)),
        "parsing, sentences/s of CPU": significant(len(held_out) / (parsed - new)),
        "largest memory, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return result


def cpu() -> float:
    """Seconds of CPU time of this process."""
    return time.process_time()


def speed() -> Iterator[tuple[str, Any]]:
    """Milliseconds of the kernels for one sentence with random scores."""
    rng = np.random.default_rng(0)
    for n in (10, 20, 40):
        for name, chart in (
            ("spans, 30 labels", Spans([n], 30)),
            ("spans and splits, 30 labels", Spans([n], 30, splits=True)),
            ("derivations, 1000 rules", random_grammar(n, rng)),
        ):
            scores = rng.normal(size=chart.n_parts)
            calls = {
                "argmax": lambda chart=chart, scores=scores: chart.argmax(scores),
                "marginals": lambda chart=chart, scores=scores: chart.marginals(scores),
                "10 best": lambda chart=chart, scores=scores: chart.k_best(scores, 10),
            }
            yield f"{name}, {n} tokens", {what: significant(1e3 * timed(call, 5)[1]) for what, call in calls.items()}


def random_grammar(n: int, rng: np.random.Generator) -> Derivations:
    """Of 30 symbols, 10 of them over tokens, and 990 binary rules."""
    rules = rng.permutation(20 * 30 * 30)[:990]
    binary = np.stack([rules // 900, rules // 30 % 30, rules % 30], axis=1)
    binary = np.unique(np.concatenate([binary, [[s, 20 + s % 10, s] for s in range(20)], [[0, 20, 29]]]), axis=0)
    return Derivations([n], 30, binary, [], np.arange(20, 30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with train.mrg.gz")
    parser.add_argument("--passes", type=int, default=8, help="passes of MIRA over the training data")
    parser.add_argument("--test", action="store_true", help="score the last tenth instead of the dev data")
    parser.add_argument("--most", type=int, help="only so many sentences in all")
    arguments = parser.parse_args()
    with mm.threads(1):
        if arguments.data is None:
            found = dict(speed())
        else:
            found = treebank(arguments.data, arguments.passes, arguments.test, arguments.most)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
