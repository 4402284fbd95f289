"""``maxmargin tag``: every verb and option on own sentences, and what it says of files that are no good."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import failed, run, runner

import maxmargin as mm
from maxmargin import cli
from maxmargin.cli import app
from maxmargin.tasks.tagging import SequenceTagger, read_tagged
from maxmargin.tasks.tagging.cli import app as tag_app
from maxmargin.tasks.tagging.cli.train import SOLVERS
from maxmargin.tasks.tagging.io.corpus import load_corpus

NAMES = "word,pos,label,_"
TEMPLATE = "U0:%x[0,word]\nU1:%x[-1,word]\nU2:%suffix(2)[0,word]\nB\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of sentences to learn from, to choose by and to test on, and a model of chunks."""
    folder = tmp_path_factory.mktemp("tag")
    train, rest = load_corpus().split()
    for name, part in (("train", train.select(range(60))), ("dev", rest.select(range(12))), ("test", rest)):
        lines = [
            "".join(f"{word} {tag} {chunk}\n" for word, tag, chunk in zip(*columns, strict=True))
            for columns in zip(part.tokens, part.upos, part.chunks, strict=True)
        ]
        (folder / name).write_text("\n".join(lines))
        part.write(folder / f"{name}.tsv")
    (folder / "template").write_text(TEMPLATE)
    run("tag", "train", str(folder / "train"), "--out", str(folder / "model"), "--json")
    return folder


def trained(files, *options: str, train: str = "train", out: str = "other") -> dict:
    return json.loads(run("tag", "train", str(files / train), "--out", str(files / out), "--json", *options))


def weights(path: Path) -> np.ndarray:
    return mm.load(path).weights


def test_training_reports_and_predictions_are_those_of_python(files):
    metadata = trained(files, "--dev", str(files / "dev"), "--C", "0.1,1", "--metric", "f1", "--patience", "3")
    assert metadata["labels"] == len(mm.load(files / "other").labels)
    assert metadata["weights"] == len(weights(files / "other"))
    assert (metadata["preset"], metadata["solver"], metadata["sentences"]) == ("chunking", "BlockFrankWolfe", 60)
    assert 0.5 < metadata["dev_score"] <= 1.0
    assert metadata["C"] in (0.1, 1.0)
    assert 0.0 <= metadata["run_relative_gap"] <= metadata["relative_gap"]
    assert metadata["megabytes"] == (files / "other").stat().st_size / 1e6
    assert not list(files.glob("*checkpoint*"))
    text, held = read_tagged(files / "train"), read_tagged(files / "dev")
    tagger = SequenceTagger(preset="chunking", C=(0.1, 1.0), metric="f1", patience=3)
    tagger.fit(text.table, text.label_codes(), dev=(held.table, held.label_codes()))
    assert np.array_equal(tagger.model_.weights, weights(files / "other"))
    lines = run("tag", "predict", str(files / "other"), str(files / "test")).split("\n")
    found = [[line.split()[-1] for line in block.split("\n")] for block in "\n".join(lines).strip().split("\n\n")]
    assert found == tagger.predict(read_tagged(files / "test").table)


def test_gazetteers_and_the_preset_of_names(files):
    (files / "towns.txt").write_text("Paris\nNew York\n")
    columns = ("--columns", "word,pos,_,label", "--label", "label")
    (files / "text").write_text("She lives in Paris , not in London .\n" * 4)
    more = ("--gazetteer", str(files / "towns.txt"), "--text", str(files / "text"), "--text", str(files / "towns.txt"))
    metadata = trained(files, *columns, *more, train="train.tsv")
    assert metadata["preset"] == "ner"
    assert "labels mark names" in metadata["preset_reason"]
    model = mm.load(files / "other")
    assert model.extractor.template.gazetteers == ("towns",)
    assert "pos" in model.extractor.template.columns_used
    assert "London" in model.extractor.added.clusters.words.names
    assert run("tag", "predict", str(files / "other"), str(files / "test.tsv")).count("\n") > 100
    said = failed("tag", "train", str(files / "train"), "--out", str(files / "x"), "--gazetteer", "a=none")
    assert "none: No such file or directory" in said
    metadata = trained(files, "--columns", "word,pos,_,_", "--label", "pos", train="train.tsv")
    assert metadata["preset"] == "pos"
    assert "pos" not in mm.load(files / "other").extractor.template.columns_used  # its own labels


