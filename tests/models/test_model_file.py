"""Model files: round trips, and every kind of damaged, foreign or hostile file."""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import pickle
import struct
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from data import KINDS, PickOne, chains, matchings, picks, same
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sealed_files import changed, parts, refused, sealed

import maxmargin as mm
from maxmargin import model_file

kinds = pytest.mark.parametrize("kind", list(KINDS))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model of each kind: path, estimator and inputs."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for kind, (estimator, data) in KINDS.items():
        X, y = data()
        model = estimator(C=2.0).fit(X, y)
        model.save(folder / kind)
        found[kind] = folder / kind, model, X
    return found


@kinds
def test_round_trip(kind, saved, tmp_path):
    path, model, X = saved[kind]
    for again in (mm.load(path), mm.load(str(path)), mm.load(path, n_jobs=2)):
        assert same(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.weights, model.coef_)
        assert again.score(X, model.predict(X)) == 1.0
        assert len(again.k_best(X, 2)) == len(X)
    metadata = mm.load(path).metadata
    assert metadata["C"] == 2.0
    assert metadata["status"] == "converged"
    assert metadata["estimator"] == type(model).__name__
    mm.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@kinds
def test_a_loaded_model_has_the_estimators_attributes(kind, saved):
    path, model, _ = saved[kind]
    again = mm.load(path)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    if kind in ("chain", "tree"):
        assert again.classes_ == model.classes_ == ("a", "b", "c")
    elif kind in ("grammar", "segments"):
        assert again.classes_ == model.classes_
    else:
        assert not hasattr(again, "classes_")


@pytest.mark.parametrize("settings", [{"C": np.inf, "max_iter": 3}, {"radius": 0.5}, {"C": 1, "radius": np.inf}])
def test_infinite_settings_can_be_saved(settings, tmp_path):
    X, y = matchings(3)
    model = mm.MatchingSVM(**settings).fit(X, y)
    model.save(tmp_path / "model")
    assert same(mm.load(tmp_path / "model").predict(X), model.predict(X))


def test_capacities_are_kept(tmp_path):
    X = [np.ones((1, 3, 1))]
    mm.MatchingSVM(left_capacity=np.int64(2)).fit(X, [[[0, 0], [0, 2]]]).save(tmp_path / "model")
    assert len(mm.load(tmp_path / "model").predict(X)[0]) == 2


@pytest.mark.parametrize(
    "labels",
    [
        ("a", "b", "ü-\u4e2d-\U0001f600"),
        ("", " ", "\x00\n"),
        ("\ud800", '"', "\\"),
        (0, -5, 10**30),
        (0.1, -1e-300, 1.7976931348623157e308),
        (True, False, (None,)),
        ("1", 1, (1,)),
        ((), (("x", 1), None), ((1.5, (True,)),)),
        (np.str_("a"), np.int32(3), np.float32(0.1)),
    ],
)
def test_labels_of_all_types(labels, tmp_path):
    X, y = chains(6, labels=labels)
    model = mm.ChainSVM().fit(X, y)
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    assert again.encoder.classes == model.classes_
    assert [type(label) for label in again.encoder.classes] == [type(label) for label in model.classes_]
    assert again.predict(X) == model.predict(X)
    assert again.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("label", [b"x", frozenset([1]), 1j, float("inf"), ("a", float("-inf")), ("a", b"x"), object])
def test_labels_that_cannot_be_saved_leave_the_old_file(label, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    X, y = chains(4, labels=("a", label))
    model = mm.ChainSVM().fit(X, y)
    with pytest.raises(ValueError, match=r"cannot be saved.*pickle the estimator"):
        model.save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]
    assert same(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_structure_of_ones_own(tmp_path):
    X, y = picks()
    model = mm.StructuredSVM(PickOne).fit(X, y)
    model.save(tmp_path / "model")
    assert mm.load(tmp_path / "model", structure=PickOne).predict(X) == model.predict(X)
    with pytest.raises(mm.ModelFileError, match=r"load\(path, structure=\.\.\.\)"):
        mm.load(tmp_path / "model")


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt("Ctrl-C")])
@pytest.mark.parametrize("step", ["replace", "fsync", "open"])
def test_a_failing_save_leaves_the_old_file(step, error, saved, tmp_path, monkeypatch):
    (tmp_path / "model").write_bytes(b"old")

    def fail(*args):
        raise error

    monkeypatch.setattr(builtins if step == "open" else os, step, fail)
    with pytest.raises(type(error), match=str(error)):
        saved["matching"][1].save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_saving_replaces_and_obeys_the_umask(saved, tmp_path):
    path, model, _ = saved["matching"]
    target = tmp_path / "model"
    target.write_bytes(b"old" * 1000)
    model.save(target)
    assert target.read_bytes() == path.read_bytes()
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask
    with pytest.raises(OSError):
        model.save(tmp_path / "missing" / "model")
    with pytest.raises(OSError):
        model.save(tmp_path)


