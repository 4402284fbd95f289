"""Bitexts on disk: the same models as in memory, and errors that name the file."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest

from maxmargin.datasets import shard_file
from maxmargin.execution import Ray, Serial, ShardError
from maxmargin.solvers import Checkpoint, CheckpointError
from maxmargin.tasks.alignment import AlignerSettings, ShardedBitext, bootstrap_aligner, load_corpus, train_aligner
from maxmargin.tasks.alignment.io.compact import CompactPairs, read_compact
from maxmargin.tasks.alignment.translation import models, passes, sharded_bitext
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import PreparedBitext
from maxmargin.tasks.alignment.translation.passes import BitextPasses, MergedLexicon
from maxmargin.tasks.alignment.translation.words import DistinctWords, IndexedBitext, fingerprints

CORPUS = load_corpus()
LONG = ["w"] * 201


@pytest.fixture
def files(tmp_path):
    """The corpus twice, with a long pair and an empty one in between."""
    source, target = [*CORPUS.source, LONG, [], *CORPUS.source], [*CORPUS.target, LONG, [], *CORPUS.target]
    with gzip.open(tmp_path / "source.gz", "wt", encoding="utf-8") as file:
        file.writelines(" ".join(words) + "\n" for words in source)
    (tmp_path / "target").write_text("".join(" ".join(words) + "\n" for words in target), encoding="utf-8")
    return tmp_path / "source.gz", tmp_path / "target"


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks, and so several shards, of a small text."""
    monkeypatch.setattr(passes, "BLOCK_CELLS", 1 << 10)
    monkeypatch.setattr(models, "JUMP_PAIRS", 50)


def assert_same(one, two):
    first, second = one.state(), two.state()
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def learned(bitext, executor=None, max_entries=None):
    if isinstance(bitext, CompactPairs):
        return BitextModels.learn(
            bitext.source, bitext.target, model1_iterations=2, hmm_iterations=2, executor=executor
        )
    passes = bitext.passes(executor, max_entries)
    return BitextModels.of(passes, bitext.seen_by(passes), 2, 2)


def test_files_give_the_pairs_of_the_text(files, tmp_path, small_blocks):
    whole = read_compact(*files)
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=20)
    assert len(sharded) == len(whole)
    assert len(sharded.shards) > 3
    assert all(shard.pairs == 20 for shard in sharded.shards[:-1])
    for some in (list(sharded), [sharded[at] for at in range(len(sharded))], sharded[:]):
        assert [(pair.source, pair.target) for pair in some] == [(pair.source, pair.target) for pair in whole]
    assert sharded[-1].source == whole[-1].source
    np.testing.assert_array_equal(sharded.sizes, whole.sizes)
    np.testing.assert_array_equal(sharded.fingerprints, fingerprints(whole.source, whole.target))
    more = sharded.extended([*whole[:1], whole[3]])
    assert len(more) == len(sharded) + 2
    assert more[-1].source == whole[3].source
    assert f"{len(sharded.shards)} shards" in repr(sharded)


