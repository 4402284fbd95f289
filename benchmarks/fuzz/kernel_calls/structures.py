"""Calls of the structures' kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.fuzz.kernel_calls.call import Call, bound, i32, i64, method, offsets, outputs, real, sizes, some
from benchmarks.fuzz.kernel_calls.online import examples_of
from maxmargin import _kernels as core

NONE = np.zeros(0)


def chain(random: Generator) -> list[Call]:
    """Sequences of the first order."""
    k, lengths, shared, threads = some(random, 3, 1), sizes(random), bool(random.integers(2)), some(random, 2, 1)
    n = len(lengths)
    nodes = offsets(k * lengths)
    own = np.full(n, k * k) if shared else np.maximum(lengths - 1, 0) * k * k
    pairs = nodes[-1] + offsets(own)
    layout, parts, ranks = (nodes, pairs, k, shared), int(pairs[-1]), some(random, 4, 1)
    scores = real(random, parts)
    n_edges = int(np.maximum(lengths - 1, 0).sum()) if shared else 0
    masks = (real(random, k * k), real(random, k), real(random, k)) if random.integers(2) else (NONE, NONE, NONE)
    once = (nodes, k, real(random, int(nodes[-1])), real(random, k * k), real(random, k), NONE)
    words = np.zeros(int(lengths.sum()), dtype=np.int32)
    per_example = np.zeros(n), np.zeros(n, dtype=np.int8)
    sets = core.HullBatch(i64(k * lengths + own), 1e-8)
    slack = real(random, n), real(random, parts), real(random, n)
    return [
        bound(core, "chain_argmax", *layout, scores, *outputs(parts, n), threads),
        bound(core, "chain_marginals", *layout, bool(random.integers(2)), scores, *outputs(parts, n),
              np.zeros(n_edges * k * k), threads),
        bound(core, "chain_k_best", *layout, ranks, scores, *outputs(parts, n, ranks), threads),
        bound(core, "chain_labels", *layout, scores, words, *per_example, threads),
        bound(core, "chain_labels_once", *once, words, *per_example, threads),
        bound(core, "chain_max_marginals", *layout, scores, np.zeros(int(nodes[-1])), threads),
        bound(core, "chain_max_marginals_once", *once, np.zeros(int(nodes[-1])), threads),
        bound(core, "chain_project", *layout, *masks, sets, scores, *outputs(parts, n), threads),
        bound(core, "chain_slack_argmax", *layout, scores, *slack, *outputs(parts, n), threads),
        bound(core, "ChainOracle", i64(lengths), k, shared, *masks, ranks,
              then=lambda made: [*examples_of(random, made, k * lengths + own), method(made, "ranks")]),
    ]  # fmt: skip


def second_order(random: Generator) -> list[Call]:
    """Sequences of the second order."""
    k, lengths, threads, ranks = some(random, 3, 1), sizes(random), some(random, 2, 1), some(random, 3, 1)
    n, nodes = len(lengths), offsets(k * lengths)
    masks = [random.integers(2, size=size).astype(np.uint8) for size in (k * k, k, k)]
    if random.integers(2):
        masks = [np.ones_like(mask) for mask in masks]
    copies = 1 if random.integers(2) else n
    batch = (nodes, k, *masks, real(random, int(nodes[-1])), real(random, copies * k * k), real(random, copies * k**3))
    own = k * lengths + k * k + k**3
    parts = int(own.sum())
    per_example = np.zeros(n), np.zeros(n, dtype=np.int8)
    return [
        bound(core, "second_order_argmax", *batch, *outputs(parts, n), threads),
        bound(core, "second_order_labels", *batch, np.zeros(int(lengths.sum()), dtype=np.int32), *per_example, threads),
        bound(core, "second_order_k_best", *batch, ranks, *outputs(parts, n, ranks), threads),
        bound(core, "second_order_marginals", *batch, bool(random.integers(2)), *outputs(parts, n), threads),
        bound(core, "second_order_max_marginals", *batch, np.zeros(int(nodes[-1])), threads),
        bound(core, "second_order_project", *batch, core.HullBatch(i64(own), 1e-8), *outputs(parts, n), threads),
        bound(core, "SecondOrderOracle", i64(lengths), k, *masks, ranks,
              then=lambda made: examples_of(random, made, own)),
    ]  # fmt: skip


def graphs(random: Generator, least: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes per example, edges per example, and the two ends of each edge."""
    nodes, ends, counts = sizes(random, 4, least), [], []
    for size in nodes:
        pairs = [(a, b) for a in range(size) for b in range(a + 1, size)]
        chosen = [pair for pair in pairs if random.random() < 0.6]
        ends += chosen
        counts.append(len(chosen))
    return nodes, i64(counts), i32(ends).reshape(-1, 2)


