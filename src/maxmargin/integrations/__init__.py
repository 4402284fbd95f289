"""Taggers and parsers inside other libraries, and the data of other libraries as inputs: NLTK, spaCy, data frames.

Nothing here is imported by the rest of the package; the other libraries are imported by the module that is for them.
"""
