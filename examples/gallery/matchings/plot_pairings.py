"""
Pairings, their runners-up, and how far to trust them
=====================================================

Cysteines of a protein form bonds in pairs. ``mm.PairingSVM`` finds the best pairing
of any graph exactly. ``k_best`` also gives the second best, and the difference of
their scores says how sure a prediction is.
"""

# %%
# Made-up proteins: bonds prefer cysteines that are close along the chain and whose
# charges differ. The gold bonds are the best perfect pairing of hidden weights plus
# noise.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Arc

import maxmargin as mm
from maxmargin.structures import Pairing

rng = np.random.default_rng(0)


def protein(bonds):
    """Features of all pairs of cysteines, gold bonds, and where the cysteines are."""
    place = np.sort(rng.choice(25 * bonds, size=2 * bonds, replace=False))
    charge = rng.normal(size=2 * bonds)
    gap = np.abs(place[:, None] - place)
    x = np.stack([np.log1p(gap), gap < 8, charge[:, None] * charge], axis=2)
    low, high = np.triu_indices(2 * bonds, 1)
    scores = x[low, high] @ [-1.0, -0.5, -1.5] + 0.5 * rng.normal(size=len(low))
    return x, Pairing.dense([2 * bonds], perfect=True).labels(scores).outputs[0], place


X, y, places = map(
    list, zip(*(protein(int(bonds)) for bonds in rng.integers(3, 6, size=500)), strict=True)
)
n = 100
model = mm.PairingSVM(perfect=True, C=0.1, tol=1e-2, random_state=0).fit(X[:n], y[:n])
best, second = zip(*model.k_best(X[n:], 2), strict=True)
margin = np.array([score - other for (_, score), (_, other) in zip(best, second, strict=True)])


def bonds(pairs):
    return {tuple(sorted(pair)) for pair in pairs.tolist()}


right = np.array(
    [bonds(pairs) == bonds(gold) for (pairs, _), gold in zip(best, y[n:], strict=True)]
)
print(f"all bonds are right in {right.mean():.0%} of {len(right)} new proteins")
print(f"F1 of single bonds: {model.score(X[n:], y[n:]):.0%}")

# %%
# Above, a doubtful protein with five bonds: the gold bonds are those of the second
# best pairing. Below, the share of whole pairings that are right by the size of the
# margin.

five = [
    i
    for i in range(len(margin))
    if len(places[n + i]) == 10 and bonds(second[i][0]) == bonds(y[n + i])
]
shown = max((i for i in five if margin[i] < 1), key=lambda i: np.diff(places[n + i]).min())
place, gold = places[n + shown], bonds(y[n + shown])
figure, (chain, bars) = plt.subplots(
    2, 1, figsize=(6.0, 6.0), layout="constrained", height_ratios=[1.25, 1]
)
span = int(place[-1] - place[0])
for level, pairs, names in (
    (0.0, gold, "gold"),
    (-2.2, bonds(best[shown][0]), f"best: {best[shown][1]:.2f}"),
    (-4.4, bonds(second[shown][0]), f"second: {second[shown][1]:.2f}"),
):
    chain.plot(place[[0, -1]], [level, level], color="0.6", zorder=0)
    chain.plot(place, np.full(len(place), level), "o", color="black", markersize=5)
    for low, high in pairs:
        a, b = place[low], place[high]
        color, style = ("#0072B2", "-") if (low, high) in gold else ("#D55E00", "--")
        chain.add_patch(
            Arc(
                ((a + b) / 2, level),
                b - a,
                1.0 + 2.4 * (b - a) / span,
                theta2=180,
                color=color,
                ls=style,
                lw=2,
            )
        )
    chain.text(place[0] - 0.02 * span, level + 0.1, names, ha="right", va="bottom")
chain.set_xlim(place[0] - 0.26 * span, place[-1] + 0.02 * span)
chain.set_ylim(-4.7, 1.9)
chain.set_axis_off()
chain.set_title(f"The right pairing is second, {margin[shown]:.2f} behind\n(wrong bonds dashed)")

parts = np.array_split(np.argsort(margin), 4)
share = np.array([right[own].mean() for own in parts])
spread = 1.96 * np.sqrt(share * (1 - share) / [len(own) for own in parts])
bars.bar(
    range(4), 100 * share, yerr=100 * spread, color="#0072B2", alpha=0.85, ecolor="0.2", capsize=4
)
bars.set_xticks(range(4), [f"{margin[own].min():.2f} to {margin[own].max():.2f}" for own in parts])
bars.set_xlabel("margin over the second best pairing (quarters of the new proteins)")
bars.set_ylabel("all bonds right (%)")
bars.set_title("The larger the margin, the more often\nthe whole pairing is right")
bars.spines[["top", "right"]].set_visible(False)
plt.show()
