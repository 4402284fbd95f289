"""Frozen and thawed objects give the same bits; damaged and hostile descriptions are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from problems import STRUCTURES, make

import maxmargin as mm
from maxmargin.datasets import FrozenError, ShardError, shard_file
from maxmargin.datasets.freezing import freeze, thaw
from maxmargin.features.entries import Entries
from maxmargin.features.parts import Beside, PartFeatures
from maxmargin.features.rows import Rows
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.problem import CandidateSets, PathSets
from maxmargin.structures import Structure, TransitionConstraints
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.programs.linear_program import LinearProgram


def through_file(value: Any, folder: Path, shared: Any = ()) -> Any:
    """A value written to a shard file and read again."""
    description, arrays = freeze(value, shared)
    path = folder / "0.shard"
    _, digest = shard_file.write(path, {"value": description}, arrays)
    header, mapped = shard_file.read(path, digest, verify=True)
    return thaw(header["value"], mapped, shared)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_same_bits(kind: str, tmp_path: Path) -> None:
    problem, rng = make(kind, n=6), np.random.default_rng(1)
    structure, features, gold = through_file((problem.structure, problem.features, problem.gold_point), tmp_path)
    assert gold.structure is structure
    weights, z = rng.normal(size=problem.n_weights), rng.random(problem.structure.n_parts)
    if problem.region.nonnegative is not None:
        weights[problem.region.nonnegative] = np.abs(weights[problem.region.nonnegative])
    scores = problem.features.scores(weights)
    chosen = [1, 4]
    for own, other in (
        (problem.gold, gold.dense()),
        (scores, features.scores(weights)),
        (problem.features.adjoint(z), features.adjoint(z)),
        (problem.structure.argmax(scores).z, structure.argmax(scores).z),
        (problem.structure.argmax(scores).value, structure.argmax(scores).value),
        (problem.structure.project(z).z, structure.project(z).z),
        (problem.features.select(chosen).scores(weights), features.select(chosen).scores(weights)),
        (
            problem.structure.select(chosen).argmax(problem.features.select(chosen).scores(weights)).z,
            structure.select(chosen).argmax(features.select(chosen).scores(weights)).z,
        ),
    ):
        assert np.array_equal(own, other)
    again = through_file((structure, features, gold), tmp_path)
    assert json.dumps(freeze(again)[0]) == json.dumps(freeze((structure, features, gold))[0])


def test_other_classes(tmp_path: Path) -> None:
    """Those that the problems above do not have: constraints, sparse rows, supports, good sets, programs."""
    rng = np.random.default_rng(0)
    rules = TransitionConstraints.bio(["B", "I", "O"])
    constrained = Chain([3, 2], 3, constraints=rules)
    chain = through_file(constrained, tmp_path)
    assert chain.constraints == rules
    scores = np.arange(chain.n_parts, dtype=float)
    assert np.array_equal(chain.argmax(scores).z, constrained.argmax(scores).z)

    matrix = sp.random_array((8, 100_000), density=0.01, format="csr", rng=rng)
    rows = PartFeatures(matrix, [0, 3, 8])
    z = rng.random(8)
    before = rows.adjoint(z)
    found = through_file(Beside(rows, PartFeatures(matrix, [0, 3, 8])), tmp_path)
    assert np.array_equal(found.adjoint(z), np.concatenate([before, before]))
    assert "transposed" in vars(found.features[0].rows)  # kept in the file, as it was made
    assert isinstance(found.features[0].rows, Rows)

    places = np.array([0, 2, 3]), np.array([1, 4, 0], dtype=np.int32)
    support = Support.of_pairs(np.array([0, 3, 5, 9, 12]), 5, 3)
    supported = SupportedRows(places, [0, 1, 2], support)
    same = through_file(supported, tmp_path, shared=(support,))
    assert same.support is support
    assert isinstance(same.rows, Entries)
    assert np.array_equal(same.scores(np.arange(5.0)), supported.scores(np.arange(5.0)))

    lists = Candidates([2, 3])
    mask = np.array([True, False, False, True, True])
    sets = CandidateSets.build(lists, PartFeatures(rng.random((5, 2)), [0, 2, 5]), mask, "nearest")
    found = through_file(sets, tmp_path)
    assert found.formulation == "nearest"
    assert np.array_equal(found.nearest, sets.nearest)
    lattice = make("lattice").structure
    paths = [[path] for path in lattice.decode(lattice.argmax(np.ones(lattice.n_parts)).z)]
    assert np.array_equal(
        through_file(PathSets.build(lattice, paths, "all"), tmp_path).edges, PathSets.build(lattice, paths, "all").edges
    )

    program = LinearProgram([np.ones((1, 3))], [np.ones(1)])
    assert np.array_equal(through_file(program, tmp_path).argmax(np.arange(3.0)).z, [0, 0, 1])
    values = {"a": [1, 2.5, None, True, float("inf")], "b": ("x", np.float32(2)), "c": np.zeros((0, 3))}
    found = through_file(values, tmp_path)
    assert found["a"] == values["a"]
    assert found["b"] == values["b"]
    assert found["c"].shape == (0, 3)


class OwnStructure(Candidates):
    """A user's structure."""