def test_models_of_one_file_are_those_of_memory(files, tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr("maxmargin.tasks.alignment.translation.cooccurrences.LARGE", 50)
    sharded = ShardedBitext.build(tmp_path / "made", *files)
    assert len(sharded.shards) == 1
    assert_same(learned(sharded), learned(read_compact(*files)))


def test_shards_of_an_executor(files, tmp_path, small_blocks, monkeypatch):
    """Sums are taken in another order: nearly the same, whether the text is in memory or in files."""
    monkeypatch.setattr(models, "JUMP_PAIRS", 1 << 15)
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=30)
    one = learned(read_compact(*files))
    for bitext, executor in ((sharded, None), (sharded, Serial(shards=3)), (read_compact(*files), Serial(shards=3))):
        two = learned(bitext, executor)
        np.testing.assert_array_equal(one.words.cooccurrences.column, two.words.cooccurrences.column)
        np.testing.assert_allclose(one.words.hmm.word, two.words.hmm.word, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(one.words.jumps, two.words.jumps, rtol=1e-4)


def test_shards_begin_within_files(files, tmp_path, monkeypatch):
    """One file is shared by several workers, by the word pairs of its blocks."""
    monkeypatch.setattr(sharded_bitext, "_BLOCK", 4)
    sharded = ShardedBitext.build(tmp_path / "made", *files)
    assert len(sharded.shards) == 1
    parts = BitextPasses(DistinctWords(sharded.words), sharded._texts(3), Serial(shards=3))._session.source.parts
    assert len(parts) == 3
    assert max(parts) < 1.2 * min(parts)
    one, two = learned(sharded), learned(sharded, Serial(shards=3))
    np.testing.assert_array_equal(one.words.cooccurrences.counts, two.words.cooccurrences.counts)
    np.testing.assert_allclose(one.words.hmm.word, two.words.hmm.word, rtol=1e-3, atol=1e-6)


def test_pairs_that_are_added_stay_in_memory(files, tmp_path):
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=30)
    more = [sharded[3], type(sharded[0])(["quite", "new"], ["tout", "nouveau"])]
    one, two = learned(sharded.extended(more)), learned(read_compact(*files).extended(more))
    np.testing.assert_array_equal(one.words.cooccurrences.counts, two.words.cooccurrences.counts)
    np.testing.assert_allclose(one.words.hmm.word, two.words.hmm.word, rtol=1e-3, atol=1e-6)


def test_entries_that_do_not_fit_are_dropped(files, tmp_path, small_blocks):
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=30)
    whole = PreparedBitext(sharded.passes()).cooccurrences
    most = whole.n_entries // 2
    with pytest.warns(UserWarning, match=rf"more than the {most:,} co-occurrences .*--max-entries"):
        found = learned(sharded, max_entries=most).words.cooccurrences
    assert found.n_entries <= most
    assert set(found.names(np.arange(found.n_entries))) < set(whole.names(np.arange(whole.n_entries)))
    assert (np.diff(found.row_start) > 0).all()
    assert len(np.unique(found.column)) == len(found.target)


def test_the_least_associated_are_dropped():
    """Words that occur 100 times and meet once, but not words that occur once."""
    start, column, together = np.array([0, 2, 4]), np.array([0, 1, 0, 2], dtype=np.int32), np.array([50, 1, 1, 1])
    merged = MergedLexicon((np.array([100, 1]), np.array([100, 100, 1])), 3)
    merged.add((start, column, together.astype(np.int32)))
    (rows, columns, counts), least = merged.whole()
    assert (rows.tolist(), columns.tolist(), counts.tolist()) == ([0, 2, 3], [0, 1, 2], [50, 1, 1])
    assert least > 0.01


def test_no_text(tmp_path):
    (tmp_path / "empty").write_text("")
    sharded = ShardedBitext.build(tmp_path / "made", tmp_path / "empty")
    assert len(sharded) == 0
    assert list(sharded) == []
    assert learned(sharded).n_pairs == 0
    assert PreparedBitext(BitextPasses.of(IndexedBitext.of([], []), Serial(shards=2))).cooccurrences.n_entries == 0


def test_an_aligner_learns_from_a_folder(files, tmp_path):
    sharded = ShardedBitext.build(tmp_path / "made", *files)
    settings = AlignerSettings(frequent_pairs=10)
    one, two = (bootstrap_aligner(bitext, settings, n_pairs=20) for bitext in (sharded, read_compact(*files)))
    np.testing.assert_array_equal(one.weights, two.weights)
    sharded = ShardedBitext.build(tmp_path / "more", *files, shard_pairs=30)
    fixed = AlignerSettings(frequent_pairs=10, C=0.1, false_negative=1.0, folds=0)
    annotated = list(CORPUS)[:20], CORPUS.references[:20]
    one, two = (train_aligner(*annotated, fixed, bitext=bitext) for bitext in (sharded, read_compact(*files)))
    np.testing.assert_allclose(one.weights, two.weights, rtol=0.02, atol=0.02)


