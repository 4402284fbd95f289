"""What all bindings have in common: arrays are taken as they are, and threads that cannot start are done without."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin import _kernels
from maxmargin.structures import Chain, Cut, Lattice, Matching, Pairing
from maxmargin.tasks import _kernels as task_kernels

CHAIN, CUT, MATCHING = Chain([2], 2), Cut([2], [[0, 1]], [0, 1]), Matching.dense([(2, 2)])
LATTICE = Lattice.confusion_network([1, 2], [0, 2])._batch
PAIRING = Pairing.dense([3])._batch
PATHS = np.array([0, 1]), np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array([0])
PATTERN = np.array([0, 1, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
SUPPORT = _kernels.Support(*PATTERN, 2)


def outputs(parts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(parts), np.zeros(1), np.zeros(1, dtype=np.int8)


def hull() -> object:
    return _kernels.HullBatch(np.array([8]), 1e-8)


OFFSETS = np.array([[0, 8]])
SENTENCES = np.array([1, 2, 3], dtype=np.int32), np.array([0, 2, 3])
LISTS = np.array([0, 2]), np.array([0, 2])
CALLS = {
    "chain_argmax": (_kernels.chain_argmax, (*CHAIN._layout, np.ones(8), *outputs(8), 1)),
    "chain_marginals": (_kernels.chain_marginals, (*CHAIN._layout, False, np.ones(8), *outputs(8), np.zeros(4), 1)),
    "chain_k_best": (_kernels.chain_k_best, (*CHAIN._layout, 1, np.ones(8), *outputs(8), 1)),
    "chain_labels": (
        _kernels.chain_labels,
        (*CHAIN._layout, np.ones(8), np.zeros(2, dtype=np.int32), np.zeros(1), np.zeros(1, dtype=np.int8), 1),
    ),
    "chain_labels_once": (
        _kernels.chain_labels_once,
        (
            *CHAIN._once(np.ones(4), np.ones((2, 2))),
            *(np.zeros(2, dtype=np.int32), np.zeros(1), np.zeros(1, dtype=np.int8), 1),
        ),
    ),
    "chain_max_marginals": (_kernels.chain_max_marginals, (*CHAIN._layout, np.ones(8), np.zeros(4), 1)),
    "chain_max_marginals_once": (
        _kernels.chain_max_marginals_once,
        (*CHAIN._once(np.ones(4), np.ones((2, 2))), np.zeros(4), 1),
    ),
    "chain_oracle": (_kernels.ChainOracle, (CHAIN.lengths, 2, True, *CHAIN._masks, 1)),
    "chain_project": (_kernels.chain_project, (*CHAIN._layout, *CHAIN._masks, hull(), np.ones(8), *outputs(8), 1)),
    "chain_slack_argmax": (
        _kernels.chain_slack_argmax,
        (*CHAIN._layout, np.ones(8), np.ones(1), np.ones(8), np.ones(1), *outputs(8), 1),
    ),
    "cut_batch": (_kernels.CutBatch, CUT._ordered()),
    "cut_argmax": (_kernels.cut_argmax, (CUT._batch, np.ones(3), 20, np.zeros(1), *outputs(3), 1)),
    "cut_order": (_kernels.cut_order, (CUT._batch, np.zeros(2, dtype=np.int32))),
    "cut_project": (
        _kernels.cut_project,
        (CUT._plan, np.ones(3), 1e-8, True, 9, np.zeros(1), np.zeros(3), np.zeros(1), *outputs(1)[1:], 1),
    ),
    "lattice_batch": (
        _kernels.LatticeBatch,
        (np.array([0, 2]), np.array([0, 1]), *(np.array(one, dtype=np.int32) for one in ([[0, 1]], [0], [1])), 1),
    ),
    "lattice_positions": (LATTICE.positions, (np.zeros(3, dtype=np.int32),)),
    "lattice_argmax": (LATTICE.argmax, (np.ones(3), *outputs(3), 1)),
    "lattice_marginals": (LATTICE.marginals, (np.ones(3), *outputs(3), 1)),
    "lattice_k_best": (LATTICE.k_best, (1, np.ones(3), *outputs(3), 1)),
    "lattice_k_best_words": (LATTICE.k_best_words, (1, np.ones(3), np.zeros(3, int), *outputs(3), 1)),
    "lattice_project": (
        LATTICE.project,
        (np.ones(3), 1e-8, False, np.zeros(3), *outputs(3), np.zeros(1, dtype=np.int32), 1),
    ),
    "lattice_slack_argmax": (LATTICE.slack_argmax, (np.ones(3), np.ones(1), np.ones(3), np.ones(1), *outputs(3), 1)),
    "lattice_pairs": (LATTICE.most_violated_pairs, (*PATHS, np.ones(3), np.zeros(3), np.zeros(1), 1)),
    "lattice_pairs_hinge": (
        _kernels.PathPairsHinge,
        (LATTICE, *PATHS, np.array([0, 2]), np.array([0, 1]), np.zeros(3), np.ones(1)),
    ),
    "matching_batch": (
        _kernels.MatchingBatch,
        (np.array([0, 2]), np.array([0, 2]), np.array([0, 4]), np.zeros((0, 2), dtype=np.int32), *np.ones((2, 2), int)),
    ),
    "matching_argmax": (_kernels.matching_argmax, (MATCHING._batch, np.ones(4), *outputs(4), 1)),
    "matching_project": (
        _kernels.matching_project,
        (MATCHING._batch, np.ones(4), 1e-8, False, np.zeros(4), *outputs(4), np.zeros((1, 2), dtype=np.int32), 1),
    ),
    "pairing_batch": (
        _kernels.PairingBatch,
        (np.array([0, 2]), np.array([0, 1]), np.array([[0, 1]], dtype=np.int32), True),
    ),
    "pairing_argmax": (PAIRING.argmax, (np.ones(3), *outputs(3), 1)),
    "pairing_k_best": (PAIRING.k_best, (1, np.ones(3), *outputs(3), 1)),
    "pairing_duals": (PAIRING.duals, (np.ones(3), np.zeros(3), np.zeros(1, dtype=np.int8), 1)),
    "indicator_rows": (_kernels.indicator_rows, (np.zeros((2, 3), dtype=np.int64), 4, np.zeros(4, dtype=np.int32))),
    "hull": (_kernels.HullBatch, (np.array([8]), 1e-8)),
    "attribute_count": (task_kernels.attribute_count, (np.zeros(2, dtype=np.uint8),)),
    "attribute_scan": (
        task_kernels.attribute_scan,
        (np.zeros(2, dtype=np.uint8), *np.zeros((2, 1), int), np.zeros(1), np.zeros(2, int), *np.zeros((4, 1), int)),
    ),
    "text_splice": (
        task_kernels.text_splice,
        (
            *(np.zeros(2, dtype=np.uint8), *np.zeros((2, 1), int), np.zeros(1, dtype=np.int32), np.arange(2)),
            *(np.zeros(1, dtype=np.uint8), np.ones(1), np.zeros(1, dtype=np.uint8), 6, np.zeros(99, dtype=np.uint8)),
        ),
    ),
    "support": (_kernels.Support, (*PATTERN, 2)),
    "supported_forward": (
        _kernels.supported_forward,
        (SUPPORT, *PATTERN, np.ones(2), np.ones(2), np.ones(2), np.zeros(4), 1),
    ),
    "supported_adjoint": (_kernels.supported_adjoint, (SUPPORT, *PATTERN, np.ones(2), np.ones(4), np.zeros(2), 1)),
    "supported_part_norms": (_kernels.supported_part_norms, (SUPPORT, *PATTERN, np.ones(2), True, np.zeros(4), 1)),
    "supported_map": (_kernels.supported_map, (SUPPORT, *PATTERN, np.ones(2), np.array([0, 2]), True)),
    "supported_pairs": (_kernels.PairSet(2, 2).add_rows, (*PATTERN, np.arange(2), np.arange(2))),
    "supported_pairs_count": (_kernels.PairSet(2, 2).count, (np.zeros(2, int),)),
    "supported_pairs_write": (_kernels.PairSet(2, 2).write, (np.zeros(2, dtype=np.int32),)),
    "bleu_statistics": (task_kernels.bleu_statistics, (*SENTENCES, *SENTENCES, *LISTS, 4, np.zeros((2, 10)), 1)),
    "chrf_statistics": (
        task_kernels.chrf_statistics,
        (*SENTENCES, *SENTENCES, *SENTENCES, *SENTENCES, *LISTS, 6, 2, 2.0, np.zeros((2, 24)), 1),
    ),
    "error_statistics": (task_kernels.error_statistics, (*SENTENCES, *SENTENCES, *LISTS, np.zeros((2, 2)), 1)),
    "token_count": (task_kernels.token_count, (np.zeros(2, dtype=np.uint8), 0)),
    "token_scan": (
        task_kernels.token_scan,
        (np.zeros(2, dtype=np.uint8), 0, *np.zeros((2, 1, 1), int), np.zeros(1, int), np.zeros(2, int)),
    ),
    "hull_begin": (hull().begin, (OFFSETS, np.ones(8), np.zeros(8), 1)),
    "hull_absorb": (
        hull().absorb,
        (OFFSETS, np.array([0]), np.ones(8), np.ones(8), outputs(8)[2], np.ones(8), np.zeros(1, dtype=bool), 1),
    ),
    "hull_write": (hull().write, (OFFSETS, np.ones(8), *outputs(8), 1)),
    "hull_save": (
        hull().save,
        (np.zeros(2, int), np.zeros(0), np.zeros(1, int), np.zeros(0, dtype=np.int32), np.zeros(0)),
    ),
    "hull_load": (
        hull().load,
        (np.zeros(2, int), np.zeros(0), np.zeros(1, int), np.zeros(0, dtype=np.int32), np.zeros(0)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_are_never_converted(name: str) -> None:
    call, arguments = CALLS[name]
    for at, argument in enumerate(arguments):
        if not isinstance(argument, np.ndarray):
            continue
        other = argument.astype(np.float32 if argument.dtype == np.float64 else np.int16)
        for wrong in (other, np.repeat(argument, 2, axis=-1)[..., ::2] if argument.size > 1 else argument.tolist()):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(*arguments[:at], wrong, *arguments[at + 1 :])


@pytest.mark.parametrize("name", ["maxmargin._kernels", "maxmargin.tasks._kernels"])
def test_stubs_match_the_modules(name: str) -> None:
    pytest.importorskip("nanobind", reason="nanobind, which generates the stubs, is not installed")
    root = Path(__file__).parents[2]
    committed = (root / "src" / name.replace(".", "/")).with_suffix(".pyi").read_text(encoding="utf-8")
    assert committed == runpy.run_path(str(root / "cpp" / "stubs.py"))["stub"](name), "run make stubs"


FEW_THREADS = """
import resource
import numpy as np
from maxmargin import threads
from maxmargin.structures import Chain