def test_refuses_classes_of_others() -> None:
    with pytest.raises(FrozenError, match=r"test_freezing\.OwnStructure.*train on it in memory"):
        freeze(OwnStructure([2, 3]))
    with pytest.raises(FrozenError, match="complex"):
        freeze(np.zeros(3, dtype=complex))
    with pytest.raises(FrozenError, match="cannot be stored"):
        freeze({"solver": mm.BlockFrankWolfe()})
    with pytest.raises(FrozenError, match="_kernels"):
        freeze(make("cut").structure._batch)


HOSTILE: list[Any] = [
    None,
    [],
    {},
    {"objects": [], "value": {"object": 0}},
    {"objects": [], "value": {"object": -1}},
    {"objects": [], "value": {"array": 7}},
    {"objects": [], "value": {"array": True}},
    {"objects": [], "value": {"shared": 0}},
    {"objects": [], "value": {"system": "true"}},
    {"objects": [], "value": [1]},
    {"objects": [], "value": {"float": "1e9"}},
    {"objects": [], "value": {"rows": [0, 0, 0], "shape": [5, 5]}},
    {"objects": [{"class": "os.system", "state": {}}], "value": None},
    {"objects": [{"class": "Path", "state": {}}], "value": None},
    {"objects": [{"class": ["Chain"], "state": {}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"argmax": 1}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"__class__": 1}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"_layout": 1}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"a b": 1}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"n_examples": 1}}], "value": None},
    {"objects": [{"class": "Chain", "state": {"lengths": {"object": 0}}}], "value": None},
]


@pytest.mark.parametrize("description", HOSTILE)
def test_refuses_hostile_descriptions(description: Any) -> None:
    with pytest.raises(FrozenError):
        thaw(description, [np.arange(3)])


def test_wrong_attributes_never_crash() -> None:
    """Objects whose attributes were exchanged or damaged raise Python errors, whatever is asked of them."""
    rng = np.random.default_rng(0)
    errors = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
    for kind in (
        "candidates",
        "chain",
        "cut",
        "graph",
        "lattice",
        "matching-capacity",
        "edits",
        "nonprojective",
        "pairing",
        "projective",
        "second-order",
        "segments",
        "spans",
        "tree",
    ):
        problem = make(kind, n=3)
        structure: Structure = problem.structure
        description, arrays = freeze((structure, problem.features))
        for _ in range(40):
            mutated, own = copy.deepcopy(description), [np.array(array) for array in arrays]
            at = int(rng.integers(len(own)))
            if rng.random() < 0.5 and own[at].size:
                values = [-1, 0, 1, 7, 1 << 20, (1 << 31) - 1, -(1 << 31)]
                own[at].flat[rng.integers(own[at].size)] = values[rng.integers(len(values))]
            elif rng.random() < 0.5:
                own[at] = own[rng.integers(len(own))]
            else:
                own[at] = own[at][: len(own[at]) // 2]
            if rng.random() < 0.2:
                state = mutated["objects"][int(rng.integers(len(mutated["objects"])))]["state"]
                state[str(rng.choice(list(state)))] = [None, 3, {"array": 0}, "x"][int(rng.integers(4))]
            try:
                found, features = thaw(mutated, own)
                scores = features.scores(rng.normal(size=problem.n_weights))
                with np.errstate(all="ignore"):
                    found.argmax(scores)
                    features.adjoint(scores)
            except errors:
                pass


def test_damaged_files_are_named(tmp_path: Path) -> None:
    description, arrays = freeze(make("chain").structure)
    path = tmp_path / "000000.shard"
    _, digest = shard_file.write(path, {"value": description}, arrays)
    whole = path.read_bytes()

    def refused(data: bytes, message: str, wanted: str = digest, verify: bool = True) -> None:
        path.write_bytes(data)
        with pytest.raises(ShardError, match=message) as error:
            shard_file.read(path, wanted, verify=verify)
        assert str(path) in str(error.value)

    refused(b"", "is empty")
    refused(b"PAR1" + whole, "is not a shard")
    refused(whole[:40], "is not a shard")
    refused(whole[:-1], "is truncated")
    refused(whole + b"x", "is truncated")
    refused(whole[:8] + b"\x07" + whole[9:], "format 7.*update")
    refused(whole, "not the file that the dataset's index names", "00" * 32)
    for place in (70, len(whole) - 100, len(whole) - 1):
        refused(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], "do not match their checksum")
    refused(whole[:60] + b"}" + whole[61:], "its header makes no sense", verify=False)
    path.unlink()
    with pytest.raises(ShardError, match="is missing"):
        shard_file.read(path, digest, verify=True)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"dtype": "|O", "shape": [1], "offset": 0},
        {"dtype": "<f8", "shape": [1 << 40], "offset": 0},
        {"dtype": "<f8", "shape": [1, 0, 1 << 62], "offset": 0},
        {"dtype": "<f8", "shape": [1], "offset": -64},
        {"dtype": "<f8", "shape": [1], "offset": 8},
        {"dtype": "<f8", "shape": "1", "offset": 0},
    ],
)
def test_arrays_lie_in_the_file(tmp_path: Path, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "000000.shard"
    real = json.dumps
    monkeypatch.setattr(shard_file.json, "dumps", lambda value, **options: real({**value, "arrays": [entry]}))
    _, digest = shard_file.write(path, {}, [np.arange(9.0)])
    with pytest.raises(ShardError, match="its header makes no sense"):
        shard_file.read(path, digest, verify=True)
