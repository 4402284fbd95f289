"""Train a dependency parser on a treebank, write the parsed sentences, and print the scores of CoNLL 2018.

    python examples/dependency_parsing.py TRAIN.conllu DEV.conllu [--order 1] [--passes 10] [--out parsed.conllu]

Files are in CoNLL-U and may be compressed. Words, lemmas, tags and features of both files are used as they are, so the
scores are those with gold tags if the files have these. The parsed sentences are those of DEV with other heads and
relations, everything else byte for byte.
"""

from __future__ import annotations

import argparse
import time

from maxmargin.tasks.parsing import DependencyParser, read_treebank, write_treebank
from maxmargin.tasks.parsing.metrics.attachment import MEASURES, evaluate


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train, parse, write and score; return the scores by name."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("train")
    options.add_argument("dev")
    options.add_argument("--order", type=int, choices=(1, 2), default=2)
    options.add_argument("--passes", type=int, default=10)
    options.add_argument("--bits", type=int, default=22)
    options.add_argument("--out", default="parsed.conllu")
    given = options.parse_args(arguments)

    train, dev = read_treebank(given.train), read_treebank(given.dev)
    begin = time.perf_counter()
    parser = DependencyParser(order=given.order, max_iter=given.passes, bits=given.bits).fit(train)
    trained = time.perf_counter()
    heads, relations = parser.model_.parse(dev)
    parsed = time.perf_counter()
    write_treebank(dev, heads, relations, out=given.out)

    scores = evaluate(dev, read_treebank(given.out))
    print(f"trained on {train.n_tokens} tokens in {trained - begin:.0f} s")
    print(f"parsed {dev.n_tokens} tokens, {dev.n_tokens / (parsed - trained):.0f} a second")
    for measure in MEASURES:
        interval = scores.interval(measure)
        print(f"{measure:5} {100 * scores[measure]:6.2f}   [{100 * interval.low:.2f}, {100 * interval.high:.2f}]")
    return {measure: scores[measure] for measure in MEASURES}


if __name__ == "__main__":
    main()