def tree(random: Generator) -> list[Call]:
    """Junction trees with cliques."""
    nodes, edges, ends = graphs(random)
    n, threads, ranks = len(nodes), some(random, 2, 1), some(random, 3, 1)
    labels = i32(random.integers(1, 4, size=int(nodes.sum())))
    cliques = [random.permutation(size)[: some(random, 3, 1)] for size in nodes if size > 0]
    clique_counts = i64([1 if size > 0 else 0 for size in nodes])
    members = i32(np.concatenate(cliques) if cliques else [])
    first = offsets(nodes)
    own = []
    for i in range(n):
        k = labels[first[i] : first[i + 1]]
        these = ends[offsets(edges)[i] : offsets(edges)[i + 1]]
        parts = int(k.sum()) + sum(int(k[a]) * int(k[b]) for a, b in these)
        if nodes[i] > 0:
            parts += int(np.prod(k[cliques[int(clique_counts[:i].sum())]]))
        own.append(parts)
    parts = int(sum(own))
    order = i32(np.concatenate([random.permutation(size) for size in nodes]) if n else [])
    graph = first, labels, ends, offsets(edges)
    most = 1e6

    def use(made: Any) -> list[Call]:
        scores = real(random, parts)
        slack = real(random, n), real(random, parts), real(random, n)
        words = np.zeros(len(labels), dtype=np.int32)
        return [
            method(made, "argmax", scores, *outputs(parts, n), threads),
            method(made, "labels", scores, words, *outputs(parts, n)[1:], threads),
            method(made, "k_best", ranks, scores, *outputs(parts, n, ranks), threads),
            method(made, "marginals", scores, *outputs(parts, n), threads),
            method(made, "project", core.HullBatch(i64(own), 1e-8), scores, *outputs(parts, n), threads),
            method(made, "slack_argmax", scores, *slack, *outputs(parts, n), threads),
            bound(core, "TreeOracle", made, ranks, then=lambda oracle: examples_of(random, oracle, i64(own))),
        ]

    batch = (*graph, offsets(clique_counts), offsets([len(clique) for clique in cliques]), members, order, most)
    return [
        bound(core, "tree_order", *graph, bool(random.integers(2)), most, 20, np.zeros_like(labels), np.zeros(n, int),
              np.zeros(n), threads),
        bound(core, "TreeBatch", *batch, then=use),
        *use(core.TreeBatch(*batch)),
    ]  # fmt: skip


def cut(random: Generator) -> list[Call]:
    """Minimum cuts, with their orders, cliques and projections."""
    nodes, edges, ends = graphs(random)
    n = len(nodes)
    plain = offsets(nodes), offsets(edges), ends
    orders = [
        i32(np.concatenate([random.permutation(size) for size in counts]) if n else []) for counts in (nodes, edges)
    ]
    return [
        bound(core, "CutBatch", *plain, then=lambda made: cuts(random, made, nodes, edges, nodes + edges)),
        bound(core, "CutBatch", *plain, *orders, then=lambda made: cuts(random, made, nodes, edges, nodes + edges)),
        clique_cut(random),
        bound(core, "faulty_edge", *plain[:2], i64(ends)),
        *cuts(random, core.CutBatch(*plain, *orders), nodes, edges, nodes + edges),
    ]


def cuts(random: Generator, made: Any, nodes: np.ndarray, edges: np.ndarray, own: np.ndarray) -> list[Call]:
    """What can be done with graphs of so many nodes, edges and parts."""
    n, threads, parts = len(nodes), some(random, 2, 1), int(own.sum())
    flow, gap, point = np.zeros(int(edges.sum())), np.zeros(n), real(random, parts)
    return [
        bound(core, "cut_argmax", made, point, 20, flow, *outputs(parts, n), threads),
        bound(core, "cut_order", made, np.zeros(int(nodes.sum()), dtype=np.int32)),
        bound(core, "cut_project", made, point, 1e-8, bool(random.integers(2)), 50, flow, *outputs(parts, n)[:2], gap,
              outputs(parts, n)[2], threads),
        bound(core, "CutOracle", made, 20, then=lambda oracle: examples_of(random, oracle, own)),
    ]  # fmt: skip


