"""
How strongly should neighbors agree?
====================================

A graph cut labels the pixels of a noisy image: each pixel has a score for each label,
and neighbors with different labels pay the weight of their edge. If this weight is
too small, noise remains; if it is too large, thin strokes disappear. ``mm.CutSVM``
learns it together with the other weights, so no grid search is needed.
"""

# %%
# Digits of scikit-learn, enlarged to 24 by 24 pixels, with noise. A node's feature is
# its gray value, edges join neighbors.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

import maxmargin as mm

SIDE = 24
rng = np.random.default_rng(0)
number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
edges = np.concatenate(
    [
        np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
        np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
    ]
)
X, y, noisy = [], [], []
for image in load_digits().images[:90]:
    clean = zoom(image, SIDE / 8, order=1) / 16
    noisy.append(clean + rng.normal(scale=0.6, size=clean.shape))
    X.append(mm.Graph(np.column_stack([noisy[-1].ravel(), np.ones(SIDE * SIDE)]), edges))
    y.append((clean.ravel() > 0.45).astype(int))
n = 30
cut = mm.CutSVM(C=0.1, random_state=0).fit(X[:n], y[:n])
print(cut.solution_.certificate, cut.coef_)

# %%
# What if the edges were weaker or stronger? ``replace`` makes models whose last
# weight, that of edges, is multiplied.

factors = np.array([0.0, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0])
models = [replace(cut.model_, weights=cut.coef_ * [1.0, 1.0, factor]) for factor in factors]
errors = [100 * (1 - model.score(X[n:], y[n:])) for model in models]

shown, at = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0), n + 2
figure = plt.figure(figsize=(6.0, 6.8), layout="constrained")
top, bottom = figure.subfigures(2, 1)
panels = top.subplots(2, 4).ravel()
panels[0].imshow(noisy[at], cmap="Greys")
panels[0].set_title("noisy", fontsize=10)
panels[-1].imshow(y[at].reshape(SIDE, SIDE), cmap="Greys")
panels[-1].set_title("truth", fontsize=10)
for axes, factor in zip(panels[1:-1], shown, strict=True):
    labels = models[factors.tolist().index(factor)].predict([X[at]])[0]
    axes.imshow(np.reshape(labels, (SIDE, SIDE)), cmap="Greys", vmin=0, vmax=1)
    axes.set_title("learned" if factor == 1 else f"edges × {factor:g}", fontsize=10)
for axes in panels:
    axes.set_xticks([])
    axes.set_yticks([])
curve = bottom.subplots()
curve.plot(range(len(factors)), errors, "o-", color="#0072B2", linewidth=2)
learned = factors.tolist().index(1.0)
curve.plot(learned, errors[learned], "*", color="#D55E00", markersize=16, label="learned weight")
curve.set_xticks(range(len(factors)), [f"{factor:g}" for factor in factors])
curve.set_xlabel(f"factor on the learned weight of edges ({len(X) - n} new images)")
curve.set_ylabel("wrong pixels (%)")
best = min(range(len(factors)), key=lambda k: errors[k])
of_factors = f"best of these factors: {errors[best]:.1f}%"
curve.set_title(f"Learned weight: {errors[learned]:.1f}% of the pixels wrong\n({of_factors})")
curve.set_ylim(bottom=0)
curve.grid(alpha=0.3)
curve.spines[["top", "right"]].set_visible(False)
curve.legend(frameon=False)
plt.show()
