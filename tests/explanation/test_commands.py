"""The commands ``explain`` of all tasks."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import kinds
import numpy as np
import pytest
from commands import failed, run

TEXT = "the\tB-NP\ndog\tI-NP\nsees\tB-VP\n\na\tB-NP\ncat\tI-NP\nsleeps\tB-VP\n\n"
TREES = "\n".join(
    f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
    for at, word, tag, head, relation in (
        (1, "the", "DET", 2, "det"),
        (2, "cat", "NOUN", 3, "nsubj"),
        (3, "sees", "VERB", 0, "root"),
    )
)
LISTS = "".join(
    f"{number} ||| text {at} ||| x0= {a} x1= {b} x2= {a * b} ||| 0\n"
    for number in (0, 1)
    for at, (a, b) in enumerate(((1, 2), (3, -1), (0.5, 1)))
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Models and inputs of all tasks."""
    folder = tmp_path_factory.mktemp("explain")

    def at(name, model=None, text=None):
        if model is not None:
            model.save(folder / name)
        if text is not None:
            (folder / name).write_text(text)
        return str(folder / name)

    return SimpleNamespace(
        folder=folder,
        tagger=at("tag", kinds.tagger().model),
        tokens=at("tokens", text=TEXT),
        parser=at("parse", kinds.parser().model),
        trees=at("trees.conllu", text=TREES + "\n\n"),
        reranker=at("rerank", kinds.reranker().model),
        lists=at("lists", text=LISTS),
        aligner=at("align", kinds.aligner().model),
        source=at("source", text="das Haus ist klein\ndas Buch\n\n"),
        target=at("target", text="the house is small\nthe book\nno\n"),
        links=at("links", text="0-0 1-1\n0-0\n\n"),
        empty=at("empty", text=""),
    )


def commands(files):
    """A good command of each task."""
    pair = "--source", files.source, "--target", files.target
    return [
        ("tag", "explain", files.tagger, files.tokens),
        ("parse", "explain", files.parser, files.trees),
        ("rerank", "explain", files.reranker, "--nbest", files.lists),
        ("align", "explain", files.aligner, *pair),
    ]


def test_json_adds_up(files):
    for command in commands(files):
        found = json.loads(run(*command, "--json"))
        assert sum(one["contribution"] for one in found["contributions"]) == pytest.approx(found["margin"])
        assert found["margin"] == pytest.approx(found["score"] - (found["rival_score"] or 0.0))
        assert found["compared_with"] == "runner-up"
        assert found["explained"]


def test_tables_and_pages(files):
    for command in commands(files):
        text = run(*command, "--top", "3")
        assert "Where they differ" in text
        assert "runner-up" in text
        page = files.folder / "page.html"
        assert run(*command, "--html", str(page)).startswith(f"wrote {page}: ")
        assert "Where they differ" in page.read_text()
        both = json.loads(run(*command, "--html", str(page), "--json"))
        assert both["margin"] >= 0


def test_hypotheses_are_counted_from_1(files):
    command, page = commands(files)[2], files.folder / "list.html"
    found = json.loads(run(*command, "--json", "--html", str(page)))
    output, rival = (f"hypothesis {found[name] + 1}" for name in ("output", "rival"))
    first, second = run(*command).splitlines()[:2]
    assert (first.split(), second.split()) == (["output", *output.split()], ["runner-up", *rival.split()])
    assert f">{output}</" in page.read_text()
    assert f">{rival}</" in page.read_text()


def test_rows_of_tables(files):
    """A page has 30 rows unless a number is given, the terminal 10, whatever the number is."""
    command, page = commands(files)[3], files.folder / "rows.html"
    n = json.loads(run(*command, "--json"))["n_contributions"]
    assert n > 30

    def rest(*options):
        text = run(*command, *options)
        return [int(one) for one in re.findall(r"and ([0-9]+) more", page.read_text() if "--html" in options else text)]

    assert rest()[-1] == rest("--top", "10")[-1] == n - 10
    assert rest("--html", str(page))[-1] == n - 30
    assert rest("--html", str(page), "--top", "10")[-1] == n - 10
    assert rest("--html", str(page), "--top", "3")[-1] == n - 3


