"""One trainer in a process of its own, so that its peak memory and CPU time are its own: what trainers.py starts.

    python -m benchmarks.tagging.workers TRAINER DATASET DATA_FOLDER [SETTINGS_AS_JSON]

prints one JSON object. TRAINER is maxmargin, crfsuite or wapiti; DATASET chunking, ewt or genia. All see the same
attributes, made by the same template: maxmargin from the file itself, CRFsuite from lists of strings made sentence by
sentence, so that it never holds all of them. Wapiti makes them by its own patterns: without marks of the first and last
token, with marks for cells outside of the sentence.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
Sentence = tuple[list[tuple[str, ...]], list[str]]

CHUNKING = "\n".join(
    ["!boundary omit"]
    + [f"Uw{i}:%x[{i},word]" for i in range(-2, 3)]
    + [f"Ub{i}:%x[{i},word]/%x[{i + 1},word]" for i in (-1, 0)]
    + [f"Up{i}:%x[{i},pos]" for i in range(-2, 3)]
    + [f"Uq{i}:%x[{i},pos]/%x[{i + 1},pos]" for i in range(-2, 2)]
    + [f"Ut{i}:%x[{i},pos]/%x[{i + 1},pos]/%x[{i + 2},pos]" for i in range(-2, 1)]
    + ["Ufirst%is(first)[0,word]", "Ulast%is(last)[0,word]"]
)
"""CRFsuite's own template for chunking."""

POS = "\n".join(
    [f"Uw{i}:%x[{i},word]" for i in range(-2, 3)]
    + ["Ul:%lower[0,word]", "Us:%shape[0,word]"]
    + [f"Up{n}:%prefix({n})[0,word]" for n in range(1, 5)]
    + [f"Uq{n}:%suffix({n})[0,word]" for n in range(1, 5)]
    + [f"Ub{i}:%x[{i},word]/%x[{i + 1},word]" for i in (-1, 0)]
)
"""Word, lower case, prefixes and suffixes to 4, shape, words in a window of two, word bigrams."""

FILES = {
    "chunking": ("tagging/conll2000/train.txt.gz", "tagging/conll2000/test.txt.gz", CHUNKING),
    "ewt": ("tagging/ewt/train.conllu.gz", "tagging/ewt/dev.conllu.gz", POS),
    "genia": ("tagging/genia/train.pos.gz", None, POS),
}


def peak() -> float:
    """Megabytes of this process at its largest."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)


class Clock:
    """CPU and wall seconds since the last lap."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def lap(self) -> tuple[float, float]:
        """CPU and wall seconds."""
        before = self.cpu, self.wall
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        return round(self.cpu - before[0], 3), round(self.wall - before[1], 3)


def sentences(path: Path, every: tuple[int, bool] | None = None) -> Iterator[Sentence]:
    """Tokens and labels of a file; ``every``: only (True) or all but (False) each so-manieth sentence."""
    for number, found in enumerate(_all(path)):
        if every is None or (number % every[0] == every[0] - 1) == every[1]:
            yield found


def _all(path: Path) -> Iterator[Sentence]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        if path.name.endswith(".pos.gz"):
            for line in lines:
                # A word with blanks in it has its tag at its last piece.
                pieces, words, tags = [], [], []
                for piece in line.split():
                    pieces.append(piece)
                    word, slash, tag = " ".join(pieces).rpartition("/")
                    if slash and tag:
                        words.append((word,))
                        tags.append(tag)
                        pieces = []
                yield words, tags
            return
        conllu = ".conllu" in path.name
        words, tags = [], []
        for line in lines:
            cells = line.rstrip("\n").split("\t" if conllu else None)
            if not line.strip():
                if words:
                    yield words, tags
                words, tags = [], []
            elif conllu and cells[0].isdigit():
                words.append((cells[1],))
                tags.append(cells[3])
            elif not conllu:
                words.append(tuple(cells[:-1]))
                tags.append(cells[-1])
        if words:
            yield words, tags


def shape(word: str) -> str:
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdecimal() else c for c in word)


