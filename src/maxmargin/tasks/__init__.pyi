from . import alignment as alignment
from . import segmentation as segmentation
from . import tagging as tagging
