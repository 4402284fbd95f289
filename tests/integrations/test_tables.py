"""Sequences out of tables of pandas, polars, Arrow and Hugging Face, and predictions back into them."""

from __future__ import annotations

import pickle

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.integrations import tables
from maxmargin.tasks import tagging

LONG = {
    "document": ["a", "a", "a", "b", "b", "b"],
    "sentence": [0, 0, 1, 0, 1, 1],
    "word": ["The", "dog", "\u00fcber", "It", "\U0001f600", "."],
    "pos": ["DT", "NN", "IN", "PRP", "SYM", "."],
    "length": [3, 3, 4, 2, 1, 1],
    "share": [0.5, 0.25, 1.0, 0.0, -1.0, 2.0],
    "label": ["B", "I", None, "O", "O", "B"],
}
BY = ["document", "sentence"]
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dictionary": dict}
ALL = pytest.mark.parametrize("make", [*KINDS.values(), datasets.Dataset.from_dict], ids=[*KINDS, "datasets"])


@ALL
def test_a_row_per_token(make):
    table = make(LONG)
    X, y = tables.sequences(table, "word", "label", by=BY)
    assert X == [["The", "dog"], ["\u00fcber"], ["It"], ["\U0001f600", "."]]
    assert y == [["B", "I"], [None], ["O"], ["O", "B"]]
    X, y = tables.sequences(table, ["word", "pos"], by=BY)
    assert (X[0], y) == ([("The", "DT"), ("dog", "NN")], None)
    X, _ = tables.sequences(table, ["length", "share"], by=BY)
    assert [x.tolist() for x in X] == [[[3, 0.5], [3, 0.25]], [[4, 1]], [[2, 0]], [[1, -1], [1, 2]]]
    assert tables.sequences(table, "share", by=BY)[0][0].tolist() == [[0.5], [0.25]]


@ALL
def test_a_row_per_sequence(make):
    table = make({"tokens": [["a", "b"], ["c"], []], "tags": [["X", "Y"], ["X"], []], "n": [[1, 2], [3], []]})
    X, y = tables.sequences(table, "tokens", "tags")
    assert (X, y) == ([["a", "b"], ["c"], []], [["X", "Y"], ["X"], []])
    assert tables.sequences(table, ["tokens", "tags"])[0] == [[("a", "X"), ("b", "Y")], [("c", "X")], []]
    assert [x.tolist() for x in tables.sequences(table, ["n"])[0]] == [[[1], [2]], [[3]], []]
    table = make({"x": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]})
    assert [x.tolist() for x in tables.sequences(table, "x")[0]] == [[[1, 2], [3, 4]], [[5, 6]]]


def test_predictions_are_columns():
    found = [["w", "x"], ["y"], np.array(["z"]), ("v", "u")]
    flat = ["w", "x", "y", "z", "v", "u"]
    frame = pd.DataFrame(LONG, index=list("uvwxyz"))
    column = tables.as_column(found, frame, by=BY)
    pd.testing.assert_series_equal(column, pd.Series(flat, index=frame.index, name="predicted"))
    frame["predicted"] = column
    assert frame.loc["w", "predicted"] == "y"
    frame = pl.DataFrame(LONG)
    assert frame.with_columns(tables.as_column(found, frame, by=BY, name="new"))["new"].to_list() == flat
    for make in (pa.table, dict, datasets.Dataset.from_dict):
        assert tables.as_column(found, make(LONG), by=BY) == flat
    nested = {"tokens": [["a", "b"], []]}
    assert tables.as_column([["x", "y"], []], pd.DataFrame(nested)).tolist() == [["x", "y"], []]
    assert tables.as_column([["x", "y"], []], pl.DataFrame(nested)).to_list() == [["x", "y"], []]
    assert tables.as_column([np.array([1, 2]), []], nested) == [[1, 2], []]


