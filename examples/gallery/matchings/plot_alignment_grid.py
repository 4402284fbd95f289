"""
Word alignment with confidences
===============================

Which words of a sentence and of its translation belong together? The aligner learns
weights of evidence, such as hidden Markov models of both directions, spelling and
position, from hand-aligned pairs. Each link comes with a confidence: its margin,
calibrated on held-out pairs.
"""

# %%
# The package has 260 English-French sentence pairs that are aligned by hand. Three
# quarters are for training. The text of the others is added as bitext, without its
# links.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.alignment import WordAligner, evaluate, load_corpus

train, test = load_corpus().split()
pairs, new = (list(zip(part.source, part.target, strict=True)) for part in (train, test))
aligner = WordAligner(C=0.1, false_negative=2.0, folds=2).fit(pairs, train.references, bitext=new)
found, baseline = aligner.align(new), aligner.align_hmm(new)
errors = [evaluate(test.references, own).aer for own in (baseline, found)]
print(f"alignment error rate of {len(new)} new pairs: {errors[1]:.1%}")
print(f"links on which both hidden Markov models agree: {errors[0]:.1%}")

# %%
# One of the new pairs. With a threshold near 0, ``align`` also returns the doubtful
# links, so that all confidences can be drawn.

at = next(i for i, words in enumerate(test.source) if "wages" in words)
source, target, gold = test.source[at], test.target[at], test.references[at]
doubtful = aligner.align(new, threshold=1e-4)
confidence = np.zeros((len(source), len(target)))
for own in (doubtful[at], found[at]):  # a link of the prediction may be missing at a low threshold
    confidence[tuple(own.links.T)] = own.confidence


def draw(axes, links, title):
    """Frames for gold links, solid if sure; dots for found ones, crosses if wrong."""
    possible, sure = (set(map(tuple, own.tolist())) for own in (gold.possible, gold.sure))
    for i, j in possible:
        style = "-" if (i, j) in sure else ":"
        frame = (j - 0.42, i - 0.42), 0.84, 0.84
        axes.add_patch(
            plt.Rectangle(*frame, fill=False, edgecolor="black", linestyle=style, linewidth=1.5)
        )
    right = np.array([(i, j) in possible for i, j in links.tolist()])
    axes.scatter(
        links[right, 1], links[right, 0], s=34, color="#E69F00", edgecolor="black", zorder=3
    )
    axes.scatter(
        links[~right, 1],
        links[~right, 0],
        s=60,
        color="#D55E00",
        marker="x",
        linewidth=2.5,
        zorder=3,
    )
    axes.set_xticks(range(len(target)), target, rotation=90)
    axes.set_yticks(range(len(source)), source)
    axes.set_xlim(-0.5, len(target) - 0.5)
    axes.set_ylim(len(source) - 0.5, -0.5)
    axes.tick_params(length=0)
    missed = len(sure - set(map(tuple, links.tolist())))
    axes.set_title(f"{title}: {(~right).sum()} wrong, {missed} missed")


figure, axes = plt.subplots(2, 1, figsize=(6.0, 7.6), layout="constrained", sharex=True)
axes[0].imshow(np.zeros_like(confidence), cmap="Blues", vmin=0, vmax=1, aspect="auto")
draw(axes[0], baseline[at], "Links of both hidden Markov models")
picture = axes[1].imshow(confidence, cmap="Blues", vmin=0, vmax=1, aspect="auto")
draw(axes[1], found[at].links, "Learned aligner")
figure.colorbar(picture, ax=axes, label="confidence of a link", shrink=0.5)
handles = [
    plt.Rectangle((0, 0), 1, 1, fill=False, edgecolor="black", linewidth=1.5),
    plt.Rectangle((0, 0), 1, 1, fill=False, edgecolor="black", linewidth=1.5, linestyle=":"),
    plt.Line2D([], [], marker="o", color="#E69F00", markeredgecolor="black", linestyle="none"),
    plt.Line2D(
        [], [], marker="x", color="#D55E00", markeredgewidth=2.5, markersize=8, linestyle="none"
    ),
]
names = ["gold, sure", "gold, possible", "found", "found, wrong"]
figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
plt.show()
