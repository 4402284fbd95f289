"""Non-projective trees: time of the best tree, of the k best, of marginals and of projections; prints one JSON object.

    python -m benchmarks.structures.nonprojective [--most 500] [--conllu FILE] [--sentences 400]

Sentences with all arcs, one label. Scores are normal ("normal"), or normal with 3 added to the arcs of a random tree
with one root ("tree"), as those of a parser that is often right. Microseconds of CPU time of one sentence, on one
thread, the best of several repeats; ours in batches, from Python, with what Python adds.

- argmax: with any number of roots against ufal.chu_liu_edmonds (C++) and networkx, where they are installed; values
  must agree. With one root there is no peer that finds it exactly.
- k_best: 20 trees, and what one of them takes more than an argmax.
- marginals: against the formula of Koo et al. (2007) by NumPy's inverse and determinant, LAPACK, with any number of
  roots and with one; and the largest difference. Then sentences whose tokens prefer one another in pairs, so that
  cycles weigh much more than trees: how far the formula is from ours, which agree with exact arithmetic (in the tests).
- project: normal points, cold, and warm from that of a near point.
- tokens per second with normal scores and the lengths of the sentences of a CoNLL-U file, or drawn ones, see
  dependencies.py; one root, batches of a million parts.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.structures.dependencies import lengths_of
from benchmarks.structures.projections import projections
from benchmarks.timing import significant, timed
from maxmargin.structures import NonProjectiveTrees

SIZES = (10, 25, 50, 100, 200, 500)


def made(n: int, many: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Scores of all arcs of several sentences of ``n`` tokens, packed."""
    scores = rng.normal(size=(many, n, n))
    if kind == "tree":
        for own in scores:
            order = 1 + rng.permutation(n)
            for place, token in enumerate(order):  # each token below one that comes before it
                head = order[rng.integers(place)] if place else 0
                own[token - 1, head - (head > token)] += 3.0
    return scores.ravel()


def matrix(n: int, scores: np.ndarray) -> np.ndarray:
    """The scores of one sentence by modifier (rows) and head, rows and columns 0 to n; NaN where there is no arc."""
    found = np.full((n + 1, n + 1), np.nan)
    found[1:][~np.eye(n, n + 1, 1, dtype=bool)] = scores
    return found


