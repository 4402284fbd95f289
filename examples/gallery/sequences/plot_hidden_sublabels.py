"""
Hidden sub-labels find the digits by themselves
===============================================

Handwritten digits come with two labels only, "even" and "odd". No linear
classifier separates the five even digits from the five odd ones well. ``mm.LatentSVM(base,
n_sublabels=5)`` gives each label five hidden sub-labels with weights of their own,
and training finds out what each of them stands for.
"""

# %%
# Sequences of nine digits of scikit-learn; half of them are for training. A chain
# with the two labels is the comparison.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import maxmargin as mm

LENGTH = 9
data = load_digits()
order = np.random.default_rng(0).permutation(len(data.target))[:1791]
pixels, digits = data.data[order] / 16, data.target[order]
rows = np.hstack([pixels, np.ones((len(pixels), 1))])
X = list(rows.reshape(-1, LENGTH, rows.shape[1]))
y = np.where(digits % 2 == 0, "even", "odd").reshape(-1, LENGTH).tolist()
n = 100

plain = mm.ChainSVM(C=1.0, tol=0.02, random_state=0).fit(X[:n], y[:n])
latent = mm.LatentSVM(mm.ChainSVM(C=1.0, tol=0.02, random_state=0), n_sublabels=5).fit(X[:n], y[:n])
errors = {
    "two labels": 1 - plain.score(X[n:], y[n:]),
    "with sub-labels": 1 - latent.score(X[n:], y[n:]),
}
print({name: f"{error:.1%} of the test labels are wrong" for name, error in errors.items()})

# %%
# The mean picture of the test digits of each sub-label, and how many of them are the
# digit that is most frequent there.

names = np.array(
    [f"{label} {own}" for found in latent.predict_sublabels(X[n:]) for label, own in found]
)
pixels, digits = pixels[n * LENGTH :], digits[n * LENGTH :]
figure, grid = plt.subplots(2, 5, figsize=(6.0, 3.6), layout="constrained")
for row, label in zip(grid, ("even", "odd"), strict=True):
    for own, axes in enumerate(row):
        there = names == f"{label} {own}"
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title("unused", fontsize=10)
        if there.any():
            counts = np.bincount(digits[there], minlength=10)
            axes.imshow(pixels[there].mean(axis=0).reshape(8, 8), cmap="Greys")
            axes.set_title(f"{counts.max() / there.sum():.0%} are {counts.argmax()}", fontsize=10)
            print(f"{label} {own}: {counts.argmax()} is {counts.max()} of {there.sum()}")
    row[0].set_ylabel(label, fontsize=12)
before, after = errors.values()
figure.suptitle(f"Test error: {before:.1%} with two labels,\n{after:.1%} with hidden sub-labels")
plt.show()
