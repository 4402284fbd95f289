"""Parts that several tasks share: text files, corpora, commands and their options, progress, tables, weights, resampling."""
