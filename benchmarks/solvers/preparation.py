"""From user data to the first pass, and from inputs to labels: what the way around the kernels costs.

    python -m benchmarks.solvers.preparation [--sequences 8000] [--labels 45]

Sequences of 5 to 40 positions with 40 dense features. Preparation is everything that ``fit`` does before the solver:
one parse, label codes, sparse gold outputs, costs. Its yardsticks in the same run: one pass of block-coordinate
Frank-Wolfe over the data, and one copy of the features. Prediction is compared with the product of features and weights
followed by ``Chain.labels``. CPU seconds, one thread, best of five.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import maxmargin as mm
from benchmarks.timing import significant, timed
from maxmargin.encoders import ChainEncoder
from maxmargin.structures import Chain
from maxmargin.training import Examples, Settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=8000)
    parser.add_argument("--labels", type=int, default=45)
    options = parser.parse_args()
    rng, d, k = np.random.default_rng(0), 40, options.labels
    X = [rng.normal(size=(rng.integers(5, 41), d)) for _ in range(options.sequences)]
    y = [[f"label {code}" for code in rng.integers(0, k, size=len(x))] for x in X]
    settings = Settings(C=0.01)

    def prepared() -> mm.Problem:
        return Examples.fit(ChainEncoder(), X, y).problem(settings, 0.01)

    problem, preparation = timed(prepared, 5)
    _, one = timed(
        lambda: mm.solve(problem, mm.BlockFrankWolfe(), stop=mm.Stop(tol=0.9, max_iter=1), random_state=0), 5
    )
    model = mm.ChainSVM(C=0.01, tol=0.9).fit(X, y)
    lengths = np.array([len(x) for x in X])
    nodes = model.coef_[: d * k].reshape(d, k)
    pairs = model.coef_[d * k :].reshape(k, k)
    _, copy = timed(lambda: np.concatenate(X), 5)
    _, prediction = timed(lambda: model.predict(X), 5)
    _, labels = timed(lambda: Chain(lengths, k).labels((np.concatenate(X) @ nodes).ravel(), pairs), 5)
    report = {
        "sequences": options.sequences,
        "labels": k,
        "preparation_seconds": significant(preparation, 3),
        "solve_one_pass_seconds": significant(one, 3),
        "preparation_over_one_pass": significant(preparation / one, 3),
        "preparation_over_one_copy": significant(preparation / copy, 3),
        "predict_seconds": significant(prediction, 3),
        "scores_and_labels_seconds": significant(labels, 3),
        "predict_over_labels": significant(prediction / labels, 3),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