def test_the_table_of_facts(files):
    shown = run("tag", "train", str(files / "train"), "--out", str(files / "shown"))
    for word in ("relative_gap", "seconds_reading", "seconds_features", "seconds_training", "converged"):
        assert word in shown
    assert "run_relative_gap" not in shown


@pytest.mark.parametrize(
    "options",
    [
        ("--order", "2"),
        ("--constraints", "bio"),
        ("--constraints", "none"),
        ("--min-count", "2"),
        ("--segments", "--tol", "0.05"),
        ("--support", "observed"),
        ("--support", "all"),
        ("--preset", "chunking", "--tol", "0.05"),
        ("--seed", "3", "--max-seconds", "100"),
    ],
    ids=" ".join,
)
def test_options_of_training(files, options):
    metadata = trained(files, *options)
    assert metadata["status"] == "converged"
    model = mm.load(files / "other")
    assert model.weight_layout.order == (2 if "2" in options and "--order" in options else 1)
    assert (model.weight_layout.constraints is None) == ("none" in options)
    assert (model.weight_layout.chunks is not None) == ("--segments" in options)
    assert model.metadata["support"] == (options[1] if options[0] == "--support" else "negative")


def test_a_model_without_a_weight_is_announced(files):
    lines = (files / "train").read_text().split("\n")
    alike = [f"{line.rpartition(' ')[0]} O" if line else line for line in lines]
    (files / "alike").write_text("\n".join(alike))
    answer = runner.invoke(app, ["tag", "train", str(files / "alike"), "--out", str(files / "zeros")])
    assert answer.exit_code == 0
    assert answer.stderr.startswith("warning: all weights of the model are zero, as all labels are 'O'; check")
    assert not weights(files / "zeros").any()


def test_words_in_the_column_of_labels_are_announced(tmp_path):
    (tmp_path / "turned").write_text("".join(f"{'DT' if at % 2 else 'NN'} word{at}\n" for at in range(120)))
    answer = runner.invoke(
        app, ["tag", "train", str(tmp_path / "turned"), "--out", str(tmp_path / "model"), "--max-iter", "1"]
    )
    assert (
        "turned: the column 'label' has 120 different labels, the column of words only 2 different words; if the "
        "labels are in another column, name it (--label), or all columns (--columns)"
    ) in answer.stderr.replace("\n", " ")


def test_labels_that_are_not_known(files, tmp_path):
    lines = (files / "train").read_text().split("\n")
    hidden = [f"{line.rpartition(' ')[0]} ?" if line and at % 7 == 3 else line for at, line in enumerate(lines)]
    (tmp_path / "some").write_text("\n".join(hidden))
    metadata = json.loads(
        run("tag", "train", str(tmp_path / "some"), "--out", str(files / "other"), "--unknown", "?", "--json")
    )
    model = mm.load(files / "other")
    assert "?" not in model.labels
    assert model.weight_layout.constraints is not None
    assert model.weight_layout.constraints.first.sum() < len(model.labels)
    assert metadata["tokens"] == sum(map(bool, lines))
    assert json.loads(run("tag", "evaluate", str(files / "other"), str(files / "test"), "--json"))["accuracy"] > 0.8


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(files, name):
    answer = runner.invoke(
        app,
        ["tag", "train", str(files / "train"), "--out", str(files / "other"), "--solver", name, "--max-iter", "2"],
    )
    assert answer.exit_code == 0, answer.output
    assert mm.load(files / "other").metadata["solver"] == SOLVERS[name]
    assert not list(files.glob("*checkpoint*"))


def test_a_template_of_words(files):
    trained(files, "--template", str(files / "template"), "--columns", NAMES, "--label", "label", train="train.tsv")
    model = mm.load(files / "other")
    assert model.extractor.template.columns_used == ("word",)
    assert model.metadata["file"] == {
        "format": "columns",
        "columns": ["word", "pos", "label", "_3"],
        "label": "label",
        "join": False,
    }
    whole = run("tag", "predict", str(files / "other"), str(files / "test.tsv"))
    assert whole.split("\n")[0].count("\t") == 4
    words = "\n".join(line.split("\t")[0] for line in (files / "test.tsv").read_text().split("\n"))
    (files / "words").write_text(words)
    alone = run("tag", "predict", str(files / "other"), str(files / "words"), "--columns", "word")
    assert [line.split("\t")[-1] for line in whole.split("\n")] == [line.split(" ")[-1] for line in alone.split("\n")]
    assert run("tag", "predict", str(files / "other"), str(files / "words")) == alone


