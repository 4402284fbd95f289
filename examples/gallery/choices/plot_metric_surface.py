"""
What tuning to a metric sees
============================

A recognizer scores each hypothesis by an acoustic model, a language model and the
length. Which weights give the fewest word errors? The error of the chosen hypotheses
is piecewise constant in the weights. MERT searches this surface along lines;
max-margin training minimizes a convex bound on it, with a certificate.
"""

# %%
# The package makes lists of 50 transcripts with these three features. Only the
# proportions of weights matter, so the weight of the acoustic model is 1, and the
# surface has two coordinates.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.reranking import Mert, Reranker, WordErrorRate, made_transcripts

train, test = made_transcripts(120, seed=1), made_transcripts(400, seed=2)
metric = WordErrorRate()


def error_rates(lists, weights):
    """Word error rate in percent for each column of weights, shape (3, n)."""
    statistics = metric.statistics(lists.texts, lists.references, lists.owner)
    scores = lists.values @ weights
    sums = 0.0
    for first, last in pairwise(lists.offsets):
        sums = sums + statistics[first + scores[first:last].argmax(axis=0)]
    return 100 * (1 - metric.quality(sums))


lm, length = np.linspace(1, 12, 110), np.linspace(-6, 44, 110)
grid = np.stack(
    [np.ones(lm.size * length.size), *(axis.ravel() for axis in np.meshgrid(lm, length))]
)
surface = error_rates(train, grid).reshape(len(length), len(lm))

# %%
# The decoder's own weights have no term for the length. Two methods learn better ones
# from 120 lists.

weights = {"decoder": np.array([1.0, 3.0, 0.0])}
for name, method in (("MERT", Mert(restarts=10)), ("max-margin", "max-margin")):
    C = None if name == "MERT" else 1.0
    reranker = Reranker(method, C=C, metric="wer", folds=0, random_state=0).fit(
        train, train.references
    )
    found = reranker.model_.dense_weights
    weights[name] = np.array([found[feature] for feature in train.names]) / found["acoustic"]
errors = {
    name: [error_rates(part, own[:, None])[0] for part in (train, test)]
    for name, own in weights.items()
}
print({name: own.round(2).tolist() for name, own in weights.items()})

# %%
# The surface on the training lists; lighter is better. MERT (star) ends near its
# lowest point. The circle is the optimum of the convex bound, which needs no search
# among plateaus.

figure, axes = plt.subplots(figsize=(6.0, 5.6), layout="constrained")
extent = lm[0], lm[-1], length[0], length[-1]
limits = {"vmin": surface.min(), "vmax": surface.min() + 2.5}
picture = axes.imshow(
    surface, extent=extent, origin="lower", aspect="auto", cmap="viridis_r", **limits
)
for (name, own), marker, color, size in zip(
    weights.items(), "s*o", ("black", "#D55E00", "white"), (9, 18, 10), strict=True
):
    label = f"{name}: {errors[name][0]:.1f}% (new lists: {errors[name][1]:.1f}%)"
    axes.plot(
        own[1],
        own[2],
        marker,
        color=color,
        markersize=size,
        markeredgecolor="black",
        linestyle="none",
        label=label,
    )
axes.set_xlabel("weight of the language model")
axes.set_ylabel("weight of the length")
axes.set_title("Word error rate on the training lists:\nsteps and plateaus")
figure.legend(loc="outside lower center", frameon=False)
figure.colorbar(picture, ax=axes, label="word error rate (%)", extend="max")
plt.show()