@given(st.lists(st.integers(1, 4), max_size=5), st.sampled_from([pd.DataFrame, pl.DataFrame, pa.table, dict]))
def test_out_and_back(lengths, make):
    """Reading a column of labels and writing it back gives the column, whatever the lengths."""
    ids = [i for i, length in enumerate(lengths) for _ in range(length)]
    labels = [f"l{at % 3}" for at in range(len(ids))]
    table = make({"id": ids, "label": labels})
    X, y = tables.sequences(table, "label", "label", by="id")
    assert y == X
    assert [len(one) for one in X] == lengths
    assert list(tables.as_column(y, table, by="id")) == labels


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=["None", "nan", "NA"])
def test_empty_cells(missing):
    frame = pd.DataFrame({**LONG, "label": ["B", "I", missing, "O", missing, "B"]})
    assert tables.sequences(frame, "word", "label", by=BY)[1] == [["B", "I"], [None], ["O"], [None, "B"]]
    frame = pd.DataFrame({**LONG, "word": ["a", "b", "c", missing, "d", "e"]})
    with pytest.raises(ValueError, match="row 3: 'word' is empty; fill it, or leave out the sequence"):
        tables.sequences(frame, "word", by=BY)
    frame = pd.DataFrame({**LONG, "document": ["a", "a", missing, "b", "b", "b"]})
    with pytest.raises(ValueError, match="row 2: its document and sentence is empty; say which sequence"):
        tables.sequences(frame, "word", by=BY)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_errors(make):
    table = make(LONG)
    with pytest.raises(ValueError, match="there is no column 'token'; the table has document, sentence, word, pos"):
        tables.sequences(table, "token", by=BY)
    with pytest.raises(ValueError, match="there is no column 'id'; the table has"):
        tables.sequences(table, "word", by="id")
    with pytest.raises(ValueError, match=r"row 3: sentence 0 comes again after another one; sort the rows by it, or"):
        tables.sequences(table, "word", by="sentence")
    with pytest.raises(
        ValueError, match=r"row 0: 'word' must be a list with an entry per token, got 'The'; of a table"
    ):
        tables.sequences(table, "word")
    with pytest.raises(ValueError, match="the table has 4 sequences, and there are predictions for 1"):
        tables.as_column([["a"]], table, by=BY)
    with pytest.raises(ValueError, match="rows 0 to 1 are one sequence, and it has 1 labels"):
        tables.as_column([["a"], ["a"], ["a"], ["a", "b"]], table, by=BY)
    nested = make({"tokens": [["a", "b"]], "pos": [["X"]], "more": [["x", None]]})
    with pytest.raises(ValueError, match="row 0: 2 entries in 'tokens' and 1 in 'pos'"):
        tables.sequences(nested, ["tokens", "pos"])
    with pytest.raises(ValueError, match="row 0, token 1: 'more' is empty"):
        tables.sequences(nested, "more")


def test_numbers_are_names_of_columns():
    """As pandas gives them to files without a header."""
    frame = pd.DataFrame({0: ["a", "b", "c"], 1: ["X", "Y", "X"], 2: [7, 7, 8]})
    X, y = tables.sequences(frame, 0, 1, by=2)
    assert (X, y) == ([["a", "b"], ["c"]], [["X", "Y"], ["X"]])
    assert tables.as_column(y, frame, by=2).tolist() == ["X", "Y", "X"]
    assert tables.sequences(frame, frame.columns[:2], by=2)[0] == [[("a", "X"), ("b", "Y")], [("c", "X")]]
    with pytest.raises(ValueError, match="row 2: 2 7 comes again after another one"):
        tables.sequences(frame.iloc[[0, 2, 1]], 0, 1, by=2)
    with pytest.raises(ValueError, match="there is no column 3; the table has 0, 1, 2"):
        tables.sequences(frame, 3, by=2)


