"""Dependency trees over the tokens of a sentence."""
