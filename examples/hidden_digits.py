"""Labels with hidden sub-labels: odd and even digits, of which nobody has said which digit each is.

    python examples/hidden_digits.py

Sequences of handwritten digits (those of scikit-learn) come with two labels only, "even" and "odd". A chain with two
labels cannot draw a line between them; with five hidden sub-labels of each it finds the digits by itself.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from sklearn.datasets import load_digits

import maxmargin as mm

LENGTH = 9


def sequences(images: np.ndarray, digits: np.ndarray) -> tuple[list[np.ndarray], list[list[str]], np.ndarray]:
    """Sequences of pixels with a constant, their labels, and the digits, which training does not see."""
    n = len(digits) // LENGTH * LENGTH
    pixels = np.hstack([images[:n] / 16.0, np.ones((n, 1))])
    labels = np.where(digits[:n] % 2 == 0, "even", "odd").reshape(-1, LENGTH)
    return list(pixels.reshape(-1, LENGTH, pixels.shape[1])), labels.tolist(), digits[:n]


def main() -> None:
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, digits = data.data[order], data.target[order]
    X, y, _ = sequences(images[:900], digits[:900])
    X_test, y_test, hidden = sequences(images[900:], digits[900:])

    base = mm.ChainSVM(C=1.0, tol=0.02, random_state=0)
    plain = mm.ChainSVM(C=1.0, tol=0.02, random_state=0).fit(X, y)
    latent = mm.LatentSVM(base, n_sublabels=5).fit(X, y)
    print(f"two labels:               {100 * (1 - plain.score(X_test, y_test)):5.2f}% of the test labels are wrong")
    print(f"five sub-labels of each:  {100 * (1 - latent.score(X_test, y_test)):5.2f}%")
    print("objective of each round: ", ", ".join(f"{value:.1f}" for value in latent.objectives_))

    pairs = [pair for own in latent.predict_sublabels(X_test) for pair in own]
    for pair in sorted(set(pairs)):
        found = Counter(digit for digit, one in zip(hidden.tolist(), pairs, strict=True) if one == pair)
        print(f"{pair[0]:>5} {pair[1]}: " + ", ".join(f"{digit} x {count}" for digit, count in found.most_common(3)))


if __name__ == "__main__":
    main()
