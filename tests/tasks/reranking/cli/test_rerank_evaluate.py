"""The command evaluate: scores, intervals, comparisons, encodings, and what it refuses."""

from __future__ import annotations

import gzip
import json

import pytest
import sacrebleu.metrics as sacrebleu
from commands import failed, run

from maxmargin.tasks.reranking.io.inputs import read_lines

REFERENCE = "The cat sat.\nA dog barked loudly at night.\n\nIt rains.\n"
OTHER = "The cat was sitting.\nA dog barked.\n\nIt is raining.\n"
GOOD = "The cat sat.\nA dog barked loudly at noon.\n\nIt rained.\n"
BAD = "Cat the sat\nA cat\nnothing\nrain\n"


def evaluated(*arguments, given=None):
    return json.loads(run("rerank", "evaluate", *arguments, "--json", given=given))


def test_scores_are_those_of_sacrebleu(saved):
    files = saved(GOOD, "good"), saved(REFERENCE, "one"), saved(OTHER, "two")
    found = evaluated("--hypotheses", files[0], "--references", files[1], files[2], "--metric", "bleu,chrF, chrf++,ter")
    assert (found["sentences"], found["references"], found["interval_level"]) == (4, 2, 0.95)
    lines = [text.split("\n")[:-1] for text in (GOOD, REFERENCE, OTHER)]
    for one, twin in zip(
        found["metrics"],
        (sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.CHRF(word_order=2), sacrebleu.TER()),
        strict=True,
    ):
        score = twin.corpus_score(lines[0], lines[1:])
        assert one["metric"] == score.name
        assert one["systems"][0]["score"] == pytest.approx(score.score, abs=1e-9)
        assert one["signature"] == str(twin.get_signature())
        low, high = one["systems"][0]["interval"]
        assert low <= one["systems"][0]["score"] <= high
        assert "against" not in one
    assert found == evaluated(
        *("--hypotheses", files[0], "--references", files[1], "--references", files[2]),
        *("--metric", "bleu,chrf,chrf++,ter"),
    )


def test_a_comparison(saved):
    lines = REFERENCE.replace("\n\n", "\n") * 20
    good, bad = saved(lines.replace("cat", "dog"), "good"), saved(lines.replace(" ", " x "), "bad")
    gold = saved(lines, "gold")
    found = evaluated("--hypotheses", good, "--against", bad, "--references", gold)
    assert [one["metric"] for one in found["metrics"]] == ["BLEU", "chrF2", "TER", "WER", "CER"]
    for one in found["metrics"]:
        scores = [system["score"] for system in one["systems"]]
        assert [system["hypotheses"] for system in one["systems"]] == [good, bad]
        assert one["against"]["difference"] == pytest.approx(scores[0] - scores[1])
        assert (scores[0] > scores[1]) == (one["better"] == "higher")
        assert one["against"]["significant"]
        assert one["against"]["verdict"] == "significantly better (p = 0.0001)"
    text = run("rerank", "evaluate", "--hypotheses", bad, "--against", good, "--references", gold)
    assert "WER: significantly worse (p = 0.0001)\n" in text
    same = run("rerank", "evaluate", "--hypotheses", good, "--against", good, "--references", gold, "--metric", "wer")
    assert f"{good} against {good}:\nWER: no significant difference (p = 1.0000)\n" in same


def test_the_table(saved):
    arguments = "--hypotheses", saved(GOOD, "good"), "--references", saved(REFERENCE, "gold")
    text = run("rerank", "evaluate", *arguments, "--metric", "bleu,wer", "--tokenize", "none", "--level", "0.9")
    lines = text.splitlines()
    assert lines[1].startswith("BLEU (higher is better)")
    assert lines[2].startswith("  90% interval")
    assert lines[3].split() == ["WER", "(lower", "is", "better)", "18.18"]
    assert lines[5].split() == ["sentences", "4"]
    assert lines[6] == ""
    assert lines[7].startswith("BLEU nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:")
    assert len(lines) == 8
    assert run("rerank", "evaluate", *arguments, "--metric", "wer", "--seed", "1").count("\n") == 4


def test_files_of_all_kinds(saved):
    latin, plain = saved("caf\u00e9 .\n".encode("latin-1"), "latin"), saved("caf\u00e9 .\n", "plain")
    packed = saved(gzip.compress("\ufeffcaf\u00e9 .".encode()), "packed.gz")
    options = "--metric", "cer"
    for given in (None, "caf\u00e9 .\n"):
        hypotheses = packed if given is None else "-"
        found = evaluated("--hypotheses", hypotheses, "--references", plain, *options, given=given)
        assert found["metrics"][0]["systems"][0]["score"] == 0.0
    found = evaluated("--hypotheses", latin, "--references", latin, "--encoding", "latin-1", *options)
    assert found["metrics"][0]["systems"][0]["score"] == 0.0
    wide = saved("caf\u00e9\n\u732b\n".encode("utf-16"), "wide")
    assert read_lines(wide, "utf-16") == ["caf\u00e9", "\u732b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--hypotheses", "good", "--references", "short"),
            "good has 4 lines and short has 3; give files with one",
        ),
        (("--hypotheses", "good", "--references", "gold", "short"), "gold has 4 lines and short has 3; line N of each"),
        (("--hypotheses", "good", "--against", "short", "--references", "gold"), "short has 3 lines and gold has 4"),
        (
            ("--hypotheses", "latin", "--references", "gold"),
            "latin, line 2: byte 0xe9 is not UTF-8; save the file as UTF-8, for example with iconv, or give its "
            "encoding, as --encoding latin-1",
        ),
        (
            ("--hypotheses", "latin", "--references", "gold", "--encoding", "ascii"),
            "latin, line 2: byte 0xe9 is not --encoding ascii; save the file as UTF-8, for example with iconv, or give "
            "another one",
        ),
        (("--hypotheses", "good", "--references", "gold", "--encoding", "x"), "--encoding x is not known; give one"),
        (("--hypotheses", "empty", "--references", "empty"), "empty: no references; give a line per input"),
        (("--hypotheses", "nul", "--references", "nul"), "nul, line 1: a NUL byte"),
        (("--hypotheses", "none", "--references", "gold"), "none: No such file or directory"),
        (("--hypotheses", "-", "--references", "-"), "standard input (-) can be read only once"),
        (("--hypotheses", "good", "--references", "gold", "--metric", "blue"), "no metric is named 'blue'"),
        (("--hypotheses", "good", "--references", "gold", "--tokenize", "x"), "tokenize must be one of none, zh, 13a"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(saved, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    saved(GOOD, "good")
    saved(REFERENCE, "gold")
    saved("a\nb\nc", "short")
    saved(b"a\ncaf\xe9\nb\nc\n", "latin")
    saved("", "empty")
    saved(b"a\0b\n", "nul")
    assert message in failed("rerank", "evaluate", *arguments)
