from . import alignment as alignment
from . import tagging as tagging
