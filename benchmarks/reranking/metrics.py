"""Statistics of metrics on 100-best lists of the Hansards, beside sacrebleu. Prints one JSON object.

    python -m benchmarks.reranking.metrics [--data FOLDER] [--each 2]

CPU microseconds for a hypothesis: all hypotheses of system A by this library, with one thread, and the first few of
each list by sacrebleu's corpus scores, whose time is that of their statistics. Both score the latter alike.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.reranking.held_out import read
from benchmarks.timing import significant, timed
from benchmarks.workloads import DATA
from maxmargin.tasks.reranking.metrics.names import metric_named
from maxmargin.tasks.reranking.metrics.resampling import score

METRICS = ("bleu", "chrf", "chrf++", "ter", "wer", "cer")


def peers() -> dict[str, Any]:
    """The same metrics of sacrebleu, by name."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    # "none" says that the text is tokenized on purpose; sacrebleu warns about it otherwise.
    return {"bleu": BLEU(tokenize="none", force=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}


def measure(folder: Path, each: int) -> dict[str, Any]:
    lists = read(folder, "A").lists
    assert lists.texts is not None
    assert lists.references is not None
    texts, references, owner = lists.texts, lists.references, lists.owner
    some = (lists.offsets[:-1, None] + np.arange(each)).ravel()
    hypotheses, gold = [texts[i] for i in some], [references[i][0] for i in owner[some]]
    known, found = peers(), {}
    for name in METRICS:
        metric = metric_named(name)
        with mm.threads(1):
            statistics, seconds = timed(lambda m=metric: m.statistics(texts, references, owner), repeats=3)
        row = {"microseconds": significant(1e6 * seconds / len(texts), 3)}
        if name in known:
            theirs, seconds = timed(lambda m=known[name]: m.corpus_score(hypotheses, [gold]))
            row["sacrebleu, microseconds"] = significant(1e6 * seconds / len(some), 3)
            row["times faster"] = significant(row["sacrebleu, microseconds"] / row["microseconds"], 3)
            row["same score"] = bool(abs(score(metric, statistics[some]) - theirs.score) < 1e-6)
        found[metric.name] = row
    words = float(np.mean([len(text.split()) for text in texts]))
    return {"hypotheses": len(texts), "words of a hypothesis": significant(words, 3), "metrics": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the public data sets")
    parser.add_argument("--each", type=int, default=2, help="hypotheses of each list for sacrebleu")
    options = parser.parse_args()
    print(json.dumps(measure(options.data, options.each), indent=1))


if __name__ == "__main__":
    main()
