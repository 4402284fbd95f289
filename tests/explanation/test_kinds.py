"""Explanations of every kind of model: contributions add up to differences of scores, and everything has a name."""

from __future__ import annotations

import math
from typing import Any

import kinds
import numpy as np
import pytest
from kinds import Case

from maxmargin.explanation import Explanation
from maxmargin.structures.base import PointStatus

CORE = [pytest.param(make, id=f"{kind} {at}") for kind, own in kinds.CORE.items() for at, make in enumerate(own)]
TASKS = [pytest.param(make, id=f"{kind} {at}") for kind, own in kinds.TASKS.items() for at, make in enumerate(own)]


def test_every_kind_of_the_library_is_here():
    assert set(kinds.CORE) | set(kinds.TASKS) | kinds.STAGES == kinds.EVERY


def near(one: float, two: float, size: float) -> bool:
    return abs(one - two) <= 1e-9 * max(1.0, size)


def size_of(found: Explanation) -> float:
    return sum(abs(one.contribution) for one in found.contributions) + abs(found.score)


def check_sums(found: Explanation) -> None:
    """All sums are those of the single contributions, whose names are text."""
    total = math.fsum(one.contribution for one in found.contributions)
    assert found.margin == total
    wanted = found.score - (found.rival_score or 0.0)
    assert near(total, wanted, size_of(found) + abs(found.rival_score or 0.0))
    for sums in (found.by_part(), found.by_feature(), found.by_place(), found.by_place_and_feature()):
        assert near(math.fsum(value for _, value in sums), total, size_of(found))
        assert len(dict(sums)) == len(sums)
    assert near(math.fsum(one.contribution for one in found.differences), total, size_of(found))
    for one in found.contributions:
        assert all(type(text) is str for text in (*one.part, *one.feature))
        assert one.part.what
        assert one.feature.what
        if one.weight is not None:
            assert near(one.weight * one.value * one.change, one.contribution, abs(one.contribution))
    sizes = [abs(one.contribution) for one in found.contributions]
    assert sizes == sorted(sizes, reverse=True)


def difference(case: Case, output: Any, other: Any) -> float:
    """``w'f(x, output) - w'f(x, other)`` by the adjoint of the features, not by rows of parts."""
    model = case.model
    batch = model.encoder.transform([case.x])
    scores = batch.features.scores(model.weights)
    z = [model.encoder.vertex_of(batch, [y], scores) for y in (output, other)]
    return float(model.weights @ (batch.features.adjoint(z[0]) - batch.features.adjoint(z[1])))


@pytest.mark.parametrize("make", CORE)
def test_the_margin_is_that_of_the_two_best(make):
    case = make()
    found = case.model.explain(case.x)
    check_sums(found)
    structure = case.model.encoder.transform([case.x]).structure
    (predicted,) = case.model.predict([case.x])
    assert repr(found.output) == repr(predicted)
    if structure.relaxed and structure.name in ("graph", "associative network", "associative network with cliques"):
        assert not found.exact
        assert found.margin > -1e-9
        return
    (ranks,) = case.model.k_best([case.x], 2)
    assert near(found.score, ranks[0][1], size_of(found))
    if len(ranks) == 1:
        assert found.rival is None
        assert found.compared_with == "no other output"
    else:
        assert near(found.margin, ranks[0][1] - ranks[1][1], size_of(found))
        assert found.compared_with == "runner-up"


@pytest.mark.parametrize("make", CORE)
def test_against_any_output(make):
    case = make()
    found = case.model.explain(case.x, against=case.other)
    check_sums(found)
    assert found.compared_with == "given output"
    assert near(found.margin, difference(case, found.output, case.other), size_of(found))
    same = case.model.explain(case.x, against=found.output)
    assert same.margin == 0.0
    assert same.contributions == ()
    assert same.parts == ()


@pytest.mark.parametrize("make", CORE)
def test_the_best_output_that_differs_somewhere(make):
    """The best of these over all places is the runner-up; each of them differs where it should."""
    case = make()
    best = case.model.explain(case.x)
    encoder = case.model.encoder
    batch = encoder.transform([case.x])
    structure, scores = batch.structure, batch.features.scores(case.model.weights)
    ends = np.cumsum(structure.n_states) if structure.categorical else np.arange(structure.n_variables[0]) + 1
    margins = []
    for at in range(int(structure.n_variables[0])):
        found = case.model.explain(case.x, at=at)
        check_sums(found)
        if found.rival is not None:
            margins.append(found.margin)
            if encoder.kind not in ("sublabels", "edits"):  # where outputs do not say all that is hidden
                z, other = (encoder.vertex_of(batch, [one], scores) for one in (found.output, found.rival))
                own = slice(ends[at - 1] if at else 0, ends[at])
                assert (z[own] != other[own]).any()
    if best.exact and best.rival is not None and encoder.kind not in ("sublabels", "edits"):
        assert near(min(margins), best.margin, size_of(best))


