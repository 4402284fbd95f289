from . import alignment as alignment
from . import parsing as parsing
from . import reranking as reranking
from . import segmentation as segmentation
from . import tagging as tagging
