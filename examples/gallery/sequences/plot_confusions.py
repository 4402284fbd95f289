"""
Which labels a tagger confuses
==============================

Accuracy is one number. The confusion matrix says where errors are, and with it what
more data or features could improve.
"""

# %%
# A tagger of parts of speech learns from four fifths of the English sentences of the
# package. ``evaluate`` counts every pair of a gold and a predicted label;
# ``confused`` lists the most frequent errors.

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.tasks.tagging import SequenceTagger, load_corpus

train, test = load_corpus().split()
tagger = SequenceTagger(preset="pos", folds=0).fit(train.tokens, train.upos)
scores = tagger.evaluate(test.tokens, test.upos)
for confusion in scores.confused(5):
    print(confusion)

# %%
# ``mm.report.plot_confusion`` shades cells by their share of the gold label. Rows and
# columns without errors are left out here.

table = np.zeros((len(scores.labels), len(scores.labels)), dtype=int)
gold, predicted, count = scores.pairs.T
table[gold, predicted] = count
wrong = table - np.diag(np.diag(table))
shown = np.flatnonzero(wrong.sum(axis=0) + wrong.sum(axis=1))
labels = [str(scores.labels[k]) for k in shown]
open_classes = np.isin(scores.labels, ["NOUN", "VERB", "ADJ", "ADV", "PROPN"])
share = wrong[np.ix_(open_classes, open_classes)].sum() / wrong.sum()

figure, axes = plt.subplots(figsize=(6.0, 6.2), layout="constrained")
mm.report.plot_confusion(table[np.ix_(shown, shown)], labels, axes=axes)
among = f"{share:.0%} of them among content words"
axes.set_title(f"{wrong.sum()} of {scores.tokens} labels are wrong,\n{among}")
for k, label in enumerate(labels):
    if label in ("NOUN", "VERB", "ADJ", "ADV", "PROPN"):
        axes.get_xticklabels()[k].set_color("#D55E00")
        axes.get_yticklabels()[k].set_color("#D55E00")
plt.show()

# %%
# Content words (vermilion labels) are told apart by their endings, their neighbors
# and the words seen in training, so more text helps most there.
