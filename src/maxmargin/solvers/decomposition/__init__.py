"""Simplicial decomposition and cutting planes: methods that solve master problems over the outputs found so far."""
