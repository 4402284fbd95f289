"""Viterbi on 1,000 chains x 50 positions x 45 labels: the library, batched NumPy, and C++ with backpointers.

``python -m benchmarks.kernels.viterbi [--examples N] [--length T] ...`` prints one JSON object. All are timed in the
same run, best of several, in CPU time, and two threads by the clock; the C++ baseline is skipped without ``g++``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import maxmargin
from benchmarks.timing import timed
from maxmargin.structures.chains.chain import Chain

BASELINE = r"""
#include <cstdint>
#include <vector>
extern "C" void viterbi(int64_t n, int64_t T, int64_t K, const double* nodes, const double* pairs, int32_t* labels) {
    std::vector<int64_t> back(T * K);
    std::vector<double> now(K), before(K);
    for (int64_t i = 0; i < n; ++i, nodes += T * K, pairs += K * K, labels += T) {
        for (int64_t b = 0; b < K; ++b) before[b] = nodes[b];
        for (int64_t t = 1; t < T; ++t) {
            double* __restrict__ best = now.data();
            int64_t* __restrict__ from = back.data() + t * K;
            for (int64_t b = 0; b < K; ++b) { best[b] = before[0] + pairs[b]; from[b] = 0; }
            for (int64_t a = 1; a < K; ++a) {
                const double* __restrict__ row = pairs + a * K;
                const double here = before[a];
                for (int64_t b = 0; b < K; ++b) {
                    const double sum = here + row[b];
                    const bool better = sum > best[b];
                    best[b] = better ? sum : best[b];
                    from[b] = better ? a : from[b];
                }
            }
            for (int64_t b = 0; b < K; ++b) best[b] += nodes[t * K + b];
            now.swap(before);
        }
        int32_t label = 0;
        for (int64_t b = 1; b < K; ++b) if (before[b] > before[label]) label = static_cast<int32_t>(b);
        for (int64_t t = T - 1; t >= 0; --t) {
            labels[t] = label;
            if (t > 0) label = static_cast<int32_t>(back[t * K + label]);
        }
    }
}
"""


def chain_options(description: str) -> argparse.Namespace:
    """The sizes of a workload of chains."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--labels", type=int, default=45)
    parser.add_argument("--repeats", type=int, default=15)
    return parser.parse_args()


def numpy_viterbi(nodes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Labels ``(n, T)`` of all chains at once, from ``nodes (n, T, K)`` and ``pairs (n, K, K)``."""
    n, length, _ = nodes.shape
    into = np.ascontiguousarray(pairs.transpose(0, 2, 1))
    forward = nodes.copy()
    for t in range(1, length):
        forward[:, t] += (forward[:, t - 1, None, :] + into).max(axis=2)
    labels = np.empty((n, length), dtype=np.int64)
    labels[:, -1] = forward[:, -1].argmax(axis=1)
    every = np.arange(n)
    for t in range(length - 1, 0, -1):
        labels[:, t - 1] = (forward[:, t - 1] + into[every, labels[:, t]]).argmax(axis=1)
    return labels


def backpointer_viterbi(nodes: np.ndarray, pairs: np.ndarray, repeats: int) -> tuple[np.ndarray, float] | None:
    """Labels and seconds of the C++ baseline, or None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    n, length, k = nodes.shape
    labels = np.empty((n, length), dtype=np.int32)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "viterbi.cpp"), Path(folder, "viterbi.so")
        source.write_text(BASELINE)
        subprocess.run(
            [compiler, "-O3", "-march=native", "-fno-trapping-math", "-shared", "-fPIC", source, "-o", library],
            check=True,
        )
        function = ctypes.CDLL(str(library)).viterbi
        function.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
        function.restype = None
        arguments = (n, length, k, nodes.ctypes.data, pairs.ctypes.data, labels.ctypes.data)
        return labels, timed(lambda: function(*arguments), repeats)[1]


def main() -> None:
    options = chain_options(__doc__)
    n, length, k = options.examples, options.length, options.labels

    chain = Chain(np.full(n, length), k)
    scores = np.random.default_rng(0).normal(size=chain.n_parts)
    nodes, pairs = scores[: chain.starts[1]].reshape(n, length, k), scores[chain.starts[1] :].reshape(n, k, k)
    seconds = {}
    for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
        with maxmargin.threads(threads):
            seconds[threads] = timed(lambda: chain.argmax(scores), options.repeats, clock)[1]
    labels = np.array(chain.decode(chain.argmax(scores).z))
    by_numpy, in_numpy = timed(lambda: numpy_viterbi(nodes, pairs), 2)
    baseline = backpointer_viterbi(nodes, pairs, 3)

    report: dict[str, object] = {
        "examples": n,
        "length": length,
        "labels": k,
        "one_thread_ms": round(1e3 * seconds[1], 2),
        "two_threads_ms": round(1e3 * seconds[2], 2),
        "one_thread_tokens_per_second": round(n * length / seconds[1]),
        "two_threads_tokens_per_second": round(n * length / seconds[2]),
        "numpy_ms": round(1e3 * in_numpy, 2),
        "times_faster_than_numpy": round(in_numpy / seconds[1], 1),
        "numpy_agrees": bool((by_numpy == labels).all()),
    }
    if baseline is not None:
        report["backpointers_ms"] = round(1e3 * baseline[1], 2)
        report["times_faster_than_backpointers"] = round(baseline[1] / seconds[1], 1)
        report["backpointers_agree"] = bool((baseline[0] == labels).all())
    print(json.dumps(report))


if __name__ == "__main__":
    main()