@pytest.mark.parametrize("make", [*CORE, *TASKS])
def test_names_cover_all_parts_and_weights(make):
    """Each block has names for all its parts; tables of weights are as long as the weights."""
    from maxmargin.encoders.data.names import ColumnNames

    case = make()
    encoder = case.model.encoder
    if encoder.kind == "dependency parsing":
        return  # its features are hashed; see test_parser_names.py
    batch = encoder.transform([case.x])
    namers = encoder.name_parts(batch, case.x)
    assert len(namers) == len(batch.structure.blocks)
    for namer, block in zip(namers, batch.structure.blocks, strict=True):
        names = [namer(at) for at in range(int(block.offsets[-1]))]
        assert all(type(text) is str for name in names for text in name)
        assert len(set(names)) == len(names), block.name
    tables = encoder.name_weights(ColumnNames())
    assert sum(table.size for table in tables) == encoder.n_weights == len(case.model.weights)
    for table in tables:
        names = [table.name(at) for at in range(table.size)]
        assert all(type(text) is str for name in names for text in name)
        assert table.summed or len(set(names)) == len(names)


@pytest.mark.parametrize("make", TASKS)
def test_tasks(make):
    case = make()
    found = case.model.explain(case.x)
    check_sums(found)
    (predicted,) = case.model.predict([case.x])
    if case.model.encoder.kind not in ("image segmentation", "dependency parsing"):  # a second stage may follow
        assert np.array_equal(found.output, predicted)
    assert found.margin > -1e-9
    other = case.model.explain(case.x, against=case.other)
    check_sums(other)
    assert other.margin > -1e-9
    assert other.margin >= found.margin - 1e-9 * size_of(other) or not found.exact or not other.parts


@pytest.mark.parametrize("make", TASKS)
def test_tasks_against_an_output_by_another_way(make):
    case = make()
    options = {"adapt": False} if case.model.encoder.kind == "word alignment" else {}
    found = case.model.explain(case.x, against=case.other, **options)
    if case.model.encoder.kind == "dependency parsing":
        trees = case.model._stages[0]
        case, output = Case(trees, case.x, case.other[0]), found.output
    else:
        output = found.output
    assert near(found.margin, difference(case, output, case.other), size_of(found))


@pytest.mark.parametrize("order", [1, 2])
def test_relations_of_a_parser(order):
    """Their margins are those of the scores of all relations of a token."""
    case = kinds.parser(order)
    model = case.model
    relations = model._stages[1]
    (heads, names), bank = model.predict([case.x])[0], model.encoder.parse([case.x])
    batch = relations.encoder.batch((model.encoder.trees.nodes(bank), heads))
    scores = batch.features.scores(relations.weights).reshape(len(heads), -1)
    classes = model.encoder.classes
    for at in range(len(heads)):
        found = model.explain(case.x, at=at, relation=True)
        check_sums(found)
        assert found.output == names[at]
        first, second = np.sort(scores[at])[::-1][:2]
        assert near(found.margin, first - second, size_of(found))
        other = model.explain(case.x, at=at, relation=True, against="det")
        check_sums(other)
        assert near(other.margin, first - scores[at, classes.index("det")], size_of(other))
    for options, said in (
        ({"relation": True}, "at must be"),
        ({"relation": True, "at": 9}, "at must be"),
        ({"relation": True, "at": 0, "against": "none"}, "against must be a relation"),
        ({"relation": True, "at": 0, "against": case.x}, "against must be a relation"),
        ({"relation": "head", "at": 0}, "relation must be True or False"),
        ({"against": [1, 1, 1, 1, 1]}, "heads"),
        ({"against": ([[1, [1]], 1], ["det", "det"])}, "heads"),
    ):
        with pytest.raises(ValueError, match=said):
            model.explain(case.x, **options)


def test_one_input_is_asked_for():
    tagged, parsed, ranked, aligned = (make() for make in (kinds.tagger, kinds.parser, kinds.reranker, kinds.aligner))
    with pytest.raises(ValueError, match="a sentence without tokens"):
        tagged.model.explain([])
    with pytest.raises(ValueError, match="explain takes one sentence, got 2"):
        parsed.model.explain(parsed.model.encoder.parse([parsed.x, parsed.x]))
    with pytest.raises(ValueError, match="against must be an integer"):
        ranked.model.explain(ranked.x, against=9)
    with pytest.raises(ValueError, match="an empty side"):
        aligned.model.explain(("", "the"))
    with pytest.raises(ValueError, match="at must be a link"):
        aligned.model.explain(aligned.x, at=(0, 9))
    for wrong in ((0.5, 1), (0, 1, 2), 1, "01", (-1, 0), [[0, 1]]):
        with pytest.raises(ValueError, match="at must be a link"):
            aligned.model.explain(aligned.x, at=wrong)