def test_files_with_the_columns_that_a_model_needs(files, tmp_path):
    trained(files, "--columns", NAMES, "--label", "label", "--preset", "chunking", train="train.tsv")
    model, rows = str(files / "other"), (files / "test.tsv").read_text().split("\n")

    def predicted(*places: int) -> list[str]:
        cut = ["\t".join(line.split("\t")[at] for at in places) if line else "" for line in rows]
        (tmp_path / "cut").write_text("\n".join(cut))
        return [line.split("\t")[-1] for line in run("tag", "predict", model, str(tmp_path / "cut")).split("\n")]

    assert predicted(0, 1) == predicted(0, 1, 3) == predicted(0, 1, 2, 3)
    (tmp_path / "one").write_text("\n\nHe\n")
    remedy = "or name the columns of this file with --columns"
    assert (
        "one, line 3: 1 column, and the training file had 4; give word, pos, label, _, or these without label, or only "
        f"word, pos, {remedy}"
    ) in failed("tag", "predict", model, str(tmp_path / "one"))
    assert "no tokens" in failed("tag", "predict", model, "-", "--format", "columns", given="\n")
    (tmp_path / "two").write_text("He\tPRON\n")
    assert f"line 1: 2 columns, and the training file had 4; give word, pos, label, _, {remedy}" in failed(
        "tag", "evaluate", model, str(tmp_path / "two")
    )


# Formats.


def as_slash(text):
    return "".join(" ".join(f"{w}/{t}" for w, t in zip(*one, strict=True)) + "\n" for one in text)


def as_conllu(text):
    rows = [
        "".join(f"{i}\t{w}\t_\t{t}\t_\t_\t_\t_\t_\t_\n" for i, (w, t) in enumerate(zip(*one, strict=True), 1)) + "\n"
        for one in text
    ]
    return "# newdoc\n" + "".join(rows)


def as_json(text):
    return "".join(json.dumps({"tokens": words, "labels": tags}) + "\n" for words, tags in text)


def as_crfsuite(text):
    rows = ["".join(f"{t}\tw={w.replace(':', 'colon')}\tbias\n" for w, t in zip(*one, strict=True)) for one in text]
    return "\n".join(rows)


FORMATS = {"slash": as_slash, "conllu": as_conllu, "json": as_json, "crfsuite": as_crfsuite}


@pytest.mark.parametrize("form", FORMATS)
def test_formats_in_and_out(tmp_path, form):
    train, rest = load_corpus().split()
    train, rest = train.select(range(40)), rest.select(range(8))
    for name, part in (("train", train), ("test", rest)):
        text = FORMATS[form](list(zip(part.tokens, part.upos, strict=True)))
        (tmp_path / name).write_bytes(gzip.compress(text.encode(), mtime=0))
    (tmp_path / "template").write_text(TEMPLATE)
    path = {name: str(tmp_path / name) for name in ("train", "test", "model", "template", "out", "out.gz")}
    template = () if form == "crfsuite" else ("--template", path["template"])
    run("tag", "train", path["train"], "--out", path["model"], "--format", form, *template, "--json")
    for out in ("out", "out.gz"):
        assert run("tag", "predict", path["model"], path["test"], "--out", path[out]) == ""
    assert gzip.decompress(Path(path["out.gz"]).read_bytes()) == Path(path["out"]).read_bytes()
    by_model = json.loads(run("tag", "evaluate", path["model"], path["test"], "--json"))
    by_file = json.loads(run("tag", "evaluate", path["out"], path["test"], "--format", form, "--json"))
    assert by_model["correct"] == by_file["correct"] > 0.5 * by_model["tokens"]
    assert by_file["tokens"] == sum(map(len, rest.tokens))
    with_scores = run("tag", "predict", path["model"], path["test"], "--scores")
    assert len(with_scores) > len(Path(path["out"]).read_text())
    assert run("tag", "predict", path["model"], path["test"], "--k-best", "2")


