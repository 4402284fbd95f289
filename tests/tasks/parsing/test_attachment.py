"""Attachment scores against a twin written word by word from their definitions."""

import numpy as np
import pytest

from maxmargin.tasks.parsing.io.treebank import FileError, read_treebank
from maxmargin.tasks.parsing.metrics.attachment import CONTENT, FUNCTIONAL, MEASURES, UNIVERSAL, evaluate

RELATIONS = ["nsubj", "obj", "obl:tmod", "det", "case", "punct", "aux:pass", "root"]


def leads_to_root(heads, token):
    """Whether a walk over heads ends at the root."""
    for _ in heads:
        token = heads[token - 1] if token else 0
    return token == 0


def made(rng, like=None):
    """Rows of a random sentence, or of the same words with some cells changed."""
    n = len(like) if like else int(rng.integers(1, 9))
    order = rng.permutation(n)
    rows = []
    for j in range(n):
        below = int(np.flatnonzero(order == j)[0])
        head = 0 if below == 0 else int(order[rng.integers(0, below)]) + 1
        row = [str(j + 1), f"w{j}", rng.choice(["a", "b", "_"]), rng.choice(["X", "Y"]), "_"]
        row += [rng.choice(["Case=Nom|Zzz=1", "Zzz=2", "_"]), str(head), str(rng.choice(RELATIONS)), "_", "_"]
        if like:
            row = [mine if rng.random() < 0.3 else theirs for mine, theirs in zip(row, like[j], strict=True)]
            row[0], row[1], row[6] = like[j][0], like[j][1], str(head) if rng.random() < 0.2 else like[j][6]
            if row[6] == row[0]:
                row[6] = "0"
        rows.append([str(cell) for cell in row])
        if like:
            heads = [int(one[6]) for one in [*rows, *like[j + 1 :]]]
            if not leads_to_root(heads, j + 1):
                rows[j][6] = like[j][6]
    return rows


def twin(gold, system):
    """Counts (right, gold, predicted) of each measure over all sentences."""

    def words(rows):
        found = []
        for row in rows:
            relation = row[7].split(":")[0]
            feats = sorted(f for f in row[5].split("|") if f.split("=")[0] in UNIVERSAL)
            found.append({"head": int(row[6]), "rel": relation, "pos": row[3], "feats": feats, "lemma": row[2]})
        for place, word in enumerate(found, start=1):
            word["functions"] = [
                (j, other["rel"], other["pos"], other["feats"])
                for j, other in enumerate(found)
                if other["head"] == place and other["rel"] in FUNCTIONAL
            ]
        return found

    counts = {measure: [0, 0, 0] for measure in MEASURES}
    for ours, theirs in zip(gold, system, strict=True):
        for a, b in zip(words(ours), words(theirs), strict=True):
            content = a["rel"] in CONTENT
            lemmas = a["lemma"] in ("_", b["lemma"])
            arc = a["head"] == b["head"]
            labeled = arc and a["rel"] == b["rel"]
            morphology = a["pos"] == b["pos"] and a["feats"] == b["feats"] and a["functions"] == b["functions"]
            hits = (
                arc,
                labeled,
                labeled and content,
                labeled and content and morphology,
                labeled and content and lemmas,
            )
            for m, (measure, hit) in enumerate(zip(MEASURES, hits, strict=True)):
                counts[measure][0] += hit
                counts[measure][1] += m < 2 or content
                counts[measure][2] += m < 2 or b["rel"] in CONTENT
    return counts


def bank(path, sentences):
    path.write_text("".join("\n".join("\t".join(row) for row in rows) + "\n\n" for rows in sentences))
    return read_treebank(path)


def test_counts_are_those_of_the_definitions(tmp_path):
    rng = np.random.default_rng(0)
    gold = [made(rng) for _ in range(60)]
    system = [made(rng, rows) for rows in gold]
    scores = evaluate(bank(tmp_path / "g", gold), bank(tmp_path / "s", system))
    for measure, (right, ours, theirs) in twin(gold, system).items():
        assert scores[measure] == pytest.approx(2 * right / (ours + theirs)), measure
    assert 0 < scores["MLAS"] < scores["CLAS"] < 1
    assert scores["LAS"] <= scores["UAS"] == scores.uas
    interval = scores.interval("LAS")
    assert interval.low < scores.las < interval.high
    assert scores.as_dict()["sentences"] == 60


def test_a_treebank_agrees_with_itself(tmp_path):
    rng = np.random.default_rng(1)
    own = bank(
        tmp_path / "g", [[["1", "w0", "a", "X", "_", "_", "0", "root", "_", "_"]], *(made(rng) for _ in range(9))]
    )
    scores = evaluate(own, own)
    assert [scores[measure] for measure in MEASURES] == [1.0] * 5
    assert scores.exact == 1.0


def test_other_words_are_refused(tmp_path):
    rows = [["1", "w", "a", "X", "_", "_", "0", "root", "_", "_"]]
    other = [[rows[0][0], "v", *rows[0][2:]]]
    with pytest.raises(ValueError, match=r"g, line 1: the word 'w' is 'v' in .*h, line 1"):
        evaluate(bank(tmp_path / "g", [rows]), bank(tmp_path / "h", [other]))
    with pytest.raises(ValueError, match="gold has 1 sentences with 1 tokens, and the predictions have 2 with 2"):
        evaluate(bank(tmp_path / "g", [rows]), bank(tmp_path / "h", [rows, rows]))


def test_heads_that_are_no_tree_are_refused(tmp_path):
    rows = [[str(j), "w", "_", "X", "_", "_", head, "dep", "_", "_"] for j, head in ((1, "0"), (2, "1"), (3, "2"))]
    gold = bank(tmp_path / "g", [rows[:1], rows])
    for heads in (("3", "1", "2"), ("2", "1", "0")):
        wrong = [[*row[:6], head, *row[7:]] for row, head in zip(rows, heads, strict=True)]
        system = bank(tmp_path / "s", [rows[:1], wrong])
        for pair in ((gold, system), (system, gold)):
            with pytest.raises(FileError, match=r"s, line [345]: from here the heads lead around in a circle, not to"):
                evaluate(*pair)
    several = bank(tmp_path / "r", [rows[:1], [[*row[:6], "0", *row[7:]] for row in rows]])
    assert evaluate(gold, several).uas == 0.5


def test_scores_of_trees_without_relations(tmp_path):
    rows = [["1", "w", "_", "X", "_", "_", "0", "root", "_", "_"]]
    gold, bare = bank(tmp_path / "g", [rows]), bank(tmp_path / "s", [[[*rows[0][:7], "_", "_", "_"]]])
    for pair, what in (((gold, bare), "predicted"), ((bare, gold), "gold")):
        with pytest.warns(UserWarning, match=f"the {what} trees have no relations"):
            assert evaluate(*pair).uas == 1.0
