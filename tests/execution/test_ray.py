"""Ray on this machine, two workers: the same bits as Serial on the same shards, whatever happens to the workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import failed
from commands import run as command
from problems import make, rebuilt, run

import maxmargin as mm
from maxmargin import model_file
from maxmargin.datasets import shard_file
from maxmargin.execution import HeldPieces, Piece, PieceSource, Ray, Serial, ShardedProblem, ShardError
from maxmargin.execution import ray as ray_execution
from maxmargin.solvers import Checkpoint, Solver, solve

pytest.importorskip("ray", reason="Ray is not installed")

SOLVERS: list[Solver] = [
    mm.DualExtragradient(store_duals=False, warm_starts=False),
    mm.DualExtragradient(),
    mm.Extragradient(geometry=mm.Euclidean()),
    mm.ProjectedGradient(),
    mm.ProjectedSubgradient(),
    mm.SimplicialDecomposition(),
    mm.CuttingPlane(),
]


@pytest.fixture(scope="module")
def two(local_ray: Any) -> Iterator[Ray]:
    local_ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
    executor = Ray(workers=2, threads=1)
    yield executor
    executor.idle.actors.clear()


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.certificate == other.certificate
    assert one.counters == other.counters


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_the_same_bits_as_serial(two: Ray, solver: Solver) -> None:
    problem = rebuilt(make("chain", n=8), example_weight=np.arange(1.0, 9.0))
    same(*(run(problem, solver, max_iter=15, executor=executor) for executor in (two, Serial(shards=2))))


@pytest.mark.parametrize("kind", ["matching", "cut", "tree", "lattice", "clique-network"])
def test_the_same_bits_on_other_structures(two: Ray, kind: str) -> None:
    problem = make(kind, n=6)
    for solver in (mm.DualExtragradient(store_duals=False), mm.SimplicialDecomposition()):
        same(*(run(problem, solver, max_iter=8, executor=executor) for executor in (two, Serial(shards=2))))


def test_column_generation_gives_the_same_bits(two: Ray) -> None:
    problem = make("chain", n=6, region={"l1": np.inf, "C": 0.5})
    same(*(run(problem, mm.ColumnGeneration(), max_iter=20, executor=executor) for executor in (two, Serial(shards=2))))


class Files(PieceSource):
    """Pieces that the workers read from files; the process ``never`` does not."""

    never = 0

    def __init__(self, folder: Path, problem: Any, count: int) -> None:
        import pickle

        held = HeldPieces.of(problem, None, count)
        self.folder, self.examples, self.parts = folder, held.examples, held.parts
        for number, piece in enumerate(held.held):
            (folder / str(number)).write_bytes(pickle.dumps(piece))

    def open(self, number: int) -> Piece:
        import pickle

        path = self.folder / str(number)
        assert os.getpid() != self.never
        if not path.exists():
            raise ShardError(f"{path}: this shard is missing; build the data again")
        return pickle.loads(path.read_bytes())


def test_pieces_from_files_and_a_file_that_goes_missing(two: Ray, tmp_path: Path) -> None:
    problem = make("chain", n=8)
    sharded = ShardedProblem(Files(tmp_path, problem, 4))
    solver = mm.DualExtragradient(store_duals=False, warm_starts=False)
    same(*(run(sharded, solver, max_iter=10, executor=executor) for executor in (two, Serial(shards=2))))
    here = [Serial(shards=2).open(sharded.source), two.open(sharded.source)]
    prints = [sharded.over(session).fingerprint() for session in here]
    assert prints[0] == prints[1]
    sharded = replace(sharded, like=problem.select([]))
    sharded.source.never = os.getpid()
    run(sharded, solver, max_iter=2, executor=two, checkpoint=Checkpoint(tmp_path / "run"))
    sharded.source.never = 0
    (tmp_path / "3").unlink()
    with pytest.raises(ShardError, match=r"3: this shard is missing; build the data again"):
        solve(sharded, solver, two)


def _kill_workers(monkeypatch: pytest.MonkeyPatch, at: set[int]) -> None:
    """Kill the worker of the answer with such a number, while it works."""
    import ray

    answer, count = ray_execution._RaySession._answer, [0]

    def killing(self: Any, place: Any, *rest: Any) -> Any:
        count[0] += 1
        if count[0] in at:
            ray.kill(place.actor)
        return answer(self, place, *rest)

    monkeypatch.setattr(ray_execution._RaySession, "_answer", killing)


@pytest.mark.parametrize("solver", [SOLVERS[0], SOLVERS[2]], ids=["nothing kept", "points kept"])
def test_workers_that_are_killed_change_nothing(two: Ray, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make("matching", n=8)
    monkeypatch.setattr(ray_execution, "SNAPSHOT", 3)
    _kill_workers(monkeypatch, {9, 18})
    same(*(run(problem, solver, max_iter=8, executor=executor) for executor in (two, Serial(shards=2))))


class Cut(Exception):
    """The end of a process."""


def _cut(at: int) -> Any:
    def callback(record: Any) -> None:
        if record.iteration >= at:
            raise Cut

    return callback


SAVED: list[Solver] = [*SOLVERS, mm.BlockFrankWolfe(), mm.Mira()]


@pytest.mark.parametrize("solver", SAVED, ids=lambda solver: type(solver).__name__)
def test_killed_workers_and_a_killed_run(
    two: Ray, solver: Solver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Workers are killed twice, then the run; it resumes here, is cut again, and resumes on Ray with the same bits."""
    problem, serial = make("matching", n=8, region={"C": 5.0}), Serial(shards=2)

    def saved(path: str, executor: Any, *callbacks: Any) -> Any:
        given = {"max_iter": 14, "tol": 1e-9, "random_state": 0, "callbacks": [lambda record: None, *callbacks]}
        return run(problem, solver, executor=executor, checkpoint=Checkpoint(tmp_path / path, every=0.0), **given)

    whole = saved("whole", serial)
    monkeypatch.setattr(ray_execution, "SNAPSHOT", 3)
    with monkeypatch.context() as patch:
        _kill_workers(patch, {9, 18})
        with pytest.raises(Cut):
            saved("cut", two, _cut(3))
    with pytest.raises(Cut):
        saved("cut", serial, _cut(5))
    same(saved("cut", two), whole)


