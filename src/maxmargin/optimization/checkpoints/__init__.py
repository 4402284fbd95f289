"""Checkpoints: what a run saves, the files, and the checks before a run resumes from them."""
