"""What word aligners are used for beside links, on the Hansards: scores, updates, columns, known words, new text.

    python -m benchmarks.alignment.uses [--quick] [--jobs 2] [--data ../shared/data]

Every 22nd pair of the bitext (3,052) is kept out of it; 64,092 pairs remain. Settings are fixed (C 0.1, cost 2).

- scores: an aligner trained on the 100 pairs of ``train`` and this bitext scores the pairs kept out, and the same
  sentences with targets shuffled: at random, or with the next pair in the order of lengths. The area under the ROC
  curve is the share of all (true, shuffled) in which the true pair has the higher score. Beside ``score_pairs``, the
  sum of confidences over the longer length, and eflomal's scores (priors from the same bitext, both directions added).
- update: translation models of 10,000 pairs, updated with 30,000 others, against all 40,000 at once: AER on
  ``dev`` of aligners that have the links of ``train``, and the other way round.
- columns: eflomal's links, intersected and united, as two extra columns; 50 annotated pairs, 20,000 pairs of bitext
  (eflomal has all), AER on the other 87, and the change with its interval of 95%, sentences resampled.
- known: the share of tokens of the pairs kept out that the aligner of the scores knows, and if the sides are swapped.
- new text: the pairs kept out and the annotated ones, in random order, aligned by a model of ``bootstrap`` in one call
  or in blocks, with and without adaptation: AER on the annotated pairs, CPU seconds for all.

Prints one JSON object. eflomal takes part if its commands are installed (``pip install eflomal``), on lower-cased text.
--quick takes a twentieth of everything but the annotated pairs: a minute, other figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.alignment.measures import FIXED, N_TRAIN, SEED, Task, child, eflomal, percent, rates
from benchmarks.workloads import DATA
from maxmargin.tasks.alignment import AlignerModel, SentencePair, WordAligner, evaluate, read_links
from maxmargin.tasks.alignment.metrics.scores import compare_scores
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.alignment.translation.known import doubt
from maxmargin.tasks.alignment.translation.words import IndexedBitext

EVERY = 22
UPDATED, COLUMNS = 40_000, 20_000
"""Pairs of bitext of the model that is updated and of its update, three times as large, and of that with columns."""
QUICK = 20
N_COLUMNS = 50
"""The first so many annotated pairs train the aligner with columns."""


def area(scores: np.ndarray) -> float:
    """The area under the ROC curve of scores whose first half is of true pairs; ties count half."""
    n = len(scores) // 2
    return round(float(rankdata(scores)[:n].sum() - n * (n + 1) / 2) / n**2, 4)


def shuffles(pairs: Sequence[SentencePair]) -> dict[str, list[SentencePair]]:
    """Pairs with the targets of others: of any, and of the next in the order of lengths."""
    anyone = np.random.default_rng(SEED).permutation(len(pairs))
    order = np.lexsort([[len(pair.target) for pair in pairs], [len(pair.source) for pair in pairs]])
    alike = np.empty_like(order)
    alike[order] = np.roll(order, 1)
    chosen = {"any target": anyone, "target of like length": alike}
    return {
        name: [SentencePair(pair.source, pairs[i].target) for pair, i in zip(pairs, numbers, strict=True)]
        for name, numbers in chosen.items()
    }


def confidence_per_word(model: AlignerModel, X: list[SentencePair]) -> np.ndarray:
    found = model.align(X, adapt=False)
    longer = [max(len(pair.source), len(pair.target), 1) for pair in X]
    return np.array([one.confidence.sum() for one in found]) / longer


def scores_of_eflomal(folder: Path, X: list[SentencePair]) -> np.ndarray:
    """With priors from the text and links in the folder; eflomal's scores are the lower the better."""
    names = ("priors", "pairs", "scores.forward", "scores.backward")
    priors, text, forward, backward = (str(folder / name) for name in names)
    bitext, links = str(folder / "text"), [str(folder / "forward"), "-r", str(folder / "backward")]
    child(["eflomal-makepriors", "-i", bitext, "-f", *links, "-p", priors])
    lines = (f"{' '.join(pair.source)} ||| {' '.join(pair.target)}\n".lower() for pair in X)
    Path(text).write_text("".join(lines), encoding="utf-8")
    child(["eflomal-align", "-i", text, "--model", "3", "-p", priors, "--overwrite", "-F", forward, "-R", backward])
    return -np.loadtxt(forward) - np.loadtxt(backward)


def scoring(model: AlignerModel, held: list[SentencePair], folder: Path | None) -> dict[str, Any]:
    """The area under the curve of each kind of score."""
    kinds: dict[str, Callable[[list[SentencePair]], np.ndarray]] = {
        "score_pairs": model.score_pairs,
        "confidences over longer length": lambda X: confidence_per_word(model, X),
    }
    if folder is not None:
        kinds["eflomal"] = lambda X: scores_of_eflomal(folder, X)
    return {
        against: {name: area(score([*held, *wrong])) for name, score in kinds.items()}
        for against, wrong in shuffles(held).items()
    }


