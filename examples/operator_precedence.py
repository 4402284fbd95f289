"""Learn how tightly operators bind, and to which side, from trees of expressions.

A made-up language has five operators of different precedence, some of which group to the left and some to the right,
and parentheses. The learner sees token sequences and their trees, E over an operator and its two sides, P over
parentheses, and is told nothing of precedence: its features are which operator a span would be split at, and which
tokens stand on both sides of the span. New expressions are about twice as long.

    python examples/operator_precedence.py [tree.png]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import maxmargin as mm

OPERATORS = {"or": (0, "left"), "=": (1, "right"), "+": (2, "left"), "*": (3, "left"), "^": (4, "right")}
"""Precedence, and the side to which equal operators group."""
WORDS = {word: number for number, word in enumerate([*OPERATORS, "(", ")", "name", "end"])}


def sentence(rng: np.random.Generator, operands: int) -> list[str]:
    """Names, operators and parentheses."""
    found: list[str] = []
    while operands:
        if operands >= 3 and rng.random() < 0.15:
            inner = int(rng.integers(2, min(operands, 5)))
            found += ["(", *sentence(rng, inner), ")"]
            operands -= inner
        else:
            found.append(str(rng.choice(list("abcdxyz"))))
            operands -= 1
        found.append(str(rng.choice(list(OPERATORS))))
    return found[:-1]


def parsed(words: list[str]) -> Any:
    """The right tree, by precedence climbing; leaves are words."""
    at = 0

    def primary() -> Any:
        nonlocal at
        at += 1
        if words[at - 1] != "(":
            return words[at - 1]
        inner = climb(0)
        at += 1
        return ("P", "(", inner, ")")

    def climb(least: int) -> Any:
        nonlocal at
        left = primary()
        while at < len(words) and words[at] in OPERATORS and OPERATORS[words[at]][0] >= least:
            operator = words[at]
            precedence, side = OPERATORS[operator]
            at += 1
            left = ("E", left, operator, climb(precedence + (side == "left")))
        return left

    return climb(0)


def chart(words: list[str]) -> mm.SpanChart:
    """Features of spans: the tokens at their ends and whether parentheses match. Features of splits: the token there,
    with the tokens around the span."""
    n, size = len(words), len(WORDS)
    numbers = np.array([WORDS.get(word, WORDS["name"]) for word in words] + [WORDS["end"]])
    depth = np.concatenate([[0], np.cumsum([(word == "(") - (word == ")") for word in words])])
    lowest = np.array([[depth[b : e + 1].min() if b < e else 0 for e in range(n + 1)] for b in range(n)])
    begin, end = mm.spans_of(n).T
    matched = (depth[begin] == depth[end]) & (lowest[begin, end] >= depth[begin])
    inside = np.array(
        [lowest[b + 1, e - 1] > depth[b] if e - b > 2 else False for b, e in zip(begin, end, strict=True)]
    )
    eye, several = np.eye(size), end - begin > 1
    kinds = np.stack([matched & several, matched & inside, several, np.ones(len(begin))], axis=1)
    spans = np.hstack([kinds, eye[numbers[begin]], eye[numbers[end - 1]]])
    begin, split, end = mm.splits_of(n).T
    token, before, after = numbers[split], np.where(begin > 0, numbers[begin - 1], size - 1), numbers[end]
    top = (depth[split] == depth[begin]) & (lowest[begin, end] >= depth[begin])
    pairs = np.zeros((len(begin), 2 * size * size + 1))
    rows = np.arange(len(begin))
    pairs[rows, token * size + before] = pairs[rows, size * size + token * size + after] = 1.0
    pairs[:, -1] = top
    return mm.SpanChart(spans, pairs)


def draw(tree: Any, path: str) -> None:
    """A tree over its tokens."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2))
    axes = figure.add_subplot()
    leaves: list[str] = []
    drawn: list[tuple[float, float, str, bool]] = []

    def place(node: Any) -> tuple[float, float]:
        """Where a node stands: its middle, and its height above the tokens."""
        if not isinstance(node, tuple):
            leaves.append(node)
            drawn.append((len(leaves) - 1.0, 0.0, node, True))
            return len(leaves) - 1.0, 0.0
        below = [place(child) for child in node[1:]]
        x, y = (below[0][0] + below[-1][0]) / 2, max(height for _, height in below) + 1.0
        for a, b in below:
            axes.plot([x, a], [y, b], color="0.6", lw=1.2, zorder=0)
        drawn.append((x, y, node[0], False))
        return x, y

    place(tree)
    for x, y, text, leaf in drawn:
        color = "tab:orange" if text in OPERATORS else "black" if leaf else "tab:blue"
        box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": "none"}
        axes.text(x, y, text, ha="center", va="center", color=color, fontsize=12, bbox=box)
    axes.set_xlim(-0.7, len(leaves) - 0.3)
    axes.set_ylim(-0.6, max(y for _, y, _, _ in drawn) + 0.6)
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main(path: str | None = None, n_train: int = 80, n_test: int = 40) -> dict[str, float]:
    rng = np.random.default_rng(0)
    known = [sentence(rng, int(size)) for size in rng.integers(2, 8, size=n_train)]
    new = [sentence(rng, int(size)) for size in rng.integers(6, 14, size=n_test)]
    model = mm.GrammarSVM(C=10.0).fit([chart(words) for words in known], [parsed(words) for words in known])
    X, y = [chart(words) for words in new], [parsed(words) for words in new]
    found = [mm.tree_text(tree, words) for tree, words in zip(model.predict(X), new, strict=True)]
    whole = float(np.mean([text == mm.tree_text(tree) for text, tree in zip(found, y, strict=True)]))
    outcome = {"F1": model.score(X, y), "whole": whole}
    print(f"{n_train} expressions: {model.solution_.certificate}")
    print(f"{n_test} longer ones: F1 of nodes {outcome['F1']:.1%}, whole trees {outcome['whole']:.0%}")
    shown = max(range(n_test), key=lambda i: (len(set(new[i]) & {*OPERATORS, "("}), -len(new[i])))
    print(f"{' '.join(new[shown])}\n{found[shown]}")
    if path is not None:
        draw(words_in(model.predict(X[shown : shown + 1])[0], new[shown]), path)
        print(f"{path}: the tree that was found")
    return outcome


def words_in(tree: Any, words: list[str]) -> Any:
    """A predicted tree with words in place of token numbers."""
    return (tree[0], *(words_in(child, words) for child in tree[1:])) if isinstance(tree, tuple) else words[tree]


if __name__ == "__main__":
    main(*sys.argv[1:2])
