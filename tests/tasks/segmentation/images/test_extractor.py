"""The extractor: shapes, odd images, the user's own regions, states."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.segmentation.images import regions
from maxmargin.tasks.segmentation.images.channels import color_of, full_levels, levels_of
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor, Presegmented


def image_of(shape, seed=0, dtype=np.uint8):
    """A smooth random image: blobs of color."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    axes = len(shape) - 1 if shape[-1] == 3 and len(shape) > 2 else len(shape)
    sigma = (3.0,) * axes + (0.0,) * (len(shape) - axes)
    values = gaussian_filter(rng.standard_normal(shape), sigma, mode="nearest")
    values = (values - values.min()) / max(1e-9, np.ptp(values))
    return values.astype(dtype) if np.dtype(dtype).kind == "f" else (values * np.iinfo(dtype).max).astype(dtype)


def probabilities(n, k=2, seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


def check(extractor, given, k=2):
    """Sites whose parts fit together and are finite."""
    sites = extractor.sites(given)
    n = sites.n_nodes
    assert sites.features.shape == (n, extractor.n_features)
    assert sites.features.dtype == np.float32
    assert sites.edges.shape[1] == 2
    assert (sites.edges[:, 0] < sites.edges[:, 1]).all()
    assert len(np.unique(sites.edges, axis=0)) == len(sites.edges)
    assert sites.edge_features.shape == (len(sites.edges), len(extractor.edge_feature_names))
    assert (sites.edge_features[:, 0] == 1).all()
    assert (sites.edge_features >= 0).all()
    np.testing.assert_array_equal(np.bincount(sites.node_of.ravel(), minlength=n), sites.size)
    p = probabilities(n, k)
    context = sites.context(p)
    assert context.shape == (n, len(extractor.context_names(k)))
    between = sites.edge_context(p)
    assert len(between) == len(sites.edges)
    assert (between >= 0).all()
    for values in (sites.features, sites.edge_features, context, between):
        assert np.isfinite(values).all()
    return sites


SHAPES = [(1, 1), (1, 2), (1, 30), (30, 1), (2, 2, 3), (24, 31), (24, 31, 3), (1, 1, 1, 3), (5, 12, 14), (4, 9, 10, 3)]


@pytest.mark.parametrize("graph", ["superpixels", "pixels"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_images_and_stacks_of_any_size(shape, graph):
    image = image_of(shape)
    check(ImageExtractor(graph, n_regions=20).fit([image]), image)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(16, 20), (16, 20, 3)], ids=str)
def test_kinds_of_pixels(shape, dtype):
    image = image_of(shape, dtype=dtype)
    sites = check(ImageExtractor(n_regions=12).fit([image]), image)
    assert np.ptp(sites.features[:, 0]) > 10  # lightness is spread over its range whatever the numbers are


@pytest.mark.parametrize("level", [0, 1, 200, 255])
@pytest.mark.parametrize("shape", [(20, 24), (20, 24, 3), (4, 10, 12)], ids=str)
def test_images_of_one_color(shape, level):
    image = np.full(shape, level, dtype=np.uint8)
    check(ImageExtractor(n_regions=10).fit([image]), image)


def test_one_region():
    image = image_of((10, 12, 3))
    sites = check(ImageExtractor(), Presegmented(image, np.zeros((10, 12), dtype=int)))
    assert sites.n_nodes == 1
    assert len(sites.edges) == 0


@pytest.mark.parametrize("sure", [0.0, 1.0])
def test_context_of_images_that_are_all_one_class(sure):
    sites = ImageExtractor(n_regions=30).sites(image_of((20, 30, 3)))
    p = np.full(sites.n_nodes, sure)
    assert np.isfinite(sites.context(np.stack([1 - p, p], axis=1))).all()
    assert np.isfinite(sites.edge_context(np.stack([1 - p, p], axis=1))).all()


def test_context_of_more_classes():
    image = image_of((20, 30, 3))
    check(ImageExtractor(n_regions=30), image, k=4)
    check(ImageExtractor("pixels", n_regions=30), image, k=3)


def test_context_refuses_other_shapes():
    sites = ImageExtractor(n_regions=30).sites(image_of((20, 30, 3)))
    with pytest.raises(ValueError, match="one row per node"):
        sites.context(np.ones((3, 2)))


def test_own_regions_may_have_any_numbers():
    image = image_of((20, 24, 3))
    regions = np.kron(np.arange(20).reshape(4, 5), np.ones((5, 5), dtype=int))[:, :24]
    plain = check(ImageExtractor(), Presegmented(image, regions))
    odd = check(ImageExtractor(), Presegmented(image, regions * 1_000_003 - 7))
    np.testing.assert_array_equal(plain.node_of, regions)
    np.testing.assert_array_equal(plain.features, odd.features)
    np.testing.assert_array_equal(plain.edges, odd.edges)


@pytest.mark.parametrize("pairs", [1, 100, 650])
def test_regions_compared_in_blocks_have_the_same_features(pairs, monkeypatch):
    extractor, image = ImageExtractor(n_regions=40), image_of((30, 40, 3))
    whole = extractor.sites(image)
    p = probabilities(whole.n_nodes, 3)
    context = whole.context(p)
    monkeypatch.setattr(regions, "_MOST_PAIRS", pairs)
    parts = extractor.sites(image)
    assert len(list(parts.regions.blocks())) > 1
    np.testing.assert_allclose(parts.features, whole.features, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(parts.context(p), context, rtol=1e-4, atol=1e-3)


def test_too_many_regions_are_refused(monkeypatch):
    monkeypatch.setattr(regions, "MOST_REGIONS", 20)
    image, own = image_of((20, 24, 3)), np.arange(480).reshape(20, 24)
    for extractor, given in [
        (ImageExtractor(n_regions=60), image),
        (ImageExtractor(region_size=8), image),
        (ImageExtractor(), Presegmented(image, own)),
    ]:
        with pytest.raises(ValueError, match="use fewer or larger regions: n_regions, region_size"):
            extractor.sites(given)
    check(ImageExtractor(), Presegmented(image, own // 24))


def test_means_of_regions_are_those_of_their_pixels():
    from skimage.color import rgb2lab

    image = image_of((20, 24, 3))
    extractor = ImageExtractor(n_regions=15)
    sites = extractor.sites(image)
    lab = rgb2lab(image)
    names = extractor.feature_names
    for node in range(sites.n_nodes):
        pixels = lab[sites.node_of == node]
        np.testing.assert_allclose(sites.features[node, :3], pixels.mean(axis=0), atol=0.2)
        deviation = [sites.features[node, names.index(f"deviation of {letter}")] for letter in "Lab"]
        np.testing.assert_allclose(deviation, pixels.std(axis=0), atol=0.2)


def test_mirrored_images_have_mirrored_places():
    image = image_of((20, 24, 3))
    extractor = ImageExtractor(n_regions=15)
    sites = extractor.sites(image)
    mirrored = extractor.sites(Presegmented(image[:, ::-1], sites.node_of[:, ::-1]))
    names = extractor.feature_names
    x, y, light = names.index("x"), names.index("y"), names.index("L at 5")
    np.testing.assert_allclose(mirrored.features[:, x], 1 - sites.features[:, x], atol=1e-5)
    np.testing.assert_allclose(mirrored.features[:, [y, light]], sites.features[:, [y, light]], atol=1e-3)
    left, right = names.index("color path to first x"), names.index("color path to last x")
    np.testing.assert_allclose(mirrored.features[:, left], sites.features[:, right], atol=1e-2)


def test_the_same_image_gives_the_same_sites():
    image = image_of((30, 40, 3))
    one, two = (ImageExtractor(n_regions=40).sites(image) for _ in range(2))
    for name in ("features", "edges", "edge_features", "node_of", "size"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    p = probabilities(one.n_nodes)
    np.testing.assert_array_equal(one.context(p), two.context(p))


def test_region_size_in_place_of_their_number():
    image = image_of((40, 40, 3))
    assert 10 <= ImageExtractor(region_size=100).sites(image).n_nodes <= 24


def test_gray_images_and_color_models():
    gray, color = image_of((16, 20)), image_of((16, 20, 3))
    check(ImageExtractor(n_regions=10).fit([color]), gray)
    check(ImageExtractor(n_regions=10).fit([gray]), color)
    mixed = ImageExtractor(n_regions=10).fit([gray, color])
    assert mixed.n_colors == 3
    same = np.repeat(gray[..., None], 3, axis=2)
    # Ranks and deviations among colors that differ by rounding only mean nothing.
    stable = [k for k, name in enumerate(mixed.feature_names) if not name.startswith(("rank", "standardized"))]
    one, two = mixed.sites(gray).features[:, stable], mixed.sites(same).features[:, stable]
    np.testing.assert_allclose(one, two, atol=0.1)


@pytest.mark.parametrize("shape", [(16, 20), (4, 10, 12)], ids=str)
def test_a_last_axis_of_one_value_is_gray(shape):
    image = image_of(shape)
    extractor = ImageExtractor(n_regions=10).fit([image[..., None]])
    assert (extractor.n_axes, extractor.n_colors) == (len(shape), 1)
    assert extractor.labels_shape(image[..., None]) == shape
    one, two = check(extractor, image), check(extractor, image[..., None])
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.node_of, two.node_of)


def typed(image, dtype):
    """An image of bytes in another type of pixels, which shows the same."""
    scale = {np.uint8: 1, np.uint16: 257, np.float32: np.float32(1 / 255)}[dtype]
    return (image.astype(dtype) * scale).astype(dtype)


TYPES = [np.uint8, np.uint16, np.float32]


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 3)], ids=str)
@pytest.mark.parametrize("there", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("here", TYPES, ids=lambda t: t.__name__)
def test_pixels_of_any_type_look_the_same(here, there, shape):
    # Pictures of full contrast: some pixels are black and some white, whose levels any type has to find.
    images = [np.clip(image_of(shape, seed) * 1.5 - 64, 0, 255).astype(np.uint8) for seed in range(2)]
    extractor = ImageExtractor(n_regions=30).fit([typed(image, here) for image in images])
    extractor = ImageExtractor.from_state(extractor.state())
    bytes_alone = ImageExtractor(n_regions=30).fit(images)
    for image in images:
        found, expected = extractor.sites(typed(image, there)), bytes_alone.sites(image)
        np.testing.assert_allclose(found.color, expected.color, atol=0.2)
        np.testing.assert_array_equal(found.node_of, expected.node_of)


@pytest.mark.parametrize("there", TYPES, ids=lambda t: t.__name__)
def test_dim_pictures_of_types_that_were_not_learned_stay_dim(there):
    image = image_of((40, 50, 3)) // 3 + 20
    sites = [ImageExtractor(n_regions=30).sites(one) for one in (image, typed(image, there))]
    np.testing.assert_allclose(sites[0].color, sites[1].color, atol=0.2)
    np.testing.assert_array_equal(sites[0].node_of, sites[1].node_of)


def test_the_scale_of_an_image():
    for bits in (8, 10, 12, 14, 16):
        for high in (2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 2)):
            for dtype in (np.uint16, np.int32, np.float32, np.float64):
                assert full_levels(np.array([[5, high]], dtype=dtype)) == (0, 2**bits - 1)
    assert full_levels(np.array([[0.1, 0.3]])) == (0, 1)
    assert full_levels(np.array([[0, 1]], dtype=np.uint16)) == (0, 255)
    for odd in (np.array([[-5.0, 300.0]]), np.array([[0.0, 0.01]]), np.zeros((2, 2)), np.full((2, 2), -3)):
        assert full_levels(odd) == levels_of(odd)


def test_levels_are_learned_for_each_type_of_training_images():
    image = image_of((20, 24))
    mixed = ImageExtractor(n_regions=10).fit([typed(image, dtype) for dtype in (*TYPES, np.float32)])
    assert set(mixed.levels) == {"uint16", "float"}
    assert ImageExtractor().fit([image]).levels == {}
    dark = typed(image, np.float32) / 4  # images of a type that was learned keep their brightness
    light = [mixed.sites(one).color[..., 0].mean() for one in (dark, dark.astype(np.float64), dark * 4)]
    assert light[0] == pytest.approx(light[1], abs=1e-3)
    assert light[0] < 0.6 * light[2]


def test_images_are_kept_as_they_are_given():
    image = image_of((40, 50, 3))
    for extractor in (ImageExtractor(n_regions=10), ImageExtractor("pixels"), ImageExtractor(working_pixels=200)):
        sites = extractor.sites(image)
        assert np.shares_memory(sites.image, image)
        full = [name for name, value in vars(sites).items() if np.shape(value) == image.shape]
        assert full == ["image"]
        np.testing.assert_array_equal(sites.color, color_of(image, (0.0, 255.0), 3))


def test_states_go_round():
    images = [image_of((16, 20), seed, dtype=np.uint16) for seed in range(2)]
    extractor = ImageExtractor("pixels", n_regions=7, connectivity=8).fit(images)
    again = ImageExtractor.from_state(extractor.state())
    assert again.state() == extractor.state()
    np.testing.assert_array_equal(again.sites(images[0]).features, extractor.sites(images[0]).features)


DAMAGE = [
    {"graph": "voxels"},
    {"n_regions": 0},
    {"n_regions": "many"},
    {"region_size": 0.1},
    {"compactness": -1.0},
    {"connectivity": 5},
    {"connectivity": [4]},
    {"n_axes": 4},
    {"n_axes": None},
    {"n_colors": 2},
    {"levels": [0.0, 1.0]},
    {"levels": {"uint16": 1.0}},
    {"levels": {"uint16": [1.0]}},
    {"levels": {"uint16": [3.0, 2.0]}},
    {"levels": {"uint16": [0.0, float("nan")]}},
    {"levels": {"float": ["0", "1"]}},
    {"levels": {"uint8": [0.0, 100.0]}},
    {"levels": {3: [0.0, 100.0]}},
    {"more": 1},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_damaged_states_are_refused(damage):
    with pytest.raises(ValueError):
        ImageExtractor.from_state({**ImageExtractor().state(), **damage})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((0, 4)), "no pixel"),
        (np.zeros(5), "an image must be"),
        (np.zeros((2, 2, 2, 2)), "an image must be"),
        (np.array([["a"]]), "an image must be"),
        (np.zeros((6, 5, 4), dtype=np.uint8), r"drop alpha: image\[..., :3\]"),
        (np.zeros((3, 6, 5, 4), dtype=np.uint8), r"drop alpha: image\[..., :3\]"),
        (np.full((3, 3), np.nan), "NaN"),
        (np.zeros((2, 5, 6), dtype=np.uint8), "trained on images"),
        (Presegmented(np.zeros((4, 5), dtype=np.uint8), np.zeros((5, 4), dtype=int)), "one per pixel"),
        (Presegmented(np.zeros((4, 5), dtype=np.uint8), np.zeros((4, 5))), "integers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_images_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ImageExtractor().sites(given)


def test_fit_refuses_what_does_not_go_together():
    with pytest.raises(ValueError, match="no image"):
        ImageExtractor().fit([])
    with pytest.raises(ValueError, match="apart"):
        ImageExtractor().fit([np.zeros((4, 5)), np.zeros((3, 4, 5))])
    with pytest.raises(ValueError, match="6 or 26 for 3 axes, got 4"):
        ImageExtractor(connectivity=4).fit([np.zeros((3, 4, 5))])


def test_edge_context_is_that_of_all_sites_by_length_and_more():
    sites = ImageExtractor(n_regions=30).sites(image_of((20, 30, 3)))
    p = probabilities(sites.n_nodes, 3)
    first, second = p[sites.edges[:, 0]], p[sites.edges[:, 1]]
    length = sites.adjacency.length / sites.adjacency.length.mean()
    found = sites.edge_context(p)
    np.testing.assert_allclose(found[:, 0], length * np.minimum(first, second).sum(axis=1))
    same = np.repeat(p[:1], len(p), axis=0)
    np.testing.assert_allclose(sites.edge_context(same), np.repeat(length[:, None], found.shape[1], axis=1))
