"""The graph of pixels near boundaries: which pixels, which edges, which features."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.segmentation.images.context import CLIP, log_odds
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor, Presegmented
from maxmargin.tasks.segmentation.images.pixel_cut import (
    pixel_graph,
    pixel_node_names,
)


def disk(height=40, width=50, noise=8.0, seed=0):
    """A bright disk on a dark ground, with noise, and its mask."""
    y, x = np.mgrid[:height, :width]
    mask = (y - height / 2) ** 2 + (x - width / 2.2) ** 2 < (0.3 * height) ** 2
    color = np.where(mask[..., None], [180, 120, 60], [40, 90, 120])
    image = color + np.random.default_rng(seed).normal(0, noise, size=(height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8), mask


def blocky(side=8, **settings):
    """Sites whose regions are squares that do not follow the disk, its probabilities, and labels of pixels."""
    image, mask = disk(**settings)
    rows, columns = (np.arange(n) // side for n in mask.shape)
    sites = ImageExtractor().sites(Presegmented(image, rows[:, None] * (columns.max() + 1) + columns))
    share = np.bincount(sites.node_of.ravel(), mask.ravel()) / sites.size
    p = 0.05 + 0.9 * share
    probabilities = np.stack([1 - p, p], axis=1)
    return sites, probabilities, (p > 0.5).astype(np.int64)[sites.node_of], mask


def near_boundary(labels, reach):
    """Pixels closer than a distance to a pixel that has a neighbor of another label, by a loop."""
    edge = []
    for (i, j), label in np.ndenumerate(labels):
        around = [(i + a, j + b) for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        inside = [q for q in around if 0 <= q[0] < labels.shape[0] and 0 <= q[1] < labels.shape[1]]
        if any(labels[q] != label for q in inside):
            edge.append((i, j))
    distance = [min(np.hypot(i - a, j - b) for a, b in edge) for i, j in np.ndindex(labels.shape)]
    return np.reshape(distance, labels.shape) < reach


@pytest.mark.parametrize("band", [0.2, 0.7])
def test_the_band_holds_the_pixels_near_boundaries(band):
    sites, p, labels, _ = blocky()
    found = pixel_graph(sites, p, labels, band)
    side = np.sqrt(np.mean(sites.size))
    wanted = near_boundary(labels, max(1.0, band * side))
    np.testing.assert_array_equal(np.flatnonzero(wanted), found.pixels[~found.held])
    held = np.zeros(labels.shape, dtype=bool)
    held.ravel()[found.pixels[found.held]] = True
    assert not (held & wanted).any()
    np.testing.assert_array_equal(found.inside, labels.ravel()[found.pixels])


@pytest.mark.parametrize("connectivity", [4, 8])
def test_edges_join_neighbors_and_fall_with_contrast(connectivity):
    sites, p, labels, _ = blocky()
    graph = pixel_graph(sites, p, labels, np.inf, connectivity)
    edges, rows = np.asarray(graph.graph.edges), graph.graph.edge_features
    height, width = labels.shape
    diagonal = 2 * (height - 1) * (width - 1) if connectivity == 8 else 0
    assert len(edges) == height * (width - 1) + width * (height - 1) + diagonal
    assert rows.shape == (len(edges), 5)
    assert (rows >= 0).all()
    color = sites.color.reshape(-1, 3)
    squared = ((color[edges[:, 0]] - color[edges[:, 1]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(rows[:, 3] / rows[:, 0], np.exp(-squared / (2 * 8.0**2)), rtol=1e-4, atol=1e-12)
    assert not graph.held.any()


def test_node_features_are_named_and_held_pixels_are_sure():
    sites, p, labels, _ = blocky()
    found = pixel_graph(sites, p, labels, 0.7)
    rows = found.graph.node_features
    assert rows.shape == (len(found.pixels), len(pixel_node_names(2)))
    assert np.isfinite(rows).all()
    free = ~found.held
    own = sites.node_of.ravel()[found.pixels]
    np.testing.assert_allclose(rows[free, 0], log_odds(p[:, 1])[own][free])
    expected = np.where(found.inside == 1, CLIP, -CLIP)[found.held]
    np.testing.assert_array_equal(rows[found.held, :-1], np.repeat(expected[:, None], rows.shape[1] - 1, axis=1))
    three = np.random.default_rng(0).dirichlet(np.ones(3), size=sites.n_nodes)
    more = pixel_graph(sites, three, three.argmax(axis=1)[sites.node_of], 0.7)
    assert more.graph.node_features.shape == (len(more.pixels), len(pixel_node_names(3)))


def test_labels_change_only_inside_the_band():
    sites, p, labels, _ = blocky()
    found = pixel_graph(sites, p, labels, 0.3)
    changed = found.with_labels(1 - found.inside)
    np.testing.assert_array_equal(np.flatnonzero(changed != labels), found.pixels[~found.held])


def test_one_label_needs_no_graph():
    sites, p, labels, _ = blocky()
    found = pixel_graph(sites, p, np.zeros_like(labels), 0.7)
    assert len(found.pixels) == 0
    np.testing.assert_array_equal(found.with_labels(np.zeros(0, dtype=np.int64)), 0 * labels)


def test_a_learned_cut_finds_the_boundary_that_regions_miss():
    train = [blocky(seed=seed) for seed in range(3)]
    graphs = [pixel_graph(sites, p, labels, 0.7) for sites, p, labels, _ in train]
    gold = [mask.ravel()[g.pixels].astype(int) for g, (*_, mask) in zip(graphs, train, strict=True)]
    weights = [(~g.held).astype(float) for g in graphs]
    model = mm.CutSVM(C=1.0, tol=0.05).fit([g.graph for g in graphs], gold, loss_weight=weights)
    sites, p, labels, mask = blocky(seed=9, height=48, width=44)
    found = pixel_graph(sites, p, labels, 0.7)
    better = found.with_labels(model.predict([found.graph])[0])
    assert (better != mask).sum() < 0.3 * (labels != mask).sum()


def test_stacks_have_graphs_too():
    image = np.stack([disk(20, 24, seed=k)[0][..., 0] for k in range(5)])
    extractor = ImageExtractor(n_regions=30).fit([image])
    sites = extractor.sites(image)
    p = np.random.default_rng(0).random(sites.n_nodes)
    found = pixel_graph(sites, np.stack([1 - p, p], axis=1), (p > 0.5).astype(np.int64)[sites.node_of], 0.5)
    assert np.isfinite(found.graph.node_features).all()
    assert np.asarray(found.graph.edges).max() < len(found.pixels)


def test_pixel_sites_have_graphs_too():
    image, mask = disk(20, 24)
    sites = ImageExtractor("pixels", n_regions=12).sites(image)
    p = 0.1 + 0.8 * mask.ravel()
    found = pixel_graph(sites, np.stack([1 - p, p], axis=1), mask.astype(np.int64), 0.5)
    assert np.isfinite(found.graph.node_features).all()
