"""Calls of the tasks' kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.fuzz.kernel_calls.call import Call, bound, i32, i64, method, offsets, real, sizes, some
from maxmargin.tasks import _kernels as tasks


def bytes_of(text: bytes) -> np.ndarray:
    """A text as an array that can be written."""
    return np.frombuffer(text, dtype=np.uint8).copy()


def strings(random: Generator) -> list[Call]:
    """Tables of strings and of n-grams."""
    words = [b"ab"[: some(random, 2)] * some(random, 20) for _ in range(some(random, 5))]
    text, ends = bytes_of(b"".join(words)), offsets([len(word) for word in words])
    different = sorted(set(words))
    apart = bytes_of(b"".join(different)), offsets([len(word) for word in different])[1:].copy()
    table, grams = tasks.StringTable(), tasks.NgramTable()

    def use(made: Any) -> list[Call]:
        return [
            method(made, "__len__"),
            method(made, "number", text, ends[:-1].copy(), ends[1:].copy(), bool(random.integers(2)), i32(ends[1:])),
            method(made, "strings"),
            method(made, "text", 0),
            method(made, "find", words[0] if words else b""),
            method(made, "only", np.ones(len(made), bool), then=use),
            method(made, "truncate", some(random, 3)),
            bound(tasks, "words_of_texts", made, ["a b, (c", "ä\ud800 "], bool(random.integers(2)), True),
            bound(tasks, "attributes_of_items", made, [[{"w": "a", "n": 2.0}, ["x", "y"]], []], True),
        ]

    def count(made: Any) -> list[Call]:
        starts = offsets(sizes(random))
        tokens = i32(random.integers(-1, 3, size=int(starts[-1])))
        return [
            method(made, "count", starts, tokens, some(random, 4, 1), bool(random.integers(2))),
            method(made, "__len__"),
            method(made, "pairs"),
        ]

    return [
        bound(tasks, "StringTable", then=use),
        Call("StringTable.from_strings", tasks.StringTable.from_strings, apart, use),
        bound(tasks, "NgramTable", then=count),
        Call("NgramTable.from_pairs", tasks.NgramTable.from_pairs, (i32([-1, 0, -1]), i32([0, 1, 2])), count),
        bound(tasks, "characters_of_texts", ["a b", "ä\ud800"], bool(random.integers(2))),
        bound(tasks, "_use_lanes", 0),
        *use(table),
        *count(grams),
    ]


def tokens(random: Generator) -> list[Call]:
    """Scanners of token files, and attributes by templates."""
    data = b"a/N b/V\n\nc\td:2\\:x 3 a\n" * some(random, 2)
    text, layout, width = bytes_of(data), some(random, 5), some(random, 3, 1)
    n, n_sentences = tasks.token_count(text, layout)
    m, m_sentences, most = tasks.attribute_count(text)
    cells = np.zeros((n, width), int), np.zeros((n, width), int), np.zeros(n, int), np.zeros(n_sentences + 1, int)
    found = np.zeros(most, int), np.zeros(most, int), np.zeros(most), np.zeros(m + 1, int)
    lines = np.zeros(m, int), np.zeros(m, int), np.zeros(m, int), np.zeros(m_sentences + 1, int)
    places = i64([0, 2]), i64([1, 3]), i32([0, -1]), i64([0, 1]), bytes_of(b"X"), np.ones(2), bytes_of(b"\t")
    template = (
        i64([0, 2, 3]), i32([[0, 1, 0]]), i64([2]), 1, i32([0]), i64([1]), bytes_of(b"Uab<>"), np.arange(5),
        np.arange(1, 6), i32([0]), i32([-1]), i64([0, 2]), i64([-1, 0]), bool(random.integers(2)), True,
        some(random, 3, 1), some(random, 2), some(random, 3, 1),
    )  # fmt: skip
    longest, grow = some(random, 3, 1), bool(random.integers(2))
    chosen = random.integers(0, 2, size=int(random.choice([0, 3 if longest == 1 else 4]))).astype(np.uint8)
    segments = (
        *template[:3], *template[4:10], i32([random.integers(5)]), *template[11:13], longest, chosen, grow,
        some(random, 3, 1), some(random, 2), some(random, 3, 1),
    )  # fmt: skip
    neighbors = i64([0, 1, 2, 3, 4]), i32([1, 0, 3, 2]), i64([2, 2, 1, 1])  # the same in both directions
    return [
        bound(tasks, "token_count", text, layout),
        bound(tasks, "token_scan", text, layout, *cells),
        bound(tasks, "attribute_count", text),
        bound(tasks, "attribute_scan", text.copy(), *found, *lines),
        bound(tasks, "text_splice", bytes_of(b"abcd"), *places, 6, np.zeros(99, np.uint8)),
        bound(tasks, "attributes_of_tokens", tasks.StringTable(), *template),
        bound(tasks, "attributes_of_segments", tasks.StringTable(), *segments),
        bound(tasks, "exchange_words", *neighbors, *neighbors, 4, 2, 2, i32([0, 1, 2, 3])),
        bound(
            tasks,
            "other_mentions",
            i64([0, 2, 5]),
            i32([0, 1, 0, 2, 1]),
            np.array([1, 1, 1, 0, 1], bool),
            3,
            20,
            np.zeros(5, int),
            np.zeros(5, int),
            np.zeros(5, int),
        ),
        bound(tasks, "merge_classes", np.ones((4, 4), int), 1, np.zeros(4, np.int32)),
    ]


def nbest(random: Generator) -> list[Call]:
    """Lists of hypotheses: their text, statistics of metrics, n-grams they share."""
    data = b"0 ||| a b ||| LM= -1.5 2 TM= 3 ||| -4\n" * some(random, 2)
    own, threads = sizes(random, 3, 1), some(random, 2, 1)
    n, lists = int(own.sum()), offsets(own)
    words, gold = offsets(random.integers(0, 4, size=n)), offsets(random.integers(0, 4, size=len(own)))
    hypotheses = i32(random.integers(0, 3, size=int(words[-1]))), words
    references = i32(random.integers(0, 3, size=int(gold[-1]))), gold
    both = lists, np.arange(len(own) + 1)
    order, word_order = some(random, 4, 1), some(random, 2)
    good = np.zeros(n, np.uint8)
    good[lists[:-1]] = 1
    rows = offsets(random.integers(0, 3, size=n))
    columns = i32(random.integers(0, 4, size=int(rows[-1])))
    return [
        bound(tasks, "nbest_scan", bytes_of(data), tasks.StringTable()),
        bound(tasks, "text_numbers", bytes_of(b"1.5 -2e3 x"), i64([0, 4]), i64([3, 8]), np.zeros(2)),
        bound(tasks, "bleu_statistics", *hypotheses, *references, *both, order, np.zeros((n, 2 * order + 2)), threads),
        bound(tasks, "chrf_statistics", *hypotheses, *references, *hypotheses, *references, *both, order, word_order,
              2.0, np.zeros((n, 3 * (order + word_order))), threads),
        bound(tasks, "error_statistics", *hypotheses, *references, *both, np.zeros((n, 2)), threads),
        bound(tasks, "ter_statistics", *hypotheses, *references, *both, np.zeros((n, 2)), threads),
        bound(tasks, "varying_lists", lists, rows, columns, real(random, len(columns)), np.zeros(4, np.int32)),
        bound(tasks, "nearest_by_overlap", lists, rows, np.sort(columns), np.ones(len(columns)), good, np.zeros(n, int),
              threads),
    ]  # fmt: skip


FORMULAS = ((0, 10), (1, 6), (2, 2), (3, 2))


def tuning(random: Generator) -> list[Call]:
    """Minimum error rate training and online passes over lists."""
    own, d, threads = sizes(random, 4, 1), some(random, 3, 1), some(random, 2, 1)
    n, lists = int(own.sum()), offsets(own)
    formula, k = FORMULAS[random.integers(4)]
    rows, statistics = real(random, n, d), np.abs(real(random, n, k))
    signs, restarts = random.integers(-1, 2, size=d).astype(np.int8), some(random)
    prepared = lists, rows, statistics, formula, 1.0, real(random, some(random, 2), d), threads
    sparse = random.integers(2)
    kind = np.int32 if random.integers(2) else np.int64
    matrix = (
        (offsets(np.full(n, d)).astype(kind), np.tile(np.arange(d), n).astype(kind), real(random, n * d))
        if sparse
        else (np.zeros(0, kind), np.zeros(0, kind), real(random, n * d))
    )
    gains = real(random, n) if random.integers(2) else np.zeros(0)
    order = random.integers(0, len(own), size=some(random, 4)) if len(own) else i64([])
    changes = np.sort(real(random, some(random)))

    def use(made: Any) -> list[Call]:
        return [
            method(made, "ascend", real(random, restarts, d), signs, 5, 1e-6, np.zeros(restarts),
                   np.zeros(restarts, int), threads),
            method(made, "search", real(random, d), signs, 0),
        ]  # fmt: skip

    return [
        Call("MertLists.prepare", tasks.MertLists.prepare, prepared, use),
        *use(tasks.MertLists.prepare(*prepared)),
        bound(tasks, "line_envelopes", lists, real(random, n), real(random, n), threads),
        bound(tasks, "gamma_range", real(random, d), real(random, d), signs),
        bound(tasks, "best_interval", changes, real(random, len(changes) + 1), -1.0, 1.0, 1.0),
        bound(tasks, "metric_quality", formula, 1.0, statistics, np.zeros(n), threads),
        bound(tasks, "online_list_pass", *matrix, lists, order, gains, statistics, formula, 1.0, 0.9, np.zeros(k + 1),
              0.5, signs, np.zeros(d), np.zeros(d), 0.0),
    ]  # fmt: skip


def scans(random: Generator) -> list[Call]:
    """Points in cells, and forests of trees."""
    n, q, threads = some(random, 5, 1), some(random), some(random, 2, 1)
    points = real(random, n, 3), np.ones(n), 0.5

    def use(made: Any) -> list[Call]:
        queries = real(random, q, 3)
        return [
            method(made, "n_cells"),
            method(made, "cells", np.zeros(n, np.int32)),
            method(made, "shapes", queries, 1.0, np.zeros((q, tasks.SCAN_SHAPES), np.float32),
                   np.zeros((q, 3), np.float32), threads),
            method(made, "average", queries, 1.0, 0.1, np.ones((n, 2), np.float32), np.ones(n), 0.0,
                   np.zeros((q, 6), np.float32), threads),
        ]  # fmt: skip

    forest = i32([0, -1, -1]), i32([1, 0, 0]), i32([2, 0, 0]), np.zeros(3), real(random, 3), i32([0]), i32([0])
    return [
        bound(tasks, "ScanGrid", *points, then=use),
        *use(tasks.ScanGrid(*points)),
        bound(tasks, "add_trees", *forest, 1, np.ones((q, 2), np.float32), np.zeros((q, 2)), threads),
    ]


def links(random: Generator) -> list[Call]:
    """Features of links between words, and alignments made of two directions."""
    groups = (1 << len(tasks.link_group_sizes())) - 1
    width = sum(tasks.link_group_sizes()) + 1
    threads = some(random, 2, 1)
    batch = (
        i64([0, 2, 3]), i64([0, 1, 3]), i64([0, 2, 4]), i32([0, 1, 0]), i32([1, 1, 0]), i64([0, 2, 3]),
        np.array([97, 98, 98], dtype=np.uint32), i32([0, 1]), i32([-1, -1]), np.zeros(2, np.uint8),
        *(np.full(4, 0.5) for _ in range(5)), *(np.full(3, 0.5) for _ in range(4)), i32([0, -1, 1, -1]),
        np.ones((4, 1)), 10.0,
    )  # fmt: skip

    def use(made: Any) -> list[Call]:
        status, counts = np.zeros(2, np.int8), np.zeros(4, int)
        made.count(groups, True, 2, counts, status, 1)
        start = offsets(counts)
        return [
            method(made, "scores", groups, True, 2, real(random, width + 2), np.zeros(4), status, threads),
            method(made, "dense", groups, True, np.zeros((4, width)), status, threads),
            method(made, "count", groups, True, 2, counts, status, threads),
            method(
                made, "fill", groups, True, 2, start, i32(np.zeros(start[-1])), np.zeros(start[-1]), status, threads
            ),
            method(made, "words", True, np.zeros((3, 14)), status, threads),
        ]

    found = [offsets([2, 1]), i64([[0, 0], [1, 1], [0, 2]]), offsets([1, 2]), i64([[0, 1], [0, 0], [2, 2]])]
    return [
        bound(tasks, "LinkBatch", *batch, then=use),
        *use(tasks.LinkBatch(*batch)),
        bound(tasks, "link_group_sizes"),
        bound(tasks, "symmetrize_links", some(random, 5), *found, np.zeros((6, 2), int), np.zeros(2, int), threads),
    ]


def translation(random: Generator) -> list[Call]:
    """Expectation steps and posteriors of word alignment models."""
    n, words, threads = some(random), some(random, 4, 1), some(random, 2, 1)
    source, target = (random.integers(0, 4, size=n) for _ in range(2))
    sides = [i32(random.integers(-1, words, size=int(side.sum()))) for side in (source, target)]
    pairs = offsets(source), sides[0], offsets(target), sides[1], words, words
    cells, longest = int((source * target).sum()), 4
    null = np.full(words, 0.5, np.float32)
    jumps = (np.ones(3), np.ones(3)) if random.integers(2) else (np.zeros(0), np.zeros(0))

    def with_lexicon(checked: Any) -> list[Call]:
        row_start, column, together = tasks.bitext_lexicon(checked, 1)
        tables = np.full((len(column), 2), 0.5, np.float32), null, null
        counts = np.zeros(tables[0].shape, np.float32), *(np.zeros(table.shape, np.uint64) for table in tables[1:])
        more = np.zeros((2, 3), np.uint64), np.zeros((2, longest + 1, longest + 1), np.uint64), np.zeros((n, 2))
        return [
            bound(tasks, "translation_expect", checked, row_start, column, *tables, 1e-9, *jumps, 0.1,
                  bool(random.integers(2)), longest, 2.0**20, *counts, *more, 1 << some(random, 9, 1),
                  some(random), some(random, 3, 1), threads),
            bound(tasks, "merged_lexicon", row_start, column, together, row_start, column, together, threads),
            bound(tasks, "translation_maximize", row_start, column, words, 0.01, counts[0].copy(), threads),
            bound(tasks, "translation_probable", row_start, column, words, tables[0], 0.1,
                  np.zeros(len(column), np.uint8)),
            bound(tasks, "WordPairs", row_start, column, words,
                  then=lambda known: [method(known, "find", checked, np.zeros(cells, int), threads)]),
        ]  # fmt: skip

    def use(made: Any) -> list[Call]:
        slots = random.integers(-1, 3, size=cells)
        posteriors = np.zeros(cells), np.zeros(cells), np.zeros(int(target.sum())), np.zeros(int(source.sum()))
        return [
            bound(tasks, "bitext_lexicon", made, threads),
            bound(tasks, "translation_posteriors", made, slots, np.full((3, 2), 0.5, np.float32), null, null, 1e-9,
                  *jumps, 0.1, *posteriors, np.zeros((n, 2)), threads),
        ]  # fmt: skip

    checked, merged = (tasks.SentencePairs(*pairs, merge) for merge in (False, True))
    return [
        bound(tasks, "SentencePairs", *pairs, False, then=use),
        bound(tasks, "SentencePairs", *pairs, True, then=lambda made: [method(made, "__len__")]),
        *use(checked),
        *with_lexicon(checked),
        bound(tasks, "bitext_lexicon", merged, threads),
    ]


def relations(random: Generator) -> list[Call]:
    """Hashed features of the relations of trees."""
    tokens = random.integers(1, 5, size=some(random, 3))
    n = int((tokens + 1).sum())
    heads = np.concatenate([*(random.integers(0, size + 1, size=size) for size in tokens), i64([])]).astype(np.int64)
    numbers, kinds = random.integers(-1, 3, size=(n, 2)).astype(np.int32), random.integers(4, size=n).astype(np.uint8)
    terms = i32([[0, 0], [1, 1], [-1, some(random, 5)], [13, 0], [14, 1], [-1, 4]])
    arguments = i64(tokens), numbers, kinds, heads, i32([0, 3, 4, 6]), terms, some(random, 9, 1), some(random, 2, 1)
    return [bound(tasks, "relation_rows", *arguments)]


TOPICS = {
    "relations": relations,
    "strings": strings,
    "tokens": tokens,
    "nbest": nbest,
    "tuning": tuning,
    "scans": scans,
    "links": links,
    "translation": translation,
}