@pytest.mark.parametrize("make", [*CORE[:1], *(one for one in TASKS if "reranking" not in str(one.id))])
def test_against_and_at_exclude_each_other(make):
    case = make()
    at = {"word alignment": (0, 0), "image segmentation": (0, 0)}.get(case.model.encoder.kind, 0)
    with pytest.raises(ValueError, match="give either against"):
        case.model.explain(case.x, against=case.other, at=at)


@pytest.mark.parametrize("make", TASKS)
def test_rows_of_parts_are_those_of_the_whole_map(make):
    case = make()
    encoder = case.model.encoder
    if encoder.kind == "dependency parsing":
        encoder = encoder.trees
        features = encoder.transform([case.x]).features
    else:
        features = encoder.transform([case.x]).features
    parts = np.random.default_rng(0).permutation(features.n_parts)[:20]
    whole = features.to_sparse()[parts]
    rows = features.part_rows(parts)
    assert abs(rows - whole).sum() <= 1e-12 * (1.0 + abs(whole).sum())


def test_words_of_tokens_are_those_of_the_column_of_words():
    template, y = "U:%x[0,pos]\nU:%x[0,word]\n", [["a", "b"], ["b", "a"]]
    rows = [[("DET", "the"), ("NOUN", "cat")], [("NOUN", "cat"), ("DET", "the")]]
    tagger = kinds.mm.tasks.tagging.SequenceTagger(template=template, columns=("pos", "word"), tol=1e-2).fit(rows, y)
    named = [[dict(zip(("pos", "word"), token, strict=True)) for token in sentence] for sentence in rows]
    for sentence in (rows[0], named[0], [list(token) for token in rows[0]]):
        (place,) = {name for name, _ in tagger.explain(sentence, at=1).by_place() if name.startswith("token 2")}
        assert place == "token 2 'cat'"


def test_against_what_is_known_in_part():
    """The other output is the best one that agrees with it."""
    case = kinds.CORE["matching"][0]()
    ranks = case.model.k_best([case.x], 40)[0]
    known = kinds.mm.PartialLinks([(2, 2)], possible=[(i, j) for i in range(3) for j in range(3)])
    found = case.model.explain(case.x, against=known)
    check_sums(found)
    best = max(score for links, score in ranks if [2, 2] in links.tolist())
    assert near(found.rival_score, best, size_of(found))


@pytest.mark.parametrize(
    "make",
    [
        *(make for kind in ("chain", "tree", "graph", "associative", "sublabels") for make in kinds.CORE[kind]),
        *kinds.TASKS["sequence tagging"],
    ],
)
def test_against_labels_that_are_known_in_part(make):
    """The other labels are the best ones that have what is known, by the ranks of all."""
    case = make()
    known: list[Any] = list(case.other)
    known[1], known[2] = None, {known[2], known[0]}
    found = case.model.explain(case.x, against=known)
    check_sums(found)
    assert found.compared_with == "given output"

    def agrees(labels: list[Any]) -> bool:
        entries = zip(known, labels, strict=True)
        return all(one is None or label == one or (isinstance(one, set) and label in one) for one, label in entries)

    assert agrees(found.rival)
    if not case.model.encoder.transform([case.x]).structure.relaxed:
        ranks = case.model.k_best([case.x], 4**5)[0]
        assert near(found.rival_score, max(score for labels, score in ranks if agrees(labels)), size_of(found))


def test_against_nodes_of_a_cut_that_are_known_in_part():
    case = kinds.CORE["cut"][0]()
    found = case.model.explain(case.x, against=[0, None, 1, None])
    ranks = case.model.k_best([case.x], 16)[0]
    best = max(score for labels, score in ranks if (labels[0], labels[2]) == (0, 1))
    assert near(found.rival_score, best, size_of(found))
    with pytest.raises(ValueError, match="got 3 entries"):
        case.model.explain(case.x, against=[0, None, 1])


@pytest.mark.parametrize("make", [kinds._chain, kinds.tagger])
def test_labels_known_in_part_are_checked(make):
    case = make()
    n = len(case.other)
    with pytest.raises(ValueError, match=f"{n - 1} labels for {n} positions"):
        case.model.explain(case.x, against=[None] * (n - 1))
    with pytest.raises(ValueError, match="label 'z' was not seen"):
        case.model.explain(case.x, against=["z", *[None] * (n - 1)])
    with pytest.raises(ValueError, match="an empty set"):
        case.model.explain(case.x, against=[set(), *[None] * (n - 1)])


