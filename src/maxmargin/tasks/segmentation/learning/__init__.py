"""Node classifiers and auto-context."""
