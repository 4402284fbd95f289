"""Objects of the package as a JSON description and raw arrays, and back: how shards keep batches.

:func:`freeze` walks over the attributes of an object, without what is made again when it is needed (cached properties,
such as objects of kernels); :func:`thaw` builds the same objects around arrays that may be mapped from a file, without
a copy. Only the classes listed here are written and read. A description is data: names are looked up in the list, no
module is imported and no function is called because a file says so. Arrays of a shared memory are written once, and
:func:`thaw` shares them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin._sparse import sp

_CLASSES = {
    "encoders.base": "Batch",
    "features.cliques": "CliqueFeatures",
    "features.entries": "Entries",
    "features.parts": "Beside PartFeatures Stacked",
    "features.rows": "Rows",
    "features.hashed": "HashedTrees Templates",
    "features.supported": "Support SupportedRows",
    "features.tied": "ChainFeatures PairwiseFeatures SecondOrderFeatures TiedRows",
    "features.tree": "TreeFeatures",
    "problem.good": "CandidateSets",
    "problem.good_paths": "PathSets",
    "problem.partial": "PartialOutputs",
    "structures._arrays": "Ragged",
    "structures.base": "Block",
    "structures.candidates": "Candidates",
    "structures.chains.chain": "Chain",
    "structures.chains.second_order": "SecondOrderChain",
    "structures.chains.transitions": "TransitionConstraints",
    "structures.cuts.clique_cut": "CliqueCut",
    "structures.clique_sets": "Cliques",
    "structures.cuts.cut": "Cut",
    "structures.deductions.edits": "Edits",
    "structures.dependencies.nonprojective": "NonProjectiveTrees",
    "structures.dependencies.projective": "ProjectiveTrees",
    "structures.deductions.segments": "Segments TaggedSegments",
    "structures.deductions.derivations": "Derivations",
    "structures.deductions.spans": "Spans",
    "structures.lattice": "Lattice",
    "structures.matchings.matching": "Matching",
    "structures.networks.associative": "Associative",
    "structures.networks.clique_network": "CliqueNetwork",
    "structures.networks.graph": "PairwiseGraph",
    "structures.matchings.pairing": "Pairing",
    "structures.programs.linear_program": "LinearProgram",
    "structures.programs.simplex": "Program",
    "structures.sparse": "SparsePoint",
    "structures.trees.cliques": "CliqueTables",
    "structures.trees.junction": "JunctionTree",
    "structures.trees.tree": "Tree",
}
"""Modules of the package, and those of their classes that can be frozen."""

_HOMES = {name: f"maxmargin.{module}" for module, names in _CLASSES.items() for name in names.split()}

_KEPT = {"Rows": ("transposed",), "Entries": ("transposed",)}
"""Cached properties that are written, once they have been made: they take longer to make than to read."""

_PLAIN = (str, int, float)
_KINDS = "biuf"
"""Kinds of numbers that arrays may hold: flags, integers and real numbers."""


class FrozenError(ValueError):
    """An object that cannot be frozen, or a description from which nothing can be thawed."""


def freeze(value: Any, shared: Sequence[Any] = ()) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """A description of a value, as plain JSON values, and the arrays that it numbers.

    Args:
        value: objects of the package, lists, tuples, dictionaries, arrays, sparse matrices and plain values.
        shared: objects that are not written but numbered: :func:`thaw` gets them from its caller.

    Raises:
        FrozenError: an object is of a class that is not in the list; the message says of which.
    """
    freezer = _Freezer(shared)
    root = freezer.described(value)
    return {"objects": freezer.objects, "value": root}, freezer.arrays


def thaw(description: Any, arrays: Sequence[npt.NDArray[Any]], shared: Sequence[Any] = ()) -> Any:
    """The inverse of :func:`freeze`.

    Raises:
        FrozenError: the description is not one that :func:`freeze` writes.
    """
    try:
        thawer = _Thawer(arrays, shared)
        for one in description["objects"]:
            thawer.objects.append(thawer.built(one))
        return thawer.value(description["value"])
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, FrozenError):
            raise
        raise FrozenError(f"its description makes no sense ({type(error).__name__}: {error})") from None


class _Freezer:
    """The objects and arrays that were met, by their identity."""

    def __init__(self, shared: Sequence[Any]) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: list[npt.NDArray[Any]] = []
        self._shared = {id(one): number for number, one in enumerate(shared)}
        self._known: dict[int, int] = {}
        self._memory: dict[Any, int] = {}
        self._alive: list[Any] = []  # so that no identity is used twice

    def described(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, *_PLAIN)):
            plain = value is None or type(value) in (bool, *_PLAIN)
            if not plain:
                raise _refused(value)
            return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value
        if id(value) in self._shared:
            return {"shared": self._shared[id(value)]}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        if isinstance(value, np.ndarray):
            if value.ndim == 1 and len(value) > 1 and value.strides == (0,):
                return {"repeated": self._array(value[:1]), "times": len(value)}
            return {"array": self._array(value)}
        if sp.issparse(value):
            rows = sp.csr_array(value)
            parts = [self._array(part) for part in (rows.indptr, rows.indices, rows.data)]
            return {"rows": parts, "shape": [int(side) for side in rows.shape]}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.described(one) for one in value]}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.described(one) for key, one in value.items()}}
        return {"object": self._object(value)}

    def _array(self, array: npt.NDArray[Any]) -> int:
        if array.dtype.kind not in _KINDS or type(array) is not np.ndarray:
            raise FrozenError(f"an array of {array.dtype} ({type(array).__name__}) cannot be stored; use numbers")
        key = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str
        if key not in self._memory:
            self._memory[key] = len(self.arrays)
            self.arrays.append(array)
        return self._memory[key]

    def _object(self, value: Any) -> int:
        if id(value) in self._known:
            return self._known[id(value)]
        kind = type(value)
        if _HOMES.get(kind.__name__) != kind.__module__:
            raise _refused(value)
        state = {
            name: self.described(one)
            for name, one in vars(value).items()
            if not isinstance(getattr(kind, name, None), cached_property) or name in _KEPT.get(kind.__name__, ())
        }
        self._alive.append(value)
        self._known[id(value)] = len(self.objects)
        self.objects.append({"class": kind.__name__, "state": state})
        return self._known[id(value)]


def _refused(value: Any) -> FrozenError:
    kind = type(value)
    return FrozenError(
        f"an object of class {kind.__module__}.{kind.__qualname__} cannot be stored: only structures and features of "
        "the library are; train on it in memory"
    )


class _Thawer:
    """The arrays, and the objects so far: each refers only to those before it."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]], shared: Sequence[Any]) -> None:
        self.arrays, self.shared = arrays, shared
        self.objects: list[Any] = []

    def value(self, described: Any) -> Any:
        if not isinstance(described, dict):
            if isinstance(described, list):
                raise FrozenError("its description makes no sense (a bare list)")
            return described
        kind = next(iter(described))
        read = _READERS.get(kind)
        if read is None:
            raise FrozenError(f"its description makes no sense (a value of kind {quoted(kind)})")
        return read(self, described)

    def built(self, described: Any) -> Any:
        name, state = described["class"], described["state"]
        home = _HOMES.get(name)
        if home is None:
            raise FrozenError(f"it holds an object of class {quoted(name)}, which this version does not read; update")
        kind = getattr(import_module(home), name)
        found = kind.__new__(kind)
        attributes = vars(found)
        for attribute, one in state.items():
            if not attribute.isidentifier() or attribute.startswith("__") or _computed(kind, attribute):
                raise FrozenError(f"a {name} has no attribute {quoted(attribute)} to be set")
            attributes[attribute] = self.value(one)
        return found

    def array(self, number: Any) -> npt.NDArray[Any]:
        return self.arrays[_index(number)]


