"""From images and stacks to sites: the settings, what is learned from training images, and the sites themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.images import channels, superpixels
from maxmargin.tasks.segmentation.images.channels import Levels, Pixels
from maxmargin.tasks.segmentation.images.context import context_names, pixel_context, region_context
from maxmargin.tasks.segmentation.images.edges import (
    CONTEXT_EDGE_NAMES,
    PIXEL_EDGE_NAMES,
    REGION_EDGE_NAMES,
    contrast_features,
    edge_context_features,
    region_edge_features,
)
from maxmargin.tasks.segmentation.images.features import feature_names, region_features
from maxmargin.tasks.segmentation.images.regions import Regions, regions_of
from maxmargin.tasks.segmentation.images.superpixels import Adjacency, Labels
from maxmargin.tasks.segmentation.io.images import resize_image, resize_labels
from maxmargin.tasks.segmentation.sites import Extractor, Sites

GRAPHS = ("superpixels", "pixels")
_MOST_WORKING = 1 << 17
"""More pixels than this only slow features down."""
_SPREAD = 2.0
"""Images are reduced if they are larger than the working size by more than this factor."""
_LEAST_REGION = 4
"""Superpixels have at least so many pixels."""


@dataclass(frozen=True, eq=False)
class Presegmented:
    """An image with the user's own regions.

    Attributes:
        image: the image or stack.
        regions: an integer for every pixel; pixels of equal numbers are one region. Any integers will do.
    """

    image: npt.ArrayLike
    regions: npt.ArrayLike


@dataclass(frozen=True, eq=False)
class ImageSites(Sites):
    """The sites of one image: its regions, or its pixels, which also see the regions they lie in.

    Attributes:
        image: the image as it was given; colors would take four times the memory of bytes.
        levels: its black and white.
        regions: the regions of the image.
        adjacency: the pairs of nodes that touch, in the order of the edges.
        pixels: whether nodes are pixels.
    """

    image: npt.NDArray[Any]
    levels: Levels
    regions: Regions
    adjacency: Adjacency
    pixels: bool = False

    @property
    def color(self) -> Pixels:
        """The color of every pixel, as :func:`channels.color_of` returns it; computed anew each time."""
        return channels.color_of(self.image, self.levels, self.regions.n_colors)

    def context(self, probabilities: FloatArray) -> npt.NDArray[np.float32]:
        """See :meth:`Sites.context`."""
        given = np.asarray(probabilities, dtype=np.float64)
        if given.ndim != 2 or len(given) != self.n_nodes or given.shape[1] < 2:
            raise ValueError(
                f"probabilities must have shape ({self.n_nodes}, number of classes), one row per node, "
                f"got {given.shape}"
            )
        return pixel_context(self.regions, given) if self.pixels else region_context(self.regions, given)

    def edge_context(self, probabilities: FloatArray) -> FloatArray:
        """See :meth:`Sites.edge_context`."""
        given = np.asarray(probabilities, dtype=np.float64)
        return edge_context_features(self.adjacency, given, super().edge_context(given))


@dataclass(frozen=True, eq=False)
class ImageExtractor(Extractor):
    """Makes sites of images (height, width) and stacks (depth, height, width), gray or with a last axis of RGB.

    Attributes:
        graph: "superpixels" for a node per superpixel, or per region where the user's own are given; "pixels" for a
            node per pixel.
        n_regions: superpixels of an image, whatever its size.
        region_size: pixels of a superpixel in place of ``n_regions``, for images that show the same things at the same
            scale whatever their size; None: as ``n_regions`` says.
        compactness: the color difference that counts as much as the side of a superpixel; larger is more regular.
        working_pixels: larger images are reduced to so many pixels for superpixels and features, and the nodes carried
            back to all pixels. "auto" learns the median of the training images, at most 2^17, so that images of any
            resolution show things at the scale of training; None never reduces. Stacks, and images with a
            ``region_size`` or regions of the user's own, are not reduced.
        connectivity: neighbors of a pixel: 4 or 8 in images, 6 or 26 in stacks; None for the smaller number.
        n_axes: 2 for images, 3 for stacks; learned.
        n_colors: 1 for gray images, 3 for color; learned.
        levels: black and white of each type of pixels besides bytes that training images have, by
            :func:`channels.level_type`; learned. Black and white of bytes are 0 and 255; an image of a type that no
            training image has is read by its scale, see :func:`channels.full_levels`.
    """

    graph: str = "superpixels"
    n_regions: int = 600
    region_size: float | None = None
    compactness: float = 25.0
    working_pixels: int | str | None = "auto"
    connectivity: int | None = None
    n_axes: int = 2
    n_colors: int = 3
    levels: Mapping[str, Levels] = field(default_factory=dict)

    inputs: ClassVar[str] = "images"

    def __post_init__(self) -> None:
        _checks.one_of("graph", self.graph, GRAPHS)
        _checks.integer("n_regions", self.n_regions, least=1)
        _checks.positive("compactness", self.compactness)
        if self.region_size is not None:
            _checks.number("region_size", self.region_size, least=1)
        if isinstance(self.working_pixels, str):
            _checks.one_of("working_pixels", self.working_pixels, ("auto",))
        elif self.working_pixels is not None:
            _checks.integer("working_pixels", self.working_pixels, least=1)
        known = self.n_axes in (2, 3) and self.n_colors in (1, 3)
        if not known or type(self.n_axes) is not int or type(self.n_colors) is not int:
            raise ValueError(f"n_axes must be 2 or 3 and n_colors 1 or 3, got {self.n_axes} and {self.n_colors}")
        for kind, (black, white) in self.levels.items():
            _checks.one_of("levels", kind, channels.LEVEL_TYPES)
            if not _checks.number("levels", white) > _checks.number("levels", black):
                raise ValueError(f"levels must be black and a larger white, got {black} and {white} of {kind}")
        if self.connectivity is not None and self.connectivity not in superpixels.ALL_CONNECTIVITIES:
            raise ValueError(f"connectivity must be 4 or 8, in stacks 6 or 26, got {shown(self.connectivity)}")

    def fit(self, inputs: Sequence[Any]) -> Self:
        """A copy for such images: whether they are stacks, have color, and what their black and white are."""
        if not len(inputs):
            raise ValueError("no image was given; give at least one")
        images = [channels.checked_image(_image_of(given)) for given in inputs]
        axes = {channels.spatial_axes(image) for image in images}
        if len(axes) > 1:
            raise ValueError("some inputs are images and some are stacks; train them apart")
        levels: dict[str, Levels] = {}
        for image in images:
            if image.dtype != np.uint8:
                kind, (black, white) = channels.level_type(image), channels.levels_of(image)
                least, most = levels.get(kind, (black, white))
                levels[kind] = min(least, black), max(most, white)
        n_axes = axes.pop()
        colors = 3 if any(image.ndim > n_axes for image in images) else 1
        superpixels.half_neighborhood(n_axes, self.connectivity or 2 * n_axes)
        working: int | str | None = self.working_pixels
        if isinstance(working, str):
            sizes = [image.shape[0] * image.shape[1] for image in images]
            working = min(int(np.median(sizes)), _MOST_WORKING)
        return replace(self, n_axes=n_axes, n_colors=colors, levels=levels, working_pixels=working)

    def sites(self, given: Any) -> ImageSites:
        """The sites of an image, or of a :class:`Presegmented` one."""
        image = channels.checked_image(_image_of(given))
        axes = channels.spatial_axes(image)
        if axes != self.n_axes:
            kinds = {2: "images", 3: "stacks"}
            raise ValueError(
                f"the input of shape {image.shape} has {axes} axes besides color, but the model was trained on "
                f"{kinds[self.n_axes]}, which have {self.n_axes}"
            )
        levels = self._levels(image)
        working = self._reduced(given, image)
        color = channels.color_of(working, levels, self.n_colors)
        regions = regions_of(color, self._labels(given, color), self._connectivity)
        features = region_features(regions)
        if self.graph == "superpixels":
            edges, node_of, size = regions.adjacency, regions.labels, regions.size
            if working is not image:
                node_of = np.ascontiguousarray(resize_labels(regions.labels, (image.shape[0], image.shape[1])))
                size = np.bincount(node_of.ravel(), minlength=regions.n).astype(np.float64)
            weights = region_edge_features(regions)
            return ImageSites(features, edges.edges, weights, node_of, size, image, levels, regions, edges)
        own, gradient = channels.pixel_channels(color)
        edges = superpixels.pixel_adjacency(color.shape[:-1], self._connectivity, gradient)
        rows = np.concatenate([own, features[regions.labels.ravel()]], axis=1)
        flat = color.reshape(len(rows), -1)
        difference = np.sqrt(((flat[edges.edges[:, 0]] - flat[edges.edges[:, 1]]) ** 2).sum(axis=1, dtype=np.float64))
        numbers = np.arange(len(rows), dtype=np.int32).reshape(color.shape[:-1])
        weights = contrast_features(edges, difference)
        ones = np.ones(len(rows))
        return ImageSites(rows, edges.edges, weights, numbers, ones, image, levels, regions, edges, True)

    def _levels(self, image: npt.NDArray[Any]) -> Levels:
        if image.dtype == np.uint8:
            return channels.BYTE_LEVELS
        return self.levels.get(channels.level_type(image)) or channels.full_levels(image)

    def _reduced(self, given: Any, image: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The image in the size at which superpixels and features are computed."""
        height, width = image.shape[:2]
        own = self.region_size is not None or isinstance(given, Presegmented) or self.graph == "pixels"
        working = self.working_pixels
        if own or self.n_axes == 3 or not isinstance(working, int) or height * width <= _SPREAD * working:
            return image
        scale = float(np.sqrt(working / (height * width)))
        return resize_image(image, (max(1, round(height * scale)), max(1, round(width * scale))))

    def labels_shape(self, given: Any) -> tuple[int, ...]:
        """One label per pixel."""
        image = channels.checked_image(_image_of(given))
        return image.shape[: channels.spatial_axes(image)]

    def _labels(self, given: Any, color: Pixels) -> Labels:
        n_pixels = color[..., 0].size
        if not isinstance(given, Presegmented):
            wanted = self.n_regions if self.region_size is None else int(np.ceil(n_pixels / self.region_size))
            return superpixels.slic(color, max(1, min(wanted, n_pixels // _LEAST_REGION)), self.compactness)
        regions = np.asarray(given.regions)
        if regions.shape != color.shape[:-1]:
            raise ValueError(
                f"the regions have shape {regions.shape}, the image {color.shape[:-1]}; give one per pixel"
            )
        return superpixels.consecutive(regions)

    @property
    def _connectivity(self) -> int:
        return self.connectivity or 2 * self.n_axes

    @property
    def n_features(self) -> int:
        """Columns of the node features."""
        return len(self.feature_names)

    @property
    def feature_names(self) -> list[str]:
        """Names of the node features."""
        own = (
            [f"pixel {name}" for name in channels.pixel_channel_names(self.n_colors)] if self.graph == "pixels" else []
        )
        return own + feature_names(self.n_axes, self.n_colors)

    @property
    def edge_feature_names(self) -> list[str]:
        """Names of the edge features."""
        return list(PIXEL_EDGE_NAMES if self.graph == "pixels" else REGION_EDGE_NAMES)

    @property
    def edge_context_names(self) -> list[str]:
        """Names of the edge features of :meth:`ImageSites.edge_context`."""
        return list(CONTEXT_EDGE_NAMES)

    def context_names(self, n_classes: int) -> list[str]:
        """Names of the auto-context features."""
        return context_names(self.n_axes, n_classes, self.graph == "pixels")

    def state(self) -> dict[str, Any]:
        """Settings and what was learned, as plain values."""
        levels = {kind: list(both) for kind, both in self.levels.items()}
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "levels": levels}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The extractor of a state; ValueError if it is damaged."""
        known = {f.name for f in fields(cls)}
        if not isinstance(state, dict) or set(state) != known:
            raise ValueError("the state of its image extractor is damaged")
        levels = state["levels"]
        if not isinstance(levels, dict) or any(not isinstance(v, list) or len(v) != 2 for v in levels.values()):
            raise ValueError("the levels of its image extractor are damaged")
        return cls(**{**state, "levels": {kind: (black, white) for kind, (black, white) in levels.items()}})


def _image_of(given: Any) -> Any:
    return given.image if isinstance(given, Presegmented) else given
