"""Output spaces: the polytopes whose vertices are the outputs of a batch."""

from maxmargin.structures.associative import Associative as Associative
from maxmargin.structures.base import Block as Block
from maxmargin.structures.base import Labeling as Labeling
from maxmargin.structures.base import Points as Points
from maxmargin.structures.base import PointStatus as PointStatus
from maxmargin.structures.base import Polytope as Polytope
from maxmargin.structures.base import Structure as Structure
from maxmargin.structures.candidates import Candidates as Candidates
from maxmargin.structures.chain import Chain as Chain
from maxmargin.structures.cut import Cut as Cut
from maxmargin.structures.graph import PairwiseGraph as PairwiseGraph
from maxmargin.structures.junction import JunctionTree as JunctionTree
from maxmargin.structures.linear_program import LinearProgram as LinearProgram
from maxmargin.structures.matching import Matching as Matching
from maxmargin.structures.second_order import SecondOrderChain as SecondOrderChain
from maxmargin.structures.transitions import TransitionConstraints as TransitionConstraints
from maxmargin.structures.tree import Tree as Tree