def attribute_lists(template: str, words: list[tuple[str, ...]]) -> list[list[str]]:
    """The attributes of a sentence in plain Python, as CRFsuite's users make them: the few functions used here."""
    omit, n = template.startswith("!boundary omit"), len(words)
    rows: list[list[str]] = []
    for t in range(n):
        row = []
        for line in template.splitlines()[omit:]:
            name, *macros = MACRO.split(line)
            values = []
            for function, argument, at, column, *_ in zip(*[iter(macros)] * 6, strict=True):
                where = t + int(at)
                if function == "is":
                    values.append(argument if where == (0 if argument == "first" else n - 1) else None)
                elif not 0 <= where < n:
                    values.append(None if omit else f"_B{where if where < 0 else where - n + 1:+d}")
                else:
                    values.append(apply(function, argument, words[where][("word", "pos").index(column)]))
            if None not in values:
                row.append(name + "/".join(str(value) for value in values))
        rows.append(row)
    return rows


MACRO = re.compile(r"%(\w+?)(?:\((\w+)\))?\[(-?\d+),(\w+)\](/?)")


def apply(function: str, argument: str | None, cell: str) -> str | None:
    if function in ("prefix", "suffix"):
        size = int(argument or 1)
        return None if len(cell) < size else cell[:size] if function == "prefix" else cell[-size:]
    return {"x": str, "lower": str.lower, "shape": shape}[function](cell)


def scores(gold: list[list[str]], predicted: list[list[str]], dataset: str) -> dict[str, float]:
    from maxmargin.tasks.tagging import evaluate

    found = evaluate(gold, predicted)
    rate = {"accuracy": round(100 * found.accuracy, 3)}
    return {"f1": round(100 * found.f1, 3), **rate} if dataset == "chunking" else rate


def split(dataset: str, folder: Path) -> tuple[Path, Path, tuple[int, bool] | None, tuple[int, bool] | None]:
    """Files of training and test sentences, and which of their sentences: GENIA has each tenth line for the test."""
    train, test, _ = FILES[dataset]
    if test is None:
        return folder / train, folder / train, (10, False), (10, True)
    return folder / train, folder / test, None, None