def clique_cut(random: Generator) -> Call:
    """A batch of one example whose clique of all nodes adds two nodes of its own."""
    size = some(random, 3, 2)
    own = [(0, 1)]
    ends = own + [(j, size) for j in range(size)] + [(size + 1, j) for j in range(size)]
    orders = np.arange(size + 2, dtype=np.int32), np.arange(len(ends), dtype=np.int32)
    counts = i64([0, size]), i64([0, len(own)]), i64([0, 1])
    sizes = i64([size + 2]), i64([len(ends)]), i64([size + len(own) + 2])
    return bound(core, "CutBatch", offsets(sizes[0]), offsets(sizes[1]), i32(ends), *orders, *counts,
                 then=lambda made: cuts(random, made, *sizes))  # fmt: skip


def graph(random: Generator) -> list[Call]:
    """Pairwise networks."""
    nodes, edges, ends = graphs(random)
    n, threads, k, table = len(nodes), some(random, 2, 1), some(random, 3, 1), bool(random.integers(2))
    made = core.CutBatch(offsets(nodes), offsets(edges), ends)
    parts = int(nodes.sum() * k + edges.sum() * (k * k if table else k))
    scores, z = real(random, parts), outputs(parts, n)
    multipliers = np.zeros(2 * len(ends) * k)
    last = random.integers(2, size=n).astype(np.int8)
    layout = made, k, table, scores
    return [
        bound(core, "graph_argmax", *layout, 0.5 * random.integers(2), last, 30, 20, multipliers, *z, threads),
        bound(core, "graph_certify", *layout, multipliers, *z, threads),
        bound(core, "graph_round", *layout, multipliers, *z, threads),
        bound(core, "graph_project", *layout, 1e-8, 30, bool(random.integers(2)), multipliers, *z[:2], np.zeros(n),
              z[2], threads),
    ]  # fmt: skip


def cliques(random: Generator) -> list[Call]:
    """Networks with associative cliques."""
    nodes, edges, ends = graphs(random, 1)
    n, threads, k = len(nodes), some(random, 2, 1), some(random, 3, 1)
    groups, members = [], []
    for i in range(n):
        these = [list(end) for end in ends[offsets(edges)[i] : offsets(edges)[i + 1]]]
        these.append(list(random.permutation(nodes[i])[: some(random, 3, 1)]))
        groups += [len(group) for group in these]
        members += [node for group in these for node in group]
    batch = offsets(nodes), offsets(edges), offsets(np.ones(n, int)), offsets(groups), i32(members)
    parts = int(nodes.sum() + edges.sum() + n) * k

    def use(made: Any) -> list[Call]:
        z, value, status = outputs(parts, n)
        multipliers = np.zeros(len(members) * k)
        return [
            bound(core, "clique_project", made, k, real(random, parts), 1e-8, 30, multipliers, z, value, np.zeros(n),
                  status, threads),
        ]  # fmt: skip

    return [bound(core, "CliqueBatch", *batch, then=use), *use(core.CliqueBatch(*batch))]


def hull(random: Generator) -> list[Call]:
    """Active sets of projections, round by round."""
    own, threads = sizes(random, 4, 1), some(random, 2, 1)
    n, parts = len(own), int(own.sum())
    blocks = offsets(own)[None]
    point = real(random, parts)

    def use(made: Any) -> list[Call]:
        vertices, nonzeros = made.extent()
        room = (np.zeros(n + 1, int), np.zeros(vertices), np.zeros(vertices + 1, int), np.zeros(nonzeros, np.int32))
        kept = (np.arange(n + 1), np.ones(n), np.arange(n + 1), np.zeros(n, np.int32), np.ones(n))
        return [
            method(made, "begin", blocks, point, np.zeros(parts), threads),
            method(made, "absorb", blocks, np.arange(n), point, np.eye(1, parts).ravel() if parts else point.copy(),
                   np.zeros(n, np.int8), np.zeros(parts), np.zeros(n, bool), threads),
            method(made, "write", blocks, point, *outputs(parts, n), threads),
            method(made, "extent"),
            method(made, "save", *room, np.zeros(nonzeros)),
            method(made, "load", *kept),
        ]  # fmt: skip

    return [bound(core, "HullBatch", i64(own), 1e-8, then=use), *use(core.HullBatch(i64(own), 1e-8))]