def test_what_is_not_one_table():
    nested = {"tokens": [["a", "b"]], "pos": [["X", "Y"]]}
    with pytest.raises(ValueError, match="a table must have columns that are taken by name"):
        tables.sequences(pd.Series(["a", "b"]), "word")
    with pytest.raises(ValueError, match="a table must have columns that are taken by name"):
        tables.sequences(pl.Series(["a", "b"]), "word")
    parts = datasets.DatasetDict({"train": datasets.Dataset.from_dict(nested)})
    with pytest.raises(ValueError, match=r"a dictionary of datasets; give one of them, such as dataset\['train'\]"):
        tables.sequences(parts, "tokens", "pos")
    with pytest.raises(ValueError, match=r"row 0: tokens must tell sequences apart by text or numbers, got \['a', 'b"):
        tables.sequences(nested, "tokens", by="tokens")
    arrays = pd.DataFrame({"tokens": [np.array(["a", "b"]), np.array(["c", "d"])]})  # as pandas reads Parquet
    with pytest.raises(ValueError, match="row 0: tokens must tell sequences apart by text or numbers"):
        tables.sequences(arrays, "tokens", by="tokens")
    with pytest.raises(ValueError, match="predicted must have the labels of each sequence, as predict returns them"):
        tables.as_column(None, nested)


def test_rows_of_a_matrix_have_one_length():
    with pytest.raises(ValueError, match="row 1: 'x' must have as many numbers for each token; fill up the shorter"):
        tables.sequences({"x": [[[1.0, 2.0]], [[1.0, 2.0], [3.0]]]}, "x")


def test_columns_of_a_dictionary_have_one_length():
    for long in ({"w": ["a", "b"], "t": ["X"]}, {"w": ["a"], "t": ["X", "Y"]}):
        expected = f"column 'w' has {len(long['w'])} rows and 't' has {len(long['t'])}; give a table whose columns have"
        with pytest.raises(ValueError, match=expected):
            tables.sequences(long, "w", "t", by="w")
        with pytest.raises(ValueError, match=expected):
            tables.sequences(long, ["w", "t"], by="w")
        with pytest.raises(ValueError, match=expected):
            tables.sequences(long, "w", by="t")
        with pytest.raises(ValueError, match=expected):
            tables.as_column([["X"], ["Y"]], long, by=["w", "t"])
    nested = {"w": [["a"], ["b"]], "t": [["X"]]}
    with pytest.raises(ValueError, match="column 'w' has 2 rows and 't' has 1"):
        tables.sequences(nested, "w", "t")
    assert tables.sequences(nested, "w") == ([["a"], ["b"]], None)


@ALL
def test_some_column_must_be_named(make):
    table = make({"t": ["X", "Y"], "s": [1, 1]})
    for by in ("s", None):
        with pytest.raises(ValueError, match="inputs names no column; give the name of one, or several"):
            tables.sequences(table, [], "t", by=by)
    with pytest.raises(ValueError, match="by names no column; give the name of one, or several"):
        tables.sequences(table, "t", by=[])
    with pytest.raises(ValueError, match="by names no column; give the name of one, or several"):
        tables.as_column([["X", "Y"]], table, by=[])


def test_tables_without_rows_or_columns():
    frame = pd.DataFrame(index=["u", "v"])
    pd.testing.assert_series_equal(
        tables.as_column([["a", "b"], []], frame), pd.Series([["a", "b"], []], index=["u", "v"], name="predicted")
    )
    for empty in (pl.DataFrame(), pl.DataFrame({"x": []}), pd.DataFrame(), pa.table({}), {}, {"x": []}):
        column = tables.as_column([], empty, name="new")
        assert list(column) == []
        assert getattr(column, "name", "new") == "new"
        with pytest.raises(ValueError, match="the table has 0 sequences, and there are predictions for 1"):
            tables.as_column([["a"]], empty)
        with pytest.raises(ValueError, match="there is no column 'w'; the table has"):
            tables.sequences(empty, "w")
    assert tables.as_column([], pl.DataFrame(), name="new").to_frame().columns == ["new"]


def test_a_column_of_the_name_is_replaced():
    """Also where the frame has it twice."""
    twice = pd.DataFrame([["a", "b"]], columns=["predicted", "predicted"])
    assert tables.as_column([["x"]], twice).tolist() == [["x"]]


