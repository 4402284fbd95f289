"""Column generation for L1 norms, and the master problems it solves: linear programs over outputs found so far."""
