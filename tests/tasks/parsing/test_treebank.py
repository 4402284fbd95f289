"""Treebanks in CoNLL-U: what is read, what is written back, what is refused."""

import gzip
import io

import numpy as np
import pytest
from banks import conllu

from maxmargin.tasks.parsing.io.treebank import FileError, Treebank, read_treebank, write_treebank

TEXT = (
    "# sent_id = 1\n# text = Don't go\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t_\t_\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n"
    "2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t3:nsubj\t_\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No\n\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"
)


def test_heads_and_relations(tmp_path):
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    bank = read_treebank(path)
    assert (len(bank), bank.n_tokens, bank.lengths.tolist()) == (2, 4, [3, 1])
    (heads, relations), (alone, root) = bank.trees()
    assert heads.tolist() == [3, 3, 0]
    assert relations == ["aux", "advmod", "root"]
    assert alone.tolist() == [0]
    assert root == ["root"]
    assert bank.part(1, 2).trees()[0][1] == ["root"]


def test_written_back_with_other_trees(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(TEXT)
    bank = read_treebank(path)
    same, out = io.BytesIO(), tmp_path / "b.conllu"
    write_treebank(bank, bank.heads, bank.relations, out=same)
    assert same.getvalue().decode() == TEXT
    write_treebank(bank, np.array([0, 1, 2, 0]), (np.array([0, 1, 1, 0], dtype=np.int32), ["root", "dep:x"]), out=out)
    again = read_treebank(out)
    assert again.heads.tolist() == [0, 1, 2, 0]
    assert again.trees()[0][1] == ["root", "dep:x", "dep:x"]
    assert out.read_text().replace("1\tdep:x", "3\tadvmod").count("\n") == TEXT.count("\n")
    with pytest.raises(ValueError, match="4 tokens, and 1 heads"):
        write_treebank(bank, np.zeros(1, dtype=np.int64), bank.relations, out=same)


def test_objects_of_the_package(tmp_path):
    rows = [{"id": 1, "form": "Go", "head": 0, "deprel": "root"}, {"id": 2, "form": "on", "head": 1, "deprel": "prt"}]
    bank, out = Treebank.of([rows, rows[:1]]), io.BytesIO()
    write_treebank(bank, bank.heads, bank.relations, out=out)
    (tmp_path / "c.conllu").write_bytes(out.getvalue())
    again = read_treebank(tmp_path / "c.conllu")
    assert again.heads.tolist() == [0, 1, 0]
    assert again.table.cells(1) == ["Go", "on", "Go"]


@pytest.mark.parametrize(
    ("line", "changed", "message"),
    [
        ("2\tn't", "3\tn't", "line 5: a token has the number '3' instead of 2"),
        ("\t3\taux", "\t4\taux", "line 4: the head '4' is not one of the other tokens, 1 to 3"),
        ("\t3\taux", "\t1\taux", "line 4: the head '1' is not"),
        ("\t3\taux", "\t_\taux", "line 4: the head '_' is not .* give a file with trees"),
        ("\t3\taux", f"\t{10**19}\taux", "line 4: the head '1000"),
        ("2\tn't", f"{10**19}\tn't", "line 5: a token has the number '1000"),
        ("\tVB\tMood=Imp", "", "line 4: "),
    ],
)
def test_bad_files(tmp_path, line, changed, message):
    path = tmp_path / "bad.conllu"
    path.write_text(TEXT.replace(line, changed))
    with pytest.raises(FileError, match=f"bad.conllu, {message}"):
        read_treebank(path).trees()


def test_files_without_tokens(tmp_path):
    for text in ("", "# only a comment\n\n"):
        (tmp_path / "none.conllu").write_text(text)
        with pytest.raises(FileError, match="no tokens"):
            read_treebank(tmp_path / "none.conllu")


def test_made_up_sentences_are_trees(tmp_path):
    (tmp_path / "d.conllu").write_text(conllu(30))
    bank = read_treebank(tmp_path / "d.conllu")
    assert len(bank) == 30
    assert all((heads == 0).sum() == 1 for heads, _ in bank.trees())


@pytest.mark.parametrize(
    ("heads", "codes", "names", "message"),
    [
        ([3, 3, 4, 0], [0] * 4, ["x"], "line 7: the head 4 is not one of the other tokens, 1 to 3, or 0 for the root"),
        ([3, 2, 0, 0], [0] * 4, ["x"], "line 5: the head 2 is not one of the other tokens"),
        ([3, 3, -1, 0], [0] * 4, ["x"], "line 7: the head -1"),
        ([3, 3, 0, 1], [0] * 4, ["x"], "line 9: the head 1 is not one of the other tokens, 1 to 1"),
        ([3.0, 3.0, 0.0, 0.0], [0] * 4, ["x"], "heads must be integers"),
        ([3, 3, 0, 0], [0, 1, 0, 0], ["x"], "line 5: the relation 1 has no name, as there are 1"),
        ([3, 3, 0, 0], [0] * 4, ["a b"], "a relation must be a text without spaces, got 'a b'; use _ for none"),
        ([3, 3, 0, 0], [0] * 4, [""], "a relation must be a text without spaces"),
        ([3, 3, 0, 0], [0] * 4, [7], "a relation must be a text without spaces"),
        ([3, 3, 0, 0], [0] * 3, ["x"], "there are 4 tokens, and 4 heads and 3 relations"),
    ],
)
def test_trees_that_a_file_cannot_hold(tmp_path, heads, codes, names, message):
    path, out = tmp_path / "a.conllu", tmp_path / "b.conllu"
    path.write_text(TEXT)
    with pytest.raises(ValueError, match=message):
        write_treebank(read_treebank(path), np.array(heads), (np.array(codes, dtype=np.int32), names), out=out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("token", "name"), [({"form": "a\tb"}, "word"), ({"form": ""}, "word"), ({"lemma": "a\n"}, "lemma")]
)
def test_cells_that_a_file_cannot_hold(token, name):
    rows = [{"form": "Go", "head": 0, "deprel": "root"}, {"form": "on", "head": 1, "deprel": "prt", **token}]
    bank = Treebank.of([rows])
    with pytest.raises(ValueError, match=f"sentence 0, token 1: {name} is .* and a cell of CoNLL-U is not empty"):
        write_treebank(bank, bank.heads, bank.relations, out=io.BytesIO())
