from .base import Model as Model
from .base import Relaxation as Relaxation
from .base import load as load
from .edits import EditModel as EditModel
