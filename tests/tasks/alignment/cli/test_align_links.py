"""The commands evaluate and symmetrize, through their parser and as processes."""

from __future__ import annotations

import gzip
import json
from functools import partial

import commands
import pytest
import typer

from maxmargin.cli import app

run, failed = partial(commands.run, "align"), partial(commands.failed, "align")

FILES = {
    "source": "a b c\nd e\n\n",
    "target": "x y z\nu v\nw\n",
    "both": "a b c ||| x y z\nd e ||| u v\n||| w\n",
    "gold.wa": "0001 1 1 S\n0001 2 2 P\n0001 3 3 S\n0002 1 2 S\n",
    "gold": "0-0 1p1 2-2\n0-1\n\n",
    "good": "0-0 1-1 2-2\n0-1\n\n",
    "poor": "0-0 0-1\n1-0\n\n",
    "forward": "0-0 1-1 1-2\n0-0\n\n",
    "backward": "0-0 1-1 2-2\n1-1\n\n",
    "turned": "0-0 1-1 2-2\n1-1\n\n",
    "short": "0-0\n",
    "outside": "0-0\n0-5\n\n",
    "empty": "",
    "later.wa": "38 1 1 S\n39 1 1 S\n",
    "from_one": "1-1 2-2 3-3 4-4\n" * 5,
}


@pytest.fixture
def at(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "good.gz").write_bytes(gzip.compress(FILES["good"].encode()))
    (tmp_path / "latin").write_bytes(b"0-0\n\xe9\n\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(*arguments: str, given: str | None = None):
    return json.loads(run("evaluate", *arguments, "--json", given=given))["systems"]


def test_evaluate(at):
    for gold in ("gold", "gold.wa"):
        for sentences in ((), ("--source", "source", "--target", "target"), ("--source", "both")):
            (good,) = measured("--gold", gold, "--predicted", "good.gz", *sentences)
            assert (good["aer"], good["precision"], good["recall"], good["f1"], good["exact"]) == (0, 1, 1, 1, 3)
    good, poor = measured("--gold", "gold", "--predicted", "good", "poor")
    assert "against_first" not in good
    assert poor["aer"] == pytest.approx(1 - 2 / 6)
    assert (poor["predicted"], poor["sure"], poor["possible"], poor["predicted_sure"]) == (3, 3, 4, 1)
    assert poor["aer_interval"][0] <= poor["aer"] <= poor["aer_interval"][1]
    assert poor["against_first"]["aer_difference"] == pytest.approx(poor["aer"])
    assert 0 < poor["against_first"]["p_value"] <= 1
    assert measured("--gold", "gold", "--predicted", "good", "--predicted", "poor") == [good, poor]


def test_evaluate_reads_standard_input(at):
    (given,) = measured("--gold", "gold", "--predicted", "-", given=FILES["good"])
    assert given["aer"] == 0
    assert given["predicted_file"] == "standard input"


def test_formats_of_evaluate(at):
    (at / "talp").write_text("1-1 2-2 3-3\n1-2\n\n", encoding="utf-8")
    (found,) = measured("--gold", "gold", "--predicted", "talp", "--from", "talp")
    assert found["aer"] == 0
    (found,) = measured("--gold", "talp", "--gold-from", "talp", "--predicted", "good")
    assert found["aer"] == 0


def test_the_table(at):
    text = run("evaluate", "--gold", "gold", "--predicted", "good", "poor")
    rows = {line[:20].strip(): line[20:].split() for line in text.splitlines()}
    assert rows["AER %"] == ["0.00", "66.67"]
    assert rows["balance"] == ["+0.00", "+0.00"]
    assert rows["links predicted"] == ["4", "3"]
    assert "p value" in rows
    assert "\x1b" not in text


def test_details(at):
    text = run("evaluate", "--gold", "gold", "--predicted", "poor", "--details")
    lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
    assert lines[0][:4] == ["sentence", "sure", "possible", "predicted"]
    assert [line[0] for line in lines[1:]] == ["1", "2", "3"]
    assert [line[6] for line in lines[1:]] == ["0.5000", "1.0000", "0.0000"]
    (system,) = measured("--gold", "gold", "--predicted", "poor", "--details")
    assert [one["aer"] for one in system["per_sentence"]] == [0.5, 1.0, 0.0]


def test_names_cannot_move_the_cursor(at):
    (at / "[red]\x1b[2J").write_text(FILES["good"], encoding="utf-8")
    text = run("evaluate", "--gold", "gold", "--predicted", "[red]\x1b[2J")
    assert "\x1b" not in text
    assert "[red]" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gold", "gold", "--predicted", "missing"), "missing: No such file"),
        (("--gold", "missing", "--predicted", "good"), "missing: No such file"),
        (("--gold", "gold", "--predicted", "short"), "gold has 3 lines and short has 1"),
        (
            ("--gold", "gold.wa", "--predicted", "short"),
            "short has links of 1 sentence pair and gold.wa has sentences 1 to 2; predicted links need one line per",
        ),
        (
            ("--gold", "gold.wa", "--predicted", "empty"),
            "empty has links of 0 sentence pairs and gold.wa has sentences",
        ),
        (("--gold", "later.wa", "--predicted", "short"), "short has links of 1 sentence pair and later.wa has"),
        (("--gold", "later.wa", "--predicted", "good"), "later.wa: sentences are numbered 38 to 39 and there are 3"),
        (
            ("--gold", "gold.wa", "--predicted", "short", "--source", "both"),
            "short has links of 1 sentence pair and there are 3",
        ),
        (("--gold", "gold.wa", "--predicted", "good", "--source", "empty"), "gold.wa, line 1: sentence 1 of 0"),
        (
            ("--gold", "empty", "--predicted", "empty"),
            "empty: no sentence pairs, so there is nothing to evaluate; give",
        ),
        (("--gold", "empty", "--predicted", "empty", "--source", "empty"), "empty: no sentence pairs"),
        (
            ("--gold", "gold", "--predicted", "good", "--source", "both", "--target", "target"),
            "both, line 1: has ' ||| ', so the file seems to have source and target; omit the target file (--target)",
        ),
        (("--gold", "gold", "--predicted", "latin"), "latin, line 2: byte 0xe9 is not UTF-8"),
        (("--gold", "gold", "--predicted", "outside", "--source", "both"), "outside, line 2: link 0-5 lies outside"),
        (("--gold", "gold", "--predicted", "good", "--source", "source"), "source, line 1: no ' ||| '"),
        (("--gold", "gold", "--predicted", "good", "--target", "target"), "--target needs --source"),
        (
            ("--gold", "gold", "--predicted", "good", "--source", "source", "--target", "short"),
            "source has 3 lines and",
        ),
        (("--gold", "-", "--predicted", "-"), "standard input (-) can be read only once"),
    ],
)
def test_refused_evaluate(at, arguments, message):
    assert message in failed("evaluate", *arguments)


