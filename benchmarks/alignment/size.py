"""Time and memory of word alignment by the size of the bitext: ``align bootstrap``, ``align predict``, eflomal.

    python -m benchmarks.alignment.size HANSARDS [--pairs 67144 336000 1000000] [--predict N ...] [--eflomal N ...]

HANSARDS is a folder with ``bitext.e.gz`` and ``bitext.f.gz``. Larger bitexts are made of these pairs: beyond the first
67,144, pairs are drawn with replacement, and each draw has a topic from Zipf's law with exponent 1.6. In topics other
than the first, words that occur at most 100 times in the text get two letters of the topic, so that vocabulary and
co-occurring pairs grow as in real text: 10,301 different English words in 67,144 pairs, 70,085 in 336,000, 145,217 in a
million. ``bootstrap --out`` learns a model of each bitext; the model of the first predicts the links of all, or of the
sizes that --predict names. Prints one JSON object; CPU seconds and peak memory are those of the child processes,
eflomal's with both its directions and without symmetrization, if ``eflomal-align`` is on the path. "different" counts
sentence pairs that differ without case: made bitexts repeat themselves.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

TOPICS = 200
FREQUENT = 100


def write_bitext(hansards: Path, n: int, out: Path) -> list[Path]:
    """Write a bitext of ``n`` pairs; the paths of its sides."""
    rng = np.random.default_rng(1)
    sides = []
    for side in "ef":
        with gzip.open(hansards / f"bitext.{side}.gz", "rt", encoding="utf-8") as lines:
            sides.append([line.split() for line in lines])
    size = len(sides[0])
    chosen = np.concatenate([np.arange(size), rng.integers(0, size, max(0, n - size))])[:n].tolist()
    topics = np.where(np.arange(n) < size, 1, np.minimum(rng.zipf(1.6, n), TOPICS)).tolist()
    paths = []
    for sentences, side in zip(sides, "ef", strict=True):
        counts = Counter(word for words in sentences for word in words)
        paths.append(out / f"{n}.{side}")
        with open(paths[-1], "w", encoding="utf-8") as file:
            for pair, topic in zip(chosen, topics, strict=True):
                letters = "" if topic == 1 else chr(97 + topic % 26) + chr(97 + topic // 26)
                words = (
                    word if counts[word] > FREQUENT or not word[0].isalpha() else word[:3] + letters + word[3:]
                    for word in sentences[pair]
                )
                file.write(" ".join(words) + "\n")
    return paths


def different(source: Path, target: Path) -> int:
    """The number of sentence pairs that differ in more than case."""
    with open(source, encoding="utf-8") as one, open(target, encoding="utf-8") as other:
        return len({hash((a.lower(), b.lower())) for a, b in zip(one, other, strict=True)})


def measured(command: list[str], output: Path) -> dict[str, Any]:
    """CPU seconds, wall seconds and peak memory of a command; what it says if it fails."""
    began = time.perf_counter()
    messages = output.with_suffix(".err")
    with open(output, "wb") as file, open(messages, "wb") as errors:
        process = subprocess.Popen(command, stdout=file, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        said = messages.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise SystemExit(f"{' '.join(command)} failed with status {os.waitstatus_to_exitcode(status)}: {said}")
    return {
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "seconds": round(time.perf_counter() - began, 1),
        "megabytes": round(usage.ru_maxrss / 1024),
    }


def eflomal(source: Path, target: Path, folder: Path) -> dict[str, Any] | None:
    """The same of eflomal."""
    program = shutil.which("eflomal-align")
    if program is None:
        return None
    forward, backward = folder / "forward", folder / "backward"
    arguments = ["-s", str(source), "-t", str(target), "-f", str(forward), "-r", str(backward), "--overwrite"]
    try:
        return measured([program, *arguments], folder / "log")
    except SystemExit as failure:
        return {"failed": str(failure)}


def main() -> None:
    """Run everything and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hansards", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[67144, 336000, 1000000])
    parser.add_argument("--predict", type=int, nargs="*", help="sizes of the text to align; all by default")
    parser.add_argument("--eflomal", type=int, nargs="*", help="sizes at which eflomal runs; all by default")
    given = parser.parse_args()
    align = [sys.executable, "-m", "maxmargin", "align"]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model"
        for n in given.pairs:
            source, target = write_bitext(given.hansards, n, folder)
            bitext = ["--bitext-source", str(source), "--bitext-target", str(target)]
            made = model if n == given.pairs[0] else folder / "larger"
            row: dict[str, Any] = {"different": different(source, target)}
            row["bootstrap"] = measured([*align, "bootstrap", *bitext, "--out", str(made)], folder / "report")
            row["bootstrap"]["model_megabytes"] = round(made.stat().st_size / 1e6, 1)
            if given.predict is None or n in given.predict:
                text = ["--source", str(source), "--target", str(target)]
                row["predict"] = measured([*align, "predict", str(model), *text], folder / "links")
            if (given.eflomal is None or n in given.eflomal) and (
                theirs := eflomal(source, target, folder)
            ) is not None:
                row["eflomal"] = theirs
            found[str(n)] = row
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
