"""Labels that break the rules of their scheme: named, left out of training or mended, and the rules are kept."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from commands import runner

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.tagging import SequenceTagger, training
from maxmargin.tasks.tagging.encoder.labels.gold import GoldLabels
from maxmargin.tasks.tagging.encoder.labels.repair import repaired
from maxmargin.tasks.tagging.metrics.scores import evaluate

SENTENCE = (("Mr", "B-PER"), ("Smith", "I-PER"), ("sees", "O"), ("Rome", "B-LOC"))
WORDS = "U00:%x[0,0]\nB01:%x[-1,0]/%x[0,0]\n"
ODD = (("Smith", "I-PER"), ("sees", "O"), ("Rome", "I-LOC"))


def data(odd: int = 1, even: int = 29) -> tuple[list, list]:
    both = [*[SENTENCE] * even, *[ODD] * odd]
    return [[word for word, _ in one] for one in both], [[label for _, label in one] for one in both]


def test_a_few_odd_labels_are_named_and_their_sentences_left_out():
    X, y = data()
    with pytest.warns(
        UserWarning, match=r"sentence 29, token 0: the label 'I-PER' breaks the BIO rules; 2 of 119 labels"
    ):
        tagger = SequenceTagger(preset="pos").fit(X, y)
    assert tagger.model_.weight_layout.constraints is not None
    assert (tagger.model_.metadata["left_out"], tagger.model_.metadata["sentences"]) == (1, 29)
    even = SequenceTagger(preset="pos").fit(X[:-1], y[:-1])
    assert [list(map(str, one)) for one in tagger.predict(X[:1])] == y[:1] == even.predict(X[:1])
    weights = np.ones(30)
    weights[0] = 2.0
    with pytest.warns(UserWarning, match="left out"):
        heavy = SequenceTagger(template=WORDS).fit(
            X, y, sample_weight=weights, loss_weight=[np.ones(len(x)) for x in X]
        )
    light = SequenceTagger(template=WORDS, classes=heavy.classes_, constraints="bio")
    light.fit(X[:-1], y[:-1], sample_weight=weights[:-1])
    assert heavy.solution_.certificate.primal == light.solution_.certificate.primal


def test_many_odd_labels_switch_the_rules_off_and_this_is_said():
    X, y = data(odd=10, even=20)
    with pytest.warns(UserWarning, match="20 of 110 labels do not follow them .*, too many to keep the rules"):
        tagger = SequenceTagger(preset="pos").fit(X, y)
    assert tagger.model_.weight_layout.constraints is None
    first = SequenceTagger(preset="pos").fit([["Rome", "is"]] * 3, [["I-LOC", "O"]] * 3)  # IOB1 has no B here
    assert first.model_.weight_layout.constraints is None


def test_repair_mends_training_and_dev_labels():
    X, y = data(odd=10, even=20)
    tagger = SequenceTagger(preset="pos", repair=True).fit(X, y, dev=(X[-2:], y[-2:]))
    assert tagger.model_.metadata["repaired"] == 20
    assert tagger.model_.weight_layout.constraints is not None
    assert tagger.predict(X[-1:]) == [["B-PER", "O", "B-LOC"]]
    assert tagger.model_.metadata["dev_score"] == 1.0
    with pytest.raises(ValueError, match="repair mends labels of chunks"):
        SequenceTagger(preset="pos", repair=True).fit([["a", "b"]], [["DT", "NN"]])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("I-A O I-A I-B B-B I-A", "B-A O B-A B-B B-B B-A"),
        ("B-A I-A O", "B-A I-A O"),
        ("I-A ? I-A I-A", "I-A ? I-A I-A"),  # beside an unknown label nothing is known
        ("I-A I-A E-A O B-A S-A I-B", "B-A I-A E-A O S-A S-A S-B"),
        ("B-A L-A B-A U-B O I-A", "B-A L-A U-A U-B O U-A"),
        ("B I I O I E", "B I E O B E"),
    ],
)
def test_chunks_are_written_again(given, wanted):
    labels = given.split()
    if "B" in labels:
        labels += ["S-x"]  # decides the scheme
        wanted += " S-x"
    gold = GoldLabels.parse([labels], "?")
    mended, changed = repaired(gold, np.array([len(labels)]))
    found = ["?" if number < 0 else mended.names[number] for number in mended.numbers]
    assert found == wanted.split()
    assert changed == sum(a != b for a, b in zip(labels, found, strict=True))
    if "?" not in labels:  # the chunks are those of conlleval
        assert evaluate([labels], [found]).chunks.f1 == 1.0


def test_commands_warn_before_they_train(tmp_path, monkeypatch):
    X, y = data(odd=1, even=40)
    path = tmp_path / "train"
    path.write_text(
        "\n".join("".join(f"{w} {t}\n" for w, t in zip(*one, strict=True)) for one in zip(X, y, strict=True))
    )
    seen = []
    real = training.train_examples

    def watched(*given, **settings):
        sys.stderr.flush()
        seen.append(sys.stderr.buffer.getvalue().decode())
        return real(*given, **settings)

    monkeypatch.setattr(training, "train_examples", watched)
    answer = runner.invoke(app, ["tag", "train", str(path), "--out", str(tmp_path / "model"), "--folds", "0"])
    assert answer.exit_code == 0
    assert "breaks the BIO rules" in seen[0]


def test_commands_name_the_lines(tmp_path):
    X, y = data(odd=1, even=40)
    lines = ["".join(f"{w} {t}\n" for w, t in zip(*one, strict=True)) for one in zip(X, y, strict=True)]
    path, out = tmp_path / "train", str(tmp_path / "model")
    path.write_text("\n".join(lines))
    answer = runner.invoke(app, ["tag", "train", str(path), "--out", out, "--json"])
    assert answer.exit_code == 0
    assert f"warning: {path}, line 201: the label 'I-PER' breaks the BIO rules; 2 of 163 labels" in answer.stderr
    assert f"(also {path}, line 203), so that 1 sentence is left out of training" in answer.stderr
    found = json.loads(answer.stdout)
    assert (found["left_out"], found["constraints"]) == (1, "6 forbidden pairs")
    answer = runner.invoke(app, ["tag", "train", str(path), "--out", out, "--json", "--repair"])
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["repaired"] == 2
    assert mm.load(out).predict([["Smith", "sees", "Rome"]]) == [["B-PER", "O", "B-LOC"]]
