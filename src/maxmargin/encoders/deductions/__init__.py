"""Encoders of outputs that dynamic programs derive: segments, edit alignments, trees of spans and rules."""
