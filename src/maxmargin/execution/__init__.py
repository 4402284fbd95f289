"""Where the work of a run is done: shards of the data, in this process or elsewhere."""

from maxmargin.execution.pieces import HeldPieces as HeldPieces
from maxmargin.execution.pieces import Piece as Piece
from maxmargin.execution.pieces import PieceSource as PieceSource
from maxmargin.execution.pieces import ShardError as ShardError
from maxmargin.execution.ray import Ray as Ray
from maxmargin.execution.session import Executor as Executor
from maxmargin.execution.session import Serial as Serial
from maxmargin.execution.session import Session as Session
from maxmargin.execution.sharded_problem import ShardedProblem as ShardedProblem