def test_single_outputs_are_explained_alone():
    case = kinds._case(kinds.CandidatesEncoder(), [kinds._matrix(1), kinds._matrix(2)], [0, 1])
    found = case.model.explain(case.x)
    check_sums(found)
    assert found.rival is None
    assert found.rival_score is None
    assert found.margin == pytest.approx(found.score)
    assert "no other output" in str(found)
    assert case.model.explain(case.x, at=0).rival is None


def test_kernels_are_explained_by_part():
    case = kinds._chain(**kinds._KERNEL)
    found = case.model.explain(case.x)
    kernel = [one for one in found.contributions if one.feature.what == "kernel"]
    assert kernel
    assert all(one.weight is one.value is None for one in kernel)
    assert len({(one.part, one.feature) for one in kernel}) == len(kernel)


@pytest.mark.parametrize("n", [6, 30])
def test_large_graphs_take_the_best_of_a_few_nodes(n, monkeypatch):
    """Where all nodes are tried the runner-up is the second best labeling, and it is never better than that."""
    from maxmargin.explanation import rivals

    rng = np.random.default_rng(n)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 4 / n]
    X = [kinds.mm.Graph(rng.normal(size=(n, 2)), edges, np.abs(rng.normal(size=(len(edges), 1))))]
    case = kinds._case(kinds.CutEncoder(), X, [np.ones(n, dtype=int)])
    exact = case.model.explain(X[0])
    assert exact.exact
    monkeypatch.setattr(rivals, "MOST_NODES", 0)
    rough = case.model.explain(X[0])
    assert not rough.exact
    assert rough.margin >= exact.margin - 1e-9
    if n <= rivals._TRIED:
        assert near(rough.margin, exact.margin, size_of(exact))


def test_flips_are_differences_of_scores():
    rng = np.random.default_rng(0)
    for kind, at in (("graph", 0), ("graph", 1), ("associative", 0), ("cut", 0)):
        case = kinds.CORE[kind][at]()
        structure = case.model.encoder.transform([case.x]).structure
        scores = rng.normal(size=structure.n_parts)
        labels = rng.integers(0, 2, size=int(structure.n_variables[0]))
        z = structure.encode([labels]).dense()
        gains = structure.flips(scores, z)
        for node in range(len(labels)):
            for label in range(gains.shape[1]) if gains.ndim == 2 else [1 - labels[node]]:
                flipped = labels.copy()
                flipped[node] = label
                gain = gains[node, label] if gains.ndim == 2 else gains[node]
                assert gain == pytest.approx(scores @ (structure.encode([flipped]).dense() - z))


def test_bad_input():
    case = kinds._chain()
    with pytest.raises(ValueError, match="give either against"):
        case.model.explain(case.x, against=case.other, at=0)
    with pytest.raises(ValueError, match=r"at must be .* <= 3"):
        case.model.explain(case.x, at=4)
    with pytest.raises(ValueError, match="2 names for the 3 columns"):
        case.model.explain(case.x, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="feature_names has 'other', but inputs have 'features'"):
        case.model.explain(case.x, feature_names={"other": ["a"]})
    with pytest.raises(ValueError, match="label 'z' was not seen"):
        case.model.explain(case.x, against=["z"] * 4)
    with pytest.raises(ValueError, match="not finite"):
        case.model.explain(1e308 * np.ones((4, 3)))
    with pytest.raises(ValueError, match="this model has none"):
        kinds.tagger().model.explain(kinds.tagger().x, feature_names=["a"])


def test_names_of_columns():
    case = kinds._chain()
    found = case.model.explain(case.x, feature_names=["size", "shape", "color"])
    assert {name for name, _ in found.by_feature()} == {"size", "shape", "color", "transition"}
    edges = kinds.CORE["chain"][3]()
    found = edges.model.explain(edges.x, feature_names={"edge_features": ["near", "alike"]})
    assert {"near", "alike", "transition", "feature 0"} <= {name for name, _ in found.by_feature()}
    tagged = kinds.matrix_tagger()
    found = tagged.model.explain(tagged.x, feature_names=["size", "shape", "color"])
    assert {"size", "shape", "color"} <= {name for name, _ in found.by_feature()}


def test_status_of_relaxed_predictions():
    case = kinds.CORE["graph"][1]()
    batch = case.model.encoder.transform([case.x])
    status = batch.structure.predict(batch.features.scores(case.model.weights)).status[0]
    given = case.model.explain(case.x, against=case.other)
    assert given.exact == (status == PointStatus.OK)
