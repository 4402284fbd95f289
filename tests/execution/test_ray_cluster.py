"""Ray by the address of a cluster that was there before: a head and a node with the workers, on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run as command

import maxmargin as mm
from maxmargin.execution import Ray, Serial, ShardError

pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture(scope="module")
def other_cluster(local_ray: Any) -> Iterator[str]:
    """The address of a cluster; this process leaves the one on this machine."""
    from ray.cluster_utils import Cluster

    local_ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    yield cluster.address
    local_ray.shutdown()
    cluster.shutdown()


def test_workers_of_another_node_open_the_files_of_a_dataset(other_cluster: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 7)), 3)) for _ in range(40)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    dataset = mm.ChainSVM().build_dataset(tmp_path / "data", (X, y), shard_parts=150)
    settings: dict[str, Any] = {"C": 0.1, "solver": mm.DualExtragradient(store_duals=False), "tol": 0.05}
    cluster = Ray(workers=2, address=other_cluster)
    svm = mm.ChainSVM(**settings, executor=cluster).fit(dataset)
    np.testing.assert_array_equal(svm.coef_, mm.ChainSVM(**settings, executor=Serial(shards=2)).fit(dataset).coef_)
    with pytest.raises(
        ValueError, match=rf"is connected to the Ray cluster at '{other_cluster}', not to .*elsewhere:6379"
    ):
        mm.ChainSVM(**settings, executor=Ray(address="elsewhere:6379")).fit(dataset)
    problem = dataset.problem(mm.training.Settings(), 0.1)
    assert problem.n_weights == dataset.n_weights  # all that this process reads
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(ShardError, match=r"data holds no dataset.*on node .* of the Ray cluster: files must have the"):
        mm.solvers.solve(problem, settings["solver"], cluster)
    cluster.idle.actors.clear()


def test_a_command_with_an_address(other_cluster: str, tmp_path: Path) -> None:
    text = "\n\n".join("the\tD\ndog\tN\nbarks\tV" for _ in range(8))
    (tmp_path / "train.tsv").write_text(text + "\n", encoding="utf-8")
    out = str(tmp_path / "model")
    command(
        "tag", "train", str(tmp_path / "train.tsv"), "--C", "1", "--folds", "0", "--out", out, "--ray", other_cluster
    )
    assert mm.load(out).predict([["the", "dog"]])[0] == ["D", "N"]
