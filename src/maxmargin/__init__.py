"""Large-margin structured prediction with certified duality gaps."""

from maxmargin._threads import threads

__all__ = ["threads"]
__version__ = "0.1.0"
