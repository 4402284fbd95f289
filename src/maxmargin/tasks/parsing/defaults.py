"""Defaults of training, for settings, estimator and command; the command starts without importing the others."""

ORDER = 2
"""Trees of second order."""

PASSES = 10
"""Passes over the sentences."""

BITS = 22
"""Features are hashed to ``2^BITS`` weights."""

AGGRESSIVENESS = 0.05
"""How far MIRA goes to mend an error."""
