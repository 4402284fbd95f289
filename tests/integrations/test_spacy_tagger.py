"""The tagger of spaCy: attributes, batches, white space, saved pipelines."""

from __future__ import annotations

import importlib.metadata
import pickle
import shutil

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks import tagging

pytest.importorskip("spacy", reason="spaCy is not installed")

import spacy
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

import maxmargin.integrations.spacy.tagger  # registers the component, as the entry point does

CORPUS = tagging.load_corpus().select(range(90))
TEXTS = [" ".join(tokens) for tokens in CORPUS.tokens[60:]]
SETTINGS = {"C": 0.1, "tol": 0.1, "folds": 0}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of models by name."""
    folder = tmp_path_factory.mktemp("models")
    whole = tagging.load_corpus()
    taggers = {
        "pos": tagging.SequenceTagger(preset="pos", **SETTINGS).fit(CORPUS.tokens, CORPUS.upos),
        "chunks": tagging.SequenceTagger(preset="pos", **SETTINGS).fit(CORPUS.tokens, CORPUS.chunks),
        "names": tagging.SequenceTagger(preset="ner", **SETTINGS).fit(whole.tokens[:300], whole.names[:300]),
        "two": tagging.SequenceTagger(preset="chunking", columns=("word", "pos"), **SETTINGS).fit(
            [list(zip(*one, strict=True)) for one in zip(CORPUS.tokens, CORPUS.upos, strict=True)], CORPUS.chunks
        ),
    }
    for name, tagger in taggers.items():
        tagger.save(folder / name)
    return folder


def pipeline(models, name, **config):
    """A pipeline whose model is not yet loaded."""
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin_tagger", config={"model": str(models / name), **config})
    return nlp


def doc_of(nlp, tokens, **options):
    return Doc(nlp.vocab, words=tokens, **options)


def test_the_entry_point_is_there():
    """``spacy.blank("en").add_pipe`` finds the component in a process that has not imported it."""
    found = {one.name: one.value for one in importlib.metadata.entry_points(group="spacy_factories")}
    assert found["maxmargin_tagger"] == "maxmargin.integrations.spacy.tagger:make_tagger"
    assert found["maxmargin_parser"] == "maxmargin.integrations.spacy.parser:make_parser"


@pytest.mark.parametrize("attribute", ["tag", "pos"])
def test_labels_are_those_of_the_model(models, attribute):
    nlp, model = pipeline(models, "pos", attribute=attribute), mm.load(models / "pos")
    tagger = nlp.get_pipe("maxmargin_tagger")
    docs = [tagger(doc_of(nlp, tokens)) for tokens in CORPUS.tokens[60:]]
    assert [[getattr(token, f"{attribute}_") for token in doc] for doc in docs] == model.predict(CORPUS.tokens[60:])
    assert tagger.labels == model.labels


def test_batches_and_single_documents_agree(models):
    """Also where labels depend on other sentences: these are the sentences of the document alone."""
    for name, attribute in (("pos", "tag"), ("names", "ents")):
        nlp = pipeline(models, name, attribute=attribute)
        nlp.add_pipe("sentencizer", first=True)
        texts = [" ".join(TEXTS[at : at + 5]) for at in range(0, 30, 5)] + ["", " ", "Ottawa"]
        one = [nlp(text).to_json() for text in texts]
        for size in (1, 2, 100):
            assert [doc.to_json() for doc in nlp.pipe(texts, batch_size=size)] == one


def test_sentences_are_sequences(models):
    nlp = pipeline(models, "pos")
    tagger, words = nlp.get_pipe("maxmargin_tagger"), [*CORPUS.tokens[60], *CORPUS.tokens[61]]
    starts = [at in (0, len(CORPUS.tokens[60])) for at in range(len(words))]
    parted = [token.tag_ for token in tagger(doc_of(nlp, words, sent_starts=starts))]
    model = mm.load(models / "pos")
    assert parted == [label for labels in model.predict(CORPUS.tokens[60:62]) for label in labels]
    assert [token.tag_ for token in tagger(doc_of(nlp, words))] == model.predict([words])[0]


def test_white_space_is_left_out(models):
    """Labels of words are those without white space, wherever it stands."""
    model = mm.load(models / "pos")
    for attribute, label in (("tag", "_SP"), ("pos", "SPACE")):
        nlp = pipeline(models, "pos", attribute=attribute)
        doc = nlp("\n The  government \n\n answered  the question .\n")
        words = [token for token in doc if not token.is_space]
        found = [getattr(token, f"{attribute}_") for token in words]
        assert found == model.predict([[token.text for token in words]])[0]
        assert {getattr(token, f"{attribute}_") for token in doc if token.is_space} == {label}
    assert [token.pos_ for token in nlp(" \n\t ")] == ["SPACE"]
    assert len(nlp("")) == 0
    assert {token.pos_ for token in nlp("\u00fcber \U0001f600")} <= set(model.labels)


def test_chunks_are_entities_or_spans(models):
    nlp, model = pipeline(models, "chunks", attribute="ents"), mm.load(models / "chunks")
    tagger = nlp.get_pipe("maxmargin_tagger")
    spans = pipeline(models, "chunks", attribute="spans", spans_key="phrases").get_pipe("maxmargin_tagger")
    for tokens, labels in zip(CORPUS.tokens[60:], model.predict(CORPUS.tokens[60:]), strict=True):
        doc = tagger(doc_of(nlp, tokens))
        assert [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in doc] == labels
        other = spans(doc_of(nlp, tokens))
        assert [(span.start, span.end, span.label_) for span in other.spans["phrases"]] == [
            (span.start, span.end, span.label_) for span in doc.ents
        ]


def test_white_space_inside_an_entity(models):
    nlp = pipeline(models, "chunks", attribute="ents")
    words = ["the", "good", "people"]
    plain, parted = (nlp.get_pipe("maxmargin_tagger")(doc_of(nlp, own)) for own in (words, ["the", "\n", *words[1:]]))
    assert [span.label_ for span in plain.ents] == [span.label_ for span in parted.ents] == ["NP"]
    assert parted.ents[0].text.split() == plain.ents[0].text.split() == words[:2]


def test_what_is_set_stays_unless_it_is_to_be_overwritten(models):
    for overwrite in (False, True):
        nlp = pipeline(models, "pos", overwrite=overwrite)
        doc = nlp.get_pipe("maxmargin_tagger")(doc_of(nlp, ["The", "dog"], tags=["XX", ""]))
        assert [token.tag_ for token in doc] == ["DET" if overwrite else "XX", "NOUN"]
        nlp = pipeline(models, "chunks", attribute="ents", overwrite=overwrite)
        doc = doc_of(nlp, ["the", "good", "people", "saw"])
        doc.ents = [Span(doc, 2, 4, label="OLD")]
        labels = [span.label_ for span in nlp.get_pipe("maxmargin_tagger")(doc).ents]
        assert ("OLD" in labels) == (not overwrite)
        assert ("NP" in labels) == overwrite
        nlp = pipeline(models, "chunks", attribute="spans", overwrite=overwrite)
        doc = doc_of(nlp, ["the", "people"])
        doc.spans["sc"] = [Span(doc, 0, 1, label="OLD")]
        assert [span.label_ for span in nlp.get_pipe("maxmargin_tagger")(doc).spans["sc"]] == (
            ["NP"] if overwrite else ["OLD", "NP"]
        )


def test_columns_are_attributes_of_tokens(models):
    """The parts of speech of one component are a column of the next."""
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin_tagger", name="pos", config={"model": str(models / "pos"), "attribute": "pos"})
    own = {"model": str(models / "two"), "attribute": "spans", "columns": {"pos": "pos_"}}
    nlp.add_pipe("maxmargin_tagger", name="chunks", config=own)
    doc = nlp("The government answered the question .")
    pairs = [(token.text, token.pos_) for token in doc]
    labels = mm.load(models / "two").predict([pairs])[0]
    assert sum(label[0] == "B" for label in labels) == len(doc.spans["sc"]) > 1
    nlp.remove_pipe("pos")
    with pytest.raises(
        ValueError, match=r"chunks: the model uses the column 'pos', read from token.pos_, which no token"
    ):
        nlp("The government")
    assert len(nlp("")) == 0
    Token.set_extension("kind", default="NOUN", force=True)
    nlp = pipeline(models, "two", attribute="spans", columns={"pos": "_.kind"})
    doc = nlp("government question")
    assert [span.text for span in doc.spans["sc"]]


def test_saved_pipelines_have_their_model(models, tmp_path):
    shutil.copy(models / "chunks", tmp_path / "file")
    nlp = spacy.blank("en")
    own = {"model": str(tmp_path / "file"), "attribute": "ents", "n_jobs": 1}
    nlp.add_pipe("maxmargin_tagger", name="phrases", config=own)
    expected = [doc.to_json() for doc in nlp.pipe(TEXTS)]
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    (tmp_path / "file").unlink()
    restored = spacy.blank("en").from_config(nlp.config).from_bytes(data)
    for other in (spacy.load(tmp_path / "pipeline"), restored):
        assert [doc.to_json() for doc in other.pipe(TEXTS)] == expected
        assert other.get_pipe_config("phrases")["attribute"] == "ents"
    component = pickle.loads(pickle.dumps(nlp.get_pipe("phrases")))
    assert component(nlp.make_doc(TEXTS[0])).to_json() == expected[0]


def test_the_file_of_the_config_is_not_opened_before_the_first_document(models, tmp_path, monkeypatch):
    """Whatever is there by now: spaCy makes components by their config before it reads what was saved with them."""
    shutil.copy(models / "pos", tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin_tagger", config={"model": "file"})
    assert nlp.get_pipe("maxmargin_tagger").labels == ()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    expected = [doc.to_json() for doc in nlp.pipe(TEXTS[:3])]
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    monkeypatch.chdir(tmp_path)
    mm.ChainSVM(C=1.0).fit([np.eye(2)], [["a", "b"]]).save(tmp_path / "chain")
    for stale in (b"garbage", (models / "chunks").read_bytes(), (tmp_path / "chain").read_bytes()):
        (tmp_path / "file").write_bytes(stale)
        restored = spacy.blank("en").from_config(nlp.config).from_bytes(data)
        for other in (spacy.load(tmp_path / "pipeline"), restored):
            assert [doc.to_json() for doc in other.pipe(TEXTS[:3])] == expected
    (tmp_path / "file").write_bytes(b"garbage")
    with pytest.raises(mm.ModelFileError):
        spacy.blank("en").from_config(nlp.config)("The dog")


def test_models_are_left_out(models, tmp_path):
    """``exclude`` as of spaCy's own components; what is not read leaves the component as it is."""
    pipe = pipeline(models, "pos").get_pipe("maxmargin_tagger")
    pipe.to_disk(tmp_path / "with")
    pipe.to_disk(tmp_path / "without", exclude=["model"])
    assert [one.name for one in (tmp_path / "with").iterdir()] == ["model.mm"]
    assert list((tmp_path / "without").iterdir()) == []
    assert pipe.to_bytes(exclude=["model"]) == b""
    other = pipeline(models, "chunks").get_pipe("maxmargin_tagger")
    assert other.from_disk(tmp_path / "without", exclude=["model"]) is other
    assert other.from_disk(tmp_path / "with", exclude=["model"]) is other
    assert other.from_bytes(b"", exclude=["model"]) is other
    assert other.load().labels == mm.load(models / "chunks").labels
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        other.from_disk(tmp_path / "without")
    assert other.from_bytes(pipe.to_bytes(exclude=["vocab"])).labels == mm.load(models / "pos").labels
    spacy.blank("en").add_pipe("maxmargin_tagger").to_disk(tmp_path / "none", exclude=["model"])


