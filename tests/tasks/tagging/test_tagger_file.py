"""Files of taggers: round trips, and every kind of damaged, foreign or hostile file."""

from __future__ import annotations

import numpy as np
import pytest
from corpora import KINDS
from data import KINDS as OTHERS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealed_files import parts, sealed

import maxmargin as mm
from maxmargin import model_file
from maxmargin.tasks.tagging import SequenceTagger

pytestmark = pytest.mark.filterwarnings("ignore:probabilities are not calibrated")

quick = settings(
    deadline=None, derandomize=True, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def refused(path, message=None):
    with pytest.raises(mm.ModelFileError, match=message) as caught:
        mm.load(path)
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module", params=sorted(KINDS))
def saved(request, tmp_path_factory):
    X, y, options = KINDS[request.param]
    tagger = SequenceTagger(**options).fit(X, y, dev=(X, y))
    path = tmp_path_factory.mktemp("saved") / "model"
    tagger.save(path)
    return path, tagger, X


def test_round_trip(saved, tmp_path):
    path, tagger, X = saved
    for again in (mm.load(path), mm.load(str(path), n_jobs=2), SequenceTagger.load(path)):
        assert again.predict(X) == tagger.predict(X)
        assert again.k_best(X, 3) == tagger.k_best(X, 3)
        for use in ("predict_proba", "margins"):
            for one, two in zip(getattr(again, use)(X), getattr(tagger, use)(X), strict=True):
                assert one.tobytes() == two.tobytes()
        again.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert again.state_features_ == tagger.state_features_
    assert again.transition_features_ == tagger.transition_features_
    assert again.classes_ == tagger.classes_
    assert again.model_.metadata == tagger.model_.metadata
    assert mm.load(path).labels == tagger.model_.labels


def test_models_of_other_kinds(tmp_path):
    estimator, data = OTHERS["chain"]
    estimator().fit(*data(3)).save(tmp_path / "chain")
    with pytest.raises(mm.ModelFileError, match="kind 'chain'; give the file of one of kind 'sequence tagging'"):
        SequenceTagger.load(tmp_path / "chain")


def usable_or_refused(path, X):
    """A file with a true checksum is a model that can be used, or ModelFileError."""
    try:
        model = mm.load(path)
    except mm.ModelFileError:
        return
    try:
        assert len(model.predict(X)) == len(X)
        assert len(model.predict_proba(X)) == len(X)
        assert len(model.k_best(X, 2)) == len(X)
    except ValueError:
        pass  # another width, scores that are not finite, or infeasible constraints are reported
    model.save(path)
    mm.load(path)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 2**63, 1e308, 1000, 1.0, 2.0])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(parent=quick, max_examples=40)
@given(data=st.data())
def test_headers_of_any_json(saved, tmp_path, data):
    path, _, X = saved
    header, payload = parts(path.read_bytes())
    place = header
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(anything)
        break
    (tmp_path / "model").write_bytes(sealed(header, payload))
    usable_or_refused(tmp_path / "model", X[:2])


@settings(parent=quick, max_examples=40)
@given(data=st.data())
def test_arrays_of_any_bytes(saved, tmp_path, data):
    """Numbers in any array are changed, with a true checksum."""
    path, _, X = saved
    header, payload = parts(path.read_bytes())
    name = data.draw(st.sampled_from(sorted(header["arrays"])))
    entry = header["arrays"][name]
    dtype, size = np.dtype(entry["dtype"]), int(np.prod(entry["shape"]))
    if not size:
        return
    changed = bytearray(payload)
    values = np.frombuffer(changed, dtype=dtype, count=size, offset=entry["offset"])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, size - 1))
        if dtype.kind == "f":
            values[at] = data.draw(st.sampled_from([np.nan, np.inf, -1.0, 0.0, 1.0, 1e30, -1e-30, 1e300]))
        else:
            info = np.iinfo(dtype)
            values[at] = data.draw(st.sampled_from([info.min, info.max, 0, 1, 2, 200]) | st.integers(0, 100))
    (tmp_path / "model").write_bytes(sealed(header, bytes(changed)))
    usable_or_refused(tmp_path / "model", X[:2])


