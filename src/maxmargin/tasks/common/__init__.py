"""Parts that several tasks share: text files, corpora, commands, options, progress, tables, weights, resampling."""
