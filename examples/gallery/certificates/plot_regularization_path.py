"""
A whole path of models from one run
===================================

How large should the norm of the weights be? Usually one trains a model for each of several radii.
The dual extragradient method without regularization starts at zero weights, and its
averages grow: one run visits all norms, and its weights are close to the best ones of
the same norm (Taskar, Lacoste-Julien and Jordan 2005,
section 6).
"""

# %%
# Points of a digit's strokes are matched with those of a distorted copy. The features
# of a possible link are how much its two points differ in position and in their
# distances to the other points, and products of these differences.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import PolynomialFeatures

import maxmargin as mm

rng = np.random.default_rng(0)
images = load_digits().images[:160]
expand = PolynomialFeatures(degree=2)


def shape(points):
    """Where a point is, and how far the others are from it."""
    centered = points - points.mean(axis=0)
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.column_stack([centered, np.quantile(apart, [0.25, 0.5, 0.75, 1.0], axis=1).T]) / 4


def pair(image):
    """Features of all links of points and their moved copies; the right links."""
    points = np.argwhere(image > 9).astype(float)
    points = points[rng.permutation(len(points))[:10]]
    turn = rng.normal(scale=0.3)
    turned = points @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    order = rng.permutation(len(points))
    moved = (turned + rng.normal(scale=0.4, size=points.shape))[order]
    apart = np.abs(shape(points)[:, None] - shape(moved)[None])
    x = expand.fit_transform(apart.reshape(-1, apart.shape[2])).reshape(len(points), len(moved), -1)
    return x, np.stack([order, np.arange(len(order))], axis=1)


X, y = map(list, zip(*(pair(image) for image in images), strict=True))
path = mm.regularization_path(
    mm.MatchingSVM(tol=1e-3),
    X[:40],
    y[:40],
    radii=[0.5, 1.0, 2.0, 4.0, 7.0, 10.0],
    dev=(X[40:100], y[40:100]),
    test=(X[100:], y[100:]),
    iterations=150,
)
for point in path.exact:
    error = f"dev error {point.dev_error:.3f}"
    print(f"radius {point.setting}: {error}, hinge {point.hinge:.1f}, gap {point.gap:.2g}")

# %%
# ``plot_path`` draws the four panels of Figure 6 of that report. Vermilion: a
# training run for each radius, certified. Blue: the one run without regularization.

above = (path.excess() / path.arrays("exact")["hinge"]).max()
figure = plt.figure(figsize=(6.0, 6.8), layout="constrained")
title = f"One run (blue): hinge at most {above:.1%} above exact points"
mm.report.plot_path(path, figure=figure, title=title)
plt.show()