def test_another_format_than_that_of_training(files, tmp_path):
    train, rest = load_corpus().split()
    pairs = list(zip(train.tokens[:40], train.upos[:40], strict=True))
    (tmp_path / "train.conllu").write_text(as_conllu(pairs))
    (tmp_path / "plain").write_text("".join(" ".join(words) + "\n" for words in rest.tokens[:5]))
    (tmp_path / "column").write_text("".join("\n".join(words) + "\n\n" for words in rest.tokens[:5]))
    (tmp_path / "given.jsonl").write_text("".join(json.dumps({"tokens": words}) + "\n" for words in rest.tokens[:5]))
    model = str(tmp_path / "model")
    run("tag", "train", str(tmp_path / "train.conllu"), "--out", model, "--template", str(files / "template"), "--json")
    slash = run("tag", "predict", model, str(tmp_path / "plain"), "--format", "slash")
    column = run("tag", "predict", model, str(tmp_path / "column"))
    lines = run("tag", "predict", model, str(tmp_path / "given.jsonl"))
    tags = [[word.rpartition("/")[2] for word in line.split()] for line in slash.strip().split("\n")]
    assert tags == [json.loads(line)["predicted"] for line in lines.strip().split("\n")]
    assert [tag for some in tags for tag in some] == [line.split()[1] for line in column.split("\n") if line]


def test_plain_words_for_a_model_of_words_with_tags(tmp_path, files):
    (tmp_path / "train").write_text("the/DT dog/NN\na/DT cat/NN sleeps/VB\n" * 3)
    template, model = str(files / "template"), str(tmp_path / "model")
    run("tag", "train", str(tmp_path / "train"), "--template", template, "--out", model, "--json")
    assert run("tag", "predict", model, "-", given="the dog\n") == "the/DT dog/NN\n"
    assert run("tag", "predict", model, "-", given="the\n") == "the/DT\n"
    assert run("tag", "predict", model, "-", given="the dog\na\n") == "the/DT dog/NN\na/DT\n"
    # A word a line, TABs, and what the user says, stay columns.
    assert run("tag", "predict", model, "-", given="the\ndog\n\na\n") == "the DT\ndog NN\n\na DT\n"
    assert run("tag", "predict", model, "-", given="the\tDT\ndog\tNN\n") == "the\tDT\tDT\ndog\tNN\tNN\n"
    assert run("tag", "predict", model, "-", "--columns", "word,label", given="the DT\n") == "the DT DT\n"
    assert json.loads(run("tag", "evaluate", model, "-", "--json", given="the DT\ndog NN\n"))["correct"] == 2


def test_words_that_hold_blanks(tmp_path, files):
    (tmp_path / "train").write_text("the G + C/NN rises/VB\nthe/DT G + C/NN falls/VB\n" * 3)
    template, model = str(files / "template"), str(tmp_path / "model")
    options = "--format", "slash", "--join", "--template", template, "--out", model, "--json"
    metadata = run("tag", "train", str(tmp_path / "train"), *options)
    assert json.loads(metadata)["labels"] == 3
    assert mm.load(model).metadata["file"]["join"] is True
    assert (
        json.loads(run("tag", "evaluate", model, str(tmp_path / "train"), "--format", "slash", "--json"))["tokens"]
        == 15
    )


def test_values_that_are_too_large(tmp_path):
    (tmp_path / "train").write_text("A\tx:1e308\tx:1e308\nB\tx:1\ty:2\n")
    command = ("tag", "train", str(tmp_path / "train"), "--format", "crfsuite", "--out", str(tmp_path / "model"))
    assert "train, line 1: the values of 'x' are too large to be added; scale them down" in failed(*command)
    (tmp_path / "train").write_text("A\tx:1e308\nB\tx:1\ty:1e308\n")
    assert "values of attributes are too large; scale them down" in failed(*command)


# Predictions.


def test_scores_probabilities_and_lists(files):
    model, test = str(files / "model"), str(files / "test")
    text = read_tagged(test)
    tagger = mm.load(model)
    rows = tagger.extractor.rows(text.table)
    codes, margins = tagger.best_with_margins(rows)
    printed = [line.split() for line in run("tag", "predict", model, test, "--scores").split("\n") if line]
    assert [row[3] for row in printed] == [tagger.labels[code] for code in codes]
    assert np.allclose([float(row[4]) for row in printed], margins, rtol=1e-5)
    answer = run("tag", "predict", model, test, "--probabilities")
    printed = [line.split() for line in answer.split("\n") if line]
    sure = tagger.marginals(rows)[np.arange(len(codes)), codes]
    assert np.allclose([float(row[4]) for row in printed], sure, rtol=1e-5)
    best = run("tag", "predict", model, test, "--k-best", "3").split("\n\n")
    ranked = list(tagger.ranked(rows, 3))
    assert best[1].split("\n")[0].startswith("# 1 ")
    assert [line.split()[-1] for line in best[1].split("\n")[1:]] == ranked[0][1][0]


