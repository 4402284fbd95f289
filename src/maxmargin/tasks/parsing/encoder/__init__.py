"""From treebanks to trees with features, and to relations with features."""