def test_a_file_that_may_count_from_one(at):
    for arguments, warnings in (
        ((), 2),
        (("--from", "talp"), 1),
        (("--first", "1"), 1),
        (("--gold-from", "pharaoh"), 1),
        (("--gold-first", "1", "--first", "0"), 0),
        (("--from", "pharaoh", "--gold-from", "talp"), 0),
    ):
        for flags in ((), ("--json",)):
            answer = commands.runner.invoke(
                app, ["align", "evaluate", "--gold", "from_one", "--predicted", "from_one", *arguments, *flags]
            )
            assert answer.exit_code == 0
            warning = "warning: from_one has no position 0; if it counts from 1, give --first 1"
            assert [line[: len(warning)] for line in answer.stderr.splitlines()] == [warning] * warnings


def test_gold_that_counts_from_zero(at):
    """Read from 1 it was shifted without a word."""
    (at / "zero.wa").write_text("1 0 0 S\n1 1 1 S\n1 2 2 S\n2 0 1 S\n", encoding="utf-8")
    assert "zero.wa, line 1: word 0, but" in failed("evaluate", "--gold", "zero.wa", "--predicted", "good")
    (found,) = measured("--gold", "zero.wa", "--gold-first", "0", "--predicted", "good")
    assert found["aer"] == 0
    assert "zero.wa, line 1: word 0, but" in failed("convert", "zero.wa", "--to", "talp")
    assert run("convert", "zero.wa", "--first", "0", "--to", "talp") == "1-1 2-2 3-3\n1-2\n"


def test_bad_links_are_skipped(at):
    """One link outside its sentences refused the whole file; its pair is left out of all files."""
    (at / "bad").write_text("0-0 1-1 2-2\n0-1 0-9\n\n", encoding="utf-8")
    text = ("--source", "source", "--target", "target")
    assert "bad, line 2: link 0-9 lies outside" in failed("evaluate", "--gold", "bad", "--predicted", "good", *text)
    for gold, predicted in (("bad", "good"), ("good", "bad")):
        arguments = ["align", "evaluate", "--gold", gold, "--predicted", predicted, *text, "--skip-bad", "--json"]
        answer = commands.runner.invoke(app, arguments)
        assert answer.exit_code == 0
        (found,) = json.loads(answer.stdout)["systems"]
        assert (found["sentences"], found["aer"]) == (2, 0)
        assert answer.stderr == "warning: bad: 1 link outside the sentences; 1 pair left out; the first is pair 2\n"
    assert "--skip-bad needs the sentences" in failed("evaluate", "--gold", "bad", "--predicted", "good", "--skip-bad")


