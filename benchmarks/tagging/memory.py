"""Peak memory of ``maxmargin tag`` at one and at ten times the size, and of CRFsuite in the same run.

    python -m benchmarks.tagging.memory DATA --tokens 100000 --work FOLDER

``DATA`` is a CoNLL-U file. Its sentences are repeated up to the number of tokens, with a letter put into one word in
twenty of every repetition, so that words stay many. Prints one JSON object: megabytes and CPU seconds of training
(preset ``pos``, two passes) and of prediction with the model of the smaller size, for each size, and the size of the
model file. CRFsuite gets the words, their suffixes and neighbors as attributes, if the package python-crfsuite is
installed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import multiprocessing
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CRFSUITE = """
import sys, pycrfsuite
def sentences(path):
    rows = []
    for line in open(path, encoding="utf-8"):
        if line.strip():
            rows.append(line.rstrip("\\n").split("\\t"))
        elif rows:
            words = [row[0] for row in rows]
            yield [
                ["w=" + w, "s3=" + w[-3:], "s2=" + w[-2:], "p=" + before, "n=" + after]
                for w, before, after in zip(words, ["", *words], [*words[1:], ""])
            ], [row[-1] for row in rows]
            rows = []
if sys.argv[1] == "train":
    trainer = pycrfsuite.Trainer(verbose=False, params={"max_iterations": 2})
    for x, y in sentences(sys.argv[2]):
        trainer.append(x, y)
    trainer.train(sys.argv[3])
else:
    tagger = pycrfsuite.Tagger()
    tagger.open(sys.argv[3])
    with open(sys.argv[4], "w", encoding="utf-8") as out:
        for x, _ in sentences(sys.argv[2]):
            out.write("\\n".join(tagger.tag(x)) + "\\n\\n")
"""


def sentences_of(path: Path) -> list[list[tuple[str, str]]]:
    """Return words and parts of speech of a CoNLL-U file."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    found: list[list[tuple[str, str]]] = [[]]
    for line in text.split("\n"):
        cells = line.split("\t")
        if not line.strip():
            found.append([])
        elif cells[0].isdigit():
            found[-1].append((cells[1].replace(" ", "_"), cells[3]))
    return [one for one in found if one]


def repeated(given: list[list[tuple[str, str]]], tokens: int) -> Iterator[list[tuple[str, str]]]:
    """Yield sentences with this many tokens."""
    draw, done, first = random.Random(7), 0, True
    while True:
        for one in given:
            words = [
                (word[: len(word) // 2] + draw.choice("abcdefghij") + word[len(word) // 2 :], label)
                if not first and draw.random() < 0.05
                else (word, label)
                for word, label in one
            ]
            yield words
            done += len(words)
            if done >= tokens:
                return
        first = False


def write(data: Path, tokens: int, path: Path) -> None:
    """Write a file of columns with this many tokens."""
    with open(path, "w", encoding="utf-8") as file:
        for one in repeated(sentences_of(data), tokens):
            file.write("".join(f"{word}\t{label}\n" for word, label in one) + "\n")


def measured(*command: str) -> dict[str, float]:
    """Run a command; return its peak memory in megabytes and its CPU seconds."""
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"failed: {' '.join(command[:6])}")
    return {"megabytes": round(usage.ru_maxrss / 1e3, 1), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2)}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--work", type=Path, help="a folder for the files; by default a temporary one")
    given = parser.parse_args()
    command = [sys.executable, "-m", "maxmargin", "tag"]
    peer = importlib.util.find_spec("pycrfsuite") is not None
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        for times in (1, 10):
            path, out = work / f"{times}.tsv", str(work / "out")
            # in a process of its own, as what a command inherits from this one would count as its peak memory
            writer = multiprocessing.get_context("spawn").Process(
                target=write, args=(given.data, times * given.tokens, path)
            )
            writer.start()
            writer.join()
            if writer.exitcode:
                sys.exit("the file of sentences was not written")
            model, other = str(work / f"{times}.mm"), str(work / f"{times}.crf")
            first, first_other = str(work / "1.mm"), str(work / "1.crf")
            options = ["--format", "columns", "--preset", "pos", "--max-iter", "2", "--json"]
            results = {
                "train": measured(*command, "train", str(path), "--out", model, *options),
                "predict": measured(*command, "predict", first, str(path), "--format", "columns", "--out", out),
            }
            results["train"]["model MB"] = round(os.path.getsize(model) / 1e6, 1)
            if peer:
                results["crfsuite_train"] = measured(sys.executable, "-c", CRFSUITE, "train", str(path), other)
                results["crfsuite_predict"] = measured(
                    sys.executable, "-c", CRFSUITE, "tag", str(path), first_other, out
                )
            found[f"{times * given.tokens:,} tokens"] = results
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