def _index(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise FrozenError(f"its description makes no sense (number {quoted(number)})")
    return number


def _computed(kind: type, attribute: str) -> bool:
    """Whether a class defines this name as a method or property, not as data."""
    found = getattr(kind, attribute, None)
    if isinstance(found, cached_property):
        return attribute not in _KEPT.get(kind.__name__, ())
    return callable(found) or hasattr(found, "__set__")


def _number(thawer: _Thawer, described: dict[str, Any]) -> float:
    if described["float"] not in ("inf", "-inf", "nan"):
        raise FrozenError("its description makes no sense (a number that is not one)")
    return float(described["float"])


def _repeated(thawer: _Thawer, described: dict[str, Any]) -> npt.NDArray[Any]:
    # A view, in the memory of one number whatever the file claims; stretched over its own shape it stays harmless.
    return np.broadcast_to(thawer.array(described["repeated"])[0], _index(described["times"]))


def _rows(thawer: _Thawer, described: dict[str, Any]) -> sp.csr_array:
    starts, columns, values = (thawer.array(number) for number in described["rows"])
    rows, width = (_index(side) for side in described["shape"])
    found = sp.csr_array((values, columns, starts), shape=(rows, width))
    found.check_format(full_check=True)
    return found


_READERS: dict[str, Callable[[_Thawer, dict[str, Any]], Any]] = {
    "array": lambda thawer, described: thawer.array(described["array"]),
    "scalar": lambda thawer, described: thawer.array(described["scalar"])[()],
    "repeated": _repeated,
    "rows": _rows,
    "float": _number,
    "list": lambda thawer, described: [thawer.value(one) for one in described["list"]],
    "tuple": lambda thawer, described: tuple(thawer.value(one) for one in described["tuple"]),
    "dict": lambda thawer, described: {key: thawer.value(one) for key, one in described["dict"].items()},
    "object": lambda thawer, described: thawer.objects[_index(described["object"])],
    "shared": lambda thawer, described: thawer.shared[_index(described["shared"])],
}
