"""Disulfide bonds of made-up proteins: which cysteines are partners.

Every chain has a few cysteines, all of them bonded. As in real proteins, short chains full of cysteines interleave
their bonds and long ones bond neighbors; charges near the cysteines attract or repel, too. The gold bonds are the best
perfect pairing of hidden weights plus noise. PairingSVM learns the weights of a whole pairing; it is compared with
bonds that are learned one by one (logistic regression, logits matched), and with pairing the nearest.

    python examples/disulfide_bonds.py [bonds.png]
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import maxmargin as mm
from maxmargin.structures import Pairing

HIDDEN = np.array([-0.8, 0.3, 1.5, -1.5, 0.8])
"""Weights of the features of a pair of cysteines."""


def features(place: np.ndarray, charge: np.ndarray, length: int) -> np.ndarray:
    """Shape ``(n, n, 5)``: distance, as residues and as cysteines, the latter by how dense cysteines are, charges."""
    n = len(place)
    gap = np.log1p(np.abs(place[:, None] - place))
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    sparse = np.full((n, n), np.log(length / n) - 2.5)
    across, near = -np.abs(steps - n / 2), (steps == 1) * 1.0
    return np.stack([gap, near, near * sparse, across * sparse, -charge[:, None] * charge], axis=2)


def proteins(rng: np.random.Generator, n: int) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Features of all pairs, gold bonds, and where the cysteines are."""
    X, y, places = [], [], []
    for bonds in rng.integers(2, 6, size=n).tolist():
        length = int(bonds * rng.choice([12, 25, 80]))
        place = np.sort(rng.choice(length, size=2 * bonds, replace=False))
        x = features(place, rng.normal(size=2 * bonds), length)
        low, high = np.triu_indices(2 * bonds, 1)
        scores = x[low, high] @ HIDDEN + 0.6 * rng.normal(size=len(low))
        X.append(x)
        y.append(Pairing.dense([2 * bonds], perfect=True).labels(scores).outputs[0])
        places.append(place)
    return X, y, places


def one_by_one(X: list[np.ndarray], y: list[np.ndarray], new: list[np.ndarray]) -> list[np.ndarray]:
    """Bonds of the largest sum of logits, which are learned for single pairs."""
    gold = np.asarray(Pairing.dense([len(x) for x in X]).encode(y))
    links = LogisticRegression(max_iter=1000).fit(upper(X), gold > 0.5)
    return list(Pairing.dense([len(x) for x in new], perfect=True).labels(links.decision_function(upper(new))).outputs)


def upper(X: list[np.ndarray]) -> np.ndarray:
    """The rows of all pairs."""
    return np.concatenate([x[np.triu_indices(len(x), 1)] for x in X])


def nearest(place: np.ndarray) -> np.ndarray:
    """The nearest two that are left, again and again."""
    left, pairs = list(range(len(place))), []
    while left:
        at = int(np.argmin(np.diff(place[left])))
        pairs.append((left.pop(at), left.pop(at)))
    return np.array(pairs)


def patterns(gold: list[np.ndarray], found: list[np.ndarray]) -> float:
    """The share of chains with all bonds right."""
    return float(np.mean([bonds(one) == bonds(two) for one, two in zip(gold, found, strict=True)]))


def bonds(pairs: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(sorted(pair)) for pair in pairs.tolist()}


def draw(places: list[np.ndarray], gold: list[np.ndarray], found: list[np.ndarray], path: str) -> None:
    """Gold bonds above the chain, predictions below; the wrong ones are dashed and red."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Arc

    figure = Figure(figsize=(10, 1.9 * len(places)))
    for row, (place, right, mine) in enumerate(zip(places, gold, found, strict=True)):
        axes = figure.add_subplot(len(places), 1, row + 1)
        span = int(place[-1] - place[0])
        axes.axhline(0.0, color="0.6", zorder=0)
        axes.plot(place, np.zeros(len(place)), "o", color="goldenrod", markersize=7)
        for pairs, side in ((right, 1), (mine, -1)):
            for low, high in sorted(bonds(pairs)):
                wrong = (low, high) not in bonds(right)
                a, b = place[low], place[high]
                height = 0.5 + 1.5 * (b - a) / span
                color, style = ("tab:red", "--") if wrong else ("tab:green", "-")
                shape = (0.0, 180.0) if side > 0 else (180.0, 360.0)
                axes.add_patch(
                    Arc(
                        ((a + b) / 2, 0), b - a, height, theta1=shape[0], theta2=shape[1], color=color, ls=style, lw=1.8
                    )
                )
        axes.set_xlim(place[0] - 0.03 * span, place[-1] + 0.03 * span)
        axes.set_ylim(-1.1, 1.1)
        axes.set_yticks([0.6, -0.6], ["gold", "found"])
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.tick_params(axis="y", length=0)
        for name in ("top", "right", "left"):
            axes.spines[name].set_visible(False)
    axes.set_xlabel("residue")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(path: str | None = None, n_train: int = 120, n_test: int = 200) -> dict[str, float]:
    X, y, places = proteins(np.random.default_rng(0), n_train + n_test)
    new, gold, at = X[n_train:], y[n_train:], places[n_train:]
    model = mm.PairingSVM(perfect=True, C=0.1).fit(X[:n_train], y[:n_train])
    found = list(model.predict(new))
    outcome = {
        "patterns": patterns(gold, found),
        "one by one": patterns(gold, one_by_one(X[:n_train], y[:n_train], new)),
        "nearest": patterns(gold, [nearest(place) for place in at]),
        "bonds": model.score(new, gold),
    }
    print(f"{n_train} chains: {model.solution_.certificate}")
    print(f"{n_test} new chains, all bonds right: {outcome['patterns']:.0%}; bonds: {outcome['bonds']:.0%}")
    print(f"bonds learned one by one: {outcome['one by one']:.0%}; pairs of the nearest: {outcome['nearest']:.0%}")
    margin = [best[1] - second[1] for best, second in model.k_best(new, 2)]
    sure = np.argsort(margin)[::-1][: n_test // 2]
    share = patterns([gold[i] for i in sure], [found[i] for i in sure])
    print(f"in the half whose second best pairing is farthest: {share:.0%}")
    outcome["sure"] = share
    if path is not None:
        spans = np.array([place[-1] - place[0] for place in at])
        large = [i for i in np.argsort(spans).tolist() if len(at[i]) >= 8]
        shown = large[0], large[len(large) // 2], large[-1]  # the shortest of many bonds, a middle one and the longest
        draw([at[i] for i in shown], [gold[i] for i in shown], [found[i] for i in shown], path)
        print(f"{path}: gold bonds above, found ones below")
    return outcome


if __name__ == "__main__":
    main(*sys.argv[1:2])