def _dies(piece: Piece, memory: Any, folder: str, times: int) -> tuple[tuple[int], Any]:
    """End the process in the middle of a pass, so many times; or, if negative, never answer the first time."""
    done = len(os.listdir(folder))
    if piece.first > 0 and done < abs(times):
        Path(folder, str(done)).touch()
        if times > 0:
            os._exit(1)
        time.sleep(60)
    return ((memory or 0) + piece.problem.n_examples,), (memory or 0) + 1


def test_a_worker_that_dies_twice_in_a_pass_or_never_answers(tmp_path: Path, two: Ray) -> None:
    problem = make("chain", n=8)
    session = two.open(HeldPieces.of(problem, None, 2))
    assert session.sums(_dies, str(tmp_path), 0) == (8,)
    assert session.sums(_dies, str(tmp_path), 2) == (10,)
    assert session.memories() == [2, 2]
    session.close()
    patient = Ray(workers=2, threads=1, time_limit=20.0)
    session = patient.open(HeldPieces.of(problem, None, 2))
    assert session.sums(_dies, str(tmp_path), 0) == (8,)
    session.time_limit = 3.0
    assert session.sums(_dies, str(tmp_path), -3) == (10,)
    session.close()
    patient.idle.actors.clear()


def test_an_estimator_with_ray(two: Ray) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 4)) for _ in range(12)]
    y = [(x[:, :3] + 0.5 * rng.normal(size=(5, 3))).argmax(axis=1).tolist() for x in X]
    fits = [mm.ChainSVM(executor=executor, tol=1e-2).fit(X, y) for executor in (two, Serial(shards=2))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert "executor=Ray(workers=2, threads=1)" in repr(fits[0])


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="workers must be an integer >= 1, got 0"):
        Ray(workers=0)
    with pytest.raises(ValueError, match="time_limit must be"):
        Ray(time_limit=-1.0)
    with pytest.raises(ValueError, match="address must be that of a Ray cluster"):
        Ray(address=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="executor must be an executor such as"):
        mm.ChainSVM(executor=2).fit([np.zeros((1, 1))], [["a"]])


