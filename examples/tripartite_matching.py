"""Three-way matching: each triple joins one item of each of three sides, and no item is in two triples.

Choosing the best triples is NP-hard, so the linear program over triples is a relaxation: its vertices may be
fractional. Training minimizes the relaxed hinge loss to a certified gap (the certificate says "relaxed"), and
prediction finds integral outputs by branch and bound. The data is synthetic: the gold output is the best matching for
hidden weights plus noise.

    python examples/tripartite_matching.py
"""

from __future__ import annotations

from itertools import product

import numpy as np

import maxmargin as mm

HIDDEN = np.array([1.5, -1.0, 0.5, 0.0])


def constraints(size: int) -> np.ndarray:
    """Row ``side * size + item`` marks the triples of an item: ``A z <= 1`` puts each in at most one."""
    triples = np.array(list(product(range(size), repeat=3)))
    A = np.zeros((3 * size, len(triples)))
    for side in range(3):
        A[side * size + triples[:, side], np.arange(len(triples))] = 1.0
    return A


def examples(rng: np.random.Generator, n: int, size: int, noise: float) -> tuple[list[mm.Program], list[np.ndarray]]:
    """Random features of all triples, and gold outputs."""
    A, b = constraints(size), np.ones(3 * size)
    features = [rng.normal(size=(A.shape[1], len(HIDDEN))) for _ in range(n)]
    structure = mm.structures.LinearProgram([A] * n, [b] * n, relaxed=True)
    scores = np.concatenate([x @ HIDDEN for x in features])
    best = structure.predict(scores + noise * rng.normal(size=len(scores)))
    return [mm.Program(x, A, b) for x in features], structure.decode(best.z)


def greedy(x: mm.Program, weights: np.ndarray) -> np.ndarray:
    """Greedily chosen triples that score above 0."""
    scores = x.features @ weights
    chosen, used = np.zeros(len(scores)), np.zeros(len(x.A))
    for triple in np.argsort(-scores):
        if scores[triple] > 0 and (used + x.A[:, triple] <= 1).all():
            chosen[triple] = 1.0
            used += x.A[:, triple]
    return chosen


def main(n_train: int = 40, n_test: int = 40, size: int = 4) -> dict[str, float]:
    X, y = examples(np.random.default_rng(0), n_train + n_test, size, noise=0.4)
    loss = mm.losses.Hamming(false_positive=1, false_negative=3)
    model = mm.ProgramSVM(relaxed=True, C=1.0, loss=loss).fit(X[:n_train], y[:n_train])
    new, gold, encoder = X[n_train:], y[n_train:], model.model_.encoder
    agreed = np.array([encoder.agreement(z, greedy(x, model.coef_)) for x, z in zip(new, gold, strict=True)])
    packed = encoder.transform(new)
    vertex = packed.structure.argmax(packed.features.scores(model.coef_)).z
    outcome = {
        "score": model.score(new, gold),
        "greedy_score": float(agreed[:, 0].sum() / agreed[:, 1].sum()),
        "relative_gap": model.solution_.certificate.relative_gap,
        "fractional": float(np.mean(packed.structure.by_example((vertex != np.rint(vertex)).astype(float)) > 0)),
        "cosine": float(model.coef_ @ HIDDEN / np.linalg.norm(model.coef_) / np.linalg.norm(HIDDEN)),
    }
    print(f"{n_train} examples of {size}^3 triples: {model.solution_.certificate}")
    print(f"F1 over triples of {n_test} new examples: {outcome['score']:.3f}, greedy: {outcome['greedy_score']:.3f}")
    print(f"the best vertex of the relaxation is fractional in {outcome['fractional']:.0%} of them")
    print(f"cosine of the learned and the hidden weights: {outcome['cosine']:.3f}")
    return outcome


if __name__ == "__main__":
    main()
