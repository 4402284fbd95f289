"""
Arcs of a parse and their probabilities
=======================================

A dependency parse gives every word a head. ``mm.DependencySVM`` learns scores of arcs
and finds the best tree; sums over all trees give the probability of each arc, which
shows where a sentence can be read in two ways.
"""

# %%
# Sentences of a made-up language of English words. A phrase with a preposition
# usually hangs on the verb if its noun is an instrument (with a telescope), and on
# the noun before if it is a part of something (with a garden); in one case of ten it
# is the other way round. Arcs do not cross, so phrases of the verb come after those
# of the noun.

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

rng = np.random.default_rng(0)
VERBS = ["sees", "paints", "watches", "describes", "finds"]
PEOPLE = ["girl", "boy", "painter", "farmer", "teacher"]
THINGS = ["house", "castle", "tower", "bridge", "mill"]
INSTRUMENTS = ["telescope", "camera", "brush", "pencil", "mirror"]
PARTS = ["garden", "roof", "gate", "window", "chimney"]
KINDS = {
    "V": VERBS,
    "N": PEOPLE + THINGS,
    "O": [*INSTRUMENTS, *PARTS, "lamp"],
    "D": ["the", "a"],
    "P": ["with"],
    "A": ["old"],
}
TAG = {word: tag for tag, words in KINDS.items() for word in words}


def sentence():
    """Words and heads, counted from 1; the head of the verb is 0, the root."""
    words = ["the", str(rng.choice(PEOPLE)), str(rng.choice(VERBS)), "the"]
    heads = [2, 3, 0]
    old = rng.random() < 0.4
    thing = 5 + old
    heads += [thing] * (1 + old) + [3]
    words += ["old"] * old + [str(rng.choice(THINGS))]
    for to_verb in sorted(rng.random(rng.integers(0, 3)) < 0.5):
        noun = len(words) + 3
        heads += [3 if to_verb else thing, noun, noun - 2]
        usual = rng.random() < 0.9
        words += ["with", "a", str(rng.choice(INSTRUMENTS if to_verb == usual else PARTS))]
    return words, np.array(heads)


# %%
# Features of an arc from head ``h`` to modifier ``m``: both tags with the direction
# and the distance (1, 2, or more); for prepositions also the tag of the head with the
# noun that follows. Rows are ordered by modifier, then by head.

nouns = {word: k for k, word in enumerate(INSTRUMENTS + PARTS)}
tags = ["root", *KINDS]


def arcs(words):
    n, rows = len(words), []
    for m in range(1, n + 1):
        for h in (h for h in range(n + 1) if h != m):
            head, own = "root" if h == 0 else TAG[words[h - 1]], TAG[words[m - 1]]
            pair = np.zeros((len(tags), len(tags), 2, 3))
            noun = np.zeros((2, len(nouns)))
            distance = min(abs(h - m), 3) - 1
            pair[tags.index(head), tags.index(own), int(h > m), distance] = 1.0
            if own == "P" and head in "NV" and words[m + 1] in nouns:
                noun["NV".index(head), nouns[words[m + 1]]] = 1.0
            rows.append([*pair.ravel(), *noun.ravel()])
    return np.array(rows)


data = [sentence() for _ in range(250)]
X, y = [arcs(words) for words, _ in data], [heads for _, heads in data]
n = 200
parser = mm.DependencySVM(C=1.0, tol=1e-2, random_state=0).fit(X[:n], y[:n])
print(f"heads right in {len(data) - n} new sentences: {parser.score(X[n:], y[n:]):.1%}")
print(parser.solution_.certificate)

# %%
# Scores become probabilities with a temperature, here the one that makes the training
# trees most likely. ``structure.marginals`` sums over all projective trees in one
# pass of inside-outside.

training = parser.model_.encoder.transform(X[:n])
gold, scores = training.structure.encode(y[:n]), training.features.scores(parser.coef_)


def log_likelihood(temperature):
    of_trees = training.structure.marginals(scores / temperature).value
    return scores @ gold / temperature - of_trees.sum()


temperature = max(np.geomspace(0.05, 2, 25), key=log_likelihood)
print(f"temperature {temperature:.2f}")

# %%
# Arcs of the best tree are solid, other arcs with a probability of at least 10% are
# dashed. Probabilities below 90% are printed. The word "lamp" is not in the training
# sentences, so the model cannot know whether the lamp is an instrument or a part of
# the castle. In the lower sentence the garden belongs to the castle, and no arc from
# the verb can reach the lamp without crossing that one.

BLUE, VERMILION = "#0072B2", "#D55E00"
BOX = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
MIDDLE = {"ha": "center", "va": "center"}


def draw(axes, words):
    """Draw arcs above the words; return the number of heads in doubt."""
    packed = parser.model_.encoder.transform([arcs(words)])
    own = packed.features.scores(parser.coef_)
    probability = packed.structure.marginals(own / temperature).z
    heads, length, doubtful = parser.predict([arcs(words)])[0], len(words), 0
    pairs = [(h, m) for m in range(1, length + 1) for h in range(length + 1) if h != m]
    for (h, m), p in zip(pairs, probability.tolist(), strict=True):
        best = heads[m - 1] == h
        if not best and p < 0.1:
            continue
        color, style = (BLUE, "-") if best else (VERMILION, "--")
        width = 1 + 1.8 * p
        if h == 0:
            axes.plot([m, m], [0.12, 2.6], color="0.45", linewidth=width, zorder=0)
            axes.text(m, 2.65, "root", ha="center", va="bottom", color="0.45")
        else:
            x = np.linspace(h + (0.12 if m > h else -0.12), m, 60)
            height = 0.45 + 0.33 * abs(h - m)
            circle = 1 - ((x - x.mean()) / np.ptp(x) * 2) ** 2
            y = 0.12 + height * np.sqrt(circle.clip(0, 1))
            axes.plot(x, y, color=color, linestyle=style, linewidth=width)
            if p < 0.9:
                doubtful += best
                top = x.mean(), 0.12 + height
                axes.text(*top, f"{p:.0%}", color=color, bbox=BOX, **MIDDLE)
        axes.plot(m, 0.12, "v", color="0.45" if h == 0 else color, markersize=6)
    for at, word in enumerate(words, start=1):
        axes.text(at, -0.15, word, ha="center", va="top")
    axes.set_xlim(0.4, 12.6)
    axes.set_ylim(-0.5, 3.1)
    axes.set_axis_off()
    return doubtful


figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.4, 5.6), layout="constrained")
short = ["the", "girl", "sees", "the", "old", "castle", "with", "a", "lamp"]
doubts = draw(upper, short), draw(lower, [*short, "with", "a", "garden"])
upper.set_title(f"A noun that is not in the training data: {doubts[0]} head in doubt")
lower.set_title(f"Three more words decide, as arcs must not cross: {doubts[1]} in doubt")
plt.show()
