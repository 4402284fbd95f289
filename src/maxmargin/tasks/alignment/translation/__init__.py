"""Translation models that are learned from a bitext without annotations."""
