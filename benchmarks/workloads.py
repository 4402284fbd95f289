"""Real training problems for benchmarks: OCR letters, Hansards word alignment, Weizmann horses, CoNLL-2000 chunking."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.record import DATA as DATA

if TYPE_CHECKING:
    from maxmargin.tasks.alignment import Reference, SentencePair


def need(file: Path) -> Path:
    """The file, or the end of the program if it does not exist."""
    if not file.exists():
        sys.exit(f"{file} does not exist: give --data or set MAXMARGIN_DATA")
    return file


def letters(folder: Path, folds: Iterable[int]) -> tuple[list[np.ndarray], list[list[int]]]:
    """Words of the given folds: a row of 128 pixels per letter, labels 0 to 25."""
    data = np.load(need(folder / "letters/letters.npz"))
    chosen = np.isin(data["fold"][data["word"]], list(folds))
    X, y, word = data["X"][chosen].astype(np.float64), data["y"][chosen], data["word"][chosen]
    cuts = np.flatnonzero(np.diff(word)) + 1
    return np.split(X, cuts), [labels.tolist() for labels in np.split(y, cuts)]


def hansards(folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The 100 hand-aligned pairs with the features of ``dice_links``."""
    from benchmarks.alignment.dice_links import Links, matching
    from maxmargin.tasks.alignment import read_bitext, read_references

    base = need(folder / "alignment/hansards")
    links = Links(read_bitext(base / "bitext.e.gz", base / "bitext.f.gz"))
    pairs = read_bitext(base / "train.e", base / "train.f")
    references = read_references(base / "train.wa", bitext=pairs)
    X = [links(english, french) for english, french in pairs]
    return X, [matching(one, x.shape[:2]) for one, x in zip(references, X, strict=True)]


def hansards_text(
    folder: Path, n_bitext: int | None = None
) -> tuple[list[SentencePair], list[Reference], list[SentencePair]]:
    """The 137 annotated pairs, ``train`` first, their references, and the first ``n_bitext`` pairs of the bitext."""
    from maxmargin.tasks.alignment import SentencePair, read_bitext, read_references

    base = need(folder / "alignment/hansards")
    pairs: list[SentencePair] = []
    references: list[Reference] = []
    for part in ("train", "dev"):
        text = read_bitext(base / f"{part}.e", base / f"{part}.f")
        pairs += map(SentencePair, text.source, text.target)
        references += read_references(base / f"{part}.wa", bitext=text)
    text = read_bitext(base / "bitext.e.gz", base / "bitext.f.gz")
    return pairs, references, list(map(SentencePair, text.source, text.target))[:n_bitext]


def grid_edges(height: int, width: int) -> np.ndarray:
    """Pairs of horizontal, then of vertical neighbors of a grid numbered row by row, shape ``(n_edges, 2)``."""
    index = np.arange(height * width).reshape(height, width)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)])


def horses(folder: Path, part: str = "train", count: int = 40, width: int = 40) -> tuple[list[mm.Graph], list[Any]]:
    """Images and masks reduced to grids of ``width`` columns, with the features of :func:`image_graph`."""
    from PIL import Image

    X, y = [], []
    images = sorted((need(folder / "segmentation/horses") / part / "rgb").iterdir())[:count]
    for file in images:
        mask = Image.open(next((file.parents[1] / "figure_ground").glob(f"{file.stem}.*"))).convert("L")
        size = width, max(1, round(width * mask.height / mask.width))
        image = Image.open(file).convert("RGB").resize(size, Image.Resampling.BOX)
        X.append(image_graph(np.asarray(image) / 127.5 - 1))
        y.append((np.asarray(mask.resize(size, Image.Resampling.BOX)) > 127).astype(np.int64).ravel())
    return X, y


def image_graph(image: np.ndarray) -> mm.Graph:
    """The grid of an image of colors in [-1, 1], shape ``(height, width, 3)``.

    Features of a cell: color, its squares and products, position, its squares and product, and 1. Features of an
    edge: 1 and the similarity of the two colors.
    """
    color = image.reshape(-1, 3)
    axes = (np.linspace(-1, 1, n) for n in image.shape[:2])
    place = np.stack(np.meshgrid(*axes, indexing="ij"), axis=2).reshape(-1, 2)
    products = np.stack([color[:, a] * color[:, b] for a in range(3) for b in range(a, 3)], axis=1)
    nodes = np.column_stack([color, products, place, place**2, place.prod(axis=1), np.ones(len(color))])
    edges = grid_edges(*image.shape[:2])
    alike = np.exp(-2.0 * ((color[edges[:, 0]] - color[edges[:, 1]]) ** 2).sum(axis=1))
    return mm.Graph(nodes, edges, np.column_stack([np.ones(len(edges)), alike]))


def chunking(
    folder: Path, part: str = "train", count: int | None = None
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """CoNLL-2000: for each sentence the attributes of each word, and the chunk tags.

    Attributes are words and part-of-speech tags in a window of two, and their bigrams next to the word.
    """
    X, y = [], []
    with gzip.open(need(folder / "tagging/conll2000" / f"{part}.txt.gz"), "rt", encoding="utf-8") as lines:
        for block in lines.read().strip().split("\n\n")[:count]:
            words, tags, chunks = zip(*(line.split() for line in block.splitlines()), strict=True)
            X.append([_attributes(words, tags, t) for t in range(len(words))])
            y.append(list(chunks))
    return X, y


def _attributes(words: tuple[str, ...], tags: tuple[str, ...], t: int) -> list[str]:
    found = ["bias"]
    for name, values in (("w", words), ("p", tags)):
        at = {k: values[t + k] for k in range(-2, 3) if 0 <= t + k < len(values)}
        found += [f"{name}{k}={value}" for k, value in at.items()]
        found += [f"{name}{k}|{k + 1}={at[k]}|{at[k + 1]}" for k in (-1, 0) if k in at and k + 1 in at]
    return found


def indicators(
    X: list[list[list[str]]], known: dict[str, int] | None = None
) -> tuple[list[sp.csr_array], dict[str, int]]:
    """Attributes as 0/1 columns, and the column of each; attributes that are not ``known`` are dropped."""
    if known is None:
        names = dict.fromkeys(name for sentence in X for word in sentence for name in word)
        known = {name: column for column, name in enumerate(names)}
    rows = []
    for sentence in X:
        index = [[known[name] for name in word if name in known] for word in sentence]
        starts = np.cumsum([0, *map(len, index)])
        flat = np.array([c for word in index for c in word], dtype=np.int64)
        rows.append(sp.csr_array((np.ones(len(flat)), flat, starts), shape=(len(sentence), len(known))))
    return rows, known
