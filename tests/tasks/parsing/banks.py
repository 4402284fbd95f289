"""Treebanks for tests: sentences of a small made-up grammar, in CoNLL-U."""

import numpy as np

NOUNS = ["cat", "dog", "bird", "tree", "house"]
VERBS = ["sees", "likes", "finds"]
DETERMINERS = ["the", "a", "every"]
ADJECTIVES = ["big", "old", "red"]


def noun_phrase(rng, words, relation, head):
    """Append a noun phrase; return the place of its noun. Heads are places from 1, set later for the noun."""
    first = len(words)
    words.append([str(rng.choice(DETERMINERS)), "DET", None, "det"])
    for _ in range(rng.integers(0, 2)):
        words.append([str(rng.choice(ADJECTIVES)), "ADJ", None, "amod"])
    words.append([str(rng.choice(NOUNS)), "NOUN", head, relation])
    noun = len(words)
    for place in range(first, noun - 1):
        words[place][2] = noun
    if rng.random() < 0.3:
        words.append(["of", "ADP", None, "case"])
        case = len(words)
        below = noun_phrase(rng, words, "nmod", noun)
        words[case - 1][2] = below
    return noun


def sentence(rng):
    """Rows (word, tag, head, relation)."""
    words = []
    subject = noun_phrase(rng, words, "nsubj", None)
    words.append([str(rng.choice(VERBS)), "VERB", 0, "root"])
    verb = len(words)
    words[subject - 1][2] = verb
    if rng.random() < 0.8:
        noun_phrase(rng, words, "obj", verb)
    words.append([".", "PUNCT", verb, "punct"])
    return words


def conllu(n, seed=0, comments=True):
    """The text of a treebank of ``n`` sentences."""
    rng = np.random.default_rng(seed)
    blocks = []
    for i in range(n):
        rows = [
            "\t".join([str(j), word, word, tag, tag[:2], "_", str(head), relation, "_", "_"])
            for j, (word, tag, head, relation) in enumerate(sentence(rng), start=1)
        ]
        blocks.append("\n".join([*([f"# sent_id = {i}"] if comments else []), *rows]) + "\n\n")
    return "".join(blocks)