def test_scores_of_spacy(models):
    nlp = pipeline(models, "pos", attribute="pos")
    model = mm.load(models / "pos")
    examples = [
        Example(doc_of(nlp, tokens), doc_of(nlp, tokens, pos=labels))
        for tokens, labels in zip(CORPUS.tokens[60:], CORPUS.upos[60:], strict=True)
    ]
    scores = nlp.evaluate(examples)
    assert scores["pos_acc"] == pytest.approx(model.score(CORPUS.tokens[60:], CORPUS.upos[60:]))
    gold = [doc_of(nlp, tokens, ents=labels) for tokens, labels in zip(CORPUS.tokens, CORPUS.chunks, strict=True)]
    f1 = tagging.evaluate(CORPUS.chunks, mm.load(models / "chunks").predict(CORPUS.tokens)).f1
    nlp = pipeline(models, "chunks", attribute="ents")
    examples = [Example(doc_of(nlp, tokens), one) for tokens, one in zip(CORPUS.tokens, gold, strict=True)]
    assert nlp.evaluate(examples)["ents_f"] == pytest.approx(f1)
    nlp = pipeline(models, "chunks", attribute="spans")
    for one in gold:
        one.spans["sc"] = list(one.ents)
    examples = [Example(doc_of(nlp, tokens), one) for tokens, one in zip(CORPUS.tokens, gold, strict=True)]
    assert nlp.evaluate(examples)["spans_sc_f"] == pytest.approx(f1)