def lattice(random: Generator) -> list[Call]:
    """Paths in acyclic graphs: chains of nodes with parallel and skipping edges."""
    steps, threads, ranks = sizes(random, 3, 1), some(random, 2, 1), some(random, 3, 1)
    n, ends, counts = len(steps), [], []
    for size in steps:
        own = [(j, j + 1) for j in range(size) for _ in range(some(random, 2, 1))]
        own += [(0, int(size))] if random.integers(2) else []
        ends += own
        counts.append(len(own))
    batch = offsets(steps + 1), offsets(counts), i32(ends).reshape(-1, 2), i32(np.zeros(n)), i32(steps), threads
    parts = len(ends)

    def use(made: Any) -> list[Call]:
        scores, first = real(random, parts), offsets(counts)
        slack = real(random, n), real(random, parts), real(random, n)
        paths = np.arange(n + 1), offsets(np.ones(n, int)), i32(np.zeros(n)), np.arange(n)
        return [
            method(made, "fault"),
            method(made, "positions", np.zeros(int(steps.sum()) + n, dtype=np.int32)),
            method(made, "argmax", scores, *outputs(parts, n), threads),
            method(made, "marginals", scores, *outputs(parts, n), threads),
            method(made, "k_best", ranks, scores, *outputs(parts, n, ranks), threads),
            method(made, "k_best_words", ranks, scores, random.integers(-1, 3, size=parts), *outputs(parts, n, ranks),
                   threads),
            method(made, "envelopes", scores, real(random, parts), np.zeros(n, np.int8), threads),
            method(made, "slack_argmax", scores, *slack, *outputs(parts, n), threads),
            method(made, "project", scores, 1e-8, bool(random.integers(2)), np.zeros(int(steps.sum()) + n),
                   *outputs(parts, n), np.zeros(n, np.int32), threads),
            method(made, "most_violated_pairs", *paths, scores, np.zeros(parts), np.zeros(n), threads),
            bound(core, "LatticeOracle", made, ranks, then=lambda oracle: examples_of(random, oracle, i64(counts))),
            bound(core, "PathPairsHinge", made, *paths, np.arange(n + 1), first[:-1].copy(), real(random, parts),
                  np.ones(n), then=lambda hinge: examples_of(random, core.LatticeOracle(made, 1), i64(counts), hinge)),
        ]  # fmt: skip

    return [bound(core, "LatticeBatch", *batch, then=use), *use(core.LatticeBatch(*batch))]


def pairing(random: Generator) -> list[Call]:
    """Pairs of nodes in graphs that lack some edges."""
    nodes, threads, ranks = sizes(random, 5, 0), some(random, 2, 1), some(random, 3, 1)
    graphs = [np.stack(np.triu_indices(size, 1), axis=1) for size in nodes]
    graphs = [pairs[random.random(len(pairs)) < 0.8] for pairs in graphs]
    counts, n = [len(pairs) for pairs in graphs], len(nodes)
    ends = i32(np.concatenate([np.zeros((0, 2)), *graphs]))
    batch = offsets(nodes), offsets(counts), ends, bool(random.integers(2))
    parts = len(ends)

    def use(made: Any) -> list[Call]:
        scores = real(random, parts)
        return [
            method(made, "argmax", scores, *outputs(parts, n), threads),
            method(made, "k_best", ranks, scores, *outputs(parts, n, ranks), threads),
            method(made, "project", core.HullBatch(i64(counts), 1e-8), scores, *outputs(parts, n), threads),
            method(made, "duals", scores, np.zeros(int(nodes.sum())), np.zeros(n, np.int8), threads),
            bound(core, "PairingOracle", made, ranks, then=lambda oracle: examples_of(random, oracle, i64(counts))),
        ]

    return [bound(core, "PairingBatch", *batch, then=use), *use(core.PairingBatch(*batch))]


