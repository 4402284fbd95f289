"""Forward-backward on 1,000 chains x 50 positions x 45 labels, in units of Viterbi of the same run, and two peers.

One command, one JSON object on standard output: ``python benchmarks/forward_backward.py [--examples N] ...``.
Seconds are best of several, the two kernels in turns; ``kernel`` leaves out the arrays that Python makes for each call.
``same_matrix`` gives all examples one transition matrix, as training does, and ``times_1e4`` potentials so large that
the examples go the way of logarithms. Peers: log-sum-exp over all chains at once in NumPy, and ``hmmlearn`` (compiled,
one call per chain and pass, scaled probabilities made in NumPy), which is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import maxmargin
from maxmargin import _kernels
from maxmargin.structures.chain import Chain


def best_of(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Seconds of the fastest of several calls, the calls in turns."""
    times = np.full((repeats, len(calls)), np.inf)
    for row in times:
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            row[i] = time.perf_counter() - begin
    return [float(t) for t in times.min(axis=0)]


def log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    most = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - most).sum(axis=axis)) + most.squeeze(axis)


def numpy_forward_backward(nodes: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All chains at once: ``nodes (n, T, K)``, ``pairs (n, K, K)`` to node marginals, pair sums and values."""
    length = nodes.shape[1]
    forward, backward = nodes.copy(), np.zeros_like(nodes)
    for t in range(1, length):
        forward[:, t] += log_sum_exp(forward[:, t - 1, :, None] + pairs, axis=1)
    value = log_sum_exp(forward[:, -1], axis=1)
    sums = np.zeros_like(pairs)
    for t in range(length - 1, 0, -1):
        ahead = nodes[:, t] + backward[:, t]
        joint = pairs + ahead[:, None, :]
        backward[:, t - 1] = log_sum_exp(joint, axis=2)
        sums += np.exp(joint + (forward[:, t - 1] - value[:, None])[:, :, None])
    return np.exp(forward + backward - value[:, None, None]), sums, value


def hmmlearn_forward_backward(nodes: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Node marginals and pair sums by the compiled passes of hmmlearn."""
    passes = importlib.import_module("hmmlearn._hmmc")
    n, _, k = nodes.shape
    means, sums = np.empty_like(nodes), np.empty_like(pairs)
    start = np.ones(k)
    for i in range(n):
        factors = np.exp(nodes[i] - nodes[i].max(axis=1, keepdims=True))
        matrix = np.exp(pairs[i] - pairs[i].max())
        _, forward, scaling = passes.forward_scaling(start, matrix, factors)
        backward = passes.backward_scaling(start, matrix, factors, scaling)
        means[i] = forward * backward
        means[i] /= means[i].sum(axis=1, keepdims=True)
        sums[i] = passes.compute_scaling_xi_sum(forward, matrix, backward, factors)
    return means, sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--labels", type=int, default=45)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    n, length, k = options.examples, options.length, options.labels

    chain = Chain(np.full(n, length), k)
    rng = np.random.default_rng(0)
    potentials = rng.normal(size=chain.n_parts)
    alike = potentials.copy()
    alike[chain.starts[1] :] = np.tile(rng.normal(size=k * k), n)
    large = 1e4 * potentials
    z, value, status = np.zeros(chain.n_parts), np.zeros(n), np.zeros(n, dtype=np.int8)
    report: dict[str, object] = {"examples": n, "length": length, "labels": k, "lanes": _kernels._use_lanes(0)}

    def viterbi_kernel(threads: int) -> None:
        _kernels.chain_argmax(*chain._layout, potentials, z, value, status, threads)

    def kernel(given: np.ndarray, threads: int) -> None:
        _kernels.chain_marginals(*chain._layout, False, given, z, value, status, np.empty(0), threads)

    for threads, word in ((1, "one_thread"), (2, "two_threads")):
        with maxmargin.threads(threads):
            found = best_of(
                options.repeats,
                lambda: chain.argmax(potentials),
                lambda: chain.marginals(potentials),
                partial(viterbi_kernel, threads),
                partial(kernel, potentials, threads),
                partial(kernel, alike, threads),
                partial(kernel, large, threads),
            )
        report[word] = {
            "viterbi_ms": round(1e3 * found[0], 2),
            "forward_backward_ms": round(1e3 * found[1], 2),
            "times_viterbi": round(found[1] / found[0], 2),
            "kernel_viterbi_ms": round(1e3 * found[2], 2),
            "kernel_forward_backward_ms": round(1e3 * found[3], 2),
            "kernel_times_viterbi": round(found[3] / found[2], 2),
            "kernel_same_matrix_times_viterbi": round(found[4] / found[2], 2),
            "kernel_times_1e4_times_viterbi": round(found[5] / found[2], 2),
        }
        if threads == 1:
            alone = found[1]

    nodes, pairs = potentials[: chain.starts[1]].reshape(n, length, k), potentials[chain.starts[1] :].reshape(n, k, k)
    points = chain.marginals(potentials)
    (seconds,) = best_of(1, lambda: numpy_forward_backward(nodes, pairs))
    means, sums, logs = numpy_forward_backward(nodes, pairs)
    report["numpy_ms"] = round(1e3 * seconds, 2)
    report["times_faster_than_numpy"] = round(seconds / alone, 1)
    report["largest_difference_to_numpy"] = float(
        max(np.abs(points.z - np.concatenate([means.ravel(), sums.ravel()])).max(), np.abs(points.value - logs).max())
    )
    try:
        (seconds,) = best_of(2, lambda: hmmlearn_forward_backward(nodes, pairs))
    except ImportError:
        pass
    else:
        theirs = np.concatenate([part.ravel() for part in hmmlearn_forward_backward(nodes, pairs)])
        report["hmmlearn"] = importlib.metadata.version("hmmlearn")
        report["hmmlearn_ms"] = round(1e3 * seconds, 2)
        report["times_faster_than_hmmlearn"] = round(seconds / alone, 1)
        report["largest_difference_to_hmmlearn"] = float(np.abs(points.z - theirs).max())
    print(json.dumps(report))


if __name__ == "__main__":
    main()
