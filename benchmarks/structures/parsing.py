"""Parsers on a treebank: accuracy, tokens per second and seconds of training; prints one JSON object.

    python -m benchmarks.structures.parsing TRAIN.conllu.gz DEV.conllu.gz [--passes 8]

One thread, CPU seconds. Accuracy is that of CoNLL 2018 on the dev sentences with the tags of the file. Beside it two
limits: the best that trees without crossing arcs can have, and the UAS of attaching each word to the one before it.
"Trees" is the time of features, scores and the best trees from numbers of the tokens; "whole" has reading of tokens and
relations, too.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from maxmargin.tasks.parsing import DependencyParser, read_treebank
from maxmargin.tasks.parsing.encoder.heads import lifted


def main() -> None:
    """Train parsers of both orders and measure them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("train")
    options.add_argument("dev")
    options.add_argument("--passes", type=int, default=8)
    given = options.parse_args()
    train, dev = read_treebank(given.train), read_treebank(given.dev)
    projective, _ = lifted(dev.heads, dev.lengths)
    found: dict[str, Any] = {
        "tokens": {"train": train.n_tokens, "dev": dev.n_tokens},
        "passes": given.passes,
        "UAS of projective trees, at most": float((projective == dev.heads).mean()),
        "UAS of the word before": float((dev.places - 1 == dev.heads).mean()),
    }
    for order in (1, 2):
        begin = time.process_time()
        parser = DependencyParser(order=order, max_iter=given.passes, n_jobs=1).fit(train)
        trained = time.process_time()
        scores = parser.evaluate(dev)
        evaluated = time.process_time()
        trees = parser.model_.encoder.trees
        nodes = trees.nodes(dev)
        prepared = time.process_time()
        batch = trees.batch_of(nodes)
        batch.structure.argmax(batch.features.scores(parser.coef_[: trees.n_weights]))
        parsed = time.process_time()
        found[f"order {order}"] = {
            **scores.as_dict(),
            "seconds of training": trained - begin,
            "tokens a second, trees": dev.n_tokens / (parsed - prepared),
            "tokens a second, whole": dev.n_tokens / (evaluated - trained),
            "weights": int(np.count_nonzero(parser.coef_)),
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
