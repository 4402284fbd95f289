"""Scores of predicted labels: chunks, rates, confusions, intervals and their tables."""