class TestFolders:
    @pytest.fixture
    def made(self, files, tmp_path, small_blocks):
        ShardedBitext.build(tmp_path / "made", *files, shard_pairs=30)
        return tmp_path / "made"

    def test_are_replaced_only_if_that_is_asked_for(self, made, files):
        with pytest.raises(ValueError, match="has a bitext"):
            ShardedBitext.build(made, *files)
        assert len(ShardedBitext.build(made, *files, overwrite=True).shards) == 1
        assert len(list(made.iterdir())) == 3

    def test_with_other_files_are_left_alone(self, made, files):
        (made / "thesis.txt").write_text("no copy")
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="has other files"):
                ShardedBitext.build(made, *files, overwrite=overwrite)
            with pytest.raises(ValueError, match="is not a folder; give the name of a folder"):
                ShardedBitext.build(files[0], *files, overwrite=overwrite)

    @pytest.mark.parametrize("name", ["000001.shard", "words.shard"])
    def test_that_are_damaged_name_the_file(self, made, name):
        data = bytearray((made / name).read_bytes())
        data[-70] ^= 1
        (made / name).write_bytes(data)
        with pytest.raises(ShardError, match=rf"{name} is damaged"):
            learned(ShardedBitext(made))
        (made / name).unlink()
        with pytest.raises(ShardError, match=rf"{name} is missing"):
            learned(ShardedBitext(made))

    def test_without_an_index_were_not_completed(self, made):
        (made / "index.json").unlink()
        with pytest.raises(ShardError, match="not completed"):
            ShardedBitext(made)

    @pytest.mark.parametrize("change", [{"format": 9}, {"kind": "chain"}, {"pairs": 3}, {"format": None}])
    def test_with_another_index_are_refused(self, made, change):
        index = json.loads((made / "index.json").read_text())
        (made / "index.json").write_text(json.dumps({**index, **change}))
        with pytest.raises(ShardError, match=r"index\.json"):
            ShardedBitext(made)

    def test_can_be_moved(self, made, tmp_path):
        one = learned(ShardedBitext(made))
        shutil.move(made, tmp_path / "elsewhere")
        assert_same(one, learned(ShardedBitext(tmp_path / "elsewhere")))


@pytest.mark.usefixtures("local_ray")
def test_ray_gives_the_bits_of_serial(files, tmp_path, monkeypatch):
    """From files, which workers share, and from memory."""
    monkeypatch.setattr(sharded_bitext, "_BLOCK", 4)
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=30)
    workers = Ray(workers=2, threads=1)
    for bitext in (sharded, read_compact(*files)):
        with monkeypatch.context() as patch:
            patch.setattr(shard_file, "_mapped", None)  # this process opens no file
            found = learned(bitext, workers)
        assert_same(found, learned(bitext, Serial(shards=2)))


class Killed(Exception):
    """The end of a process."""


@pytest.mark.usefixtures("local_ray")
def test_learning_that_is_cut_resumes(tmp_path):
    """From files and from memory, in shards here and on Ray: after a cut in each model, the tables of one run."""
    for side in ("source", "target"):
        lines = getattr(CORPUS, side)[:40]
        (tmp_path / side).write_text("".join(" ".join(words) + "\n" for words in lines), encoding="utf-8")
    files = tmp_path / "source", tmp_path / "target"
    sharded = ShardedBitext.build(tmp_path / "made", *files, shard_pairs=8)
    given, workers = {"sharded": sharded, "memory": read_compact(*files)}, Ray(workers=2, threads=1)

    def learn(name, executor, cut=None):
        bitext, done = given[name], []

        def count(model, iteration):
            done.append(model)
            if cut is not None and len(done) == cut:
                raise Killed

        passes = (
            bitext.passes(executor)
            if name == "sharded"
            else BitextPasses.of(IndexedBitext.of(bitext.source, bitext.target), executor)
        )
        seen = bitext.fingerprints if name == "sharded" else fingerprints(bitext.source, bitext.target)
        checkpoint = None if cut is None else Checkpoint(tmp_path / name, every=0.0)
        return BitextModels.of(passes, seen, 2, 2, count, checkpoint)

    for name in given:
        whole = learn(name, Serial(shards=2))
        for executor, cut in ((workers, 3), (Serial(shards=2), 7), (workers, 11)):
            with pytest.raises(Killed):
                learn(name, executor, cut)
        assert_same(learn(name, workers, 99), whole)
        with pytest.raises(CheckpointError, match="of another bitext, with other settings or"):
            learn(name, Serial(shards=3), 99)
