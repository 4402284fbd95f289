"""Files of aligners: round trips, and contents that make no sense (models/test_model_file.py has damaged files)."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from data import same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealed_files import parts, sealed
from typer.testing import CliRunner

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.alignment import AlignerModel, SentencePair, WordAligner
from maxmargin.tasks.alignment.confidence import Calibration

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def refused(path, message=None):
    with pytest.raises(mm.ModelFileError, match=message) as caught:
        mm.load(path)
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def small(make, tmp_path_factory):
    """A model of few words, whose file is small."""
    X = [("the cat sleeps", "le chat dort"), ("the dog", "le chien"), ("a cat", "un chat")]
    aligner = make(models=None, frequent_pairs=3).fit(X, [[(0, 0), (1, 1), (2, 2)], [(0, 0)], [(1, 1)]])
    path = tmp_path_factory.mktemp("small") / "model"
    aligner.save(path, min_probability=0)
    return path, X


def test_round_trip(aligner, model, others, tmp_path):
    X = [*others[0], ("", "x"), ("日本", "Ω")]
    for again in (mm.load(model), mm.load(str(model), n_jobs=2)):
        assert same(again.predict(X), aligner.predict(X))
        assert same(again.align_hmm(X), aligner.align_hmm(X))
        for first, second in zip(again.align(X, threshold=0.2), aligner.align(X, threshold=0.2), strict=True):
            np.testing.assert_array_equal(first.links, second.links)
            np.testing.assert_array_equal(first.confidence, second.confidence)
        np.testing.assert_array_equal(again.coef_, aligner.coef_)
        assert isinstance(again, AlignerModel)
        assert again.feature_names == aligner.feature_names_
        assert again.metadata == {**aligner.model_.metadata, "confidences": "calibrated"}
        assert again.calibration == asdict(Calibration())
        assert again.score(*others) == aligner.score(*others)
    again.save(tmp_path / "again", min_probability=0)
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_a_pruned_model_is_smaller_and_hardly_worse(aligner, model, others, tmp_path):
    aligner.save(tmp_path / "pruned", min_probability=1e-2)
    assert (tmp_path / "pruned").stat().st_size < 0.9 * model.stat().st_size
    assert mm.load(tmp_path / "pruned").score(*others) == pytest.approx(aligner.score(*others), abs=0.01)
    aligner.save(tmp_path / "usual")
    assert mm.load(tmp_path / "usual").score(*others) == pytest.approx(aligner.score(*others), abs=0.005)


@pytest.mark.parametrize(
    "settings", [{"fertility": 1}, {"fertility": 3}, {"features": ("bias", "hmm")}, {"frequent_pairs": 0}]
)
def test_other_layouts(make, few, settings, tmp_path):
    aligner = make(**settings).fit(few[0][:8], few[1][:8])
    aligner.save(tmp_path / "model", min_probability=0)
    again = mm.load(tmp_path / "model")
    assert same(again.predict(few[0]), aligner.predict(few[0]))
    assert again.feature_names == aligner.feature_names_


def test_extra_columns_are_kept(make, few, tmp_path):
    X = [SentencePair(*pair, {"other": reference.sure}) for pair, reference in zip(few[0][:8], few[1][:8], strict=True)]
    make().fit(X, few[1][:8]).save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    assert len(again.predict(X)) == 8
    with pytest.raises(ValueError, match="sentence pair 1 has no extra column 'other'"):
        again.predict(few[0][:8])


def test_odd_words_are_kept(tmp_path):
    pair = ["\ud800", "", " ", "\0", "İ", "1,5"], ["\udfff", "\n", "ß", "5"]
    aligner = WordAligner(folds=0).fit([pair], [[(0, 0), (1, 1), (4, 2), (5, 3)]])
    aligner.save(tmp_path / "model", min_probability=0)
    assert same(mm.load(tmp_path / "model").predict([pair]), aligner.predict([pair]))


def test_models_of_a_file_can_be_used_again(model, few, make):
    models = mm.load(model).encoder.models
    np.testing.assert_allclose(make(models=models).fit(*few).coef_, make().fit(*few).coef_)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 2**63, 1e308, 1000])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def usable_or_refused(path, X):
    """A file with a true checksum is a model that can be used, or ModelFileError."""
    try:
        model = mm.load(path)
    except mm.ModelFileError:
        return
    names = model.encoder.link_model.links.extra_names
    pairs = [SentencePair(*pair, {name: [] for name in names}) for pair in X]
    assert len(model.predict(pairs)) == len(model.align(pairs, threshold=0.5)) == len(model.align_hmm(pairs)) == len(X)
    model.save(path)
    mm.load(path)
    assert CliRunner().invoke(app, ["inspect", str(path)]).exit_code == 0
    assert CliRunner().invoke(app, ["inspect", str(path), "--json"]).exit_code == 0


@settings(parent=quick, max_examples=80)
@given(data=st.data())
def test_headers_of_any_json(small, tmp_path, data):
    header, payload = parts(small[0].read_bytes())
    place = header
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(anything)
        break
    (tmp_path / "model").write_bytes(sealed(header, payload))
    usable_or_refused(tmp_path / "model", small[1])


@settings(parent=quick, max_examples=80)
@given(data=st.data())
def test_arrays_of_any_bytes(small, tmp_path, data):
    """Numbers in any array are changed, with a true checksum."""
    header, payload = parts(small[0].read_bytes())
    name = data.draw(st.sampled_from(sorted(header["arrays"])))
    entry = header["arrays"][name]
    dtype = np.dtype(entry["dtype"])
    size = int(np.prod(entry["shape"]))
    if not size:
        return
    changed = bytearray(payload)
    values = np.frombuffer(changed, dtype=dtype, count=size, offset=entry["offset"])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, size - 1))
        if dtype.kind == "f":
            value = data.draw(st.sampled_from([np.nan, np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 1e30, -1e-30, 1e300]))
            with np.errstate(over="ignore"):
                values[at] = value
        else:
            info = np.iinfo(dtype)
            values[at] = data.draw(st.sampled_from([info.min, info.max, 0, 1, 2, 200]) | st.integers(0, 100))
    (tmp_path / "model").write_bytes(sealed(header, bytes(changed)))
    usable_or_refused(tmp_path / "model", small[1])


def test_every_array_is_needed(small, tmp_path):
    header, payload = parts(small[0].read_bytes())
    changed = [{**header, "arrays": _without(header["arrays"], name)} for name in header["arrays"]]
    changed += [_without(header, key) for key in header if key != "library"]
    changed += [{**header, "encoder": _without(header["encoder"], key)} for key in header["encoder"]]
    for one in changed:
        (tmp_path / "model").write_bytes(sealed(one, payload))
        refused(tmp_path / "model")


def _without(entries, name):
    return {key: value for key, value in entries.items() if key != name}


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("encoder", {"fertility": "2"}, "its fertility is damaged"),
        ("encoder", {"fertility": True}, "its fertility is damaged"),
        ("encoder", {"fertility": 1001}, "its fertility is damaged"),
        ("encoder", {"groups": "hmm"}, "its groups are not a list of names"),
        ("encoder", {"groups": ["nope"]}, "there is no group 'nope'"),
        ("encoder", {"extra_names": [1]}, "its extra_names are not a list of names"),
        ("encoder", {"posterior_names": ["x"]}, "its columns of posteriors are not those of this version"),
        ("calibration", {"slope": 0.0}, "its calibration is damaged"),
        ("calibration", {"bend": -1.0}, "its calibration is damaged"),
        ("calibration", {"other": 1.0}, "unexpected keyword argument 'other'"),
    ],
)
def test_contents_that_make_no_sense(small, tmp_path, section, change, message):
    header, payload = parts(small[0].read_bytes())
    (tmp_path / "model").write_bytes(sealed({**header, section: {**header[section], **change}}, payload))
    refused(tmp_path / "model", message)
    answer = CliRunner().invoke(app, ["inspect", str(tmp_path / "model")])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"error: {tmp_path / 'model'} cannot be loaded: ")


def test_no_k_best_or_scores_of_outputs(aligner, few):
    with pytest.raises(ValueError, match=r"an aligner has no k_best; align\(X, threshold"):
        aligner.model_.k_best(few[0], 2)
    with pytest.raises(ValueError, match=r"an aligner has no decision_function; align\(X\) gives links"):
        aligner.model_.decision_function(few[0])
    assert aligner.model_.scorer(*few)(aligner.model_) == aligner.score(*few)
    assert aligner.model_.scorer(*few, metric=lambda gold, found: len(found))(aligner.model_) == len(few[0])


def test_files_of_another_version_are_refused(small, tmp_path):
    """Version 1, which no file says, had zeros for the digits of words, so its probabilities are of other words."""
    header, payload = parts(small[0].read_bytes())
    for version, remedy in ((None, "train the model again"), (1, "train the model again"), (3, "update maxmargin")):
        other = _without(header, "version") if version is None else {**header, "version": version}
        (tmp_path / "model").write_bytes(sealed(other, payload))
        refused(tmp_path / "model", f"version {version or 1}, this maxmargin reads 2; {remedy}")
