"""Metrics of translations and transcripts: statistics of sentences, corpus scores, intervals and comparisons."""