def test_saving_never_sets_the_umask(saved, tmp_path, monkeypatch):
    _, model, _ = saved["matching"]
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")  # another thread would create files under whatever was set meanwhile
            model.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640


def test_errors_of_saving_name_the_given_path(saved, tmp_path):
    _, model, _ = saved["matching"]
    for target, kind in (
        (tmp_path / "missing" / "model", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (tmp_path / ("x" * 300), OSError),
    ):
        with pytest.raises(kind) as caught:
            model.save(target)
        assert caught.value.filename == str(target)
        assert caught.value.filename2 is None
        assert str(target) in str(caught.value)
        assert ".part" not in str(caught.value)
    model.save(tmp_path / ("x" * 255))
    assert os.listdir(tmp_path) == ["x" * 255]


def test_every_truncation(saved, tmp_path):
    data = saved["matching"][0].read_bytes()
    for length in range(len(data)):
        remedy = "give a file written by" if length < len(model_file.MAGIC) else "truncated.*; copy it again"
        refused(tmp_path / "model", data[:length], remedy)
    refused(tmp_path / "model", data + b"\0", "checksum; copy it again")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 10**6), flip=st.integers(1, 255))
@example(where=8, flip=1)
@example(where=12, flip=255)
def test_every_flipped_byte(saved, tmp_path, where, flip):
    data = bytearray(saved["chain"][0].read_bytes())
    data[where % len(data)] ^= flip
    refused(tmp_path / "model", bytes(data))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_headers_of_any_json(saved, tmp_path, data):
    """Any JSON in any place of a header, with a true checksum: a model that is usable, or ModelFileError."""
    anything = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    )
    kind = data.draw(st.sampled_from(list(KINDS)))
    path, _, X = saved[kind]
    header, payload = parts(path.read_bytes())
    place = header
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(anything)
        break
    (tmp_path / "model").write_bytes(sealed(header, payload))
    try:
        model = mm.load(tmp_path / "model", structure=PickOne)
    except mm.ModelFileError:
        return
    try:
        model.predict(X)
    except ValueError:
        assert model.encoder.kind != kind or place is header["encoder"]


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


def test_foreign_files(tmp_path):
    marker = tmp_path / "exploded"
    zipped, arrays, objects = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("weights", "1 2 3")
    np.savez(arrays, weights=np.ones(3))
    np.save(objects, np.array([Bomb(marker)], dtype=object), allow_pickle=True)
    bomb = pickle.dumps(Bomb(marker))
    for data in (
        b"",
        b"\n",
        b"weights: 1 2 3\n",
        b"\x00" * 4096,
        zipped.getvalue(),
        arrays.getvalue(),
        objects.getvalue(),
        bomb,
        json.dumps({"kind": "chain"}).encode(),
        model_file.MAGIC[:-1],
    ):
        refused(tmp_path / "model", data, r"not a maxmargin model file; give a file written by save\(\) or by a train")
    refused(tmp_path / "model", model_file.MAGIC + bomb)
    refused(tmp_path / "model", sealed(bomb, bomb), "not JSON; give a file written by")
    assert not marker.exists()
    with pytest.raises(OSError):
        mm.load(tmp_path / "missing")
    with pytest.raises(OSError):
        mm.load(tmp_path)


def test_other_versions(saved, tmp_path):
    header, payload = parts(saved["cut"][0].read_bytes())
    for version, remedy in ((1, "train the model again"), (3, "update maxmargin"), (2**32 - 1, "update maxmargin")):
        refused(
            tmp_path / "model",
            sealed(header, payload, version=version),
            f"has model format {version}.*{remedy}",
        )


@pytest.mark.parametrize("length", [0, 1, 10**6, 2**28, 2**31, 2**63, 2**64 - 1])
def test_declared_header_lengths(saved, tmp_path, length):
    header, payload = parts(saved["cut"][0].read_bytes())
    refused(tmp_path / "model", sealed(header, payload, length=length))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{}",
        b'{"arrays": 3}',
        b'{"arrays": []}',
        b'{"arrays": {}}',
        b'{"arrays": {"weights": null}}',
        b'{"arrays": {}, "x": NaN}',
        b'{"arrays": {}, "x": -Infinity}',
        b'{"arrays": {}, "x": 1e999}',
        b'{"arrays": {}, "arrays": {}}',
        b'{"arrays": {}, "x": {"y": 1, "y": 1}}',
        b'{"arrays": {}, "x": ' + b"9" * 10_000 + b"}",
        b'{"arrays": {}} trailing',
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"[" * 200_000,
        b'{"arrays": {}, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
)
def test_headers_that_are_none(saved, tmp_path, text):
    _, payload = parts(saved["cut"][0].read_bytes())
    refused(tmp_path / "model", sealed(text, payload))