def test_models_are_assigned(models):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("maxmargin_tagger")
    assert pipe.model is None  # no error: spaCy looks at attributes of components, in an order that changes
    with pytest.raises(ValueError, match=r"maxmargin_tagger: no model was given; name the file of one in the config"):
        nlp("The dog")
    pipe.model = models / "pos"
    assert nlp("The")[0].tag_ == "DET"
    pipe.model = tagging.SequenceTagger.load(models / "chunks")
    assert nlp("The")[0].tag_ == "B-NP"


def test_errors(models, tmp_path):
    gone = pipeline(tmp_path, "none")
    with pytest.raises(ValueError, match=r"maxmargin_tagger: there is no model file '.*none'; name the file of one in"):
        gone("The dog")
    with pytest.raises(ValueError, match="there is no model file"):
        gone.to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="attribute must be one of tag, pos, ents, spans, got 'label'"):
        pipeline(models, "pos", attribute="label")
    with pytest.raises(ValueError, match="'B-ADJP' is not a universal part of speech; use attribute='tag'"):
        pipeline(models, "chunks", attribute="pos")("The dog")
    with pytest.raises(
        ValueError, match=r"the labels do not encode chunks, as B-PER does: ADJ, ADP, .*use attribute='tag'"
    ):
        pipeline(models, "pos", attribute="ents")("The dog")
    with pytest.raises(
        ValueError, match="the column 'pos' is to be read from 'part', which is not an attribute of tok"
    ):
        pipeline(models, "two", columns={"pos": "part"})("The dog")
    with pytest.raises(ValueError, match="names the column 'part', which the model does not read; it reads word, pos"):
        pipeline(models, "two", columns={"part": "pos_"})("The dog")
    mm.ChainSVM(C=1.0).fit([np.eye(2)], [["a", "b"]]).save(tmp_path / "chain")
    with pytest.raises(mm.ModelFileError, match="kind 'chain'; give the file of one of kind 'sequence tagging'"):
        pipeline(tmp_path, "chain")("The dog")
    X, y = [["a", "b"], ["b"]], [["A", "B"], ["B"]]
    template = tagging.SequenceTagger(template="U:%x[0,kind]", columns=["kind"], **SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match=r"the model uses the column 'kind'; say in the config which attribute of tok"):
        spacy.blank("en").add_pipe("maxmargin_tagger").model = template
    items = tagging.SequenceTagger(**SETTINGS).fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]])
    with pytest.raises(
        ValueError, match="takes attributes or matrices of tokens, which documents do not have; give one"
    ):
        spacy.blank("en").add_pipe("maxmargin_tagger").model = items


def test_errors_go_to_the_handler(models):
    """As of other components: a handler may log them, and the documents of the batch are left out."""
    nlp, seen = pipeline(models, "two"), []
    nlp.get_pipe("maxmargin_tagger").set_error_handler(lambda name, proc, docs, error: seen.append((name, str(error))))
    assert list(nlp.pipe(["The dog"])) == []
    assert seen[0][0] == "maxmargin_tagger"
    assert "uses the column 'pos', read from token.tag_" in seen[0][1]