def test_which_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never one that somebody else has started on this machine, unless it is named."""
    import ray

    asked: list[Any] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **given: asked.append((given["address"], "num_cpus" in given)))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray_execution.connected(Ray())
    ray_execution.connected(Ray(address="auto"))
    monkeypatch.setenv("RAY_ADDRESS", "there:6379")
    ray_execution.connected(Ray())
    assert asked == [("local", True), ("auto", False), ("there:6379", False)]


def test_ray_is_not_imported_unless_it_is_used() -> None:
    script = "import sys, maxmargin as mm; mm.execution.Ray(workers=3); mm.ChainSVM(); assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_command_that_trains_on_ray(two: Ray, tmp_path: Path) -> None:
    words = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"] * 6
    tags = {"the": "D", "a": "D", "dog": "N", "cat": "N", "barks": "V", "sleeps": "V"}
    text = "\n\n".join("\n".join(f"{word}\t{tags[word]}" for word in line.split()) for line in words)
    (tmp_path / "train.tsv").write_text(text + "\n", encoding="utf-8")
    options = ["tag", "train", str(tmp_path / "train.tsv"), "--C", "1", "--folds", "0", "--json"]
    command(*options, "--out", str(tmp_path / "model"), "--ray", "local", "--workers", "2")
    model = mm.load(tmp_path / "model")
    assert model.predict([["the", "cat", "sleeps"]])[0] == ["D", "N", "V"]
    assert model.metadata["status"] == "converged"
    assert "--workers needs --ray" in failed(*options, "--out", str(tmp_path / "other"), "--workers", "2")


def _only_none(path: Path) -> memoryview:
    """What this process opens of a dataset while the workers open the rest."""
    assert path.name == "none.shard"
    return memoryview(path.read_bytes())


def test_datasets_are_opened_by_the_workers(two: Ray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of shards are mapped where the work is done, and nowhere else; a damaged one is named."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 7)), 3)) for _ in range(60)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    settings = {"C": 1.0, "solver": mm.DualExtragradient(store_duals=False, warm_starts=False), "tol": 0.01}
    dataset = mm.ChainSVM().build_dataset(tmp_path / "data", (X, y), shard_parts=150)
    assert len(dataset.shards) > 3
    serial = mm.ChainSVM(**settings, executor=Serial(shards=2)).fit(dataset)
    monkeypatch.setattr(shard_file, "_mapped", _only_none)
    np.testing.assert_array_equal(mm.ChainSVM(**settings, executor=two).fit(dataset).coef_, serial.coef_)
    file = dataset.folder / dataset.shards[-1].file
    good, checkpoint = file.read_bytes(), Checkpoint(tmp_path / "run", every=0.0)

    def fails(content: bytes | None) -> Any:
        def callback(record: Any) -> None:  # in the middle of a run
            if record.iteration == 4:
                file.unlink()
                if content is not None:
                    file.write_bytes(content)

        return callback

    for content, message in ((good[:-1] + b"\x07", "checksum"), (None, "missing|does not exist|no such file")):
        with pytest.raises(ShardError, match=rf"(?i){file.name}.*({message})"):
            mm.ChainSVM(**settings, executor=two, checkpoint=checkpoint, callbacks=[fails(content)]).fit(dataset)
        file.unlink(missing_ok=True)
        file.write_bytes(good)
        assert model_file.read(checkpoint.path)[0]["counters"]["iterations"] == 4
        if content is not None:
            checkpoint.remove()
    again = mm.ChainSVM(**settings, executor=two, checkpoint=checkpoint).fit(dataset)
    np.testing.assert_array_equal(again.coef_, serial.coef_)


WORDS = ["the", "house", "is", "big", "a", "book", "was", "small"]


def aligned(folder: Path, n: int = 12) -> tuple[Path, Path]:
    """Files of sentence pairs, words and their mirror images, and of their links."""
    rng = np.random.default_rng(0)
    sentences = [rng.choice(WORDS, size=4).tolist() for _ in range(n)]
    text, gold = folder / "pairs.txt", folder / "links.txt"
    text.write_text("".join(f"{' '.join(s)} ||| {' '.join(word[::-1] for word in s)}\n" for s in sentences))
    gold.write_text("0-0 1-1 2-2 3-3\n" * n)
    return text, gold


def test_align_train_on_ray(two: Ray, tmp_path: Path) -> None:
    """Translation models and weights have the bits of two shards here; so have those of annotated pairs in a folder."""
    from maxmargin.tasks.alignment import WordAligner
    from maxmargin.tasks.alignment.io.sentences import read_annotated
    from maxmargin.tasks.alignment.sharding import train_aligner_on
    from maxmargin.tasks.alignment.training import AlignerSettings

    text, gold = aligned(tmp_path)
    given: dict[str, Any] = {"C": 0.1, "false_negative": 2.0, "tol": 0.01, "rounds": 1}
    options = ["--C", "0.1", "--false-negative", "2", "--tol", "0.01", "--jobs", "1", "--json"]
    files = ["--source", str(text), "--gold", str(gold)]
    command("align", "train", *files, *options, "--out", str(tmp_path / "model"), "--ray", "local")
    serial = WordAligner(**{**given, "rounds": 2}, executor=Serial(shards=2)).fit(*read_annotated(text, None, gold))
    np.testing.assert_array_equal(mm.load(tmp_path / "model").weights, serial.coef_)
    how = WordAligner(**given)
    dataset = how.build_dataset(tmp_path / "data", read_annotated(text, None, gold), shard_parts=150, block_examples=3)
    assert len(dataset.shards) == 2
    one, other = (
        train_aligner_on(dataset, AlignerSettings(**given, executor=executor)) for executor in (two, Serial(shards=2))
    )
    np.testing.assert_array_equal(one.weights, other.weights)


def test_rerank_train_on_ray(two: Ray, tmp_path: Path) -> None:
    from maxmargin.tasks.reranking import Reranker

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(10)]
    gains = [x[:, 0] + 0.1 * rng.normal(size=4) for x in X]
    fits = [Reranker(C=1.0, folds=0, executor=executor).fit(X, gains) for executor in (two, Serial(shards=2))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    lines = [f"{i} ||| a ||| x= {row[0]:.3f} y= {row[1]:.3f}\n" for i, x in enumerate(X) for row in x]
    (tmp_path / "nbest").write_text("".join(lines))
    (tmp_path / "gains").write_text("".join(f"{gain:.3f}\n" for own in gains for gain in own))
    files = ["--nbest", str(tmp_path / "nbest"), "--metric", str(tmp_path / "gains")]
    options = [*files, "--C", "1", "--folds", "0", "--json", "--out", str(tmp_path / "model")]
    command("rerank", "train", *options, "--ray", "local", "--workers", "2")
    assert mm.load(tmp_path / "model").metadata["status"] == "converged"
    assert "mert tunes all lists in this process" in failed(
        "rerank", "train", *files, "--method", "mert", "--out", str(tmp_path / "model"), "--ray", "local"
    )


def test_segment_train_on_ray(two: Ray, tmp_path: Path) -> None:
    from maxmargin.tasks.segmentation import ScanSegmenter, write_scan
    from maxmargin.tasks.segmentation.drawings import drawn_scans

    scans, points = drawn_scans(3, points=300)
    for number, (scan, labels) in enumerate(zip(scans, points, strict=True)):
        write_scan(tmp_path / f"street{number}.ply", scan, labels)
    stages = ["--classifier", "linear", "--stages", "1", "--folds", "2", "--jobs", "1", "--json"]
    given = ["--scans", str(tmp_path), "--classes", "ground,tree,wall", "--voxel", "0.7", *stages]
    command("segment", "train", *given, "--out", str(tmp_path / "model"), "--ray", "local")
    assert mm.load(tmp_path / "model").metadata["status"] == "converged"
    quick: dict[str, Any] = {"voxel": 0.7, "classifier": "linear", "stages": 1, "folds": 2, "tol": 1e-2}
    dataset = ScanSegmenter(**quick).build_dataset(tmp_path / "data", (scans, points), shard_parts=2000)
    assert len(dataset.shards) > 1
    fits = [ScanSegmenter(**quick, executor=executor).fit(dataset) for executor in (two, Serial(shards=2))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.filterwarnings("ignore")
def test_ray_data(two: Ray, tmp_path: Path) -> None:
    """A source of examples, also from Parquet, and a table that predictions are added to."""
    data = pytest.importorskip("ray.data", reason="needs ray[data]")
    import pyarrow  # which Ray Data needs
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(20)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    svm = mm.ChainSVM(C=1.0, classes=["a", "b"])
    expected = svm.set_params(executor=two).fit(X, y)
    two.idle.actors.clear()  # they hold the processors that Ray Data waits for
    items = [{"number": i, "features": x.tolist(), "labels": own} for i, (x, own) in enumerate(zip(X, y, strict=True))]
    (tmp_path / "rows").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(items), tmp_path / "rows" / "0.parquet")
    rows = data.read_parquet(str(tmp_path / "rows")).materialize()
    order = [row["number"] for row in rows.take_all()]
    source = mm.datasets.ColumnSource(rows, "features", "labels", block_examples=9)
    dataset = svm.build_dataset(tmp_path / "data", source)
    found = svm.set_params(executor=None).fit(dataset).coef_
    np.testing.assert_array_equal(found, svm.fit([X[i] for i in order], [y[i] for i in order]).coef_)
    svm.save(tmp_path / "model")
    predictor = mm.BatchPredictor(tmp_path / "model", input="features")
    predicted = rows.map_batches(predictor, batch_size=7).take_all()
    assert [list(row["predicted"]) for row in predicted] == svm.predict([X[row["number"]] for row in predicted])
    np.testing.assert_allclose(found, expected.coef_, atol=1e-3)