def test_folds_choose_and_calibrate(files):
    found = trained(files, "--C", "auto", "--folds", "2")
    assert found["calibrated_on"] == found["chosen_on"] == "folds"
    assert {"C", "score"} == set(found["tried"][0])
    assert found["C"] in [one["C"] for one in found["tried"]]
    table = run("tag", "train", str(files / "train"), "--out", str(files / "other"), "--C", "0.1,0.3")
    assert "calibrated_on" in table
    assert "C tried" in table
    assert table.count("chosen") == 2  # chosen_on, and the row of the table
    found = trained(files, "--folds", "0")
    assert found["calibrated_on"] is None
    assert "tried" not in found
    note = "note: probabilities are not calibrated, the model was trained without --dev or folds\n"
    run("tag", "predict", str(files / "other"), str(files / "test"), "--probabilities", warnings=note)


def test_known_labels_are_taken(files, tmp_path):
    text = "He PRON _\nreckons VERB B-NP\nso ADV _\n"
    (tmp_path / "input").write_text(text)
    model = str(files / "model")
    found = run("tag", "predict", model, str(tmp_path / "input"), "--known", "label").split("\n")
    assert found[1] == "reckons VERB B-NP B-NP"
    (tmp_path / "input").write_text(text.replace("B-NP", "B-XP"))
    said = failed("tag", "predict", model, str(tmp_path / "input"), "--known", "label")
    assert "input, line 2: 'B-XP' is not a label of this model; write one of its labels" in said
    (tmp_path / "input").write_text("Yes INTJ _\n\nHe PRON _\nsleeps VERB B-VP\nsoundly ADV I-NP\n")
    said = failed("tag", "predict", model, str(tmp_path / "input"), "--known", "label")
    assert "input, line 3: no allowed labeling has the known labels; correct them" in said
    assert "no column 'gold'" in failed("tag", "predict", model, str(tmp_path / "input"), "--known", "gold")


def test_standard_input_and_output(files):
    model = str(files / "model")
    text = "He PRON\nsleeps VERB\n"
    answer = run("tag", "predict", model, "-", given=text)
    assert [line.split()[:2] for line in answer.split("\n") if line] == [["He", "PRON"], ["sleeps", "VERB"]]
    assert "can be read only once" in failed("tag", "evaluate", "-", "-", given=text)


def test_a_sentence_of_a_million_tokens(files, tmp_path):
    (tmp_path / "long").write_text("the DET B-NP\ndog NOUN I-NP\n" * 500_000)
    out = tmp_path / "out"
    run("tag", "predict", str(files / "model"), str(tmp_path / "long"), "--out", str(out))
    assert out.read_bytes().count(b"\n") == 1_000_000
    scores = json.loads(run("tag", "evaluate", str(out), str(tmp_path / "long"), "--json"))
    assert (scores["tokens"], scores["sentences"]) == (1_000_000, 1)


def test_models_trained_in_python(tmp_path):
    X = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N"), ("sleeps", "V")]]
    y = [["B-NP", "I-NP"], ["B-NP", "I-NP", "O"]]
    SequenceTagger(preset="chunking", columns=("word", "pos")).fit(X, y).save(tmp_path / "model")
    (tmp_path / "input").write_text("the D\ndog N\n")
    (tmp_path / "gold").write_text("the D B-NP\ndog N I-NP\n")
    model = str(tmp_path / "model")
    assert run("tag", "predict", model, str(tmp_path / "input")) == "the D B-NP\ndog N I-NP\n"
    assert json.loads(run("tag", "evaluate", model, str(tmp_path / "gold"), "--json"))["accuracy"] == 1.0
    matrices = SequenceTagger().fit([np.eye(2)], [["a", "b"]])
    matrices.save(model)
    assert "a matrix of features per sentence" in failed("tag", "predict", model, str(tmp_path / "input"))


# Measures.


def test_evaluation(files, tmp_path):
    model, test, out = str(files / "model"), str(files / "test"), tmp_path / "out"
    run("tag", "predict", model, test, "--out", str(out))
    by_model = json.loads(run("tag", "evaluate", model, test, "--json"))
    by_file = json.loads(run("tag", "evaluate", str(out), test, "--json"))
    for key in ("accuracy", "sentence_accuracy", "correct", "exact"):
        assert by_model[key] == by_file[key]
    assert by_model["chunks"]["f1"] == by_file["chunks"]["f1"] > 0.7
    assert by_model["intervals"]["f1"][0] < by_model["chunks"]["f1"] < by_model["intervals"]["f1"][1]
    shown = run("tag", "evaluate", model, test, "--labels", "--confusion", str(tmp_path / "c.png"), "--level", "0.9")
    for word in ("chunk F1 %", "90% interval", "of errors %", "label ", "type "):
        assert word in shown
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    run("tag", "predict", model, test, "--out", str(out), "--scores")
    assert "--predicted-column" in failed("tag", "evaluate", str(out), test)
    again = json.loads(run("tag", "evaluate", str(out), test, "--json", "--predicted-column", "4"))
    assert again["correct"] == by_model["correct"]
    assert "and --predicted-column is 9" in failed("tag", "evaluate", str(out), test, "--predicted-column", "9")
    assert "leave it out" in failed("tag", "evaluate", model, test, "--predicted-column", "4")


