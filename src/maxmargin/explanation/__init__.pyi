from .compute import explain as explain
from .result import Contribution as Contribution
from .result import Explanation as Explanation
