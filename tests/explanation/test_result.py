"""What an explanation shows: tables, JSON, pages that hostile text cannot break."""

from __future__ import annotations

import inspect
import json
import math
import re
from html.parser import HTMLParser

import data
import kinds
import numpy as np
import pytest

import maxmargin as mm
from maxmargin.encoders.data.names import Name
from maxmargin.explanation import Contribution, Explanation
from maxmargin.explanation.page import Picture, page
from maxmargin.explanation.rows import tables
from maxmargin.tasks import alignment, parsing, reranking, segmentation, tagging

HOSTILE = '</style><script>alert("1")</script>&<img src=x onerror=alert(1)>\x1b[31m\u202e\ud800\n'


def hostile() -> Explanation:
    """An explanation whose every text is hostile."""
    name = Name(HOSTILE, HOSTILE)
    own = Contribution(name, name, 2.0, 1.0, 1.0, 2.0)
    return Explanation([HOSTILE], {HOSTILE: 1}, HOSTILE, 2.0, 0.0, False, ((name, 1.0),), (own,))


class _Tags(HTMLParser):
    """All tags and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_pages_escape_all_text():
    text = page([(HOSTILE, hostile(), [Picture(b"\x89PNG", "png", HOSTILE)])], title=HOSTILE)
    assert text.encode()  # no lone surrogates
    found = _Tags()
    found.feed(text)
    assert "script" not in found.tags
    assert found.tags.count("img") == 1
    assert not any(name.startswith("on") for name in found.attributes)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert re.search(r"https?:", text) is None
    assert "default-src 'none'" in text
    plain = hostile()._repr_html_()
    assert "<script" not in plain
    assert "<img" not in plain


def test_terminals_get_no_control_characters():
    text = hostile().to_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "script" in text


def test_json_is_plain_and_complete():
    case = kinds._chain()
    found = case.model.explain(case.x)
    again = json.loads(json.dumps(found.to_dict()))
    assert again["output"] == found.output
    assert again["rival"] == found.rival
    assert again["compared_with"] == "runner-up"
    assert again["n_contributions"] == len(again["contributions"]) == len(found.contributions)
    assert math.fsum(one["contribution"] for one in again["contributions"]) == again["margin"] == found.margin
    few = found.to_dict(top=2)
    assert few["margin"] == found.margin
    assert [len(few[name]) for name in ("differences", "features", "contributions")] == [2, 2, 2]
    assert few["n_contributions"] == len(found.contributions)


def test_tables_say_what_they_leave_out():
    case = kinds._chain()
    found = case.model.explain(case.x)
    for top in (1, 3, 1000):
        for table in tables(found, top):
            assert len(table.rows) <= top
            total = math.fsum([*(row.total for row in table.rows), table.rest_total])
            assert total == pytest.approx(found.margin)
            assert all(len(row.cells) == len(table.heads) for row in table.rows)
    text = found.to_text(top=1)
    assert f"and {len(found.contributions) - 1} more" in text
    assert max(map(len, text.splitlines())) <= 100
    assert f"{found.margin:+.6g}" in text
    assert text == found.to_text(top=1)
    assert max(map(len, found.to_text(width=20).splitlines())) <= 20
    assert max(map(len, found.to_text(width=None).splitlines())) > 60
    for width in (-3, "a", 0, 19, 80.5, True):
        with pytest.raises(ValueError, match="width must be an integer >= 20"):
            found.to_text(width=width)


def test_pages_and_text_show_the_same_names(tmp_path):
    case = kinds._chain()
    found = case.model.explain(case.x, feature_names=["size", "shape", "color"])
    found.save_html(tmp_path / "page.html", title="A title")
    text = (tmp_path / "page.html").read_text()
    assert "<title>A title</title>" in text
    for name in ("size", "shape", "color", "position 0", "transition"):
        assert name in text
    assert "runner-up" in text
    assert str(found) == found.to_text()
    assert "contributions to the margin over the runner-up" in repr(found)
    with pytest.raises(ValueError, match="top must be"):
        found.to_html(top=0)
    with pytest.raises(ValueError, match="path"):
        found.save_html(3)
    with pytest.raises(FileNotFoundError, match=r"no/page\.html'$"):  # the file, not the temporary one beside it
        found.save_html(tmp_path / "no" / "page.html")


def test_outputs_that_are_trees_are_shown():
    X, y = data.charts(4)
    found = mm.GrammarSVM(C=1.0, max_iter=20, tol=0.1).fit(X, y).explain(X[0])
    assert "runner-up" in found.to_text()
    assert "runner-up" in found.to_html()


@pytest.mark.parametrize(("scale", "fits"), [(1e306, True), (1e307, True), (1e308, False)])
def test_contributions_of_enormous_features_are_shown_or_refused(scale, fits):
    X = [np.eye(2)[[0, 1, 0]], np.eye(2)[[1, 1, 0]]]
    svm = mm.ChainSVM(C=1.0, tol=0.1).fit(X, [["a", "b", "a"], ["b", "b", "a"]])
    if fits:
        found = svm.explain(scale * X[0])
        assert math.isfinite(found.margin)
        assert "█" in found.to_text()
        assert "inf%" not in found.to_html()
    else:
        with pytest.raises(ValueError, match="the scores are not finite, as features are too large"):
            svm.explain(scale * np.full((3, 2), 1.7), against=["a", "b", "a"])


def test_titles_are_strings():
    with pytest.raises(ValueError, match="title must be a string, got 3"):
        hostile().to_html(title=3)


def test_what_must_be_said():
    case = kinds._chain()
    assert "The two outputs are the same" in str(case.model.explain(case.x, against=case.model.predict([case.x])[0]))
    relaxed = kinds.CORE["graph"][1]()
    assert "Inference is approximate" in str(relaxed.model.explain(relaxed.x))
    text = relaxed.model.explain(relaxed.x).to_html()
    assert "Inference is approximate" in text


def test_rows_are_for_data_frames():
    pandas = pytest.importorskip("pandas", reason="needs pandas, of the test extra")
    case = kinds._chain()
    found = case.model.explain(case.x)
    table = pandas.DataFrame(found.rows())
    assert list(table.columns) == ["part", "feature", "weight", "value", "change", "contribution"]
    assert table["contribution"].sum() == pytest.approx(found.margin)
    assert np.allclose(table["weight"] * table["value"] * table["change"], table["contribution"])


@pytest.mark.parametrize(
    ("estimator", "model"),
    [
        (tagging.SequenceTagger, tagging.TaggerModel),
        (parsing.DependencyParser, parsing.ParserModel),
        (segmentation.Segmenter, segmentation.SegmenterModel),
        (segmentation.ScanSegmenter, segmentation.SegmenterModel),
        (reranking.Reranker, reranking.RerankerModel),
        (alignment.WordAligner, alignment.AlignerModel),
        (mm.ChainSVM, mm.Model),
    ],
)
def test_estimators_take_what_their_models_take(estimator, model):
    assert inspect.signature(estimator.explain) == inspect.signature(model.explain)


def test_estimators_explain():
    X, y = [kinds._matrix(3), kinds._matrix(4, seed=1)], [["a", "b", "a"], ["b", "a", "a", "b"]]
    estimator = mm.ChainSVM().fit(X, y)
    found, again = estimator.explain(X[0]), estimator.model_.explain(X[0])
    assert found.contributions == again.contributions
    assert estimator.explain(X[0], against=["b", "b", "b"], feature_names=["p", "q", "r"]).margin > 0
    tagger = mm.tasks.tagging.SequenceTagger(tol=1e-2).fit(X, y)
    assert tagger.explain(X[0], at=1).rival[1] != tagger.predict([X[0]])[0][1]