def test_everything_is_needed(saved, tmp_path):
    path, _, _ = saved
    header, payload = parts(path.read_bytes())
    for name in header["arrays"]:
        arrays = {key: entry for key, entry in header["arrays"].items() if key != name}
        (tmp_path / "model").write_bytes(sealed({**header, "arrays": arrays}, payload))
        refused(tmp_path / "model", f"{name}|vocabulary|it has .* weights")
    for key in header["encoder"]:
        encoder = {k: v for k, v in header["encoder"].items() if k != key}
        (tmp_path / "model").write_bytes(sealed({**header, "encoder": encoder}, payload))
        refused(tmp_path / "model")


@pytest.mark.parametrize("dtype", ["<f4", "<i4", "<i8", "|u1", "<f8"])
def test_arrays_of_other_kinds(saved, tmp_path, dtype):
    path, _, _ = saved
    header, arrays = model_file.read(path)
    for name, array in arrays.items():
        if array.dtype == np.dtype(dtype):
            continue
        model_file.write(tmp_path / "model", header, {**arrays, name: array.astype(dtype)})
        refused(tmp_path / "model")


def test_arrays_of_other_shapes(saved, tmp_path):
    path, _, _ = saved
    header, arrays = model_file.read(path)
    for name, array in arrays.items():
        for other in (array[:-1], array.reshape(1, *array.shape), np.concatenate([array, array[-1:]])):
            if other.shape == array.shape:
                continue
            model_file.write(tmp_path / "model", header, {**arrays, name: np.ascontiguousarray(other)})
            refused(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"order": True}, "order must be 1 or 2, got True"),
        ({"order": 1.0}, "order must be 1 or 2, got 1.0"),
        ({"order": 2}, "it has .* weights, its feature counts need"),
        ({"input": "music"}, "it takes inputs of kind 'music', which this version does not know"),
        ({"input": []}, "cannot be loaded"),
        ({"labels": "abc"}, "its labels or constraints are damaged"),
        ({"labels": ["a", "b"]}, "cannot be loaded"),
        ({"labels": ["a", "b", "b"]}, "classes must be a non-empty list of distinct labels"),
        ({"labels": ["a", "b", {"c": 1}]}, "not a label"),
        ({"constraints": 1}, "its labels or constraints are damaged"),
        ({"constraints": True}, "'allowed' is missing"),
        ({"temperature": 0.0}, "its temperature is not positive"),
        ({"temperature": "1"}, "its calibration is not made of finite numbers"),
        ({"temperature": True}, "its calibration is not made of finite numbers"),
        ({"columns": "word"}, "its columns are damaged"),
        ({"template": 5}, "cannot be loaded"),
        ({"template": "U:%x[0,5]"}, "its template"),
    ],
)
def test_damaged_headers(tmp_path, changes, message):
    X, y, options = KINDS["words"]
    SequenceTagger(**options).fit(X, y).save(tmp_path / "model")
    header, arrays = model_file.read(tmp_path / "model")
    header["calibration" if "temperature" in changes else "encoder"] |= changes
    model_file.write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", message)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights", lambda a: np.where(np.arange(len(a)) == 1, np.nan, a), "finite numbers"),
        ("weights", lambda a: np.where(np.arange(len(a)) == 1, np.inf, a), "finite numbers"),
        ("support_columns", lambda a: a + 3, "column|pattern|support"),
        ("support_columns", lambda a: -a - 1, "column|pattern|support"),
        ("support_starts", lambda a: a[::-1].copy(), "cannot be loaded"),
        ("attributes_ends", lambda a: a + 1, "the vocabulary is damaged"),
        ("attributes_text", lambda a: a | 0x80, "the vocabulary is damaged"),
        ("allowed", lambda a: a * 2, "its constraints are damaged"),
        ("allowed", lambda a: a[:4], "its constraints are damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_arrays(tmp_path, name, change, message):
    X, y, options = KINDS["constraints"]
    SequenceTagger(**options).fit(X, y).save(tmp_path / "model")
    header, arrays = model_file.read(tmp_path / "model")
    model_file.write(tmp_path / "model", header, {**arrays, name: change(arrays[name])})
    refused(tmp_path / "model", message)
