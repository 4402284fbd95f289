"""Gazetteers: matches against a slow search, files, model files, and taggers that use them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.tagging import FileError, SequenceTagger, TokenTable
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Gazetteers


def slow(entries: list[str], name: str, sentence: list[str]) -> list[str]:
    """Return the cells of a sentence by comparing every entry with every place."""
    matches = []
    for start in range(len(sentence)):
        for other_case in (False, True):
            best: tuple[int, str] | None = None
            for entry in entries:
                text, _, label = entry.partition("\t")
                words, here = text.split(), sentence[start:]
                if other_case:
                    words, here = [word.lower() for word in words], [word.lower() for word in here]
                if here[: len(words)] == words and (best is None or len(words) > best[0]):
                    best = len(words), f"{name}/{label}" if label else name
            if best is not None:
                matches.append((best[0], not other_case, -start, best[1]))
    cells = [""] * len(sentence)
    for length, exact, start, value in sorted(matches, key=lambda match: match[:3]):
        for place in range(length):
            letter = "S" if length == 1 else "B" if place == 0 else "E" if place == length - 1 else "I"
            cells[place - start] = f"{value}:{letter if exact else letter.lower()}"
    return cells


def cells(found: Gazetteers, sentences: list[list[str]]) -> list[list[list[str]]]:
    table = TokenTable.of_lists(sentences, ["word"])
    table = found.columns(table, [f"new:{name}" for name in found.names], source="word")
    return [table.by_sentence(1 + at) for at in range(len(found.names))]


@pytest.mark.parametrize("seed", range(8))
def test_matches_are_those_of_a_slow_search(seed):
    rng = np.random.default_rng(seed)
    words = ["a", "b", "c", "A", "B", "d"]

    def some(n: int, most: int) -> list[list[str]]:
        return [[words[k] for k in rng.integers(len(words), size=rng.integers(1, most))] for _ in range(n)]

    lists = {
        name: [" ".join(entry) + str(rng.choice(["", "\tX", "\tY"])) for entry in some(5, 4)] for name in ("one", "two")
    }
    sentences = [*some(15, 9), []]
    found = cells(Gazetteers.read(lists), sentences)
    for at, (name, entries) in enumerate(lists.items()):
        assert found[at] == [slow(entries, name, sentence) for sentence in sentences]


def test_cells_of_matches():
    lists = Gazetteers.read({"place": ["New York", "York", "san marino\tLOC", "", "  "]})
    sentence = ["In", "New", "York", ",", "York", "and", "San", "Marino", "NEW", "YORK", "york"]
    assert cells(lists, [sentence])[0][0] == [
        *("", "place:B", "place:E", "", "place:S", "", "place/LOC:b", "place/LOC:e", "place:b", "place:e", "place:s")
    ]


def test_files(tmp_path):
    plain, packed = tmp_path / "cities.of.europe.txt", tmp_path / "people.gz"
    plain.write_text("Rome\nNew  York\n\n")
    packed.write_bytes(gzip.compress(b"Anna\tPER\n"))
    found = Gazetteers.read([plain, f"who={packed}"])
    assert found.names == ("cities", "who")
    assert cells(found, [["Anna", "Rome"]]) == [[["", "cities:S"]], [["who/PER:S", ""]]]
    assert Gazetteers.read(str(plain)).names == ("cities",)
    assert repr(found).startswith("Gazetteers(cities: 2, who: 1; ")
    again = Gazetteers.from_state(found.state())
    assert (again.names, again.digest) == (found.names, found.digest)
    assert Gazetteers.read({"who": ["Anna"]}).digest != Gazetteers.read({"who": ["Ana"]}).digest


def test_bad_gazetteers_are_refused(tmp_path):
    (tmp_path / "good").write_text("Rome\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bad").write_text("Rome\nOslo\ta city\n")
    with pytest.raises(FileError, match="gazetteer empty: it has no entries"):
        Gazetteers.read(tmp_path / "empty")
    with pytest.raises(FileError, match="gazetteer bad: line 2: the label 'a city' is not one word"):
        Gazetteers.read([tmp_path / "bad"])
    with pytest.raises(FileError, match="check the name of the file"):
        Gazetteers.read([tmp_path / "none"])
    with pytest.raises(ValueError, match="two gazetteers are called 'a'"):
        Gazetteers.read([f"a={tmp_path / 'good'}", f"a={tmp_path / 'good'}"])
    with pytest.raises(ValueError, match="must be a word without ':' and '/', got 'a:b'"):
        Gazetteers.read({"a:b": ["x"]})
    with pytest.raises(ValueError, match="a gazetteer must be a file, as FILE or NAME=FILE, got 3"):
        Gazetteers.read([3])
    with pytest.raises(ValueError, match="gazetteer 'a', entry 0: expected a string, got 3"):
        Gazetteers.read({"a": [3]})
    with pytest.raises(ValueError, match="gazetteer 'a': expected a file or entries, got 3"):
        Gazetteers.read({"a": 3})


@pytest.mark.parametrize("key", ["gazetteer_0_cells", "gazetteer_0_ends", "gazetteer_0_labels", "gazetteer_labels"])
def test_damaged_model_files_are_refused(key):
    state = Gazetteers.read({"a": ["x y", "z"]}).state()
    state[key] = state[key][1:]
    with pytest.raises(ValueError, match="save the model again"):
        Gazetteers.from_state(state)


TOWNS = ["Avola", "Bergen", "Cadiz", "Delft", "Essen", "Fano", "Gouda", "Hull"]
X = [["we", "saw", town, "again"] for town in TOWNS] + [["we", "saw", name, "again"] for name in ("Ida", "Jo", "Kim")]
Y = [["O", "O", "B-LOC", "O"]] * len(TOWNS) + [["O", "O", "B-PER", "O"]] * 3


@pytest.mark.parametrize("preset", ["ner", "pos", None])
def test_taggers_find_what_only_a_gazetteer_knows(preset, tmp_path):
    lists = {"towns": [*TOWNS, "Vigo"], "people": ["Ida", "Jo", "Kim", "Lea"]}
    tagger = SequenceTagger(preset=preset, gazetteers=lists).fit(X, Y)
    new = [["we", "saw", "Vigo", "again"], ["we", "saw", "Lea", "again"]]
    assert tagger.predict(new) == [["O", "O", "B-LOC", "O"], ["O", "O", "B-PER", "O"]]
    tagger.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(new) == tagger.predict(new)
    assert any("towns:S" in name for name in tagger.attributes_)


def test_gazetteers_that_nothing_uses_are_refused():
    with pytest.raises(ValueError, match="the template does not use them; add the lines '!gazetteer listed word'"):
        SequenceTagger(template="U:%x[0,word]", gazetteers={"a": ["x"]}).fit(X, Y)
    with pytest.raises(ValueError, match="attributes of tokens cannot use gazetteers"):
        SequenceTagger(gazetteers={"a": ["x"]}).fit([[{"w": word} for word in words] for words in X], Y)
    with pytest.raises(ValueError, match="matrices cannot use gazetteers"):
        SequenceTagger(gazetteers={"a": ["x"]}).fit([np.ones((4, 2))] * len(X), Y)
    # Without gazetteers, lines that use them are left out.
    template = "!gazetteer listed word\nU0:%x[0,word]\nU1:%filled[0,listed]"
    tagger = SequenceTagger(template=template).fit(X, Y)
    assert all(name.startswith("U0") for name in tagger.attributes_)


def test_gazetteers_and_text_do_not_stay_in_a_model_and_cannot_be_added(tmp_path):
    X, y = [["in", "Rome"], ["to", "Oslo"]] * 6, [["O", "B-LOC"]] * 12
    lists, text = {"towns": ["Rome", "Oslo"]}, [["to", "Rome"], ["in", "Oslo"]]
    tagger = SequenceTagger(preset="ner", C=0.1, gazetteers=lists, text=text, folds=0).partial_fit(X, y)
    assert (tagger.model_.encoder.gazetteers, tagger.model_.encoder.text) == (None, None)
    before = tagger.model_
    assert tagger.partial_fit(X, y).model_ is not before  # the settings are those of the first call
    tagger.save(tmp_path / "model")
    for name, new in (("gazetteers", {"rivers": ["Po"]}), ("text", [["a", "b"]])):
        with pytest.raises(ValueError, match=f"{name} cannot be added to a trained model"):
            SequenceTagger.load(tmp_path / "model", **{name: new}).partial_fit(X, y)
        kept = tagger.get_params()[name]
        with pytest.raises(ValueError, match=f"leave {name} out, or train a new model with fit"):
            tagger.set_params(**{name: new}).partial_fit(X, y)
        tagger.set_params(**{name: kept})