def test_other_outputs(files):
    tag, parse, rerank, align = commands(files)
    token = json.loads(run(*tag, "--sentence", "2", "--token", "2", "--json"))
    assert token["compared_with"] == "best output that differs there"
    assert token["output"][1] != token["rival"][1]
    gold = json.loads(run(*tag, "--gold", "--json"))
    assert gold["rival"] == ["B-NP", "I-NP", "B-VP"]
    moved = json.loads(run(*parse, "--token", "1", "--json"))
    assert moved["output"][0] != moved["rival"][0]
    assert json.loads(run(*parse, "--gold", "--json"))["rival"] == [2, 3, 0]
    relation = json.loads(run(*parse, "--token", "2", "--relation", "--json"))
    assert isinstance(relation["output"], str)
    assert relation["output"] != relation["rival"]
    assert json.loads(run(*parse, "--token", "2", "--relation", "--gold", "--json"))["rival"] == "nsubj"
    other = json.loads(run(*rerank, "--list", "2", "--against", "3", "--json"))
    assert other["rival"] == 2
    assert other["compared_with"] == "given output"
    linked = json.loads(run(*align, "--link", "0-3", "--json"))
    assert ([0, 3] in linked["output"]) != ([0, 3] in linked["rival"])
    given = json.loads(run(*align, "--gold", files.links, "--sentence", "2", "--json"))
    assert given["rival"] == [[0, 0]]


def test_bad_input(files):
    tag, parse, rerank, align = commands(files)
    for command, more, said in (
        (tag, ["--sentence", "3"], "tokens has 2 sentences; give a smaller number"),
        (tag, ["--token", "4"], "--token 4: sentence 1 has 3 tokens; give a smaller number"),
        (tag, ["--token", "1", "--gold"], "--token and --gold exclude each other"),
        (tag, ["--html", "/no/where.html"], "its folder does not exist"),
        (("tag", "explain", files.tagger, files.empty), [], "empty"),
        (("tag", "explain", files.reranker, files.tokens), [], "it holds a model of kind 'reranking'"),
        (("parse", "explain", files.tagger, files.trees), [], "it holds a model of kind 'sequence tagging'"),
        (("parse", "explain", files.parser, files.empty), [], "empty"),
        (parse, ["--sentence", "2"], "trees.conllu has 1 sentence;"),
        (parse, ["--token", "9"], "--token 9: sentence 1 has 3 tokens;"),
        (parse, ["--relation"], "--relation needs --token"),
        (parse, ["--gold", "--token", "1"], "--token and --gold exclude each other"),
        (rerank, ["--list", "5"], "lists has 2 lists;"),
        (rerank, ["--against", "7"], "--against 7: list 1 has 3 hypotheses;"),
        (align, ["--sentence", "9"], "source has 3 sentence pairs;"),
        ((*align[:3], "--source", files.empty, "--target", files.empty), [], "empty: no sentence pairs; give a file"),
        (align, ["--sentence", "3"], "--sentence 3: sentence pair 3 of "),
        (align, ["--sentence", "3"], "source has an empty side and no links; give another pair"),
        (align, ["--link", "a-b"], "--link must be two positions"),
        (align, ["--link", "9-9"], "--link 9-9: sentence pair 1 of "),
        (align, ["--link", "2-1", "--sentence", "2"], "source has 2 source words and 2 target words, counted from 0;"),
        (align, ["--link", "0-0", "--gold", files.links], "--link and --gold exclude each other"),
        (("segment", "explain", files.tagger, files.tokens), [], "it holds a model of kind 'sequence tagging'"),
    ):
        assert said in failed(*command, *more), (command, more)


def test_labels_that_the_model_does_not_know(files):
    path = files.folder / "odd"
    path.write_text("the\tB-NP\ndog\tB-XX\n")
    said = failed("tag", "explain", files.tagger, str(path), "--gold")
    assert "line 2: 'B-XX' is not a label of this model" in said