def deduction(random: Generator, name: str, arguments: tuple[Any, ...], starts: list[Any]) -> list[Call]:
    """Every kernel of a deduction system; ``starts`` holds offsets of the parts of each block."""
    threads, ranks = some(random, 2, 1), some(random, 3, 1)
    counts = i64(sum(np.diff(block) for block in starts))
    n, parts = len(counts), int(counts.sum())

    def use(made: Any) -> list[Call]:
        scores, slack = real(random, parts), (real(random, n), real(random, parts), real(random, n))
        return [
            method(made, "argmax", scores, *outputs(parts, n), threads),
            method(made, "marginals", scores, *outputs(parts, n), threads),
            method(made, "k_best", ranks, scores, *outputs(parts, n, ranks), threads),
            method(made, "slack_argmax", scores, *slack, *outputs(parts, n), threads),
            method(made, "project", core.HullBatch(counts, 1e-8), scores, *outputs(parts, n), threads),
            method(made, "ways"),
            bound(core, f"{name}Oracle", made, ranks, then=lambda oracle: examples_of(random, oracle, counts)),
        ]

    made = getattr(core, f"{name}Batch")(*arguments)
    return [bound(core, f"{name}Batch", *arguments, then=use), *use(made)]


def segments(random: Generator) -> list[Call]:
    """Segmentations of short sequences."""
    lengths, labels, most, threads = sizes(random, 3), some(random, 2, 1), some(random, 3, 1), some(random, 2, 1)
    states = random.integers(-1, 3, size=4 * labels).astype(np.int32)
    longest = np.append(random.integers(1, most + 1, size=labels - 1), most)
    flags = [random.integers(0, 2, size=n).astype(np.uint8) for n in (labels * labels, labels, labels)]
    each = [labels * sum(min(most, n - b) for b in range(n)) for n in lengths.tolist()]
    blocks = [offsets(3 * lengths), offsets([labels * labels] * len(each)), offsets(each)]
    n, tokens, parts = len(lengths), int(lengths.sum()), sum(int(block[-1]) for block in blocks)

    def use(made: Any) -> list[Call]:
        scores = real(random, parts)
        found = np.zeros(tokens, dtype=np.int32), np.zeros(n), np.zeros(n, dtype=np.int8)
        return [
            method(made, "states", scores, *found, threads),
            method(made, "max_marginals", scores, np.zeros(3 * tokens), threads),
        ]

    arguments = (i64(lengths), 3, states, i64(longest), *flags)
    return [*deduction(random, "Segments", arguments, blocks), *use(core.SegmentsBatch(*arguments))]


def edits(random: Generator) -> list[Call]:
    """Alignments of short sequences, and scores from tables."""
    first = sizes(random, 3)
    second = random.integers(0, 4, size=len(first))
    affine, nonmatch = bool(random.integers(2)), bool(random.integers(2))
    gaps = offsets((first + second).tolist())
    blocks = [offsets((first * second).tolist()), gaps, *([gaps] if affine else [])]
    blocks += [offsets([1] * len(first))] if nonmatch else []
    known, rows, lengths, pairs = some(random, 2), 4, sizes(random, 3), some(random, 4, 1)
    starts = offsets(lengths.tolist())
    square = [real(random, 2 * rows * rows) for _ in range(4)]
    tables = real(random, rows * rows), real(random, rows), *square, real(random, 4)
    symbols = [random.integers(0, rows, size=int(starts[-1])).astype(np.int32) for _ in range(2)]
    ends = [i64(random.integers(0, len(lengths), size=pairs)) for _ in range(2)]
    return [
        *deduction(random, "Edits", (i64(first), i64(second), affine, nonmatch), blocks),
        bound(core, "edit_scores", starts, *symbols, known, *tables, *ends, np.empty(pairs), some(random, 2, 1)),
    ]