chain = Chain(np.full(400, 5), 3)
scores = np.random.default_rng(0).normal(size=chain.n_parts)
alone = chain.argmax(scores)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), resource.RLIM_INFINITY))
with threads(64):
    together = chain.argmax(scores)
assert (alone.z == together.z).all() and (alone.value == together.value).all()
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bounds the address space the way Linux does")
@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer needs the address space")
def test_threads_that_cannot_start_are_done_without() -> None:
    answer = subprocess.run([sys.executable, "-c", FEW_THREADS], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "done\n"), answer.stderr


def examples(n_weights: int = 2) -> object:
    """Two examples of two candidates with one feature."""
    offsets = np.array([0, 2, 4])
    matrix = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.arange(4.0)
    rows = _kernels.rows_map(*matrix, 4, 1, offsets, 1, False, False, 1.0, np.zeros(0, int), False, np.zeros(0, int))
    joined = _kernels.joined_map([rows], [0], n_weights, False)
    gold = np.array([0, 1, 2]), np.array([0, 2]), np.ones(2)
    oracle = _kernels.CandidatesOracle(offsets, 1)
    return _kernels.OnlineExamples(oracle, joined, 0, None, False, [offsets], np.ones(4), *gold, np.ones(2))


FREE = np.zeros(0, dtype=np.uint8)


