"""
A structure of your own: events that keep their distance
========================================================

Heartbeats, keystrokes or spikes of a neuron are at least some time apart. A detector
that judges every moment by itself reports one event several times; the usual remedy
is to suppress all but the strongest detection *afterwards*. Here the rule is part of
the structure, so training takes it into account. A structure needs its argmax and
three small methods; projections, k-best lists, solvers and certificates come with the
library.
"""

# %%
# An output is a 0/1 vector whose ones are at least ``apart`` positions from each
# other. The best one is a recursion: what is the best score of the first ``t``
# positions?

from functools import partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.structures import Block, Points, Structure
from maxmargin.testing import check_structure


class Events(Structure):
    """Positions of events, any two of them at least ``apart`` from each other."""

    name = "events"
    categorical = False  # each part is a 0/1 variable of its own

    def __init__(self, sizes, apart):
        self.sizes, self.apart = np.asarray(sizes), apart
        self.blocks = (Block("positions", np.concatenate([[0], np.cumsum(self.sizes)])),)

    def argmax(self, scores, *, warm=None):
        """Best events of each example, by dynamic programming."""
        z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
        for i, (first, last) in enumerate(pairwise(self.blocks[0].offsets)):
            best = np.zeros(last - first + 1)
            for t in range(1, len(best)):
                best[t] = max(best[t - 1], scores[first + t - 1] + best[max(t - self.apart, 0)])
            value[i], t = best[-1], last - first
            while t > 0:
                taken = best[t] > best[t - 1]
                z[first + t - 1] = taken
                t = max(t - self.apart, 0) if taken else t - 1
        return Points(z, value, np.zeros(self.n_examples, dtype=np.int8))

    def encode(self, outputs):
        """Outputs as one packed 0/1 vector."""
        z = np.zeros(self.n_parts)
        for i, (places, first) in enumerate(zip(outputs, self.blocks[0].offsets, strict=False)):
            if np.diff(places).min(initial=self.apart) < self.apart:
                rule = f"events must be at least {self.apart} positions apart"
                raise ValueError(f"example {i}: {rule}, got {places}")
            z[first + np.asarray(places, dtype=int)] = 1.0
        return z

    def decode(self, z):
        """Positions of the events of each example."""
        return [np.flatnonzero(piece > 0.5) for piece in np.split(z, self.blocks[0].offsets[1:-1])]

    def select(self, indices):
        """The batch of some of the examples."""
        return type(self)(self.sizes[indices], self.apart)


check_structure(Events([5, 1, 7], apart=3), np.random.default_rng(0))

# %%
# Recordings of bumps in noise. The features of a position are the values around it.
# With ``apart=1`` the same class has no such rule.

rng = np.random.default_rng(0)
APART, WINDOW = 6, 3


def recording(length=60):
    places = [int(rng.integers(2, 8))]
    while places[-1] < length - 14:
        places.append(places[-1] + int(rng.integers(APART, 14)))
    t = np.arange(length)
    bumps = sum(np.exp(-0.5 * ((t - place) / 1.3) ** 2) for place in places)
    return bumps + 0.25 * rng.normal(size=length), np.array(places)


def features(signal):
    padded = np.pad(signal, WINDOW)
    return np.column_stack(
        [np.lib.stride_tricks.sliding_window_view(padded, 2 * WINDOW + 1), np.ones(len(signal))]
    )


def f1(gold, found):
    right = sum(np.isin(a, b).sum() for a, b in zip(found, gold, strict=True))
    return 2 * right / sum(len(a) + len(b) for a, b in zip(found, gold, strict=True))


signals, gold = map(list, zip(*(recording() for _ in range(90)), strict=True))
X = [features(signal) for signal in signals]
n = 30
loss = mm.losses.Hamming(false_positive=1, false_negative=3)
alone, spaced = (
    mm.StructuredSVM(partial(Events, apart=apart), C=1.0, loss=loss, tol=1e-2, random_state=0).fit(
        X[:n], gold[:n]
    )
    for apart in (1, APART)
)
print(spaced.solution_.certificate)

# %%
# The usual remedy is the third way: positions are learned by themselves, and the best
# events that keep their distance are chosen by these scores.

structure = Events([len(x) for x in X[n:]], APART)
suppressed = structure.decode(structure.argmax(np.concatenate(X[n:]) @ alone.coef_).z)
found = {
    "each position by itself": alone.predict(X[n:]),
    "by itself, then suppressed": suppressed,
    f"trained with the distance of {APART}": spaced.predict(X[n:]),
}
scores = {name: float(f1(gold[n:], events)) for name, events in found.items()}
print({name: round(score, 3) for name, score in scores.items()})

# %%
# One of the new recordings: gold events as vertical lines, found ones as triangles,
# wrong ones hollow.

at = max(range(len(X) - n), key=lambda i: np.setdiff1d(suppressed[i], gold[n + i]).size)
figure, panels = plt.subplots(
    3, 1, figsize=(6.0, 6.8), layout="constrained", sharex=True, sharey=True
)
for axes, (name, events) in zip(panels, found.items(), strict=True):
    signal, right = signals[n + at], np.isin(events[at], gold[n + at])
    axes.vlines(gold[n + at], -0.6, 2.6, color="0.75", linewidth=4, zorder=0, label="gold event")
    axes.plot(signal, color="0.3", linewidth=1.2)
    height = signal[events[at]] + 0.3
    axes.plot(events[at][right], height[right], "v", color="#0072B2", markersize=8, label="found")
    axes.plot(
        events[at][~right],
        height[~right],
        "v",
        color="#D55E00",
        markersize=8,
        fillstyle="none",
        label="found, wrong",
    )
    axes.set_ylabel("value")
    axes.set_ylim(-0.6, 2.6)
    axes.set_title(f"{name}: F1 {scores[name]:.2f} on {len(X) - n} new recordings")
    axes.spines[["top", "right"]].set_visible(False)
panels[-1].set_xlabel("position")
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
