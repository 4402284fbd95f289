"""Names: the preset ner beside CRFsuite with simple features, on the same sentences in the same run.

    python -m benchmarks.tagging.names [TRAIN TEST ...] [--columns word,pos,_,label] [--label label] [--folds 5]
                                       [--sizes 500 2000 0] [--text FILE] [--gazetteer FILE] [--quick]

Prints one JSON object. With files, each size trains on the first so many sentences (0: on all) and scores the chunks
of every test file; with ``--folds`` and one file, or without files (the package's own corpus), folds are runs of
sentences. CRFsuite (L-BFGS, c2 = 1, and c1 = c2 = 0.1) sees the word, lower case, affixes to 4, shapes, flags, and of
the words at -2..2 the form, lower case, shape and flags; so does maxmargin in the row ``simple``. ``--quick`` leaves
both out. "ner without classes and mentions" lacks the lines of word classes and of other mentions, and has C = 0.1.
Seconds are CPU seconds of training and prediction on one thread, with the making of attributes.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from maxmargin.tasks.tagging import SequenceTagger, evaluate, load_corpus, read_tagged
from maxmargin.tasks.tagging.encoder.presets import preset_text

Sentence = tuple[list[tuple[str, ...]], list[str]]
Train = Callable[[list[Sentence]], Callable[[list[Sentence]], list[list[str]]]]

PEERS = ({"c1": 0.0, "c2": 1.0}, {"c1": 0.1, "c2": 0.1})
DOCUMENT = "-DOCSTART-"
WORD, POS = "word", "pos"
CLASSES_AND_MENTIONS = "!learn class", "UC", "!mention", "UM"
"""How the lines of the preset ner begin that make them."""


def shape(word: str) -> str:
    """Capitals as X, other letters as x, digits as d."""
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)


def flags(word: str) -> list[str]:
    """Tests of a word."""
    tests = {"upper": word.isupper(), "title": word.istitle(), "digit": word.isdigit(), "hyphen": "-" in word}
    return [name for name, holds in tests.items() if holds]


def simple(tokens: list[tuple[str, ...]]) -> list[list[str]]:
    """Attributes as tutorials of CRFsuite have them."""
    words = [token[0] for token in tokens]
    short = ["".join(letter for letter, _ in itertools.groupby(shape(word))) for word in words]
    found = []
    for i, word in enumerate(words):
        own = [
            "bias",
            f"word={word}",
            f"lower={word.lower()}",
            f"shape={shape(word)}",
            f"short={short[i]}",
            *flags(word),
        ]
        own += [f"p{n}={word[:n]}" for n in range(1, 5) if len(word) >= n]
        own += [f"s{n}={word[-n:]}" for n in range(1, 5) if len(word) >= n]
        for row in (-2, -1, 1, 2):
            if 0 <= i + row < len(words):
                other = words[i + row]
                own += [f"{row}word={other}", f"{row}lower={other.lower()}", f"{row}short={short[i + row]}"]
                own += [f"{row}{name}" for name in flags(other)]
            else:
                own.append(f"{row}outside")
        found.append(own)
    return found


def peer(settings: dict[str, float]) -> Train:
    """CRFsuite with simple attributes."""
    import pycrfsuite

    def train(sentences: list[Sentence]) -> Callable[[list[Sentence]], list[list[str]]]:
        trainer = pycrfsuite.Trainer(verbose=False)
        trainer.select("lbfgs")
        trainer.set_params({**settings, "max_iterations": 200})
        for tokens, labels in sentences:
            trainer.append(simple(tokens), labels)
        file, path = tempfile.mkstemp()
        os.close(file)
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        os.unlink(path)
        return lambda new: [tagger.tag(simple(tokens)) for tokens, _ in new]

    return train


def ours(width: int, make: Callable[[list[tuple[str, ...]]], Any] | None = None, **settings: Any) -> Train:
    """SequenceTagger, on the first columns of tokens or on made attributes."""

    def inputs(sentences: list[Sentence]) -> list[Any]:
        if make is not None:
            return [make(tokens) for tokens, _ in sentences]
        return [[token[:width] for token in tokens] for tokens, _ in sentences]

    def train(sentences: list[Sentence]) -> Callable[[list[Sentence]], list[list[str]]]:
        columns = None if make is not None else (WORD, POS)[:width]
        tagger = SequenceTagger(columns=columns, n_jobs=1, **settings)
        tagger.fit(inputs(sentences), [labels for _, labels in sentences])
        return lambda new: tagger.predict(inputs(new))

    return train


def sentences_of(path: str, columns: str | None, label: str | None) -> list[Sentence]:
    """Sentences of a file: word, part of speech if there is one, and label."""
    names = None if columns is None else [f"{c}{i}" if c == "_" else c for i, c in enumerate(columns.split(","))]
    text = read_tagged(path, columns=names, label=label)
    assert text.table is not None
    there = [name for name in (WORD, POS) if name in text.columns and name != text.label]
    cells = [text.table.by_sentence(text.column(name)) for name in there]
    rows = [list(zip(*columns, strict=True)) for columns in zip(*cells, strict=True)]
    return [pair for pair in zip(rows, text.labels(), strict=True) if pair[0][0][0] != DOCUMENT]


def splits(given: argparse.Namespace) -> Iterator[tuple[str, list[tuple[str, list[Sentence], list[Sentence]]]]]:
    """Names of experiments, and their parts: a test's name, training and test sentences."""
    parts = [sentences_of(path, given.columns, given.label) for path in given.files]
    if not parts:
        corpus = load_corpus()
        rows = [list(zip(*columns, strict=True)) for columns in zip(corpus.tokens, corpus.upos, strict=True)]
        parts = [list(zip(rows, corpus.names, strict=True))]
    for size in given.sizes:
        train = parts[0][: size or None]
        if len(parts) == 1:
            k, n = given.folds, len(train)
            bounds = [(n * fold // k, n * (fold + 1) // k) for fold in range(k)]
            yield f"{n:,} sentences", [(f"{k} folds", train[:a] + train[b:], train[a:b]) for a, b in bounds]
        else:
            names = [os.path.basename(path) for path in given.files[1:]]
            tests = zip(names, parts[1:], strict=True)
            yield f"{len(train):,} sentences", [(name, train, test) for name, test in tests]


def scores(train: Train, parts: list[tuple[str, list[Sentence], list[Sentence]]]) -> dict[str, float]:
    """F1 of each test, and CPU seconds; parts with the same sentences are trained once, tests of one name are one."""
    began = time.process_time()
    known: list[Sentence] | None = None
    predict: Callable[[list[Sentence]], list[list[str]]]
    found: dict[str, tuple[list[list[str]], list[list[str]]]] = {}
    for name, sentences, test in parts:
        if sentences is not known:
            known, predict = sentences, train(sentences)
        gold, predicted = found.setdefault(name, ([], []))
        gold += [labels for _, labels in test]
        predicted += [list(labels) for labels in predict(test)]
    f1 = {name: round(100 * evaluate(gold, predicted).f1, 2) for name, (gold, predicted) in found.items()}
    return {**f1, "cpu_seconds": round(time.process_time() - began, 1)}


def main() -> None:
    """Run all trainers on all experiments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--columns")
    parser.add_argument("--label")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0])
    parser.add_argument("--text", action="append")
    parser.add_argument("--gazetteer", action="append")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    for name, parts in splits(given):
        width = len(parts[0][1][0][0][0])
        trainers = {"ner": ours(1, preset="ner")}
        lines = [line for line in preset_text("ner").splitlines() if not line.startswith(CLASSES_AND_MENTIONS)]
        trainers["ner without classes and mentions"] = ours(1, template="\n".join(lines), C=0.1, min_count=2)
        if width > 1:
            trainers["ner with pos"] = ours(2, preset="ner")
        if given.text:
            trainers["ner with text"] = ours(1, preset="ner", text=given.text)
        if given.gazetteer:
            trainers["ner with gazetteers"] = ours(1, preset="ner", gazetteers=given.gazetteer)
        if not given.quick:
            trainers["simple"] = ours(1, make=simple)
        if not given.quick and importlib.util.find_spec("pycrfsuite") is not None:
            trainers |= {f"crfsuite c1={p['c1']:g} c2={p['c2']:g}": peer(p) for p in PEERS}
        results[name] = {}
        for trainer, train in trainers.items():
            print(f"{name}: {trainer}", file=sys.stderr)
            results[name][trainer] = scores(train, parts)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
