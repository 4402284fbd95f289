"""
How to read a certificate
=========================

``solution_.certificate`` holds two numbers between which the smallest possible
objective must lie. The upper one, ``primal``, is the objective of the weights that
you get. The lower one, ``dual``, comes from the other player of the saddle-point
problem: *no* weights have a smaller objective. Training ends when the two are close
enough.
"""

# %%
# A tagger learns base phrases (chunks) from four fifths of the English sentences of
# the package. The others are given as dev data, so that ``dev_scores_`` has their
# score at each certificate. With ``patience=None`` only the tolerance ends training.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.tagging import SequenceTagger, load_corpus


def tokens(part):
    return [
        list(zip(words, tags, strict=True))
        for words, tags in zip(part.tokens, part.upos, strict=True)
    ]


train, dev = load_corpus().split()
tagger = SequenceTagger(preset="chunking", columns=("word", "pos"), tol=1e-3, patience=None)
tagger.fit(tokens(train), train.chunks, dev=(tokens(dev), dev.chunks))
print(tagger.solution_.status)
print(tagger.solution_.certificate)

# %%
# ``solution_.history`` has a record for each certificate: the smallest primal and the
# largest dual so far.

history = tagger.solution_.history
iteration = np.array([record.iteration for record in history])
primal = np.array([record.certificate.primal for record in history])
dual = np.array([record.certificate.dual for record in history])
gap = np.array([record.certificate.relative_gap for record in history])
f1 = 100 * np.array([score for _, score in tagger.dev_scores_])

# %%
# How close is close enough? Beyond the default ``tol=0.01`` the weights still move a
# little nearer to the optimum, but predictions of held-out sentences hardly change
# any more.

BLUE, VERMILION = "#0072B2", "#D55E00"
figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.0, 7.4), layout="constrained")
upper.fill_between(iteration, dual, primal, color=BLUE, alpha=0.15, linewidth=0)
upper.plot(iteration, primal, color=VERMILION, linewidth=2)
upper.plot(iteration, dual, color=BLUE, linewidth=2)
at = int(np.searchsorted(iteration, 3))
for value, place, text, color in (
    (primal[at], (0.3, 0.85), "primal: objective of\nthe weights so far", VERMILION),
    (dual[at], (0.3, 0.09), "dual: no weights have\na smaller objective", BLUE),
):
    arrow = {"arrowstyle": "->", "color": color}
    upper.annotate(
        text,
        (iteration[at], value),
        place,
        textcoords="axes fraction",
        color=color,
        va="center",
        arrowprops=arrow,
    )
upper.annotate(
    f"optimum: {dual[-1]:.1f} to {primal[-1]:.1f}",
    (iteration[-1], dual[-1]),
    (0.98, 0.42),
    textcoords="axes fraction",
    ha="right",
    arrowprops={"arrowstyle": "->"},
)
upper.set_ylim(bottom=dual[-1] - 0.35 * np.ptp(primal))
upper.set_xlabel("passes over the data")
upper.set_ylabel("objective")
upper.set_title("The optimum is between the two curves")

print(f"below a gap of 0.01, F1 moves by {np.ptp(f1[gap <= 0.01]):.2f} points")
lower.semilogx(gap, f1, "o-", color="#009E73", linewidth=1.5, markersize=4)
lower.axvline(0.01, color="0.5", linestyle="--", linewidth=1)
lower.text(0.009, f1.min(), "default tol", color="0.35", rotation=90, ha="left", va="bottom")
lower.invert_xaxis()
lower.set_xlabel("certified relative gap")
lower.set_ylabel("F1 of chunks on dev data (%)")
lower.set_title("Held-out F1 settles before the tolerance is reached")
for axes in (upper, lower):
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
