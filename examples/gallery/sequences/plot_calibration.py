"""
Do probabilities mean what they say?
====================================

Of the labels that a tagger gives with a probability of 80%, four in five should be
right. Large-margin training alone does not ensure that, so taggers divide
their scores by a *temperature*, which is fitted on dev data or by cross-validation
on the training sentences.
"""

# %%
# A tagger of parts of speech learns from a quarter of the English sentences of the
# package and labels the others, so that there are enough errors to count. ``fit``
# chooses the temperature by cross-validation.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.tasks.tagging import SequenceTagger, load_corpus

corpus = load_corpus()
test, train = corpus.split(4)
tagger = SequenceTagger(preset="pos").fit(train.tokens, train.upos)
print(f"temperature {tagger.model_.temperature:.3f}, fitted on {tagger.calibrated_on}")

# %%
# ``predict_proba`` uses the temperature; a temperature of 1 takes the scores as they
# are.

model = tagger.model_
rows = model.rows(test.tokens)
gold = np.array([tag for tags in test.upos for tag in tags])
answers = {
    "temperature 1": model.marginals(rows, temperature=1.0),
    "fitted temperature": np.concatenate(tagger.predict_proba(test.tokens)),
}


def reliability(probabilities, n_bins=10):
    """Confidence, share of right labels and size of bins; and the calibration error."""
    confidence = probabilities.max(axis=1)
    right = np.array(tagger.classes_)[probabilities.argmax(axis=1)] == gold
    bins = np.array_split(np.argsort(confidence, kind="stable"), n_bins)
    points = np.array([(confidence[own].mean(), right[own].mean(), len(own)) for own in bins])
    error = np.average(np.abs(points[:, 0] - points[:, 1]), weights=points[:, 2])
    return points, error


# %%
# Each dot is a tenth of the tokens; the bars are 95% intervals of the share that is
# right. Dots on the diagonal are calibrated.

figure, axes = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=0)
errors = {}
for (name, probabilities), color, marker in zip(
    answers.items(), ("#D55E00", "#0072B2"), "so", strict=True
):
    points, errors[name] = reliability(probabilities)
    spread = 1.96 * np.sqrt(points[:, 1] * (1 - points[:, 1]) / points[:, 2])
    label = f"{name}: {errors[name]:.1%} off on average"
    axes.errorbar(
        points[:, 0],
        points[:, 1],
        spread,
        color=color,
        marker=marker,
        linestyle="none",
        label=label,
    )
    print(label)
axes.text(0.62, 0.56, "as sure as it should be", rotation=40, color="0.4", ha="center", va="center")
axes.set_xlabel("probability of the label that was chosen")
axes.set_ylabel("share of these labels that is right")
axes.set_xlim(0, 1.02)
axes.set_ylim(0, 1.02)
axes.set_aspect("equal")
axes.set_title("Raw scores give too low probabilities,\na fitted temperature corrects them")
axes.grid(alpha=0.3)
axes.legend(loc="lower right", framealpha=1)
plt.show()