ENTRIES = {
    "dtype": [
        *("|O", "object", "<f4", "<i8", "<c16", ">f8", "<U4", "V8", None, ["<f8"]),
        {"names": ["a"], "formats": ["O"]},
    ],
    "shape": [
        *([-4], [-1], [10**18], [2**62, 4], [0, 2**62, 2**62], [0, 10**30], [2**32, 2**32], [1] * 100, [1, 4], []),
        *([4.0], ["4"], "4", 4, {}, None, [True], [3], [5]),
    ],
    "offset": [-64, 64, 8, 2**63, 10**40, 0.0, "0", None, False],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in ENTRIES.items() for value in values])
def test_arrays_that_do_not_fit(saved, tmp_path, key, value):
    data = saved["cut"][0].read_bytes()
    assert parts(data)[0]["arrays"]["weights"]["shape"] == [4]
    refused(tmp_path / "model", changed(data, lambda header: header["arrays"]["weights"].update({key: value})))


def test_arrays_and_keys_that_are_missing(saved, tmp_path):
    for kind in KINDS:
        data = saved[kind][0].read_bytes()
        header, _ = parts(data)
        for key in ("arrays", "kind", "encoder"):
            refused(tmp_path / "model", changed(data, lambda header, key=key: header.pop(key)))
        for key in header["encoder"]:
            refused(tmp_path / "model", changed(data, lambda header, key=key: header["encoder"].pop(key)), "missing")
        for key in ("dtype", "shape", "offset"):
            refused(
                tmp_path / "model",
                changed(data, lambda header, key=key: header["arrays"]["weights"].pop(key)),
            )


@pytest.mark.parametrize("value", [-1, 1.5, "3", None, True, [3], 10**30, 4])
def test_feature_counts_that_do_not_fit_the_weights(saved, tmp_path, value):
    for kind, key in (("chain", "n_features"), ("cut", "n_edge_features"), ("matching", "n_features")):
        data = saved[kind][0].read_bytes()
        refused(tmp_path / "model", changed(data, lambda header, key=key: header["encoder"].update({key: value})))


@pytest.mark.parametrize(
    "classes", ["abc", [], ["a", "a", "b"], [["a"], "b", "c"], [{"x": 1}, "b", "c"], {"a": 1}, None, 3]
)
def test_labels_that_are_none(saved, tmp_path, classes):
    data = saved["chain"][0].read_bytes()
    refused(tmp_path / "model", changed(data, lambda header: header["encoder"].update(classes=classes)))


def test_other_lies(saved, tmp_path):
    data = saved["cut"][0].read_bytes()
    for change, message in (
        ({"kind": "forest"}, "unknown kind of model, 'forest'; import the module that defines it"),
        ({"kind": ["cut"]}, None),
        ({"kind": None}, None),
        ({"metadata": 3}, "header is incomplete"),
        ({"encoder": []}, "header is incomplete"),
        ({"version": 2}, "its cut model has version 2, this maxmargin reads 1; update maxmargin"),
        ({"version": 0}, "train the model again"),
        ({"version": True}, "version in its header is not a whole number"),
        ({"version": None}, "version in its header is not a whole number"),
    ):
        refused(tmp_path / "model", changed(data, lambda header, change=change: header.update(change)), message)
    deep = {"tuple": []}
    for _ in range(400):
        deep = {"tuple": [deep]}
    chain = saved["chain"][0].read_bytes()
    mm.load(saved["chain"][0])
    (tmp_path / "deep").write_bytes(changed(chain, lambda header: header["encoder"].update(classes=["a", "b", deep])))
    with contextlib.suppress(mm.ModelFileError):
        mm.load(tmp_path / "deep").encoder.state()


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(saved, tmp_path, weight):
    header, payload = parts(saved["matching"][0].read_bytes())
    bad = struct.pack("<d", weight) + payload[8:]
    refused(tmp_path / "model", sealed(header, bad), "finite")


def test_negative_edge_weights_of_a_cut(saved, tmp_path):
    header, payload = parts(saved["cut"][0].read_bytes())
    bad = payload[:24] + struct.pack("<d", -1.0) + payload[32:]
    refused(tmp_path / "model", sealed(header, bad), "must be >= 0")


