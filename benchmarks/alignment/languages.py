"""Word alignment without and with few annotations, on small and large bitexts of several language pairs.

    python -m benchmarks.alignment.languages FOLDER ... [--sizes 500 2000 10000] [--curve 5 10 20 50 100] [--draws 3]
        [--jobs 2] [--eflomal PROGRAM] [--hansards FOLDER]

A FOLDER is named by the code XX of its language and has ``bitext.en``, ``bitext.XX``, ``gold.en``, ``gold.XX``,
tokenized, and ``gold.links`` (0-0 sure, 1p2 possible); that of the Hansards has the files that ``hansards.py`` reads.
For each, and each number of bitext pairs, the text (not the links) of the gold is in the bitext of all programs: AER
of the symmetrized hidden Markov models, of the packaged weights as they are, of ``bootstrap``, with precision, recall
and calibration of its confidences, and of eflomal if its program is there. The learning curve trains on some gold pairs
at the largest size and tests on the same half or quarter of the gold, with and without the packaged weights as a start.

Prints one JSON object, with the rows of all languages and sizes, and the curve of each language; a line for each
result goes to standard error as soon as it is there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.alignment.measures import child
from maxmargin.tasks.alignment import AlignerModel, BitextModels, Reference, WordAligner, evaluate, read_links
from maxmargin.tasks.alignment.io.sentences import SentencePair, as_pairs, read_annotated
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize

METHODS = ("intersection", "grow-diag", "grow-diag-final-and", "union")
SEED = 1
NAMES = {
    "cs": "Czech",
    "de": "German",
    "es": "Spanish",
    "ja": "Japanese",
    "ro": "Romanian",
    "tr": "Turkish",
    "zh": "Chinese",
}
"""Of languages, by the code that names their folder."""


class Language:
    """Gold pairs with references, and bitext pairs in random order."""

    def __init__(self, name: str, gold: list[SentencePair], references: list[Reference], bitext: list[Any]) -> None:
        self.name, self.gold, self.references = name, gold, references
        order = np.random.default_rng(SEED).permutation(len(bitext))
        self.bitext = [bitext[at] for at in order]

    @classmethod
    def folder(cls, path: Path) -> Language:
        """Read the files of a language."""
        xx = path.name
        gold, references = read_annotated(str(path / "gold.en"), str(path / f"gold.{xx}"), str(path / "gold.links"))
        sides = [(path / f"bitext.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", xx)]
        return cls(NAMES.get(xx, xx), gold, references, [(a.split(), b.split()) for a, b in zip(*sides, strict=True)])

    @classmethod
    def hansards(cls, path: Path) -> Language:
        """Read the files of the Hansards."""
        gold: list[SentencePair] = []
        references: list[Reference] = []
        for part in ("train", "dev"):
            pairs, links = read_annotated(*(str(path / f"{part}.{end}") for end in ("e", "f", "wa")))
            gold, references = gold + pairs, references + links
        files = [(path / f"bitext.{side}.gz").read_bytes() for side in "ef"]
        sides = [gzip.decompress(file).decode().splitlines() for file in files]
        return cls("French (Hansards)", gold, references, [(a.split(), b.split()) for a, b in zip(*sides, strict=True)])

    def text(self, size: int) -> list[SentencePair]:
        """So many bitext pairs, then the gold pairs."""
        return as_pairs([*self.bitext[:size], *self.gold])


def percent(share: float) -> float:
    return round(100 * float(share), 1)


def calibration(references: list[Reference], model: AlignerModel, gold: list[SentencePair]) -> dict[str, Any]:
    """Expected calibration error over the predicted links, in ten bins, and the precision of confident ones."""
    confidence, right = [], []
    for one, reference in zip(model.align(gold, adapt=False), references, strict=True):
        good = {tuple(link) for link in np.concatenate([reference.sure, reference.possible]).tolist()}
        confidence.append(one.confidence)
        right.append([tuple(link) in good for link in one.links.tolist()])
    c, r = np.concatenate(confidence), np.concatenate(right).astype(float)
    bins = np.minimum((10 * c).astype(int), 9)
    error = sum(abs(c[bins == at].mean() - r[bins == at].mean()) * (bins == at).mean() for at in set(bins.tolist()))
    found: dict[str, Any] = {"calibration error": percent(error)}
    for least in (0.9, 0.99):
        chosen = c >= least
        found[f"precision at {least}"] = percent(r[chosen].mean()) if chosen.any() else None
        found[f"links at {least}"] = int(chosen.sum())
    return found


def eflomal(program: str, language: Language, size: int) -> dict[str, float]:
    with TemporaryDirectory() as name:
        text, *both = (Path(name) / part for part in ("text", "forward", "backward"))
        lines = (f"{' '.join(one.source)} ||| {' '.join(one.target)}\n".lower() for one in language.text(size))
        text.write_text("".join(lines), encoding="utf-8")
        child([program, "-i", str(text), "--model", "3", "--overwrite", "-f", str(both[0]), "-r", str(both[1])])
        links = [[one.links for one in read_links(str(f), format="pharaoh")[-len(language.gold) :]] for f in both]
    return {method: percent(evaluate(language.references, symmetrize(*links, method)).aer) for method in METHODS}


def without_gold(language: Language, size: int, jobs: int, program: str | None) -> dict[str, Any]:
    text, gold, references = language.text(size), language.gold, language.references
    aligner = WordAligner(n_jobs=jobs, random_state=SEED).bootstrap(text)
    scores = evaluate(references, aligner.predict(gold, adapt=False))
    still = WordAligner(n_jobs=jobs, models=aligner.models_, C=1e-9).bootstrap(text, n_pairs=10)
    hmm = {
        method: percent(evaluate(references, aligner.align_hmm(gold, method=method, adapt=False)).aer)
        for method in METHODS
    }
    found: dict[str, Any] = {
        "language": language.name,
        "gold pairs": len(gold),
        "pairs": len(text) - len(gold),
        "bootstrap": percent(scores.aer),
        "precision": percent(scores.precision),
        "recall": percent(scores.recall),
        "packaged weights": percent(evaluate(references, still.predict(gold, adapt=False)).aer),
        "HMM": min(hmm.values()),
        "HMM by method": hmm,
        **calibration(references, aligner.model_, gold),
    }
    if program:
        theirs = eflomal(program, language, size)
        found |= {"eflomal": min(theirs.values()), "eflomal by method": theirs}
    return found


def curve(language: Language, sizes: list[int], size: int, draws: int, jobs: int) -> dict[str, Any]:
    text = language.text(size)
    models = BitextModels.learn([one.source for one in text], [one.target for one in text])
    sizes = [n for n in sizes if n <= 3 * len(language.gold) // 4]
    first = max([len(language.gold) // 2, *sizes])
    found: dict[str, Any] = {"test pairs": len(language.gold) - first}
    for start in ("packaged", None):
        for n in [0, *sizes] if start else sizes:
            errors = []
            for draw in range(draws):
                order = np.random.default_rng(draw).permutation(len(language.gold))
                train, test = order[:n], order[first:]
                C = 0.1 if n else 1e-9  # without gold pairs, the weights as they are
                aligner = WordAligner(C=C, false_negative=1.5, folds=0, models=models, start=start, n_jobs=jobs)
                train = train if n else test[:1]
                aligner.fit([language.gold[at] for at in train], [language.references[at] for at in train])
                predicted = aligner.predict([language.gold[at] for at in test], adapt=False)
                errors.append(evaluate([language.references[at] for at in test], predicted).aer)
            found.setdefault("with start" if start else "without", {})[n] = percent(np.mean(errors))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--hansards", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 10000])
    parser.add_argument("--curve", type=int, nargs="*", default=[5, 10, 20, 50, 100])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--eflomal", default=shutil.which("eflomal-align"), help="its program; left out if empty")
    options = parser.parse_args()
    languages = [Language.folder(path) for path in options.folders]
    if options.hansards is not None:
        languages.append(Language.hansards(options.hansards))
    rows, curves = [], {}
    for language in languages:
        for size in options.sizes:
            rows.append(without_gold(language, size, options.jobs, options.eflomal))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        if options.curve:
            curves[language.name] = curve(language, options.curve, max(options.sizes), options.draws, options.jobs)
            print(language.name, "curve", json.dumps(curves[language.name]), file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows, "curve": curves}, indent=1))


if __name__ == "__main__":
    main()
