"""One run of a solver: the loop, its certificate, checkpoints and callbacks."""