def test_arrays_of_other_types_are_not_written(tmp_path):
    for array in (np.array([object()]), np.array(["a"]), np.array([1j])):
        with pytest.raises(TypeError, match="model files do not hold"):
            model_file.write(tmp_path / "model", {}, {"x": array})
    with pytest.raises(ValueError):
        model_file.write(tmp_path / "model", {"x": float("nan")}, {})
    assert os.listdir(tmp_path) == []
    arrays = {
        "a": np.arange(3, dtype=">i4"),
        "b": np.zeros((0, 2)),
        "c": np.asfortranarray(np.eye(3, dtype=np.float32)),
    }
    model_file.write(tmp_path / "model", {"x": 1}, arrays)
    header, found = model_file.read(tmp_path / "model")
    assert header["x"] == 1
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable


# Weights of which most are zero are stored by position.


def sparse_model(n_features: int, at: dict[int, float]) -> mm.Model:
    weights = np.zeros(n_features)
    weights[list(at)] = list(at.values())
    return mm.Model(weights, mm.encoders.MatchingEncoder(n_features=n_features))


def test_sparse_weights_are_stored_sparse(tmp_path):
    for n_features, at in ((4000, {3: 1.5, 3999: -2.0}), (10, {}), (1, {}), (1, {0: 2.0})):
        model = sparse_model(n_features, at)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(mm.load(tmp_path / "model").weights, model.weights)
        assert ("positions" in parts((tmp_path / "model").read_bytes())[0]["arrays"]) == (2 * len(at) <= n_features)
    dense = mm.Model(np.ones(4000), mm.encoders.MatchingEncoder(n_features=4000))
    dense.save(tmp_path / "dense")
    assert "positions" not in parts((tmp_path / "dense").read_bytes())[0]["arrays"]
    sparse_model(4000, {1: 1.0}).save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 0.1 * (tmp_path / "dense").stat().st_size


def test_an_l1_model_is_saved_sparse(tmp_path):
    X, y = matchings(8)
    noise = np.random.default_rng(0)
    X = [np.concatenate([x, 0.01 * noise.normal(size=(*x.shape[:2], 30))], axis=2) for x in X]
    model = mm.MatchingSVM(norm="l1", radius=2.0, tol=1e-2).fit(X, y)
    assert np.count_nonzero(model.coef_) <= 0.5 * model.coef_.size
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.weights, model.coef_)
    assert same(again.predict(X), model.predict(X))
    assert again.metadata["norm"] == "l1"


@pytest.mark.parametrize(
    "positions",
    [
        *map(np.array, ([5, 3], [3, 3], [-1, 3], [3, 4000], [3], [[3, 5]], [3.0, 5.0])),
        np.array([3, 5], dtype=np.int32),
    ],
)
def test_positions_that_do_not_fit(positions, tmp_path):
    header, _ = parts(saved_bytes(sparse_model(4000, {3: 1.0, 5: 2.0}), tmp_path))
    del header["arrays"]
    model_file.write(tmp_path / "wrong", header, {"weights": np.array([1.0, 2.0]), "positions": positions})
    refused(tmp_path / "wrong", (tmp_path / "wrong").read_bytes(), "positions")


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    data = saved_bytes(sparse_model(4000, {3: 1.0}), tmp_path)

    def many(header):
        header["encoder"]["n_features"] = 10**12

    refused(tmp_path / "wrong", changed(data, many), "too many")


def saved_bytes(model: mm.Model, folder: Path) -> bytes:
    model.save(folder / "good")
    return (folder / "good").read_bytes()


def test_arrays_that_are_dropped_free_their_memory(tmp_path):
    path = tmp_path / "model"
    model_file.write(path, {"kind": "x"}, {"large": np.zeros(1 << 20), "small": np.arange(3.0)})
    tracemalloc.start()
    try:
        small = model_file.read(path)[1]["small"]
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(small, np.arange(3.0))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_models_come_through_pipes(saved, tmp_path):
    path, model, X = saved["chain"]
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(path.read_bytes(),))
    writer.start()
    again = mm.load(tmp_path / "pipe")
    writer.join()
    assert same(again.predict(X), model.predict(X))


def test_overlapping_arrays_are_refused(tmp_path):
    model_file.write(tmp_path / "model", {"kind": "x"}, {"a": np.zeros(16), "b": np.zeros(16)})
    header, arrays = parts((tmp_path / "model").read_bytes())
    header["arrays"]["b"]["offset"] = 64
    (tmp_path / "model").write_bytes(sealed(header, arrays))
    with pytest.raises(mm.ModelFileError, match="array 'a' does not fit the file"):
        model_file.read(tmp_path / "model")