def argmax(most: int) -> dict[str, Any]:
    """Ours with any number of roots and with one, and the peers'."""
    found: dict[str, Any] = {}
    for n in (size for size in SIZES if size <= most):
        for kind in ("normal", "tree"):
            rng = np.random.default_rng(n)
            many = max(2, 200_000 // n**2)
            scores = made(n, many, kind, rng)
            free, one = (NonProjectiveTrees.dense(np.full(many, n), single_root=single) for single in (False, True))
            calls: dict[str, Callable[[], Any]] = {
                "any roots": lambda s=free, x=scores: s.argmax(x).value[0],
                "one root": lambda s=one, x=scores: s.argmax(x).value[0],
            }
            rivals = peers(n, scores[: n * n])
            values = {name: call() for name, call in (calls | rivals).items() if name != "one root"}
            assert np.ptp(list(values.values())) <= 1e-9 * n, f"{n} tokens, {kind}: {values}"
            with mm.threads(1):
                seconds = {name: timed(call, 7)[1] / many for name, call in calls.items()}
                seconds |= {name: timed(call, 3)[1] for name, call in rivals.items()}
            found[f"{n} tokens, {kind}"] = {name: significant(1e6 * value) for name, value in seconds.items()}
    return found


def peers(n: int, scores: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Calls of the peers that are installed; each returns the score of its tree."""
    calls: dict[str, Callable[[], Any]] = {}
    by_modifier = matrix(n, scores)
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds

        calls["ufal"] = lambda: chu_liu_edmonds(by_modifier)[1]
    except ImportError:
        pass
    try:
        import networkx

        if n <= 50:
            graph = networkx.DiGraph()
            arcs = [(h, m, by_modifier[m, h]) for m in range(1, n + 1) for h in range(n + 1) if h != m]
            graph.add_weighted_edges_from(arcs)
            calls["networkx"] = lambda: networkx.maximum_spanning_arborescence(graph).size(weight="weight")
    except ImportError:
        pass
    return calls


def koo(n: int, scores: np.ndarray, single_root: bool) -> tuple[np.ndarray, float]:
    """Marginals by modifier and head, and log Z, from the inverse of the Laplacian."""
    weights = np.exp(np.nan_to_num(matrix(n, scores), nan=-np.inf))[1:]  # modifiers by heads
    inner, root = weights[:, 1:], weights[:, 0]
    laplacian = np.diag(inner.sum(axis=1) + (0.0 if single_root else root)) - inner.T
    if single_root:
        laplacian[0] = root
    inverse, log = np.linalg.inv(laplacian), np.linalg.slogdet(laplacian)[1]
    diagonal, across = np.diag(inverse).copy(), inverse.copy()
    if single_root:
        diagonal[0], across[:, 0] = 0.0, 0.0
    found = np.empty((n, n + 1))
    found[:, 0] = root * (inverse[:, 0] if single_root else np.diag(inverse))
    found[:, 1:] = inner * (diagonal[:, None] - across)
    return found, log


def marginals(most: int) -> dict[str, Any]:
    """Ours and by LAPACK."""
    found: dict[str, Any] = {}
    for n in (size for size in SIZES if size <= most):
        rng = np.random.default_rng(n)
        many = max(2, 20_000 // n**2)
        scores = made(n, many, "tree", rng)
        entry: dict[str, Any] = {}
        for single_root, name in ((False, "any roots"), (True, "one root")):
            structure = NonProjectiveTrees.dense(np.full(many, n), single_root=single_root)
            with mm.threads(1):
                ours, seconds = timed(lambda s=structure, x=scores: s.marginals(x), 5)
            (theirs, log), other = timed(functools.partial(koo, n, scores[: n * n], single_root), 5)
            dense = theirs[~np.eye(n, n + 1, 1, dtype=bool)]
            entry[name] = {
                "maxmargin": significant(1e6 * seconds / many),
                "NumPy": significant(1e6 * other),
                "largest difference": significant(float(np.abs(ours.z[: n * n] - dense).max()), 1),
                "difference of log Z": significant(abs(float(ours.value[0]) - log), 1),
            }
        found[f"{n} tokens"] = entry
    return found


def cycles() -> dict[str, Any]:
    """25 tokens, of which pairs prefer one another by a number that grows: how far off the formula is."""
    rng = np.random.default_rng(0)
    n, found = 25, {}
    token = np.arange(1, n)
    other = np.where(token % 2, token + 1, token - 1)
    structure = NonProjectiveTrees.dense([n])
    for more in (0.0, 10.0, 20.0, 30.0, 40.0, 400.0):
        table = rng.normal(size=(n, n))
        table[token - 1, other - (other > token)] += more
        scores = table.ravel()
        ours, seconds = timed(functools.partial(structure.marginals, scores), 5)
        with np.errstate(all="ignore"):
            try:
                theirs = koo(n, scores, True)[0][~np.eye(n, n + 1, 1, dtype=bool)]
            except np.linalg.LinAlgError:
                theirs = np.full(n * n, np.nan)
        off = float(np.abs(ours.z - theirs).max())
        found[f"{more:g}"] = {
            "error of NumPy": significant(off, 1) if np.isfinite(off) else "not finite",
            "microseconds": significant(1e6 * seconds),
        }
    return found


def lists(most: int) -> dict[str, Any]:
    """The 20 best trees with one root."""
    found = {}
    for n in (size for size in SIZES if size <= min(most, 200)):
        many = max(2, 20_000 // n**2)
        structure = NonProjectiveTrees.dense(np.full(many, n))
        scores = made(n, many, "tree", np.random.default_rng(n))
        with mm.threads(1):
            best = timed(lambda s=structure, x=scores: s.argmax(x), 5)[1] / many
            twenty = timed(lambda s=structure, x=scores: s.k_best(x, 20), 3)[1] / many
        found[f"{n} tokens"] = {
            "20 best": significant(1e6 * twenty),
            "argmax calls for each further tree": significant((twenty - best) / 19 / best),
        }
    return found


def tokens(path: str | None, many: int) -> dict[str, Any]:
    """Tokens per second of sentences as long as those of a file."""
    calls: dict[str, Callable[[NonProjectiveTrees, np.ndarray], Any]] = {
        "argmax": NonProjectiveTrees.argmax,
        "marginals": NonProjectiveTrees.marginals,
        "10 best": lambda structure, scores: structure.k_best(scores, 10),
    }
    lengths = lengths_of(path, many)
    found: dict[str, Any] = {}
    for labels in (1, 50):
        rng = np.random.default_rng(0)
        seconds = dict.fromkeys(calls, 0.0)
        for chosen in NonProjectiveTrees.dense(lengths, labels).consecutive():
            structure = NonProjectiveTrees.dense(lengths[chosen], labels)
            scores = rng.normal(size=structure.n_parts)
            structure.k_best(scores, 1)  # which counts the trees, once for a structure
            with mm.threads(1):
                for name, call in calls.items():
                    seconds[name] += timed(functools.partial(call, structure, scores), 3)[1]
        found[f"{labels} label{'s' * (labels > 1)}"] = {
            name: significant(int(lengths.sum()) / value) for name, value in seconds.items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1], metavar="N", help="largest number of tokens")
    parser.add_argument("--conllu", metavar="FILE", help="take the lengths of its sentences")
    parser.add_argument("--sentences", type=int, default=400, metavar="N", help="how many of them")
    arguments = parser.parse_args()
    most = arguments.most
    report = {
        "argmax": argmax(most),
        "marginals": marginals(most),
        "marginals beside heavy cycles": cycles(),
        "k_best": lists(most),
        "project": projections(NonProjectiveTrees.dense, "tokens", repeats=3),
        "tokens per second": tokens(arguments.conllu, arguments.sentences),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
