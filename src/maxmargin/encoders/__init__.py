"""From lists of user data to packed batches and back."""

from maxmargin.encoders.associative import AssociativeEncoder as AssociativeEncoder
from maxmargin.encoders.base import Batch as Batch
from maxmargin.encoders.base import Encoder as Encoder
from maxmargin.encoders.candidates import CandidatesEncoder as CandidatesEncoder
from maxmargin.encoders.chain import ChainEncoder as ChainEncoder
from maxmargin.encoders.cut import CutEncoder as CutEncoder
from maxmargin.encoders.graph import GraphEncoder as GraphEncoder
from maxmargin.encoders.inputs import Bipartite as Bipartite
from maxmargin.encoders.inputs import FeatureSequence as FeatureSequence
from maxmargin.encoders.inputs import Graph as Graph
from maxmargin.encoders.inputs import Program as Program
from maxmargin.encoders.matching import MatchingEncoder as MatchingEncoder
from maxmargin.encoders.parts import PartsEncoder as PartsEncoder
from maxmargin.encoders.program import ProgramEncoder as ProgramEncoder
from maxmargin.encoders.tree import TreeEncoder as TreeEncoder