def test_labels_that_training_has_not_seen_count_as_errors(files, tmp_path):
    gold = tmp_path / "gold"
    gold.write_text("He PRON B-NP\nsleeps VERB B-XYZ\n")
    scores = json.loads(run("tag", "evaluate", str(files / "model"), str(gold), "--json"))
    assert scores["unseen_labels"] == ["B-XYZ"]
    assert scores["correct"] <= 1
    assert "B-XYZ" in run("tag", "evaluate", str(files / "model"), str(gold))
    dev = trained(files, "--dev", str(gold))
    assert dev["dev_score"] < 1.0


def test_files_with_other_tokens_are_refused(tmp_path):
    gold, system = tmp_path / "gold", tmp_path / "system"
    gold.write_text("He PRP B-NP\nsleeps VBZ B-VP\n\nShe PRP B-NP\n")
    cases = {
        "\nHe PRP B-NP\nslept VBZ B-VP\n\nShe PRP B-NP\n": (
            f"{system}, line 3: the token 'slept', and {gold}, line 2 has 'sleeps'"
        ),
        "He PRP B-NP\nsleeps VBZ B-VP\n": f"{system} has 2 tokens and {gold} has 3",
        "He PRP B-NP\n\nsleeps VBZ B-VP\nShe PRP B-NP\n": (
            f"{system}, line 1: a sentence ends here, but not at {gold}, line 1"
        ),
    }
    for text, said in cases.items():
        system.write_text(text)
        assert said in failed("tag", "evaluate", str(system), str(gold))


def test_words_may_be_in_any_column(tmp_path):
    gold, system = tmp_path / "gold", tmp_path / "system"
    gold.write_text("PRP He B-NP\nVBZ sleeps B-VP\n")
    options = ("--columns", "pos,word,label", "--json")
    system.write_text("PRP He B-NP B-NP\nVBZ sleeps B-VP B-NP\n")
    assert json.loads(run("tag", "evaluate", str(system), str(gold), *options))["correct"] == 1
    system.write_text("PRP She B-NP B-NP\nVBZ sleeps B-VP B-NP\n")
    assert "the token 'She', and" in failed("tag", "evaluate", str(system), str(gold), *options)
    system.write_text("B-NP\nB-VP\n")
    assert "1 column, and words are in column 2" in failed("tag", "evaluate", str(system), str(gold), *options)


# What models hold.


def test_inspection(files):
    model = str(files / "model")
    found = json.loads(run("tag", "inspect", model, "--top", "3", "--json"))
    tagger = mm.load(model)
    assert [one["label"] for one in found["labels"]] == list(tagger.labels)
    assert found["metadata"]["weights"] == len(tagger.weights)
    assert found["metadata"]["trained_on_columns"] == ["word", "pos", "label"]
    assert not any(" " in key for key in (*found, *found["metadata"]))
    estimator = SequenceTagger.load(model)
    state, pairs = estimator.state_features_, estimator.transition_features_
    for one in found["labels"]:
        own = sorted((weight for (_, label), weight in state.items() if label == one["label"]), reverse=True)
        assert [entry["weight"] for entry in one["positive"]] == [weight for weight in own[:3] if weight > 0]
        assert all(state[entry["attribute"], one["label"]] == entry["weight"] for entry in one["negative"])
    assert found["transitions"]["positive"][0]["weight"] == max(pairs.values())
    one = json.loads(run("tag", "inspect", model, "--label", "B-NP", "--json"))
    assert [entry["label"] for entry in one["labels"]] == ["B-NP"]
    assert all("B-NP" in (entry["from"], entry["to"]) for entry in one["transitions"]["positive"])
    shown = run("tag", "inspect", model)
    assert "transitions" in shown
    assert "trained_relative_gap" in shown
    assert "no label 'X'; there are" in failed("tag", "inspect", model, "--label", "X")
    assert json.loads(run("inspect", model, "--json"))["kind"] == "sequence tagging"


