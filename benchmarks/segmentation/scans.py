"""3-D scans with two labels as graphs: the Oakland laser scans and synthetic streets, with spin images as features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

import maxmargin as mm
from maxmargin.tasks.segmentation.scans.neighbors import nearest_edges
from maxmargin.tasks.segmentation.scans.spin import spin_images

COMPONENTS = 45
"""Principal components of the spin images, as in the 2005 report."""

Scan = tuple[np.ndarray, np.ndarray]
"""Points of shape ``(n, 3)`` and 0/1 labels of shape ``(n,)``."""

VEGETATION = (1300, 1302, 1303, 1305, 1306)
UNDETERMINED = (1001, 9999)


def oakland(folder: Path, size: int, seed: int = 0) -> tuple[list[Scan], list[Scan], list[Scan]]:
    """Five scans to train on, three to validate and three to test: vegetation against everything else.

    Each of the eight laser scans is thinned to one point per 20 cm voxel. A scan consists of the ``size`` points
    nearest (in the plane) to a random point of vegetation. The five files of part 2 give one training scan each, the
    three of part 3 a validation and a test scan each, without shared points.
    """
    rng = np.random.default_rng(seed)
    files = sorted((folder / "segmentation" / "oakland").glob("*.xyz_label_conf.gz"))
    found: dict[str, list[list[Scan]]] = {"part2": [], "part3": []}
    for file in files:
        table = np.loadtxt(file, comments="#", usecols=(0, 1, 2, 3))
        table = table[~np.isin(table[:, 3], UNDETERMINED)]
        _, kept = np.unique(np.floor(table[:, :3] / 0.2).astype(np.int64), axis=0, return_index=True)
        points, labels = table[kept, :3], np.isin(table[kept, 3], VEGETATION).astype(np.int64)
        part = "part2" if "part2" in file.name else "part3"
        cut = []
        for _ in range(1 if part == "part2" else 2):
            center = points[rng.choice(np.flatnonzero(labels))]
            order = np.argsort(np.linalg.norm(points[:, :2] - center[:2], axis=1), kind="stable")
            cut.append((points[order[:size]], labels[order[:size]]))
            points, labels = points[order[size:]], labels[order[size:]]
        found[part].append(cut)
    train = [scans[0] for scans in found["part2"]]
    return train, [scans[0] for scans in found["part3"]], [scans[1] for scans in found["part3"]]


def synthetic_scans(n: int, size: int, seed: int) -> list[Scan]:
    """Street scenes: flat ground, walls, poles, and round bushes, which are the object."""
    rng = np.random.default_rng(seed)
    scans = []
    for _ in range(n):
        ground = np.column_stack([rng.uniform(0, 8, (size // 2, 2)), np.zeros(size // 2)])
        pieces, labels = [ground], [np.zeros(len(ground))]
        rest = size - len(ground)
        for part, share in enumerate((0.3, 0.15, 0.1, 0.25, 0.2)):
            count = round(share * rest)
            foot = np.append(rng.uniform(1, 7, 2), 0.0)
            turn = rng.uniform(0, np.pi)
            if part == 0:  # a wall
                along = rng.uniform(-2, 2, count)
                piece = np.column_stack([along * np.cos(turn), along * np.sin(turn), rng.uniform(0, 3, count)])
            elif part in (1, 2):  # poles
                around = rng.uniform(0, 2 * np.pi, count)
                piece = np.column_stack([0.1 * np.cos(around), 0.1 * np.sin(around), rng.uniform(0, 3, count)])
            else:  # bushes: points all through a ball
                piece = rng.normal(size=(count, 3))
                piece *= (rng.random(count) ** (1 / 3) / np.linalg.norm(piece, axis=1))[:, None]
                piece = 0.9 * piece + [0, 0, 0.9]
            pieces.append(piece + foot)
            labels.append(np.full(count, float(part > 2)))
        points = np.concatenate(pieces)
        scans.append((points + rng.normal(scale=0.06, size=points.shape), np.concatenate(labels).astype(np.int64)))
    return scans


def graphs(scans: list[list[Scan]]) -> list[tuple[list[mm.Graph], list[np.ndarray]]]:
    """Inputs and outputs of each part; scaling and principal components come from the first, the training data."""
    images = [[spin_images(points, (0.6, 1.8)) for points, _ in part] for part in scans]
    train = np.concatenate(images[0])
    mean, spread = train.mean(axis=0), train.std(axis=0) + 1e-3
    pca = PCA(COMPONENTS, svd_solver="full").fit((train - mean) / spread)
    found = []
    for part, rows in zip(scans, images, strict=True):
        X = []
        for (points, _), image in zip(part, rows, strict=True):
            nodes = pca.transform((image - mean) / spread) / np.sqrt(COMPONENTS)
            X.append(mm.Graph(np.column_stack([nodes, np.ones(len(points))]), nearest_edges(points, 3)))
        found.append((X, [labels for _, labels in part]))
    return found
