"""
Segments see what a chain cannot
================================

A recording has phases of noise and of signal with rests between. At a single tick,
noise and signal look alike; only the *length* of a phase tells them apart. A chain
scores positions and neighbors; ``mm.SegmentSVM`` scores whole segments.
"""

# %%
# Signals take four to six ticks, noise one to three.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

rng = np.random.default_rng(0)


def recording(phases):
    """Values with a constant, and the segments of noise and signal."""
    values, segments = [], []
    for _ in range(phases):
        label = str(rng.choice(["noise", "signal"]))
        length = int(rng.integers(4, 7) if label == "signal" else rng.integers(1, 4))
        segments.append((len(values), len(values) + length, label))
        values += [1.0] * length + [0.0] * int(rng.integers(1, 4))
    x = np.array(values) + 0.25 * rng.normal(size=len(values))
    return np.stack([x, np.ones(len(x))], axis=1), segments


def labels_of(segments, length):
    labels = ["rest"] * length
    for begin, end, label in segments:
        labels[begin:end] = [label] * (end - begin)
    return labels


def segments_of(labels):
    """Runs of equal labels, without rests."""
    cuts = [0, *(t for t in range(1, len(labels)) if labels[t] != labels[t - 1]), len(labels)]
    return [(a, b, labels[a]) for a, b in pairwise(cuts) if labels[a] != "rest"]


def f1(gold, found):
    """F1 of whole segments."""
    right = sum(len(set(a) & set(b)) for a, b in zip(gold, found, strict=True))
    return 2 * right / (sum(map(len, gold)) + sum(map(len, found)))


X, y = map(list, zip(*(recording(phases=6) for _ in range(120)), strict=True))
n = 60
labels = [labels_of(segments, len(x)) for x, segments in zip(X, y, strict=True)]
segmenter = mm.SegmentSVM(outside="rest", C=1.0, tol=1e-2).fit(X[:n], y[:n])
chain = mm.ChainSVM(C=1.0, tol=1e-2).fit(X[:n], labels[:n])
found = {
    "gold": y[n:],
    "chain": [segments_of(list(own)) for own in chain.predict(X[n:])],
    "segments": segmenter.predict(X[n:]),
}
scores = {name: f1(y[n:], segments) for name, segments in found.items()}
print({name: round(score, 3) for name, score in scores.items()})

# %%
# One of the test recordings, and below it the segments that each model finds.

shown = 1
x = X[n + shown][:, 0]
COLORS = {"noise": "#E69F00", "signal": "#0072B2"}
figure, (curve, rows) = plt.subplots(
    2, 1, figsize=(6.0, 4.4), layout="constrained", sharex=True, height_ratios=[1.1, 1]
)
curve.step(np.arange(len(x) + 1), np.append(x, x[-1]), where="post", color="0.3")
curve.set_ylabel("value")
both = f"chain {scores['chain']:.0%}, segments {scores['segments']:.0%}"
curve.set_title(f"F1 of segments on {len(X) - n} new recordings:\n{both}")
for row, all_segments in enumerate(found.values()):
    for begin, end, label in all_segments[shown]:
        rows.barh(row, end - begin, left=begin, height=0.7, color=COLORS[label], edgecolor="white")
        if (begin, end, label) not in y[n + shown]:
            rows.plot((begin + end) / 2, row, "x", color="black", markersize=7, markeredgewidth=2)
rows.set_yticks(range(len(found)), found)
rows.invert_yaxis()
rows.set_xlabel("tick")
rows.set_xlim(0, len(x))
handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in COLORS.values()]
handles.append(
    plt.Line2D([], [], marker="x", color="black", linestyle="none", markersize=7, markeredgewidth=2)
)
figure.legend(
    handles, [*COLORS, "not a gold segment"], loc="outside lower center", ncols=3, frameon=False
)
for axes in (curve, rows):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
