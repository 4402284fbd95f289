"""
Precedence of operators, learned from trees
===========================================

``mm.GrammarSVM`` finds the best tree over a sequence. Here the sequences are
expressions and the trees say how they group. Which operator binds tighter, and
whether equal operators group to the left or to the right, is learned.
"""

# %%
# A made-up language with five operators: ``or`` binds least, then ``=``, ``+``, ``*``
# and ``^``. Of two equal ones, ``=`` and ``^`` group to the right, the others to the
# left. A tree is a tuple of a label and its children.

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

OPERATORS = {
    "or": (0, "left"),
    "=": (1, "right"),
    "+": (2, "left"),
    "*": (3, "left"),
    "^": (4, "right"),
}
NUMBER = {**{operator: k for k, operator in enumerate(OPERATORS)}, "end": len(OPERATORS)}
rng = np.random.default_rng(0)


def expression(operands):
    words = [str(rng.choice(list("abcdxyz")))]
    for _ in range(operands - 1):
        words += [str(rng.choice(list(OPERATORS))), str(rng.choice(list("abcdxyz")))]
    return words


def tree(words):
    """The right tree: the root is the operator that binds least."""
    if len(words) == 1:
        return words[0]
    places = range(1, len(words), 2)
    least = min(OPERATORS[words[at]][0] for at in places)
    ties = [at for at in places if OPERATORS[words[at]][0] == least]
    split = ties[-1] if OPERATORS[words[ties[0]]][1] == "left" else ties[0]
    return ("E", tree(words[:split]), words[split], tree(words[split + 1 :]))


# %%
# Features of a span say whether it has several tokens, and begins or ends with an
# operator. Those of a split say which operator is split at, together with the
# operators just outside the span.


def chart(words):
    n, size = len(words), len(NUMBER)
    numbers = np.array([NUMBER.get(word, -1) for word in words] + [NUMBER["end"]])
    begin, end = mm.spans_of(n).T
    ends = numbers[begin] >= 0, numbers[end - 1] >= 0  # such a span is not an expression
    spans = np.stack([end - begin > 1, *ends, np.ones(len(begin))], axis=1).astype(float)
    begin, split, end = mm.splits_of(n).T
    here, after = numbers[split], numbers[end]
    before = np.where(begin > 0, numbers[begin - 1], NUMBER["end"])
    pairs = np.zeros((len(split), 2, size, size))
    for side, outside in enumerate((before, after)):
        rows = np.flatnonzero((here >= 0) & (outside >= 0))
        pairs[rows, side, here[rows], outside[rows]] = 1.0
    return mm.SpanChart(spans, pairs.reshape(len(split), -1))


known = [expression(int(operands)) for operands in rng.integers(2, 7, size=80)]
model = mm.GrammarSVM(C=10.0, random_state=0).fit(
    [chart(words) for words in known], [tree(words) for words in known]
)
new = [expression(int(operands)) for operands in rng.integers(7, 12, size=40)]
trees = model.predict([chart(words) for words in new])
gold = [mm.tree_text(tree(words)) for words in new]
right = [
    mm.tree_text(found, words) == text for found, words, text in zip(trees, new, gold, strict=True)
]
print(f"{sum(right)} of {len(new)} longer expressions have exactly the right tree")
print(model.solution_.certificate)

# %%
# Above, one of the longer expressions. Below, what was learned about two adjacent
# operators: the score of the tree that groups to the left, ``(x a y) b z``, minus that
# of the tree that groups to the right.


def margin(first, second):
    """Score of ``(x first y) second z`` minus that of ``x first (y second z)``."""
    (best, score), (_, other) = model.k_best([chart(["x", first, "y", second, "z"])], 2)[0]
    return (score - other) * (1 if isinstance(best[1], tuple) else -1)


margins = np.array([[margin(first, second) for second in OPERATORS] for first in OPERATORS])
expected = np.array(
    [[isinstance(tree(["x", a, "y", b, "z"])[1], tuple) for b in OPERATORS] for a in OPERATORS]
)
figure, (drawing, table) = plt.subplots(2, 1, figsize=(5.8, 8.0), layout="constrained")

shown = max(
    range(len(new)), key=lambda i: (right[i], len(set(new[i]) & set(OPERATORS)), -len(new[i]))
)
leaves = []


def place(node):
    """Draw a subtree; return where its root stands."""
    if not isinstance(node, tuple):
        leaves.append(node)
        x, y, text, color = len(leaves) - 1, 0.0, new[shown][node], "black"
        if text in OPERATORS:
            color = "#D55E00"
    else:
        below = [place(child) for child in node[1:]]
        x, y, text, color = (below[1][0], max(height for _, height in below) + 1.0, "●", "#0072B2")
        for a, b in below:
            drawing.plot([x, a], [y, b], color="0.6", linewidth=1.3, zorder=0)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    drawing.text(x, y, text, ha="center", va="center", color=color, fontsize=12, bbox=box)
    return x, y


top = place(trees[shown])
drawing.set_xlim(-0.7, len(leaves) - 0.3)
drawing.set_ylim(-0.6, top[1] + 0.5)
drawing.set_axis_off()
drawing.set_title(f"Correct trees of longer expressions: {sum(right)} of {len(new)}")

bound = 2 * np.abs(margins).max()  # lighter colors, on which text is legible
table.imshow(margins, cmap="PuOr", vmin=-bound, vmax=bound)
for i, j in np.ndindex(margins.shape):
    agrees = (margins[i, j] > 0) == expected[i, j]
    mark = "left" if margins[i, j] > 0 else "right"
    text = f"{mark}\n{margins[i, j]:+.1f}" if agrees else f"wrong:\n{mark}"
    table.text(j, i, text, ha="center", va="center")
table.set_xticks(range(5), OPERATORS)
table.set_yticks(range(5), OPERATORS)
table.tick_params(length=0)
table.set_xlabel("second operator")
table.set_ylabel("first operator")
learned = ((margins > 0) == expected).sum()
table.set_title(f"Groupings and their margins: {learned} of 25 are learned")
plt.show()
