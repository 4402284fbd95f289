"""From scans to sites: settings, what is learned from training scans, and the sites themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.scans.context import neighborhood_context
from maxmargin.tasks.segmentation.scans.grids import SHAPE_NAMES, Grid
from maxmargin.tasks.segmentation.scans.ground import height_over_ground
from maxmargin.tasks.segmentation.scans.neighbors import EDGE_NAMES, edge_features, nearest_edges, radius_edges
from maxmargin.tasks.segmentation.scans.points import CheckedPoints, checked_points
from maxmargin.tasks.segmentation.scans.spin import SHAPE, Components, spin_images
from maxmargin.tasks.segmentation.scans.thinning import Thinned, thin
from maxmargin.tasks.segmentation.sites import Extractor, Sites

_EDGE_SHAPES = slice(0, 3)  # linearity, planarity, scattering


@dataclass(frozen=True, eq=False)
class ScanSites(Sites):
    """The graph of one scan.

    Attributes:
        points: the place of each node, from the lowest corner of the scan, shape ``(n_nodes, 3)``.
        context_radii: radii of the neighborhoods of :meth:`context`.
        gap: how far above or below a node the column begins.
    """

    points: FloatArray
    context_radii: tuple[float, ...]
    gap: float

    def context(self, probabilities: FloatArray) -> npt.NDArray[np.float32]:
        """Own probabilities and their means around, above and below each node, at several radii."""
        grids = [Grid.of(self.points, radius) for radius in self.context_radii]
        return neighborhood_context(self.points, grids, probabilities, self.gap)


@dataclass(frozen=True)
class ScanExtractor(Extractor):
    """Sites of scans: voxels of points with features of their neighborhoods. Lengths are in units of the coordinates.

    Args:
        voxel: the size of the voxels whose points make one node; 0 makes every point a node, equal points one.
        radii: radii of the neighborhoods whose shape is measured, rising.
        context_radii: radii of the neighborhoods over which probabilities are averaged.
        neighbors: edges join each node to so many nearest ones; 0 for none of them.
        edge_radius: edges also join nodes at most so far apart; None for none of them.
        ground_cell: the size of the cells in which the lowest point is sought.
        ground_window: what is narrower than this and higher than its surroundings is not ground.
        gap: how far above or below a node its column begins.
        spin_reaches: reaches of spin images; none by default.
        spin_components: principal components of the spin images.
        attributes: names of the attributes that are features, None for all that the training scans have.
    """

    voxel: float = 0.2
    radii: tuple[float, ...] = (0.4, 0.8, 1.6, 3.2, 6.4)
    context_radii: tuple[float, ...] = (1.0, 2.5, 5.0)
    neighbors: int = 6
    edge_radius: float | None = None
    ground_cell: float = 0.5
    ground_window: float = 10.0
    gap: float = 1.0
    spin_reaches: tuple[float, ...] = ()
    spin_components: int = 45
    attributes: tuple[str, ...] | None = None
    attribute_widths: tuple[int, ...] | None = field(default=None, repr=False)
    components: Components | None = field(default=None, repr=False, compare=False)

    inputs: ClassVar[str] = "scans"

    def __post_init__(self) -> None:
        """Check the settings."""
        _checks.number("voxel", self.voxel, least=0)
        for name in ("ground_cell", "ground_window"):
            _checks.positive(name, getattr(self, name))
        if isinstance(self.attributes, str):
            raise ValueError(
                f"attributes must be a list of names, got {shown(self.attributes)}; write [{shown(self.attributes)}]"
            )
        _checks.number("gap", self.gap, least=0)
        _checks.integer("neighbors", self.neighbors, least=0)
        _checks.integer("spin_components", self.spin_components, least=1)
        if self.edge_radius is not None:
            _checks.positive("edge_radius", self.edge_radius)
        for name in ("radii", "context_radii", "spin_reaches"):
            object.__setattr__(self, name, _lengths(name, getattr(self, name)))
        if not self.radii:
            raise ValueError("radii must have at least one radius, got none")

    @property
    def fitted(self) -> bool:
        """Whether all that training scans tell is known."""
        return self.attribute_widths is not None and bool(self.spin_reaches) == (self.components is not None)

    def fit(self, scans: Sequence[Any]) -> Self:
        """Learn the attributes of training scans, and principal components where there are spin images."""
        if not len(scans):
            raise ValueError("there are no scans to learn from; give at least one")
        names, widths = self.attributes, self.attribute_widths
        tables = []
        for index, scan in enumerate(scans):
            where = f"example {index}: "
            found = checked_points(scan, names, where)
            own = tuple(values.shape[1] for values in found.attributes.values())
            if names is None:
                names = tuple(found.attributes)
            if widths is None or index == 0:
                widths = own
            elif widths != own:
                raise ValueError(
                    f"{where}attributes {', '.join(names)} have {own} columns, but {widths} in the first scan; "
                    "give all scans the same attributes"
                )
            if self.spin_reaches:
                tables.append(self._spin_images(thin(found.points, self.voxel)))
        components = Components.fit(tables, self.spin_components) if tables else None
        return replace(self, attributes=names, attribute_widths=widths, components=components)

    def sites(self, scan: Any) -> ScanSites:
        """The nodes, edges and features of a scan: an array of points, or points with attributes."""
        self._require_fitted()
        found = checked_points(scan, self.attributes)
        nodes = thin(found.points, self.voxel)
        fine = thin(found.points, self.voxel / 4).points
        columns: list[npt.NDArray[Any]] = [
            nodes.means(height_over_ground(found.points, cell=self.ground_cell, window=self.ground_window)[:, None]),
            np.log(nodes.size)[:, None],
        ]
        shapes = [Grid.of(fine, radius).shapes(nodes.points) for radius in self.radii]
        columns += [table for table, _ in shapes]
        columns += self._attribute_features(found, nodes)
        if self.components is not None:
            columns.append(self.components(self._spin_images(nodes)))
        edges = nearest_edges(nodes.points, self.neighbors)
        if self.edge_radius is not None:
            edges = np.unique(np.concatenate([edges, radius_edges(nodes.points, self.edge_radius)]), axis=0)
        # The second radius: the smallest has few points where the scan is sparse.
        table, normals = shapes[min(1, len(shapes) - 1)]
        alike = edge_features(nodes.points, edges, normals, table[:, _EDGE_SHAPES], self.radii[0])
        features = np.concatenate(columns, axis=1).astype(np.float32)
        return ScanSites(features, edges, alike, nodes.node_of, nodes.size, nodes.points, self.context_radii, self.gap)

    def labels_shape(self, scan: Any) -> tuple[int, ...]:
        """One label per point."""
        return (len(checked_points(scan, ()).points),)

    def _attribute_features(self, found: CheckedPoints, nodes: Thinned) -> list[npt.NDArray[np.float32]]:
        names = self.attributes or ()
        if not names:
            return []
        widths = tuple(found.attributes[name].shape[1] for name in names)
        if widths != self.attribute_widths:
            raise ValueError(
                f"attributes {', '.join(names)} have {widths} columns, but {self.attribute_widths} in training; "
                "give the attributes of the training scans"
            )
        own = nodes.means(np.concatenate([found.attributes[name] for name in names], axis=1)).astype(np.float32)
        around = [
            Grid.of(nodes.points, radius).average(nodes.points, own, gap=radius, missing=0.0)[:, 0]
            for radius in self.radii[1:3]
        ]
        return [own, *around]

    def _spin_images(self, nodes: Thinned) -> FloatArray:
        return spin_images(nodes.points, self.spin_reaches)

    def _require_fitted(self) -> None:
        if not self.fitted:
            raise ValueError("the extractor has not seen training scans; call fit first")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the node features."""
        self._require_fitted()
        names = ["height over ground", "log size"]
        names += [f"{name} at {radius:g}" for radius in self.radii for name in SHAPE_NAMES]
        pairs = zip(self.attributes or (), self.attribute_widths or (), strict=True)
        own = [name if width == 1 else f"{name} {i}" for name, width in pairs for i in range(width)]
        if own:
            names += own + [f"{name} around {radius:g}" for radius in self.radii[1:3] for name in own]
        count = len(self.components.axes) if self.components is not None else 0
        return (*names, *(f"spin {i}" for i in range(count)))

    @property
    def n_features(self) -> int:
        """The number of node features."""
        return len(self.feature_names)

    @property
    def edge_feature_names(self) -> tuple[str, ...]:
        """Names of the edge features."""
        return EDGE_NAMES

    def state(self) -> dict[str, Any]:
        """Settings and what was learned, as plain values and arrays."""
        state = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "components"}
        state = {name: list(value) if isinstance(value, tuple) else value for name, value in state.items()}
        if self.components is not None:
            learned = self.components
            state |= {"spin_mean": learned.mean, "spin_spread": learned.spread, "spin_axes": learned.axes}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The extractor with this state; ValueError where it is not that of an extractor."""
        known = {f.name for f in fields(cls)} - {"components"}
        arrays = [state[name] for name in ("spin_mean", "spin_spread", "spin_axes") if name in state]
        settings = {name: value for name, value in state.items() if not name.startswith("spin_") or name in known}
        if set(settings) != known or len(arrays) not in (0, 3):
            odd = sorted(set(settings) ^ known) or ["components of spin images"]
            raise ValueError(f"not the state of a scan extractor: {shown(odd[0])} is missing or unknown")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
        }
        _check_attributes(values["attributes"], values["attribute_widths"])
        made = cls(**dict[str, Any](values), components=_components(arrays) if arrays else None)
        if (
            made.components is not None
            and made.components.axes.shape[1] != len(made.spin_reaches) * SHAPE[0] * SHAPE[1]
        ):
            raise ValueError("not the state of a scan extractor: components do not fit the spin images")
        return made


def _lengths(name: str, values: Any) -> tuple[float, ...]:
    try:
        found = tuple(_checks.positive(name, value) for value in values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of numbers > 0, got {shown(values)}") from None
    if any(second <= first for first, second in pairwise(found)):
        raise ValueError(f"{name} must rise, got {shown(values)}")
    return found


def _check_attributes(names: Any, widths: Any) -> None:
    unset = names is None and widths is None
    good = names is None or (isinstance(names, tuple) and all(isinstance(name, str) for name in names))
    if widths is not None:
        good &= isinstance(widths, tuple) and all(type(width) is int and width >= 0 for width in widths)
        good &= isinstance(names, tuple) and len(names) == len(widths)
    if not (unset or good):
        raise ValueError(f"not the state of a scan extractor: attributes {shown(names)} with widths {shown(widths)}")


def _components(arrays: list[Any]) -> Components:
    mean, spread, axes = (np.asarray(array) for array in arrays)
    good = mean.ndim == 1 and spread.shape == mean.shape and axes.ndim == 2 and axes.shape[1:] == mean.shape
    good = good and len(axes) > 0 and all(array.dtype.kind == "f" for array in (mean, spread, axes))
    if not (good and all(np.isfinite(array).all() for array in (mean, spread, axes)) and (spread > 0).all()):
        raise ValueError("not the state of a scan extractor: principal components of spin images are damaged")
    return Components(*(array.astype(np.float64) for array in (mean, spread, axes)))