@pytest.mark.parametrize("far", [2**34, 2**62, -(2**34), 2**63 - 1, -(2**63)])
def test_offsets_that_wrap_are_refused(far: int) -> None:
    made, z = examples(), np.zeros(4)
    blocks = [np.array([-far if far > -(2**63) else 0, 2, 4]), np.array([far, 0, 0])]
    with pytest.raises(ValueError, match="offsets of a block must rise from 0"):
        _kernels.differences(made, blocks, z, 1)
    rows = _kernels.supported_map(SUPPORT, *PATTERN, np.ones(2), np.array([0, 2]), True)
    with pytest.raises(ValueError, match="weights"):
        _kernels.joined_map([rows], [far], 2**63 - 1 if far > 0 else 4, False)
    nodes, pairs = np.array([0, far, 4]), np.array([4, 8, 12])
    with pytest.raises(ValueError, match="offsets"):
        _kernels.chain_argmax(nodes, pairs, 2, True, np.ones(12), np.zeros(12), np.zeros(2), np.zeros(2, np.int8), 1)
    with pytest.raises(ValueError, match="offsets"):
        _kernels.CutBatch(np.array([0, far, 2]), np.array([0, 0, 0]), np.zeros((0, 2), dtype=np.int32))


def test_active_sets_serve_one_projection() -> None:
    point = np.random.default_rng(0).normal(size=8)
    sets = hull()
    _kernels.chain_project(*CHAIN._layout, *CHAIN._masks, sets, point, *outputs(8), 1)
    with pytest.raises(ValueError, match="have been used"):
        _kernels.chain_project(*CHAIN._layout, *CHAIN._masks, sets, point, *outputs(8), 1)
    with pytest.raises(ValueError, match="have been used"):
        sets.begin(OFFSETS, point, np.zeros(8), 1)
    with pytest.raises(ValueError, match="call begin first"):
        hull().write(OFFSETS, point, *outputs(8), 1)
    with pytest.raises(ValueError, match="call begin first"):
        hull().absorb(OFFSETS, np.array([0]), point, point, outputs(8)[2], np.zeros(8), np.zeros(1, dtype=bool), 1)


