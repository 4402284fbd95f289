"""From hypotheses to rows of features, dense and sparse."""
