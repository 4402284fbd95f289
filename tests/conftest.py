"""Settings that all tests share."""

from hypothesis import settings

settings.register_profile("maxmargin", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("maxmargin")