def test_gold_trees_that_are_none(files):
    """Errors name the option, the file and the line."""
    rows = [line.split("\t") for line in TREES.splitlines()]

    def said(changes, *options):
        path = files.folder / "gold.conllu"
        own = [[changes.get((at, column), cell) for column, cell in enumerate(row)] for at, row in enumerate(rows)]
        path.write_text("\n".join("\t".join(row) for row in own) + "\n\n")
        return failed("parse", "explain", files.parser, str(path), "--gold", *options)

    text = said({(1, 6): "_"})
    assert "gold.conllu, line 2: --gold compares with the tree in the file, and this token has no head" in text
    text = said({(at, column): "_" for at in range(3) for column in (6, 7)})
    assert "gold.conllu, line 1: --gold compares with the tree" in text
    assert "gold.conllu, line 2: the head '7' is not one of the other tokens" in said({(1, 6): "7"})
    assert "gold.conllu, line 1: from here the heads lead around in a circle" in said({(2, 6): "1"})
    assert "gold.conllu, line 3: this is a second token below the root" in said({(1, 6): "0"})
    crossing = "".join(f"{at}\tw\t_\tNOUN\t_\t_\t{head}\tdet\t_\t_\n" for at, head in enumerate((3, 4, 0, 3), 1))
    path = files.folder / "crossing.conllu"
    path.write_text(crossing + "\n")
    text = failed("parse", "explain", files.parser, str(path), "--gold")
    assert re.search("crossing.conllu, line [12]: the arc to this token crosses another", text)
    relation = "--relation", "--token", "2"
    text = said({(1, 7): "odd"}, *relation)
    assert (
        "gold.conllu, line 2: 'odd' is not a relation of this model (det, nsubj, obj, root); leave --gold out" in text
    )
    assert "gold.conllu, line 2: --gold compares with the relation in the file" in said({(1, 7): "_"}, *relation)


def test_later_blocks_of_a_file_are_found(files, monkeypatch):
    from maxmargin.tasks.tagging import reading

    every = [json.loads(run(*commands(files)[0], "--sentence", n, "--json")) for n in "12"]
    monkeypatch.setattr(reading.ReadOptions.blocks_for, "__kwdefaults__", {"labeled": None, "size": 8})
    assert [json.loads(run(*commands(files)[0], "--sentence", n, "--json")) for n in "12"] == every


@pytest.mark.parametrize("n_classes", [2, 3])
def test_images(n_classes, tmp_path):
    pytest.importorskip("PIL", reason="needs the images extra")
    from maxmargin.tasks.segmentation import write_image, write_mask

    case = kinds.segmenter(n_classes)
    model, image, mask, html = (str(tmp_path / name) for name in ("model", "leaf.png", "mask.png", "page.html"))
    case.model.save(model)
    write_image(image, case.x)
    write_mask(mask, np.zeros(case.x.shape[:2], dtype=int), case.model.encoder.file_codes)
    command = "segment", "explain", model, image
    found = json.loads(run(*command, "--json"))
    assert sum(one["contribution"] for one in found["contributions"]) == pytest.approx(found["margin"])
    assert found["output"] == "array of shape (24, 32)" or isinstance(found["output"], list)
    assert "region" in run(*command, "--at", "3,4")
    assert "given output" in run(*command, "--gold", mask)
    run(*command, "--html", html)
    with open(html) as file:
        assert file.read().count("data:image/jpeg") == 2
    assert "--at must be whole numbers" in failed(*command, "--at", "x")
    for wrong in ("3", "30,1", "1,32", "1,1,1"):
        said = f"--at {wrong}: {image} has 24 x 32 pixels; give a row and a column, counted from 0"
        assert said in failed(*command, "--at", wrong)
    with pytest.raises(ValueError, match="at must be a row and a column, counted from 0, as there are 24 x 32 pixels"):
        case.model.explain(case.x, at=(24, 0))
    assert "exclude each other" in failed(*command, "--at", "3,4", "--gold", mask)


def test_scans(tmp_path):
    from maxmargin.tasks.segmentation import write_scan

    case = kinds.scan_segmenter()
    model, scan, html = (str(tmp_path / name) for name in ("model", "street.ply", "page.html"))
    case.model.save(model)
    write_scan(scan, case.x, np.zeros(len(case.x), dtype=int))
    command = "segment", "explain", model, scan
    assert "node" in run(*command)
    run(*command, "--at", "7", "--html", html)
    with open(html) as file:
        assert file.read().count("data:image/png") == 2
    n = len(case.x)
    for wrong in (str(n), "1,2"):
        said = f"--at {wrong}: {scan} has {n} points; give the number of a point, counted from 0"
        assert said in failed(*command, "--at", wrong)
