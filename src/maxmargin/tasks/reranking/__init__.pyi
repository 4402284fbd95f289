from .io.lists import NBestLists as NBestLists
from .metrics.base import Metric as Metric