def test_convert(at):
    """From each format to each other and back, with marks and with confidences."""
    (at / "marked").write_text("0-0 1p1 2-2\n0p1\n\n", encoding="utf-8")
    (at / "sure").write_text("0-0:0.9300 1-1:0.5000\n0-1:1.0000\n\n", encoding="utf-8")
    text = ("--source", "source", "--target", "target")
    for name in ("marked", "sure", "good"):
        for form in ("naacl", "talp", "json"):
            (at / "other").write_text(run("convert", name, "--to", form), encoding="utf-8")
            back = run("convert", "other", "--from", form, "--to", "pharaoh", *text)
            assert sorted(back.split()) == sorted((at / name).read_text(encoding="utf-8").split())
    (at / "other").write_text(run("convert", "good", "--to", "a3", *text), encoding="utf-8")
    assert run("convert", "other", "--to", "pharaoh", *text) == FILES["good"]
    assert run("convert", "good", "--to", "pharaoh", "--reverse").split() == ["0-0", "1-1", "2-2", "1-0"]
    assert "a3 repeats the sentences; give them (--source and --target)" in failed("convert", "good", "--to", "a3")


def test_symmetrize(at):
    both = ("--forward", "forward", "--backward", "backward")
    assert run("symmetrize", *both) == "0-0 1-1 1-2 2-2\n0-0 1-1\n\n"
    assert run("symmetrize", *both, "--method", "intersection") == "0-0 1-1\n\n\n"
    assert run("symmetrize", *both, "--method", "union", "--source", "both") == "0-0 1-1 1-2 2-2\n0-0 1-1\n\n"
    assert run("symmetrize", *both, "--method", "forward") == FILES["forward"]
    assert run("symmetrize", *both, "--to", "naacl", "--method", "intersection") == "1 1 1 S\n1 2 2 S\n"
    assert run("symmetrize", *both, "--to", "json", "--method", "intersection") == "[[0, 0], [1, 1]]\n[]\n[]\n"


def test_symmetrize_reversed(at):
    (at / "turned").write_text("0-0 2-1\n\n\n", encoding="utf-8")
    both = ("--forward", "forward", "--backward", "turned", "--method", "intersection")
    assert run("symmetrize", *both, "--reverse") == "0-0 1-2\n\n\n"
    assert run("symmetrize", *both) == "0-0\n\n\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--forward", "forward", "--backward", "missing"), "missing: No such file"),
        (("--forward", "forward", "--backward", "short"), "forward has 3 lines and short has 1"),
        (("--forward", "-", "--backward", "-"), "standard input (-) can be read only once"),
        (("--forward", "forward", "--backward", "outside", "--source", "both"), "outside, line 2"),
    ],
)
def test_refused_symmetrize(at, arguments, message):
    assert message in failed("symmetrize", *arguments)


def test_an_unknown_method_is_a_usage_error(at):
    answer = commands.runner.invoke(
        app, ["align", "symmetrize", "--forward", "forward", "--backward", "backward", "--method", "grow"]
    )
    assert answer.exit_code == 2
    assert isinstance(answer.exception, SystemExit)


def test_as_processes_in_a_pipe(at):
    made = commands.process("align", "symmetrize", "--forward", "forward", "--backward", "-", given=FILES["backward"])
    assert (made.returncode, made.stderr) == (0, "")
    scored = commands.process("align", "evaluate", "--gold", "gold.wa", "--predicted", "-", given=made.stdout)
    assert (scored.returncode, scored.stderr) == (0, "")
    assert "AER %" in scored.stdout
    assert "\x1b" not in scored.stdout
    refused = commands.process("align", "evaluate", "--gold", "gold", "--predicted", "latin")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: latin, line 2: ")


def test_many_systems_in_a_pipe_have_whole_columns(at):
    text = run("evaluate", "--gold", "gold", "--predicted", *(["poor"] * 12))
    rows = {line[:20].strip(): line[20:].split() for line in text.splitlines()}
    assert rows["AER %"] == ["66.67"] * 12


def test_options_of_links_mean_the_same_in_all_verbs():
    """--from and --first: links that are read; --to: those that are written; --gold-from and --gold-first: gold."""
    meanings = {}
    for verb in typer.main.get_command(app).commands["align"].commands.values():
        for option in verb.params:
            if set(option.opts) & {"--from", "--first", "--to", "--gold-from", "--gold-first", "--format"}:
                assert len(option.opts) == 1
                meanings.setdefault(option.opts[0], set()).add(option.help)
    assert {name: len(found) for name, found in meanings.items()} == dict.fromkeys(
        ("--from", "--first", "--to", "--gold-from", "--gold-first"), 1
    )
