"""Data of the examples: readers of public data sets, which are not part of the project, and synthetic substitutes.

The folder with the sets is an argument, else MAXMARGIN_DATA, else ``../shared/data`` next to the project.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree

from maxmargin.tasks.alignment import Bitext, BitextModels, Reference, read_bitext, read_references
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links
from maxmargin.tasks.alignment.translation.words import IndexedBitext

FOLDER = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))

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


def surface_links(points: np.ndarray, neighbors: int = 3) -> np.ndarray:
    """Edges from each point to its nearest neighbors, shape ``(n_edges, 2)``."""
    _, near = cKDTree(points).query(points, k=neighbors + 1)
    pairs = np.stack([np.repeat(np.arange(len(points)), neighbors), near[:, 1:].ravel()], axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def spin_images(points: np.ndarray, reaches: tuple[float, ...], shape: tuple[int, int] = (10, 5)) -> np.ndarray:
    """Spin images (Johnson and Hebert 1999): where a point's neighbors lie around its surface normal.

    For each reach a histogram of distance from the normal's axis and height along it, as shares of the neighbors.
    """
    tree = cKDTree(points)
    _, near = tree.query(points, k=min(15, len(points)))
    local = points[near] - points[near].mean(axis=1, keepdims=True)
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", local, local))[1][:, :, 0]
    normals *= np.where(normals[:, 2:] < 0, -1.0, 1.0)
    images = []
    for reach in reaches:
        pairs = tree.query_pairs(reach, output_type="ndarray")
        at, other = np.concatenate([pairs, pairs[:, ::-1]]).T
        offset = points[other] - points[at]
        height = np.einsum("ni,ni->n", offset, normals[at])
        across = np.sqrt(np.maximum(np.einsum("ni,ni->n", offset, offset) - height**2, 0.0))
        column = np.minimum((across / reach * shape[0]).astype(np.int64), shape[0] - 1)
        row = np.minimum(((height / reach + 1) / 2 * shape[1]).astype(np.int64), shape[1] - 1)
        bins = shape[0] * shape[1]
        counts = np.bincount(at * bins + column * shape[1] + row, minlength=len(points) * bins).reshape(-1, bins)
        images.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return np.concatenate(images, axis=1)


@dataclass(frozen=True, eq=False)
class Alignment:
    """A sentence pair and its links, by annotators or by a program."""

    english: list[str]
    french: list[str]
    reference: Reference

    def matching(self) -> np.ndarray:
        """A maximum matching of sure links, shape ``(k, 2)``."""
        sure = self.reference.sure
        shape = len(self.english), len(self.french)
        graph = sp.csr_matrix((np.ones(len(sure)), (sure[:, 0], sure[:, 1])), shape=shape)
        partner = maximum_bipartite_matching(graph, perm_type="column")
        left = np.flatnonzero(partner >= 0)
        return np.stack([left, partner[left]], axis=1).astype(np.int64)


def hansards(folder: Path, part: str) -> list[Alignment]:
    """The hand-aligned pairs of a part, "train" or "dev"."""
    base = folder / "alignment" / "hansards"
    pairs = read_bitext(base / f"{part}.e", base / f"{part}.f")
    references = read_references(base / f"{part}.wa", bitext=pairs)
    return [Alignment(*pair) for pair in zip(pairs.source, pairs.target, references, strict=True)]


def bitext(folder: Path) -> Bitext:
    """The unlabeled pairs."""
    base = folder / "alignment" / "hansards"
    return read_bitext(base / "bitext.e.gz", base / "bitext.f.gz")


def synthetic_bitext(n: int, seed: int, words: int = 400) -> list[Alignment]:
    """Sentence pairs in two synthetic languages: a third of the words have similar spellings, some two translations.

    Word order is shuffled locally, words are dropped and inserted; word frequencies follow Zipf's law. A word that
    occurs twice is linked to the right copy only; a few links are merely possible.
    """
    dictionary = np.random.default_rng(0)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    english = ["".join(dictionary.choice(syllables, size=dictionary.integers(1, 4))) + str(k % 7) for k in range(words)]
    french = [
        [word + "e"] if k % 3 == 0 else ["".join(dictionary.choice(syllables, size=3)) for _ in range(1 + k % 2)]
        for k, word in enumerate(english)
    ]
    share = 1.0 / (5.0 + np.arange(words))
    rng = np.random.default_rng(seed)
    pairs = []
    for length in rng.integers(4, 16, size=n):
        chosen = rng.choice(words, size=length, p=share / share.sum())
        order = np.argsort(np.arange(length) + rng.normal(scale=1.2, size=length))
        order = order[rng.random(length) < 0.9]
        translated, sure, possible = [], [], []
        for source in order:
            if rng.random() < 0.1:
                translated.append(rng.choice(french[int(rng.choice(words, p=share / share.sum()))]))
            link = int(source), len(translated)
            possible.append(link)
            if rng.random() < 0.9:
                sure.append(link)
            translated.append(str(rng.choice(french[chosen[source]])))
        if not translated:
            translated.append(french[0][0])
        pairs.append(Alignment([english[k] for k in chosen], translated, Reference.of(sure, possible)))
    return pairs


class Counts:
    """Case-sensitive counts of words and of word pairs in a bitext."""

    def __init__(self, pairs: Bitext) -> None:
        self.english, left = _incidence(pairs.source)
        self.french, right = _incidence(pairs.target)
        self.together = sp.csr_matrix(left.T @ right)
        self.left = np.asarray(left.sum(axis=0)).ravel()
        self.right = np.asarray(right.sum(axis=0)).ravel()

    def dice(self, english: list[str], french: list[str]) -> np.ndarray:
        """``2 c(e, f) / (c(e) + c(f))`` for all pairs of words, shape ``(n_english, n_french)``; 0 for unseen words."""
        i, j = (
            np.array([known.get(word, -1) for word in words], dtype=np.int64)
            for known, words in ((self.english, english), (self.french, french))
        )
        both = self.together[np.maximum(i, 0)][:, np.maximum(j, 0)].toarray()
        seen = (i >= 0)[:, None] & (j >= 0)[None, :]
        return np.where(seen, 2 * both / (self.left[np.maximum(i, 0)][:, None] + self.right[np.maximum(j, 0)]), 0.0)


def _incidence(sentences: list[list[str]]) -> tuple[dict[str, int], sp.csr_matrix]:
    """The index of each word, the most frequent first, and the 0/1 matrix of sentences and words."""
    ordered = Counter(chain.from_iterable(sentences)).most_common()
    known = {word: number for number, (word, _) in enumerate(ordered)}
    words = np.array([known[word] for word in chain.from_iterable(sentences)], dtype=np.int64)
    starts = np.cumsum([0, *map(len, sentences)])
    counts = sp.csr_matrix((np.ones(len(words)), words, starts), shape=(len(sentences), len(known)))
    return known, (counts > 0).astype(np.float64)


def agreed_links(pairs: Bitext) -> list[Alignment]:
    """The pairs with the links on which hidden Markov models, learned from these pairs, agree in both directions."""
    models = BitextModels.learn(pairs.source, pairs.target)
    evidence = Evidence.of(models, IndexedBitext.of(pairs.source, pairs.target))
    forward, backward = best_links(evidence)
    grids = np.split(forward & backward, evidence.bitext.grid_start[1:-1])
    return [
        Alignment(e, f, Reference.of(np.argwhere(grid.reshape(len(e), len(f)))))
        for e, f, grid in zip(pairs.source, pairs.target, grids, strict=True)
    ]