def test_inspection_of_pairs_and_triples(files, tmp_path):
    (tmp_path / "template").write_text(TEMPLATE + "B1:%x[0,pos]\n")
    trained(files, "--template", str(tmp_path / "template"))
    found = json.loads(run("tag", "inspect", str(files / "other"), "--json"))
    assert found["attributes_of_pairs"]["positive"][0]["attribute"].startswith("B1:")
    assert "attributes of pairs" in run("tag", "inspect", str(files / "other"))
    trained(files, "--order", "2")
    found = json.loads(run("tag", "inspect", str(files / "other"), "--json"))
    assert len(found["triples"]["positive"][0]["labels"]) == 3
    assert "three labels" in run("tag", "inspect", str(files / "other"))


# What is refused.


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "He PRP B-NP\nsleeps VBZ\n",
            "file, line 2: 2 columns, and line 1 has 3; give each token a line and the same",
        ),
        (
            "He\nsleeps\n",
            "file, line 1: one column (word), so there are no labels; add a column with the label of each",
        ),
        (b"He PRP B-NP\ncaf\xe9 NN I-NP\n", "file, line 2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("", "file: no tokens; give a file that has some"),
        ("\n\n", "file: no tokens; give a file that has some"),
        (
            "1\tHe\t_\t_\t_\t_\t_\t_\t_\t_\n",
            "file: no labels, the column 'upos' has only '_'; give --label another one",
        ),
        ("He\tB-NP\nsleeps\tB-VP\n", "file: the preset chunking needs the column 'pos' besides the labels"),
    ],
    ids=["ragged", "unlabeled", "latin", "empty", "blank", "conllu", "preset"],
)
def test_bad_training_files(saved, tmp_path, content, said):
    preset = ("--preset", "chunking") if "preset" in said else ()
    out = tmp_path / "model"
    assert said in failed("tag", "train", saved(content), "--out", str(out), *preset)
    assert not out.exists()


def test_empty_labels(saved, tmp_path):
    options = ("--columns", "word,label,pos", "--out", str(tmp_path / "model"))
    said = failed("tag", "train", saved("He\tB-NP\tPRP\nsleeps\t\tVBZ\n"), *options)
    assert "file, line 2: the label is empty; give each token a label" in said


def test_bad_options_of_training(files, tmp_path):
    train, out = str(files / "train"), ("--out", str(tmp_path / "model"))
    template = tmp_path / "template"
    template.write_text("U0:%x[0,word]\nU1:%y[0,word]\n")
    assert "template, line 2: unknown function 'y'" in failed("tag", "train", train, *out, "--template", str(template))
    template.write_text("U0:%x[0,2]\n")
    assert "it uses the column 'label' of the labels" in failed(
        "tag", "train", train, *out, "--template", str(template)
    )
    both = ("--template", str(template), "--preset", "chunking")
    cases = {
        ("--preset", "nonsense"): "no preset 'nonsense'; choose one of chunking, ner, pos",
        ("--format", "xml"): "no format 'xml'; choose one of columns, conllu, slash, crfsuite, json",
        ("--solver", "newton"): "no solver 'newton'; choose one of block-frank-wolfe, perceptron, mira",
        ("--constraints", "strict"): "no constraints 'strict'; choose one of auto, bio, iobes, none",
        ("--metric", "bleu"): "metric must be one of",
        ("--C", "0.1,x"): "--C 0.1,x: give a number, or several separated by commas",
        ("--C", "0.1,1", "--folds", "0"): "--C 0.1,1 needs --dev or --folds 2 or more; give one of them, or one value",
        ("--C", "auto", "--folds", "1"): "--C auto needs --dev or --folds 2 or more",
        ("--template", str(tmp_path / "none")): "none: No such file or directory; check the name of the file",
        ("--columns", "word,label"): "3 columns, and 2 are named (word, label); name all of them",
        ("--label", "gold", "--columns", "word,pos,label"): "no column 'gold' for labels; there are word, pos, label",
        both: "give --template or --preset, not both",
    }
    for options, said in cases.items():
        assert said in failed("tag", "train", train, *out, *options)
    assert "No such file" in failed("tag", "train", str(tmp_path / "none"), *out)
    assert "is a folder; give --out a file" in failed("tag", "train", train, "--out", str(tmp_path))
    assert "its folder does not exist" in failed("tag", "train", train, "--out", str(tmp_path / "no" / "model"))
    (tmp_path / "items").write_text("B\tw=a\tw=b\nO\tw=c\tw=d\n")
    said = failed("tag", "train", str(tmp_path / "items"), *out, "--preset", "chunking")
    assert "its tokens already have attributes; leave --preset out" in said
    assert "leave --label out" in failed("tag", "train", str(tmp_path / "items"), *out, "--label", "x")
    (tmp_path / "bad").write_text("a N B-NP\nb N I-VP\n")
    said = failed("tag", "train", str(tmp_path / "bad"), *out, "--constraints", "bio")
    assert "bad, line 2: the label 'I-VP' after 'B-NP' violates the constraints" in said


