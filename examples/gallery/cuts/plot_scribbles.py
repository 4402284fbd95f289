"""
Correcting a segmentation with scribbles
========================================

A trained segmenter is often nearly right. ``interactive`` lets a user scribble over
what is wrong in one image: pixels under a stroke get the label of the stroke, and the
cut spreads it to their neighbors. Features, probabilities and the last flow are kept
between strokes.
"""

# %%
# The package draws pictures of leaves on a background of similar colors. Ten are
# for training, six for testing.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.ndimage import distance_transform_edt, label

from maxmargin.tasks.segmentation import Segmenter, drawn_pictures, overlay
from maxmargin.tasks.segmentation.show import default_colors

X, y = drawn_pictures(16, size=(90, 120))
n = 10
segmenter = Segmenter(classifier="linear", stages=1, n_regions=250, folds=3, random_state=0).fit(
    X[:n], y[:n]
)
wrong = [
    float((found != gold).mean())
    for found, gold in zip(segmenter.predict(X[n:]), y[n:], strict=True)
]
print("wrong pixels of the new pictures:", [f"{share:.1%}" for share in wrong])

# %%
# A simulated user takes the worst picture and repeatedly draws a stroke of seven by
# three pixels with the right label into the largest wrong area.

at = n + int(np.argmax(wrong))
image, gold = X[at], y[at]
session = segmenter.interactive(image)
seeds = np.full(gold.shape, -1)
labels, strokes = [session.segment(seeds)], [seeds.copy()]
for _ in range(12):
    areas, _ = label(labels[-1] != gold)
    largest = areas == 1 + np.argmax(np.bincount(areas.ravel())[1:])
    depth = distance_transform_edt(np.pad(largest, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(np.argmax(depth), depth.shape)
    stroke = np.zeros(gold.shape, dtype=bool)
    stroke[max(row - 1, 0) : row + 2, max(column - 3, 0) : column + 4] = True
    seeds[stroke & (gold == gold[row, column])] = gold[row, column]
    labels.append(session.segment(seeds))
    strokes.append(seeds.copy())
errors = [100 * float((found != gold).mean()) for found in labels]
print("wrong pixels after each stroke:", [f"{error:.1f}%" for error in errors])

# %%
# The predicted leaf is tinted, the true outline is dashed. Strokes are white for
# background and black for leaf.

figure = plt.figure(figsize=(6.0, 4.8), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.3])
shown = [0, 3, 12]
for axes, count in zip(top.subplots(1, 3), shown, strict=True):
    axes.imshow(overlay(image, labels[count], default_colors(2)))
    axes.contour(gold, levels=[0.5], colors="white", linewidths=1.2, linestyles="dashed")
    for value, color in ((0, "white"), (1, "black")):
        drawn = np.ma.masked_where(strokes[count] != value, np.ones(gold.shape))
        axes.imshow(drawn, cmap=ListedColormap([color]), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(f"{count or 'no'} strokes:\n{errors[count]:.1f}% wrong")
curve = bottom.subplots()
curve.plot(errors, "o-", color="#0072B2", linewidth=2)
curve.set_xlabel("strokes")
curve.set_ylabel("wrong pixels (%)")
curve.set_ylim(bottom=0)
share, mended = (strokes[-1] >= 0).mean(), 1 - errors[-1] / errors[0]
title = f"{shown[-1]} strokes on {share:.1%} of the pixels remove {mended:.0%} of the errors"
curve.set_title(title)
curve.grid(alpha=0.3)
curve.spines[["top", "right"]].set_visible(False)
plt.show()
