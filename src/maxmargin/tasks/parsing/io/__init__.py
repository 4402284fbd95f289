"""Treebanks in CoNLL-U."""
