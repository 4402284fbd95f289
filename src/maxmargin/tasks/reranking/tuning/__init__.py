"""Methods that tune weights on lists: minimum error rate, pairwise ranking, MIRA, perceptron, max-margin."""
