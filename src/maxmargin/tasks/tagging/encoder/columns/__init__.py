"""Columns that the encoder adds to tokens: word classes, word clusters and gazetteers."""
