from . import alignment as alignment
from . import reranking as reranking
from . import segmentation as segmentation
from . import tagging as tagging
