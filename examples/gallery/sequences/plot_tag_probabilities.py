"""
What a tagger is unsure of, and what one answer changes
=======================================================

``predict_proba`` gives the probability of each label at each word: the marginals of
all label sequences, weighed by their scores. Labels depend on each other, so giving
the tagger one label with ``known=`` may change others.
"""

# %%
# The tagger learns parts of speech from four fifths of the English sentences of the
# package, and is shown one of the others, in which several words can be noun, verb or
# adjective.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.tagging import SequenceTagger, load_corpus

train, test = load_corpus().split()
tagger = SequenceTagger(preset="pos").fit(train.tokens, train.upos)
print(f"accuracy on new sentences: {tagger.score(test.tokens, test.upos):.1%}")

at = next(i for i, words in enumerate(test.tokens) if "beats" in words)
words, gold = test.tokens[at], test.upos[at]
told = [["ADJ" if word == "human" else None for word in words]]
answers = {
    "words alone": (tagger.predict([words])[0], tagger.predict_proba([words])[0]),
    "told that “human” is an adjective": (
        tagger.predict([words], known=told)[0],
        tagger.predict_proba([words], known=told)[0],
    ),
}

# %%
# Rows are the labels that are right or have a probability above 5% somewhere; cells
# are darker the more probable the label. A dot marks the tagger's choice, a frame the
# gold label, vermilion where the tagger is wrong.

labels = list(tagger.classes_)
likely = np.max([probabilities for _, probabilities in answers.values()], axis=(0, 1))
shown = [k for k, label in enumerate(labels) if likely[k] > 0.05 or label in gold]
row_of = {labels[k]: row for row, k in enumerate(shown)}

figure, axes = plt.subplots(2, 1, figsize=(6.0, 6.8), layout="constrained", sharex=True)
for own, (name, (tags, probabilities)) in zip(axes, answers.items(), strict=True):
    picture = own.imshow(probabilities.T[shown], cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for place, (right, chosen) in enumerate(zip(gold, tags, strict=True)):
        edge = "black" if right == chosen else "#D55E00"
        corner = place - 0.46, row_of[right] - 0.46
        style = {"fill": False, "edgecolor": edge, "linewidth": 1.6}
        own.add_patch(plt.Rectangle(corner, 0.92, 0.92, **style))
        color = "white" if probabilities[place, labels.index(chosen)] > 0.5 else "black"
        own.plot(place, row_of[chosen], "o", color=color, markersize=4)
    own.set_yticks(range(len(shown)), [labels[k] for k in shown])
    wrong = sum(a != b for a, b in zip(gold, tags, strict=True))
    own.set_title(f"{name}: {wrong} of {len(words)} labels wrong")
    print(f"{name}:", *(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)))
axes[1].set_xticks(range(len(words)), words, rotation=30, ha="right")
figure.colorbar(picture, ax=axes, label="probability", shrink=0.6)
plt.show()
