"""Dependency parsing: treebanks in CoNLL-U, large-margin parsers, attachment scores."""
