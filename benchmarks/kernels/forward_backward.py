"""Forward-backward on 1,000 chains x 50 positions x 45 labels, relative to Viterbi in the same run, and two peers.

``python -m benchmarks.kernels.forward_backward [--examples N] ...`` prints one JSON object. Times are the best of
several, in CPU time, and two threads by the clock; ``kernel`` excludes the arrays that Python allocates for each call.
``same_matrix`` gives all examples the same transition matrix, as training does; ``times_1e4`` has potentials so large
that the kernel works with logarithms. Peers: log-sum-exp over all chains at once in NumPy, and ``hmmlearn`` (compiled,
one call per chain and pass), which is skipped if not installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import maxmargin
from benchmarks.kernels.viterbi import chain_options
from benchmarks.timing import timed
from maxmargin import _kernels
from maxmargin.structures.chains.chain import Chain


def log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    most = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - most).sum(axis=axis)) + most.squeeze(axis)


def numpy_forward_backward(nodes: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node marginals, pair sums and values of all chains at once, from ``nodes (n, T, K)`` and ``pairs (n, K, K)``."""
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
    options = chain_options(__doc__)
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
            calls: dict[str, Callable[[], object]] = {
                "viterbi": lambda: chain.argmax(potentials),
                "forward_backward": lambda: chain.marginals(potentials),
                "kernel_viterbi": partial(viterbi_kernel, threads),
                "kernel_forward_backward": partial(kernel, potentials, threads),
                "kernel_same_matrix": partial(kernel, alike, threads),
                "kernel_times_1e4": partial(kernel, large, threads),
            }
            clock = time.process_time if threads == 1 else time.perf_counter
            found = {name: timed(call, options.repeats, clock)[1] for name, call in calls.items()}
        report[word] = {f"{name}_ms": round(1e3 * seconds, 2) for name, seconds in found.items()} | {
            f"{name}_over_viterbi": round(seconds / found["kernel_viterbi" if "kernel" in name else "viterbi"], 2)
            for name, seconds in found.items()
            if "viterbi" not in name
        }
        if threads == 1:
            alone = found["forward_backward"]

    nodes, pairs = potentials[: chain.starts[1]].reshape(n, length, k), potentials[chain.starts[1] :].reshape(n, k, k)
    points = chain.marginals(potentials)
    (means, sums, logs), seconds = timed(lambda: numpy_forward_backward(nodes, pairs))
    report["numpy_ms"] = round(1e3 * seconds, 2)
    report["times_faster_than_numpy"] = round(seconds / alone, 1)
    report["largest_difference_to_numpy"] = float(
        max(np.abs(points.z - np.concatenate([means.ravel(), sums.ravel()])).max(), np.abs(points.value - logs).max())
    )
    try:
        theirs, seconds = timed(lambda: hmmlearn_forward_backward(nodes, pairs), 2)
    except ImportError:
        pass
    else:
        report["hmmlearn"] = importlib.metadata.version("hmmlearn")
        report["hmmlearn_ms"] = round(1e3 * seconds, 2)
        report["times_faster_than_hmmlearn"] = round(seconds / alone, 1)
        report["largest_difference_to_hmmlearn"] = float(
            np.abs(points.z - np.concatenate([part.ravel() for part in theirs])).max()
        )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
