"""N-best lists and lattices: their classes, readers and writers."""
