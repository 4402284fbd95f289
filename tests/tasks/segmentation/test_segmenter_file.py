"""Files of segmenters: round trips, and contents that make no sense (models/test_model_file.py has damaged files)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from commands import failed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealed_files import parts, sealed

import maxmargin as mm
from maxmargin.tasks.segmentation import ImageSegmenterModel, SegmenterModel

KINDS = ("two", "three", "scans", "stack")


@pytest.fixture(scope="module")
def files(drawn, stack_model):
    """Path and an input of each kind of model."""
    model = drawn.models
    return {
        "two": (model.two, drawn.images[0]),
        "three": (model.three, drawn.images[0]),
        "scans": (model.scans, drawn.scan),
        "stack": (stack_model.path, stack_model.stack),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(files, tmp_path, kind):
    path, example = files[kind]
    model = mm.load(path)
    assert isinstance(model, SegmenterModel if kind == "scans" else ImageSegmenterModel)
    model.save(tmp_path / "again")
    with open(path, "rb") as first, open(tmp_path / "again", "rb") as second:
        assert first.read() == second.read()
    again = SegmenterModel.load(tmp_path / "again", n_jobs=2)
    np.testing.assert_array_equal(again.predict([example])[0], model.predict([example])[0])
    np.testing.assert_array_equal(again.predict_proba([example])[0], model.predict_proba([example])[0])
    assert again.metadata == model.metadata
    assert again.encoder.file_codes == model.encoder.file_codes


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_headers_of_any_json(files, tmp_path, kind, data):
    """Any JSON in any place of the encoder, with a true checksum: a model that is usable, or ModelFileError."""
    anything = st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-3, 5)
        | st.sampled_from([-1.5, 0.0, 0.5, 30.0])
        | st.sampled_from(["", "x", "cut", "associative", "superpixels"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=4,
    )
    path, example = files[kind]
    with open(path, "rb") as file:
        header, payload = parts(file.read())
    place = header["encoder"]
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(anything)
        break
    (tmp_path / "model").write_bytes(sealed(header, payload))
    try:
        model = mm.load(tmp_path / "model")
    except mm.ModelFileError:
        return
    try:
        labels = model.predict([example])[0]
    except ValueError:
        return
    assert labels.shape == model.encoder.extractor.labels_shape(example)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_arrays_of_any_numbers(files, tmp_path, kind, data):
    """Numbers of arrays replaced, with a true checksum: a model that is usable, or ModelFileError."""
    path, example = files[kind]
    with open(path, "rb") as file:
        header, payload = parts(file.read())
    changed = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) // 8 - 1)) * 8
        changed[at : at + 8] = data.draw(st.binary(min_size=8, max_size=8))
    (tmp_path / "model").write_bytes(sealed(header, bytes(changed)))
    try:
        model = mm.load(tmp_path / "model")
    except mm.ModelFileError:
        return
    with np.errstate(all="ignore"):
        try:
            labels = model.predict([example])[0]
        except ValueError:
            return
    assert set(np.unique(labels)) <= set(model.encoder.classes)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(files, tmp_path, kind):
    path, _ = files[kind]
    with open(path, "rb") as file:
        data = file.read()
    rng = np.random.default_rng(0)
    for length in rng.integers(0, len(data), 20):
        (tmp_path / "model").write_bytes(data[:length])
        with pytest.raises(mm.ModelFileError):
            mm.load(tmp_path / "model")
    for at in rng.integers(0, len(data), 20):
        flipped = bytearray(data)
        flipped[at] ^= 1
        (tmp_path / "model").write_bytes(flipped)
        with pytest.raises(mm.ModelFileError):
            mm.load(tmp_path / "model")
    assert str(tmp_path / "model") in failed(
        "segment", "predict", str(tmp_path / "model"), str(path), "--out", str(tmp_path / "out")
    )


@pytest.mark.parametrize("kind", ["two", "scans"])
def test_prediction_loads_neither_scikit_learn_nor_training(files, kind):
    path, _ = files[kind]
    shape = (12, 16, 3) if kind == "two" else (5, 3)
    attributes = "" if kind == "two" else ", {'intensity': np.ones(5)}"
    code = (
        "import sys, numpy as np, maxmargin as mm\n"
        f"given = np.random.default_rng(0).random({shape}){attributes}\n"
        f"mm.load({path!r}).predict([given])\n"
        "print(sorted({'sklearn', 'maxmargin.training', 'lightgbm', 'rich'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
