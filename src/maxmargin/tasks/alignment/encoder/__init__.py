"""Sentence pairs as the matchings and features that the weights score."""
