"""Its folder is on the path of the tests below it, which import ``corpora``."""