def test_arrays_to_write_have_memory_of_their_own() -> None:
    scores, (z, value, status) = np.ones(8), outputs(8)
    for shared in (
        (scores, scores, value, status),
        (scores, z, z[:1], status),
        (scores, z, value, value.view(np.int8)[:1]),
    ):
        with pytest.raises(ValueError, match="shares memory"):
            _kernels.chain_argmax(*CHAIN._layout, *shared, 1)
    nodes = np.concatenate([CHAIN._layout[0], np.zeros(8, int)])
    with pytest.raises(ValueError, match="shares memory"):
        _kernels.chain_argmax(nodes[:2], *CHAIN._layout[1:], scores, nodes[1:9].view(float), value, status, 1)
    _kernels.chain_argmax(*CHAIN._layout, scores, z, value, status, 1)


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**31 - 1])
def test_threads_are_bounded(threads: int) -> None:
    with pytest.raises(ValueError, match="threads must be between 1 and 1024"):
        _kernels.chain_argmax(*CHAIN._layout, np.ones(8), *outputs(8), threads)


def test_steps_and_claims_are_bounded() -> None:
    program = np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)
    across = np.zeros(2, np.int32), np.zeros(0, np.int32), np.zeros(0)
    rest = (
        np.zeros(0),
        np.zeros(0, np.int32),
        np.ones(1),
        np.zeros(1),
        np.ones(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(0),
    )
    with pytest.raises(ValueError, match="steps must be between 0 and 1000000, got 4611686018427387904"):
        _kernels.linear_master_extragradient(*program, *across, *rest, 0.1, 2**62)
    with pytest.raises(ValueError, match="too much memory"):
        _kernels.ChainOracle(np.array([1000]), 10, True, *CHAIN._masks, 2**27)
    with pytest.raises(ValueError, match="lengths must be"):
        _kernels.ChainOracle(np.array([2**40]), 2, True, *CHAIN._masks, 1)
    with pytest.raises(ValueError, match="too many weights"):
        _kernels.Masters(1, 2**62, 2**62, 1.0, np.inf, np.zeros(0, dtype=bool), False)
    with pytest.raises(ValueError, match="n_blocks must be between"):
        _kernels.Masters(2**31, 1, 0, 1.0, np.inf, np.zeros(0, dtype=bool), False)
    with pytest.raises(ValueError, match="too many weights"):
        _kernels.differences(examples(2**34), [np.array([0, 2, 4])], np.zeros(4), 1)


def test_views_of_a_state_stay_valid() -> None:
    descent = _kernels.BlockFrankWolfe(examples(), 0.5, np.inf, FREE, 2, 5, 4, 0.0, 0.0, 1)
    descent.pass_over(np.array([0, 1]), False, 1)
    descent.mark()
    descent.mark()
    state = descent.state()
    copies = [np.array(one) for one in state]
    copies[5] = copies[5].astype(np.float64)
    descent.pass_over(np.array([0, 1, 0]), False, 1)
    descent.restore(*copies)
    for view, copy in zip(state, copies, strict=True):
        assert (np.asarray(view) == copy).all()
