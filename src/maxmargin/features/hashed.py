"""Features of dependency trees that are made on the fly from attributes of the tokens, and hashed to weights.

A *key* joins a few attributes of a token and its neighbors; a template joins the keys of the nodes of a part. Parsers
have some hundred features for each of the ``n^2`` arcs of a sentence: no matrix holds them, but making them takes no
longer than reading one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin.features.base import Features
from maxmargin.structures._arrays import example_numbers, offsets_of, ranges, vector
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.dependencies.projective import ProjectiveTrees

CIRCUMSTANCES = ("", "same as head", "same as modifier", "both same", "kinds between", "edge", "place")
"""What templates of arcs may see besides keys: how many tokens between have the tag of the head, that of the modifier,
and both; how many of each kind lie between; which of the two is first or last; where the modifier stands."""

Template = tuple[str, ...]
"""Names of the keys of the nodes of a part, empty for none; of arcs, also one of :data:`CIRCUMSTANCES`."""


@dataclass(frozen=True)
class Templates:
    """Templates of the features of a tree.

    Attributes:
        keys: for each key, by its name, pairs of an attribute (the number of its column) and a shift: 0 for the token
            itself, -1 for the one before.
        arcs: triples of a key of the head, one of the modifier, and a circumstance.
        siblings: triples of keys of head, sibling and modifier.
        grandparents: triples of keys of grandparent, head and modifier.
        between: the key of head and modifier that goes with each tag between them; empty for no such features.
    """

    keys: dict[str, tuple[tuple[int, int], ...]]
    arcs: tuple[Template, ...]
    siblings: tuple[Template, ...] = ()
    grandparents: tuple[Template, ...] = ()
    between: str = ""

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them; KeyError or ValueError if a template names what does not exist."""
        number = {"": -1, **{name: k for k, name in enumerate(self.keys)}}
        pairs = np.array([pair for own in self.keys.values() for pair in own], dtype=np.int32).reshape(-1, 2)
        starts = offsets_of([len(own) for own in self.keys.values()]).astype(np.int32)
        arcs = [(number[head], number[modifier], CIRCUMSTANCES.index(seen)) for head, modifier, seen in self.arcs]
        triples = [[[number[name] for name in one] for one in some] for some in (self.siblings, self.grandparents)]
        rows = [np.array(some, dtype=np.int32).reshape(-1, 3) for some in (arcs, *triples)]
        columns = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
        return (starts, *columns, *rows, number[self.between])


class HashedTrees(Features):
    """Features of the arcs, siblings and grandparents of projective trees without labels.

    Of siblings and grandparents only those whose arcs are candidates have features; the others score 0.

    Args:
        trees: the structure.
        numbers: attributes of the nodes of all sentences, each root before its tokens, -1 for unknown, int32, shape
            ``(n_nodes, n_attributes)``.
        tags: tag of each node, for what lies between head and modifier, from 0, int32, shape ``(n_nodes,)``.
        kinds: kind of each node, 0 to 3, of which 1 to 3 are counted between head and modifier, uint8.
        templates: the templates.
        bits: there are ``2^bits`` weights.
    """

    def __init__(
        self,
        trees: ProjectiveTrees,
        numbers: npt.NDArray[np.int32],
        tags: npt.NDArray[np.int32],
        kinds: npt.NDArray[np.uint8],
        templates: Templates,
        bits: int,
    ) -> None:
        self.trees, self.numbers, self.tags, self.kinds, self.templates = trees, numbers, tags, kinds, templates
        self.bits = _checks.integer("bits", bits, least=3, most=30)
        self.n_weights, self.n_parts, self.n_examples = 1 << self.bits, trees.n_parts, trees.n_examples
        if trees.n_labels != 1:
            raise ValueError(f"these features do not see labels, and the trees have {trees.n_labels}; give one label")
        nodes = int((trees.n_tokens + 1).sum())
        if numbers.ndim != 2 or len(numbers) != nodes:
            raise ValueError(f"numbers must have a row for each of the {nodes} tokens and roots, got {numbers.shape}")

    @property
    def n_blocks(self) -> int:
        """As many as the trees have."""
        return len(self.trees.blocks)

    @cached_property
    def compiled(self) -> Any:
        """As kernels take it."""
        make: Any = _kernels.dependency_features
        return make(self.trees._batch, self.numbers, self.tags, self.kinds, *self.templates.arrays, self.bits)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    def fingerprint_data(self) -> Iterable[Any]:
        """Numbers and templates."""
        return self.numbers, self.tags, self.kinds, self.trees.n_tokens, repr(self.templates), self.bits

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        self.compiled.scores(vector(weights, self.n_weights, "weights"), out, _threads.current())

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        self.compiled.adjoint(vector(z, self.n_parts, "z"), out)

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """The same features, one sentence at a time."""
        return self.compiled

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given sentences, in that order."""
        chosen = example_numbers(indices, self.n_examples)
        offsets = offsets_of(self.trees.n_tokens + 1)
        nodes = ranges(offsets[chosen], offsets[chosen + 1])
        trees, numbers = self.trees.select(chosen), np.ascontiguousarray(self.numbers[nodes])
        return type(self)(trees, numbers, self.tags[nodes], self.kinds[nodes], self.templates, self.bits)

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """The features of some parts, in the order in which the templates make them."""
        return sp.csr_array(self._listed()[parts])

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``."""
        matrix = self._listed()
        matrix.sum_duplicates()
        return matrix

    def _listed(self) -> sp.csr_array:
        """The matrix with an entry for each feature of a part, also where two of them share a weight."""
        starts, columns = self.compiled.rows()
        return sp.csr_array((np.ones(len(columns)), columns, starts), shape=(self.n_parts, self.n_weights))