def crfsuite(dataset: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    import pycrfsuite

    train, test, chosen, held = split(dataset, folder)
    algorithm = settings.pop("algorithm")
    clock = Clock()
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(settings)
    for words, labels in sentences(train, chosen):
        trainer.append(attribute_lists(FILES[dataset][2], words), labels)
    loading = clock.lap()
    with tempfile.TemporaryDirectory() as there:
        file = Path(there) / "model"
        trainer.train(str(file))
        training = clock.lap()
        memory = peak()
        tagger = pycrfsuite.Tagger()
        tagger.open(str(file))
        opening = clock.lap()
        tests = list(sentences(test, held))
        prepared = [pycrfsuite.ItemSequence(attribute_lists(FILES[dataset][2], words)) for words, _ in tests]
        clock.lap()
        predicted = [tagger.tag(items) for items in prepared]
        decoding = clock.lap()
        tokens = sum(len(labels) for _, labels in tests)
        return {
            "trainer": f"CRFsuite {algorithm}",
            "loading": loading,
            "training": training,
            "peak MB": memory,
            **scores([labels for _, labels in tests], predicted, dataset),
            "decoding tokens/s": round(tokens / decoding[0]),
            "model MB": round(file.stat().st_size / 1e6, 2),
            "opening s": opening[1],
        }


def wapiti(dataset: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    import wapiti as peer

    train, test, chosen, held = split(dataset, folder)
    lines = [line for line in FILES[dataset][2].splitlines() if line.startswith("U") and "is(" not in line]
    columns = {"word": "0", "pos": "1"}
    patterns = "\n".join(["b", *(_numbered(line, columns) for line in lines)])
    clock = Clock()
    model = peer.Model(patterns=patterns, nthread=1, **settings)
    for words, labels in sentences(train, chosen):
        rows = zip(words, labels, strict=True)
        model.add_training_sequence("\n".join(" ".join([*word, label]) for word, label in rows))
    loading = clock.lap()
    model.train()
    training = clock.lap()
    memory = peak()
    tests = list(sentences(test, held))
    clock.lap()
    predicted = [_text(model.label_sequence("\n".join(map(" ".join, words)))).split() for words, _ in tests]
    decoding = clock.lap()
    return {
        "trainer": "Wapiti",
        "loading": loading,
        "training": training,
        "peak MB": memory,
        **scores([labels for _, labels in tests], predicted, dataset),
        "decoding tokens/s, attributes included": round(sum(len(some) for some in predicted) / decoding[0]),
    }


def _text(found: str | bytes) -> str:
    return found.decode() if isinstance(found, bytes) else found


def _numbered(line: str, columns: dict[str, str]) -> str:
    for name, number in columns.items():
        line = line.replace(f",{name}]", f",{number}]")
    return "u" + line[1:]


def maxmargin(dataset: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    from maxmargin.tasks.tagging import TaggerModel, TaggingEncoder, read_tagged
    from maxmargin.tasks.tagging.training import SETTINGS, train_tagger  # SequenceTagger without scikit-learn

    preset = settings.pop("preset", None)
    template = None if preset else FILES[dataset][2]
    with tempfile.TemporaryDirectory() as there:
        train, test = _files(dataset, folder, Path(there))
        clock = Clock()
        text = read_tagged(train, labeled=True, join=dataset == "genia")
        loading = clock.lap()
        encoder = TaggingEncoder(
            preset=preset,
            template=template,
            support=settings.pop("support", "negative"),
            order=settings.pop("order", 1),
        )
        trained = train_tagger(encoder, text.tokens, text.label_codes(), replace(SETTINGS, **settings))
        training = clock.lap()
        memory = peak()
        file = Path(there) / "model"
        trained.save(file)
        clock.lap()
        model = TaggerModel.load(file)
        opening = clock.lap()
        held = read_tagged(test, labeled=True, join=dataset == "genia")
        clock.lap()
        rows = model.extractor.rows(held.tokens)
        extraction = clock.lap()
        seconds = []
        for _ in range(5):
            codes = model.best(rows)
            seconds.append(clock.lap()[0])
        lengths = held.tokens.lengths.tolist()
        names = iter([model.labels[code] for code in codes.tolist()])
        predicted = [[str(next(names)) for _ in range(length)] for length in lengths]
        metadata = model.metadata
        return {
            "trainer": "maxmargin",
            "settings": settings | ({"preset": preset} if preset else {}),
            "reading": loading,
            "attributes and training": training,
            "peak MB": memory,
            "relative_gap": float(f"{metadata['relative_gap']:.3g}"),
            "passes": metadata["iterations"],
            "attributes": model.extractor.n_attributes,
            "weights": len(model.weights),
            **scores(held.labels(), predicted, dataset),
            "decoding tokens/s": round(len(codes) / min(seconds)),
            "attributes tokens/s": round(len(codes) / extraction[0]),
            "model MB": round(file.stat().st_size / 1e6, 2),
            "opening s": opening[1],
        }


def _files(dataset: str, folder: Path, there: Path) -> tuple[Path, Path]:
    """Training and test files; parts of GENIA are written first."""
    train, test, chosen, _ = split(dataset, folder)
    if chosen is None:
        return train, test
    lines = gzip.decompress(train.read_bytes()).splitlines(keepends=True)
    parts = there / "train.pos", there / "test.pos"
    for part, wanted in zip(parts, (False, True), strict=True):
        part.write_bytes(b"".join(line for i, line in enumerate(lines) if (i % 10 == 9) == wanted))
    return parts


def main() -> None:
    trainer, dataset, folder, *more = sys.argv[1:]
    settings = json.loads(more[0]) if more else {}
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = {"maxmargin": maxmargin, "crfsuite": crfsuite, "wapiti": wapiti}[trainer]
    print(json.dumps(chosen(dataset, Path(folder), settings)))


if __name__ == "__main__":
    main()