def updating(task: Task, learned: range, bitext: list[SentencePair], settings: dict[str, Any]) -> dict[str, Any]:
    """AER on all other annotated pairs of the models before and after the update, and CPU seconds of making them."""
    train, test = task.take(learned), task.take(np.setdiff1d(np.arange(len(task.pairs)), learned))
    first, more = bitext[: len(bitext) // 4], bitext[len(bitext) // 4 :]
    found: dict[str, Any] = {"pairs": [len(first), len(more)]}

    def made(name: str, work: Callable[[], AlignerModel]) -> AlignerModel:
        began = time.process_time()
        model = work()
        row: dict[str, Any] = {"CPU seconds": round(time.process_time() - began, 1)}
        for how, adapt in (("as is", False), ("adapted", True)):
            row[how] = percent(evaluate(test[1], model.predict(test[0], adapt=adapt)).aer)
            row[f"HMM, {how}"] = percent(evaluate(test[1], model.align_hmm(test[0], adapt=adapt)).aer)
        found[name] = row
        return model

    small = made("before", lambda: WordAligner(**settings).fit(*train, bitext=first).model_)
    later = made("updated", lambda: small.updated(more))
    made("weights again", lambda: WordAligner(**settings, models=later.encoder.models).fit(*train).model_)
    made("all at once", lambda: WordAligner(**settings).fit(*train, bitext=bitext).model_)
    return found


def columns(task: Task, bitext: list[SentencePair], settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """AER on the pairs that were not trained on, without and with eflomal's links, and of these alone."""
    n = len(task.pairs)
    forward, backward = (
        [one.links for one in read_links(folder / name, format="pharaoh")[-n:]] for name in ("forward", "backward")
    )
    both, any_ = (symmetrize(forward, backward, method) for method in ("intersection", "union"))
    X = [
        SentencePair(pair.source, pair.target, {"both": one, "any": other})
        for pair, one, other in zip(task.pairs, both, any_, strict=True)
    ]
    pairs, references = task.pairs, task.references
    plain = WordAligner(**settings).fit(pairs[:N_COLUMNS], references[:N_COLUMNS], bitext=[*bitext, *pairs[N_COLUMNS:]])
    wide = WordAligner(**settings, models=plain.models_).fit(X[:N_COLUMNS], references[:N_COLUMNS])
    scores = {
        "eflomal, intersection": evaluate(references[N_COLUMNS:], both[N_COLUMNS:]),
        "without": evaluate(references[N_COLUMNS:], plain.predict(pairs[N_COLUMNS:])),
        "with": evaluate(references[N_COLUMNS:], wide.predict(X[N_COLUMNS:])),
    }
    change = compare_scores(scores["without"], scores["with"])
    return {
        **{name: rates(one) for name, one in scores.items()},
        "change %": [percent(value) for value in (change.difference, change.low, change.high)],
    }


def known(model: AlignerModel, held: list[SentencePair]) -> dict[str, Any]:
    """The shares of known tokens of both sides, and what ``align predict`` and ``align score`` would warn of."""
    counts = model.encoder.models.words.cooccurrences
    sides = [pair.source for pair in held], [pair.target for pair in held]
    found = {}
    for name, (source, target) in (("same", sides), ("swapped", sides[::-1])):
        text = IndexedBitext.of(source, target)
        shares = [
            percent(float((text.words.numbers_in(vocabulary, counts.letters)[tokens] >= 0).mean()))
            for vocabulary, tokens in ((counts.source, text.source), (counts.target, text.target))
        ]
        found[name] = {"known %": shares, "warning": doubt(counts, text)}
    return found


def new_text(task: Task, held: list[SentencePair], jobs: int) -> dict[str, Any]:
    """AER on the annotated pairs, which are new to the model as all of the text is, by the pairs of a call."""
    model = WordAligner(n_jobs=jobs, random_state=SEED).bootstrap(task.bitext).model_
    text = [*task.pairs, *held]
    order = np.random.default_rng(SEED).permutation(len(text)).tolist()
    found: dict[str, Any] = {"pairs": len(text), "bitext": len(task.bitext)}
    blocks = {"not adapted": len(text), "one block": len(text), "1,000": 1000, "300": 300, "100": 100}
    for name, size in blocks.items():
        links: dict[int, np.ndarray] = {}
        began = time.process_time()
        for start in range(0, len(text), size):
            chosen = order[start : start + size]
            predicted = model.predict([text[i] for i in chosen], adapt=name != "not adapted")
            links.update(zip(chosen, predicted, strict=True))
        seconds = time.process_time() - began
        scores = evaluate(task.references, [links[i] for i in range(len(task.pairs))])
        found[name] = {"AER %": percent(scores.aer), "CPU seconds": round(seconds, 2)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    part = QUICK if options.quick else 1
    whole = Task.read(options.data, None)
    bitext = whole.bitext[: len(whole.bitext) // part]
    held = bitext[EVERY - 1 :: EVERY]
    kept = [pair for i, pair in enumerate(bitext) if i % EVERY != EVERY - 1]
    task = Task(whole.pairs, whole.references, kept)
    fixed = {**FIXED, "n_jobs": options.jobs, "folds": 0}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    peer = all(shutil.which(f"eflomal-{name}", path=path) for name in ("align", "makepriors"))
    found: dict[str, Any] = {"bitext": len(kept), "kept out": len(held)}
    with TemporaryDirectory() as name:
        folder = Path(name) if peer else None
        if folder is not None:
            found["eflomal"] = eflomal(task, folder)[1]
        model = WordAligner(**FIXED, n_jobs=options.jobs).fit(*task.take(range(N_TRAIN)), bitext=kept).model_
        found["scores"] = scoring(model, held, folder)
        found["known"] = known(model, held)
        found["new text"] = new_text(task, held, options.jobs)
        for test, learned in (("dev37", range(N_TRAIN)), ("train100", range(N_TRAIN, len(task.pairs)))):
            found[f"update, {test}"] = updating(task, learned, kept[: UPDATED // part], fixed)
        if folder is not None:
            found["columns"] = columns(task, kept[: COLUMNS // part], fixed, folder)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
