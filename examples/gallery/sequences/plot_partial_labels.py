"""
A few labels in every sentence, or whole sentences?
===================================================

Labeling takes time. With a budget of so many words, one may label whole sentences, or
some words in every sentence. Taggers take labels of which some are unknown (``None``):
they learn from the known ones, complete the others, and learn again.
"""

# %%
# Parts of speech of the package's English corpus; all points have the same test
# sentences. Each budget is spent in both ways, twice with different words.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.tagging import SequenceTagger, load_corpus

train, test = load_corpus().split()
total = sum(map(len, train.tokens))


def whole(share, rng):
    """Sentences drawn at random, all their words labeled."""
    chosen = train.select(rng.permutation(len(train))[: round(share * len(train))].tolist())
    return chosen.tokens, chosen.upos


def scattered(share, rng):
    """All sentences, each word labeled with this probability."""
    return train.tokens, [
        [tag if rng.random() < share else None for tag in tags] for tags in train.upos
    ]


shares = [0.05, 0.1, 0.2, 0.4]
curves = {}
for name, draw in (("whole sentences", whole), ("words here and there", scattered)):
    points = []
    for share in shares:
        for seed in range(2):
            X, y = draw(share, np.random.default_rng(seed))
            known = sum(tag is not None for tags in y for tag in tags)
            tagger = SequenceTagger(
                preset="pos", folds=0, tol=0.05, classes=sorted({t for g in train.upos for t in g})
            )
            points.append((known, 100 * tagger.fit(X, y).score(test.tokens, test.upos)))
    curves[name] = np.array(points).reshape(len(shares), 2, 2)
    print(name, curves[name].mean(axis=1).round(1).tolist())

# %%
# Lines are means, small markers are single draws. Scattered words come from more
# sentences, so they show more different words and neighbors, and the
# other labels are filled in by the model.

ahead = (curves["words here and there"] - curves["whole sentences"])[..., 1].mean(axis=1)
figure, axes = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
for (name, points), color, marker in zip(curves.items(), ("#D55E00", "#0072B2"), "so", strict=True):
    axes.plot(*points.mean(axis=1).T, color=color, linewidth=2, marker=marker, label=name)
    axes.plot(
        points[..., 0].ravel(), points[..., 1].ravel(), marker, color=color, markersize=3, alpha=0.5
    )
axes.set_xscale("log")
axes.set_xticks([250, 500, 1000, 2000], ["250", "500", "1000", "2000"])
axes.set_xticks([], minor=True)
gain = f"{ahead.min():.1f} to {ahead.max():.1f} points more accurate"
axes.set_title(f"The same number of labels, scattered:\n{gain}")
axes.set_xlabel(f"labeled words, of {total} in the training sentences")
axes.set_ylabel("accuracy on new sentences (%)")
axes.grid(alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