def test_bad_inputs_of_predictions(files, tmp_path, saved):
    model = str(files / "model")
    test = str(files / "test")
    assert "exclude each other" in failed("tag", "predict", model, test, "--scores", "--k-best", "2")
    assert "its folder does not exist" in failed("tag", "predict", model, test, "--out", str(tmp_path / "no" / "out"))
    assert "1 column, and the training file had 3; give word, pos, label" in failed(
        "tag", "predict", model, saved("a\nb\n")
    )
    said = failed("tag", "predict", model, saved("a\nb\n"), "--columns", "word")
    assert "file: no column 'pos', which the template uses; there are word" in said
    said = failed("tag", "predict", model, saved("B\tw=a\tw=b\n"), "--format", "crfsuite")
    assert "this model needs the columns word, pos; give a file that has them" in said
    said = failed("tag", "predict", str(tmp_path / "none"), test)
    assert "none: No such file or directory; check the name of the file" in said
    assert "is not a maxmargin model file" in failed("tag", "predict", test, test)
    damaged = tmp_path / "damaged"
    whole = (files / "model").read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    for verb in (("predict",), ("evaluate",)):
        assert "truncated or damaged" in failed("tag", *verb, str(damaged), test)
    assert "truncated or damaged" in failed("tag", "inspect", str(damaged))
    other = tmp_path / "chain"
    mm.ChainSVM().fit([[[1.0, 0.0], [0.0, 1.0]]], [["a", "b"]]).save(other)
    for arguments in (("predict", str(other), test), ("evaluate", str(other), test), ("inspect", str(other))):
        assert "kind 'chain'; give the file of one of kind 'sequence tagging'" in failed("tag", *arguments)
    assert "No such file" in failed("tag", "evaluate", str(tmp_path / "none"), test)
    assert "another --confusion" in failed(
        "tag", "evaluate", model, test, "--confusion", str(tmp_path / "no" / "c.png")
    )


def test_commands_are_those_of_the_task():
    group = typer.main.get_command(cli.app).commands["tag"]
    own = typer.main.get_command(tag_app)
    assert (group.help, group.no_args_is_help) == (own.help, own.no_args_is_help)
    verbs = ["train", "shard", "predict", "evaluate", "explain", "inspect"]
    assert list(group.commands) == list(own.commands) == verbs


def test_codes_of_labels_are_the_labels(files, saved):
    for text in (read_tagged(files / "train"), read_tagged(saved("B\tw=a\tx\nO\tw=b\ty\n"), format="crfsuite")):
        codes, names = text.label_codes()
        assert [names[code] for code in codes] == [label for labels in text.labels() for label in labels]
        assert list(dict.fromkeys(codes.tolist())) == list(range(len(names)))
    codes, names = read_tagged(files / "dev").codes_of("word")
    assert [names[code] for code in codes] == read_tagged(files / "dev").table.cells(0)


def test_a_prediction_loads_no_heavy_packages(files):
    code = (
        "import json, sys\nfrom maxmargin.cli import app\n"
        f"try:\n    app(['tag', 'predict', {str(files / 'model')!r}, {str(files / 'dev')!r}, '--out', "
        f"{str(files / 'light')!r}])\nexcept SystemExit:\n    pass\nprint(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(json.loads(answer.stdout))
    assert (files / "light").exists()
    assert not found.intersection({"sklearn", "rich", "matplotlib", "pandas", "clarabel", "highspy", "conllu"})


def test_files_that_are_read_are_not_replaced(files, tmp_path):
    own = tmp_path / "own.tsv"
    own.write_bytes((files / "train.tsv").read_bytes())
    for verb in (("train",), ("predict", str(files / "model"))):
        assert "is also an input; give another --out" in failed("tag", *verb, str(own), "--out", str(own))
    assert own.read_bytes() == (files / "train.tsv").read_bytes()