def test_what_is_not_a_table():
    with pytest.raises(ValueError, match="a table must have columns that are taken by name, got 3"):
        tables.sequences(3, "word")
    with pytest.raises(ValueError, match=r"the table is a query that has not run; give the result of its collect\(\)"):
        tables.sequences(pl.DataFrame(LONG).lazy(), "word", by=BY)
    for by in (BY, None):
        with pytest.raises(ValueError, match=r"the table is a query that has not run; give the result of its collect"):
            tables.as_column([["B"]] * 4, pl.DataFrame(LONG).lazy(), by=by)
    with pytest.raises(ValueError, match="a table must have columns that are taken by name, got 3"):
        tables.as_column([["B"]], 3)
    twice = pd.DataFrame([["a", "b"]], columns=["word", "word"])
    with pytest.raises(ValueError, match="there are 2 columns 'word'"):
        tables.sequences(twice, "word", by="word")


def test_estimators_take_what_is_read():
    """Matrices of a frame train a chain; the predictions are a column of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["id"] = np.repeat(np.arange(40), 3)
    frame["y"] = np.where(frame["a"] > 0, "up", "down")
    X, y = tables.sequences(frame, ["a", "b", "c"], "y", by="id")
    model = mm.ChainSVM(C=1.0).fit(X, y)
    found = tables.as_column(model.predict(X), frame, by="id")
    assert (found == frame["y"]).mean() == model.score(X, y)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """A dataset whose labels are numbers of classes, the corpus that it was made from, and a model file."""
    corpus = tagging.load_corpus().select(range(60))
    names = sorted({label for one in corpus.upos for label in one})
    classes = datasets.ClassLabel(names=names)
    kinds = {"id": datasets.Value("int64"), "tokens": [datasets.Value("string")], "tags": [classes]}
    codes = [[names.index(label) for label in one] for one in corpus.upos]
    given = {"id": list(range(60)), "tokens": corpus.tokens, "tags": codes}
    file = tmp_path_factory.mktemp("tagger") / "model"
    tagging.SequenceTagger(preset="pos", C=0.1, tol=0.1, folds=0).fit(corpus.tokens, corpus.upos).save(file)
    return datasets.Dataset.from_dict(given, features=datasets.Features(kinds)), corpus, file


def test_class_labels_are_names(tagged):
    dataset, corpus, _ = tagged
    assert tables.sequences(dataset, "tokens", "tags") == (corpus.tokens, corpus.upos)
    assert tables.sequences(dataset.with_format("numpy"), "tokens", "tags") == (corpus.tokens, corpus.upos)
    pairs = [list(zip(*one, strict=True)) for one in zip(corpus.tokens, corpus.upos, strict=True)]
    assert tables.sequences(dataset, ["tokens", "tags"])[0] == pairs
    one = datasets.ClassLabel(names=["A", "B"])
    for kind in ([one], datasets.Sequence(one)):
        own = datasets.Features({"word": [datasets.Value("string")], "tag": kind})
        nested = datasets.Dataset.from_dict({"word": [["a", "b"]], "tag": [[1, 0]]}, features=own)
        assert tables.sequences(nested, "word", "tag")[1] == [["B", "A"]]
    classes = datasets.Features({"word": datasets.Value("string"), "tag": datasets.ClassLabel(names=["A", "B"])})
    long = datasets.Dataset.from_dict({"word": ["a", "b"], "tag": [1, -1]}, features=classes)
    assert tables.sequences(long, "word", "tag", by="word")[1] == [["B"], [None]]


@pytest.mark.parametrize("by", [None, "word"])
def test_numbers_of_no_class(by):
    """As files have them whose ClassLabel was cut short: nothing checks them when they are read."""
    text, classes = datasets.Value("string"), datasets.ClassLabel(names=["A", "B"])
    kinds = {"word": [text], "tag": [classes]} if by is None else {"word": text, "tag": classes}
    rows = {"word": [["a"], ["b"]], "tag": [[0], [2]]} if by is None else {"word": ["a", "b"], "tag": [0, 2]}
    features = datasets.Features(kinds)
    arrow = pa.table(rows, schema=features.arrow_schema)
    dataset = datasets.Dataset(arrow, info=datasets.DatasetInfo(features=features))
    expected = "row 1: 'tag' has the class number 2, and its ClassLabel has 2 classes, counted from 0"
    with pytest.raises(ValueError, match=expected):
        tables.sequences(dataset, "word", "tag", by=by)
    for size in (1, 2):
        source = tables.source(dataset, "word", "tag", block_examples=size)
        with pytest.raises(ValueError, match=expected):
            [source.next() for _ in range(2)]


def test_sources_are_pickled(tagged):
    """As processes that build datasets get them."""
    dataset, corpus, _ = tagged
    source = pickle.loads(pickle.dumps(tables.source(dataset, "tokens", "tags")))
    assert source.next().y == corpus.upos


def test_sources_of_datasets(tagged, tmp_path):
    """A streamed dataset gives the examples that the one in memory gives."""
    dataset, corpus, _ = tagged
    streamed = dataset.to_iterable_dataset()
    with pytest.raises(ValueError, match=r"of a dataset that is streamed make a source\(\)"):
        tables.sequences(streamed, "tokens", "tags")
    tagger = tagging.SequenceTagger(preset="pos", C=0.1, tol=0.1, folds=0)
    weights = [
        tagger.fit(tagger.build_dataset(tmp_path / name, source)).coef_
        for name, source in {
            "streamed": tables.source(streamed, "tokens", "tags"),
            "memory": tables.source(dataset, "tokens", "tags"),
            "lists": (corpus.tokens, corpus.upos),
        }.items()
    ]
    assert np.array_equal(weights[0], weights[2])
    assert np.array_equal(weights[1], weights[2])
    with pytest.raises(ValueError, match="the table has no column 'words'; there are 'id', 'tokens', 'tags'"):
        tagger.build_dataset(tmp_path / "none", tables.source(dataset, "words", "tags"))


def test_predictions_by_map(tagged):
    """As strings, or as numbers of the classes of the gold labels; of streams, too."""
    dataset, corpus, file = tagged
    predictor = mm.BatchPredictor(file, input="tokens", output="predicted")
    expected = mm.load(file).predict(corpus.tokens)
    assert dataset.map(predictor, batched=True, batch_size=7)["predicted"][:] == expected
    kinds = datasets.Features({**dataset.features, "predicted": dataset.features["tags"]})
    coded = dataset.map(predictor, batched=True, features=kinds)
    assert coded.features["predicted"] == dataset.features["tags"]
    assert tables.sequences(coded, "tokens", "predicted")[1] == expected
    streamed = dataset.to_iterable_dataset().map(predictor, batched=True)
    assert [row["predicted"] for row in streamed] == expected


def test_results_of_map_are_not_cached_for_another_model(tagged, tmp_path):
    """The library keys its cache by the pickled function, which must change as the file does."""
    dataset, corpus, file = tagged
    (tmp_path / "model").write_bytes(file.read_bytes())
    predictor = mm.BatchPredictor(tmp_path / "model", input="tokens")
    before = pickle.dumps(predictor)
    assert pickle.dumps(pickle.loads(before)) == before
    dataset.save_to_disk(tmp_path / "data")
    on_disk = datasets.load_from_disk(tmp_path / "data")
    first = on_disk.map(predictor, batched=True)["predicted"][:]
    others = [[label[::-1] for label in one] for one in corpus.upos]
    tagger = tagging.SequenceTagger(preset="pos", C=0.1, tol=0.1, folds=0).fit(corpus.tokens, others)
    tagger.save(tmp_path / "model")
    assert pickle.dumps(predictor) != before
    second = on_disk.map(predictor, batched=True)["predicted"][:]
    assert first == mm.load(file).predict(corpus.tokens)
    assert second == tagger.predict(corpus.tokens) != first


def test_batches_of_polars(tagged):
    _, corpus, file = tagged
    predictor, frame = mm.BatchPredictor(file, input="tokens"), pl.DataFrame({"tokens": corpus.tokens})
    found = predictor(frame)
    assert found.columns == ["tokens", "predicted"]
    assert found["predicted"].to_list() == mm.load(file).predict(corpus.tokens)
    assert predictor(frame.head(0))["predicted"].to_list() == []
    with pytest.raises(ValueError, match="no column 'tokens'; there are words"):
        predictor(pl.DataFrame({"words": [["a"]]}))
    table = tables.source(frame.with_columns(tags=pl.Series(corpus.upos)), "tokens", "tags")
    assert table.next().y == corpus.upos