def spans(random: Generator) -> list[Call]:
    """Trees of labeled spans over short sentences."""
    lengths, labels, splits = sizes(random, 4, 1), some(random, 2, 1), bool(random.integers(2))
    blocks = [offsets(lengths * (lengths + 1) // 2 * labels)]
    blocks += [offsets((lengths + 1) * lengths * (lengths - 1) // 6)] if splits else []
    return deduction(random, "Spans", (i64(lengths), labels, bool(random.integers(2)), splits), blocks)


def derivations(random: Generator) -> list[Call]:
    """Derivations of short sentences by a small grammar."""
    lengths, binary = sizes(random, 4, 1), i32([[0, 1, 2], [1, 1, 1], [0, 0, 2]])
    batch = i64(lengths), 3, binary.ravel(), i32([0, 1, 1, 2]), i32([1, 2]), 0
    parts = (lengths * (lengths + 1) // 2 - lengths) * 5 + lengths * 4
    return deduction(random, "Derivations", batch, [offsets(parts)])


def matching(random: Generator) -> list[Call]:
    """Matchings with capacities, of all pairs or of listed edges."""
    left, threads, ranks = sizes(random, 3), some(random, 2, 1), some(random, 3, 1)
    n, listed = len(left), bool(random.integers(2))
    right = random.integers(0, 4, size=n)
    pairs = [[(a, b) for a in range(left[i]) for b in range(right[i])] for i in range(n)]
    if listed:
        pairs = [[pair for pair in own if random.random() < 0.7] for own in pairs]
    counts = i64([len(own) for own in pairs])
    ends = i32([pair for own in pairs for pair in own] if listed else []).reshape(-1, 2)
    batch = (offsets(left), offsets(right), offsets(counts), ends,
             random.integers(0, 3, size=int(left.sum())), random.integers(0, 3, size=int(right.sum())))  # fmt: skip
    parts = int(counts.sum())

    def use(made: Any) -> list[Call]:
        scores = real(random, parts)
        order = np.concatenate([offsets(counts)[i] + random.permutation(counts[i]) for i in range(n)] + [i64([])])
        return [
            bound(core, "matching_argmax", made, scores, *outputs(parts, n), threads),
            bound(core, "matching_k_best", made, ranks, scores, *outputs(parts, n, ranks), threads),
            bound(core, "matching_margins", made, scores, np.zeros(parts), np.zeros(n, np.int8), threads),
            bound(core, "matching_project", made, scores, 1e-8, bool(random.integers(2)),
                  np.zeros(int(left.sum() + right.sum())), *outputs(parts, n), np.zeros(2 * n, np.int32), threads),
            bound(core, "MatchingOracle", made, order.astype(np.int64), ranks,
                  then=lambda oracle: examples_of(random, oracle, counts)),
        ]  # fmt: skip

    made = core.MatchingBatch(*batch)
    return [bound(core, "MatchingBatch", *batch, then=use), *use(made)]


def candidates(random: Generator) -> list[Call]:
    """Lists of candidates."""
    own, ranks = sizes(random, 4, 1), some(random, 3, 1)
    n, parts = len(own), int(own.sum())
    good = np.ones(parts, dtype=np.uint8)
    good[random.integers(2, size=parts) == 1] = 0
    good[offsets(own)[:-1]] = 1
    nearest = np.zeros(parts, int)
    return [
        bound(core, "CandidatesOracle", offsets(own), ranks, then=lambda made: examples_of(random, made, own)),
        bound(core, "PairsHinge", offsets(own), good, nearest, np.zeros(n, int), real(random, parts), np.ones(n),
              then=lambda made: examples_of(random, core.CandidatesOracle(offsets(own), 1), own, made)),
    ]  # fmt: skip


def dependencies(random: Generator) -> list[Call]:
    """Dependency trees."""
    tokens = sizes(random, 4, 1)
    heads = np.concatenate([random.integers(0, size + 1, size=size) for size in tokens] + [i64([])]).astype(np.int64)
    flags = bool(random.integers(2)), bool(random.integers(2))
    return [
        bound(core, "dependency_fault", offsets(tokens), heads, *flags),
        *projective(random, "FirstOrderTrees", 0, 0),
        *projective(random, "SiblingTrees", some(random, 2, 1), 0),
        *projective(random, "GrandparentTrees", some(random, 2), some(random, 2, 1)),
        *dependency_features(random),
    ]


def dependency_features(random: Generator) -> list[Call]:
    """Hashed features of trees of first and second order."""
    tokens, second = sizes(random, 3, 1), some(random, 1)
    arguments, first = _arcs(random, tokens, 1)
    nothing = i64([]), i32([]).reshape(-1, 3)
    trees = getattr(core, "GrandparentTreesBatch" if second else "FirstOrderTreesBatch")(
        *arguments, second, *nothing, second, *nothing
    )
    n, bits, threads = int((tokens + 1).sum()), some(random, 6, 3), some(random, 2, 1)
    triples = [sum(len(_triples(int(size), above)) for size in tokens) for above in (False, True)] if second else []
    parts = int(first[-1]) + sum(triples)
    numbers, tags = random.integers(-1, 3, size=(n, 2)).astype(np.int32), random.integers(3, size=n).astype(np.int32)
    kinds = random.integers(4, size=n).astype(np.uint8)
    keys = i32([0, 1, 3]), i32([0, 0, 1]), i32([0, -1, 1])
    templates = [i32([[0, 1, some(random, 6)], [-1, 0, 0]]), i32([[0, 1, -1]]), i32([[1, -1, 0]])]

    def use(made: Any) -> list[Call]:
        return [
            method(made, "scores", real(random, 1 << bits), np.zeros(parts), threads),
            method(made, "adjoint", real(random, parts), np.zeros(1 << bits)),
            method(made, "rows"),
        ]

    arrays = numbers, tags, kinds, *keys, *templates
    return [bound(core, "dependency_features", trees, *arrays, some(random, 1), bits, then=use)]


def arborescence(random: Generator) -> list[Call]:
    """Trees with arcs that cross, of all arcs or listed ones."""
    tokens, labels, threads, ranks = sizes(random, 3, 1), some(random, 2, 1), some(random, 2, 1), some(random, 3, 1)
    batch, first = _arcs(random, tokens, labels)
    n, parts, total = len(tokens), int(first[-1]), int(tokens.sum())

    def use(made: Any) -> list[Call]:
        scores = real(random, parts)
        return [
            method(made, "argmax", scores, *outputs(parts, n), threads),
            method(made, "duals", scores, np.zeros(2 * total), np.zeros(2 * total, np.int32), *outputs(parts, n)[1:],
                   threads),
            method(made, "marginals", scores, *outputs(parts, n), threads),
            method(made, "k_best", ranks, scores, *outputs(parts, n, ranks), threads),
            method(made, "project", core.HullBatch(np.diff(first), 1e-8), scores, *outputs(parts, n), threads),
            bound(core, "ArborescenceOracle", made, ranks,
                  then=lambda oracle: examples_of(random, oracle, np.diff(first))),
        ]  # fmt: skip

    return [bound(core, "ArborescenceBatch", *batch, then=use), *use(core.ArborescenceBatch(*batch))]


def _arcs(random: Generator, tokens: Any, labels: int) -> tuple[list[Any], Any]:
    """Arguments of a batch of sentences with all arcs or listed ones, and where the parts of each begin."""
    arcs = [[(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m] for n in tokens]
    listed = bool(random.integers(2))
    if listed:
        arcs = [[(h, m) for h, m in own if random.random() < 0.7 or h + 1 == m] for own in arcs]
    nodes = i32([arc for own in arcs for arc in own] if listed else []).reshape(-1, 2)
    first = offsets([len(own) for own in arcs])
    return [i64(tokens), labels, bool(random.integers(2)), first if listed else i64([]), nodes], first * labels


def projective(random: Generator, name: str, siblings: int, grandparents: int) -> list[Call]:
    """Projective trees with all arcs or listed ones, and with no, all or listed triples (0, 1, 2)."""
    tokens, labels = sizes(random, 3, 1), some(random, 2, 1)
    arguments, first = _arcs(random, tokens, labels)
    blocks = [first]
    for extent, above in ((siblings, False), (grandparents, True)):
        triples = [_triples(int(n), above) for n in tokens]
        if extent == 2:
            triples = [[triple for triple in own if random.random() < 0.5] for own in triples]
        each = offsets([len(own) for own in triples])
        three = i32([triple for own in triples for triple in own] if extent == 2 else []).reshape(-1, 3)
        arguments += [extent, each if extent == 2 else i64([]), three]
        blocks += [each] if extent else []
    return deduction(random, name, tuple(arguments), blocks)


def _triples(n: int, above: bool) -> list[tuple[int, int, int]]:
    """All siblings (head, sibling, modifier) or grandparents (grandparent, head, modifier) in the order of parts."""
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
    if not above:
        return [(h, h + (d if m > h else -d), m) for h, m in arcs for d in range(abs(h - m))]
    return [(g, h, m) for h, m in arcs if h for g in range(n + 1) if not min(h, m) <= g <= max(h, m)]


TOPICS = {
    "arborescence": arborescence,
    "chain": chain,
    "second_order": second_order,
    "tree": tree,
    "cut": cut,
    "graph": graph,
    "cliques": cliques,
    "hull": hull,
    "dependencies": dependencies,
    "lattice": lattice,
    "edits": edits,
    "segments": segments,
    "spans": spans,
    "derivations": derivations,
    "matching": matching,
    "pairing": pairing,
    "candidates": candidates,
}
