"""Labeled pictures and scans that are drawn, for examples, tests and the demo: nothing has to be downloaded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.io.points import Scan

Image = npt.NDArray[np.uint8]

PICTURE_CLASSES = ("ground", "leaf", "berry")
"""Names of the labels 0, 1 and 2 of pictures."""

_GROUNDS = ((122, 98, 70), (150, 138, 112), (104, 112, 84), (138, 120, 96), (92, 84, 78))
_LEAVES = ((84, 122, 54), (112, 132, 60), (140, 96, 50), (150, 122, 52), (70, 104, 72))
_BERRIES = ((150, 34, 44), (64, 52, 120), (178, 70, 30))


def drawn_pictures(
    n: int, seed: int = 0, *, size: tuple[int, int] = (120, 160), classes: int = 2
) -> tuple[list[Image], list[IntArray]]:
    """Pictures of a leaf on the ground, with texture, shade, shadow and noise, and the labels of their pixels.

    Args:
        n: number of pictures.
        seed: random seed; the pictures of a seed are always the same.
        size: height and width.
        classes: 2 for ground and leaf; 3 for ground, leaf and berries.
    """
    if classes not in (2, 3):
        raise ValueError(f"classes must be 2 or 3, got {classes}")
    rng = np.random.default_rng(seed)
    found = [_picture(rng, size, classes) for _ in range(n)]
    return [image for image, _ in found], [labels for _, labels in found]


def _picture(rng: np.random.Generator, size: tuple[int, int], classes: int) -> tuple[Image, IntArray]:
    height, width = size
    side = float(min(size))
    y, x = np.mgrid[:height, :width].astype(np.float64)
    # Patches of the ground have the colors of leaves: texture, shape and shadow must tell them apart.
    moss = 1.0 / (1.0 + np.exp(3.0 - 4.0 * _cloud(rng, size, side / 8)))[..., None]
    ground = (1.0 - moss) * _color(rng, _GROUNDS) + moss * _color(rng, _LEAVES)
    ground = ground + 16.0 * _cloud(rng, size, side / 9)[..., None] + 9.0 * _clouds(rng, size, side / 50)
    # The leaf: a wavy closed curve in polar coordinates, stretched and turned.
    angle, stretch = rng.uniform(0, np.pi), rng.uniform(1.0, 1.7)
    middle = np.array([height, width]) * rng.uniform(0.38, 0.62, 2)
    along = (np.cos(angle) * (x - middle[1]) + np.sin(angle) * (y - middle[0])) / stretch
    across = -np.sin(angle) * (x - middle[1]) + np.cos(angle) * (y - middle[0])
    turn, reach = np.arctan2(across, along), np.hypot(along, across)
    outline = np.ones(size)
    for wave in range(2, 8):
        outline += 0.42 / wave * rng.uniform(-1, 1) * np.cos(wave * turn + rng.uniform(0, 2 * np.pi))
    leaf = reach < side * rng.uniform(0.22, 0.32) * np.maximum(outline, 0.35)
    labels = leaf.astype(np.int64)
    veins = np.cos((across + 0.6 * np.abs(along)) * 2 * np.pi / (side / 9)) ** 8
    blade = _color(rng, _LEAVES) + 20.0 * _cloud(rng, size, side / 14)[..., None] + 9.0 * veins[..., None]
    blade += 8.0 * _clouds(rng, size, side / 60)
    light = rng.uniform(-1, 1, 2)
    slope = light @ np.stack([across, along]).reshape(2, -1) / side
    blade *= 1.0 + 0.5 * np.clip(slope.reshape(size), -0.6, 0.6)[..., None]
    image = np.where(leaf[..., None], blade, _shadowed(ground, leaf, light, side))
    if classes == 3:
        for _ in range(int(rng.integers(3, 7))):
            place, radius = rng.uniform(0.08, 0.92, 2) * size, side * rng.uniform(0.045, 0.085)
            distance = np.hypot(y - place[0], x - place[1]) / radius
            berry = distance < 1.0
            labels[berry] = 2
            lit = np.hypot(y - place[0] + 0.4 * radius, x - place[1] + 0.4 * radius) / radius
            skin = _color(rng, _BERRIES) * (1.25 - 0.5 * np.clip(lit, 0, 1.6))[..., None]
            image = np.where(berry[..., None], skin + 70.0 * np.exp(-12.0 * lit**2)[..., None], image)
    image = ndimage.gaussian_filter(image, (0.6, 0.6, 0)) + rng.normal(scale=14.0, size=(*size, 3))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8), labels


def _color(rng: np.random.Generator, colors: tuple[tuple[int, int, int], ...]) -> FloatArray:
    """One of the colors, a little changed."""
    return np.asarray(colors[int(rng.integers(len(colors)))] + rng.normal(scale=9.0, size=3))


def _cloud(rng: np.random.Generator, size: tuple[int, int], scale: float) -> FloatArray:
    """Smooth noise of unit spread."""
    smooth = ndimage.gaussian_filter(rng.normal(size=size), scale, mode="reflect")
    return np.asarray(smooth / max(float(smooth.std()), 1e-9))


def _clouds(rng: np.random.Generator, size: tuple[int, int], scale: float) -> FloatArray:
    """Smooth noise in three colors."""
    return np.stack([_cloud(rng, size, scale) for _ in range(3)], axis=-1)


def _shadowed(ground: FloatArray, leaf: npt.NDArray[np.bool_], light: FloatArray, side: float) -> FloatArray:
    """The ground with the shadow that the leaf casts on it."""
    shadow = ndimage.shift(leaf.astype(np.float64), -0.07 * side * light, order=0)
    return np.asarray(ground * (1.0 - 0.35 * ndimage.gaussian_filter(shadow, side / 40))[..., None])


def drawn_scans(n: int, seed: int = 0, *, points: int = 3000) -> tuple[list[Scan], list[IntArray]]:
    """Scans of uneven ground with trees and a wall, 20 by 12 meters, and the labels of their points.

    Args:
        n: number of scans.
        seed: random seed; the scans of a seed are always the same.
        points: points of a scan, about.
    """
    rng = np.random.default_rng(seed)
    found = [_scan(rng, points) for _ in range(n)]
    return [scan for scan, _ in found], [labels for _, labels in found]


def _scan(rng: np.random.Generator, points: int) -> tuple[Scan, IntArray]:
    waves = rng.uniform(0.1, 0.35, 2), rng.uniform(0, 2 * np.pi, 2)

    def ground(place: FloatArray) -> FloatArray:
        return np.asarray(
            0.4 * np.sin(waves[0][0] * place[:, 0] + waves[1][0])
            + 0.3 * np.sin(waves[0][1] * place[:, 1] + waves[1][1])
        )

    parts: list[tuple[FloatArray, int, float]] = []
    floor = rng.uniform((0, 0), (20, 12), (points // 2, 2))
    parts.append((np.column_stack([floor, ground(floor)]), 0, 0.35))
    for _ in range(3):
        foot = rng.uniform((2, 1), (18, 8), 2)
        trunk = np.column_stack(
            [foot + rng.normal(scale=0.12, size=(points // 40, 2)), rng.uniform(0, 2.2, points // 40)]
        )
        crown = rng.normal(size=(points // 10, 3))
        crown *= rng.uniform(0.5, 1.0, (len(crown), 1)) / np.linalg.norm(crown, axis=1, keepdims=True)
        crown = crown * rng.uniform(1.0, 1.8, 3) + [*foot, 3.2]
        tree = np.concatenate([trunk, crown])
        tree[:, 2] += ground(foot[None])[0]
        parts.append((tree, 1, 0.55))
    start, length = rng.uniform(1, 6), rng.uniform(7, 12)
    wall = rng.uniform((start, 0), (start + length, 3.5), (points // 4, 2))
    foot = np.column_stack([wall[:, 0], np.full(len(wall), 10.5)])
    parts.append((np.column_stack([foot, wall[:, 1] + ground(foot)]), 2, 0.7))
    place = np.concatenate([part for part, _, _ in parts]) + rng.normal(
        scale=0.03, size=(sum(len(p) for p, _, _ in parts), 3)
    )
    labels = np.concatenate([np.full(len(part), label) for part, label, _ in parts])
    bright = np.concatenate([np.full(len(part), mean) for part, _, mean in parts])
    intensity = np.clip(bright + rng.normal(scale=0.15, size=len(bright)), 0, 1)
    order = rng.permutation(len(place))
    return Scan(place[order], {"intensity": intensity[order]}), labels[order].astype(np.int64)
