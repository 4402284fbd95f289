"""Channels of pixels: color at several scales, gradients, Laplacians of Gaussians.

Images have two or three spatial axes; all functions here take ``color`` with a last axis of one (lightness) or three
(CIE L*a*b*) values, as :func:`color_of` returns it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from maxmargin.structures._arrays import array_of

Pixels = npt.NDArray[np.float32]
Levels = tuple[float, float]
"""The values of black and white."""

COLOR_SIGMAS = (0.0, 2.0, 5.0)
TEXTURE_SIGMAS = (1.0, 2.0, 4.0)
TRUNCATE = 3.0

_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = np.array([0.95047, 1.0, 1.08883])
_LUMA = np.array([0.2126, 0.7152, 0.0722])


def spatial_axes(image: npt.NDArray[Any]) -> int:
    """The number of spatial axes: 2 or 3; a last axis of three values is color."""
    return image.ndim - 1 if image.ndim >= 3 and image.shape[-1] == 3 else image.ndim


def checked_image(image: Any) -> npt.NDArray[Any]:
    """The image as an array; ValueError where it is not an image or a stack.

    A last axis of one value, after two or three others, is dropped; one of four values is refused as color with alpha.
    A stack of images one or four pixels wide has to be padded for that reason.
    """
    found = array_of(
        image, "an image", "uif", "numbers of shape (height, width), (height, width, 3) or a stack of these"
    )
    if found.ndim in (3, 4) and found.shape[-1] == 4:
        raise ValueError(f"the image of shape {found.shape} has a fourth color; drop alpha: image[..., :3]")
    if found.ndim in (3, 4) and found.shape[-1] == 1:
        found = found[..., 0]
    if found.dtype.kind not in "uif" or not 2 <= found.ndim <= 4 or spatial_axes(found) not in (2, 3):
        raise ValueError(
            f"an image must be numbers of shape (height, width), (height, width, 3), (depth, height, width) or "
            f"(depth, height, width, 3), got shape {found.shape} of {found.dtype}"
        )
    if found.size == 0:
        raise ValueError(f"the image of shape {found.shape} has no pixel; leave it out")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError("the image holds NaN or infinity; replace such pixels first")
    return found


BYTE_LEVELS = (0.0, 255.0)
LEVEL_TYPES = ("int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float")
"""Types of pixels whose levels differ from model to model; those of bytes never do."""


def level_type(image: npt.NDArray[Any]) -> str:
    """One of :data:`LEVEL_TYPES`, or "uint8"; numbers with a point are one type whatever their precision."""
    return "float" if image.dtype.kind == "f" else image.dtype.name


def levels_of(image: npt.NDArray[Any]) -> Levels:
    """The levels of black and white that suit an image: 0 and 255 for bytes, else nearly its smallest and largest."""
    if image.dtype == np.uint8:
        return BYTE_LEVELS
    low, high = np.percentile(image, [0.1, 99.9]).tolist()
    return (low, high) if high > low else (low, low + 1.0)


def full_levels(image: npt.NDArray[Any]) -> Levels:
    """The levels of black and white of the scale on which an image seems to be, whatever its own contrast.

    Black is 0. White is 1 if the largest value is at most that, else the largest number of 8, 10, 12 ... bits that is
    not below it. Images with negative values, or none above 1/4, are on no such scale: see :func:`levels_of`.
    """
    low, high = float(image.min()), float(image.max())
    if low < 0 or high <= 0.25:
        return levels_of(image)
    if image.dtype.kind == "f" and high <= 1:
        return 0.0, 1.0
    bits = int(np.ceil(high)).bit_length()
    return 0.0, 2.0 ** max(8, bits + bits % 2) - 1.0


def color_of(image: npt.NDArray[Any], levels: Levels, n_colors: int) -> Pixels:
    """L*a*b* (``n_colors = 3``) or lightness (1) of every pixel, between 0 (black) and 100 (white).

    Gray images have a = b = 0; a lightness is taken from color images by their luminance.
    """
    gray = spatial_axes(image) == image.ndim
    black, white = levels
    scaled = (image.astype(np.float32) - np.float32(black)) * np.float32(1.0 / (white - black))
    linear = _linear(np.clip(scaled, 0.0, 1.0))
    if gray or n_colors == 1:
        light = _lightness(linear if gray else linear @ _LUMA.astype(np.float32))
        color = np.zeros((*light.shape, n_colors), dtype=np.float32)
        color[..., 0] = light
        return color
    x, y, z = (
        _cube_root(linear @ (row / white).astype(np.float32)) for row, white in zip(_TO_XYZ, _WHITE, strict=True)
    )
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)], axis=-1)


def _linear(values: Pixels) -> Pixels:
    """sRGB to linear light, by a table of 4096 entries."""
    steps = np.linspace(0.0, 1.0, 4096)
    table = np.where(steps > 0.04045, ((steps + 0.055) / 1.055) ** 2.4, steps / 12.92).astype(np.float32)
    return table[(values * np.float32(4095.0) + np.float32(0.5)).astype(np.int16)]


def _cube_root(values: Pixels) -> Pixels:
    return np.where(values > 0.008856, np.cbrt(values), np.float32(7.787) * values + np.float32(16.0 / 116.0))


def _lightness(luminance: Pixels) -> Pixels:
    return np.float32(116.0) * _cube_root(luminance) - np.float32(16.0)


def smooth(channel: Pixels, sigma: float, order: int | tuple[int, ...] = 0) -> Pixels:
    """A Gaussian filter, or a derivative of one."""
    if sigma == 0.0:
        return channel
    return np.asarray(ndimage.gaussian_filter(channel, sigma, order, mode="nearest", truncate=TRUNCATE))


def derivatives(light: Pixels, sigma: float) -> tuple[list[Pixels], Pixels]:
    """The gradient of the smoothed lightness along each axis, and its Laplacian, scaled so that scales compare."""
    smoothed = smooth(light, sigma)
    first = [_correlate(smoothed, [-0.5, 0.0, 0.5], axis) for axis in range(light.ndim)]
    second = _correlate(smoothed, [1.0, -2.0, 1.0], 0)
    for axis in range(1, light.ndim):
        second += _correlate(smoothed, [1.0, -2.0, 1.0], axis)
    second *= np.float32(sigma * sigma)
    return first, second


def _correlate(values: Pixels, weights: list[float], axis: int) -> Pixels:
    return np.asarray(ndimage.correlate1d(values, weights, axis=axis, mode="nearest"))


def magnitude(parts: list[Pixels]) -> Pixels:
    """The length of a vector field."""
    total = parts[0] * parts[0]
    for part in parts[1:]:
        total += part * part
    return np.asarray(np.sqrt(total, out=total))


def pixel_channels(color: Pixels) -> tuple[Pixels, Pixels]:
    """Channels of every pixel, shape ``(n_pixels, c)``, and the gradient at the finest scale.

    Names are those of :func:`pixel_channel_names`.
    """
    planes = [np.ascontiguousarray(color[..., k]) for k in range(color.shape[-1])]
    found = [smooth(plane, sigma) for sigma in COLOR_SIGMAS for plane in planes]
    strengths, seconds = [], []
    for sigma in TEXTURE_SIGMAS:
        first, second = derivatives(planes[0], sigma)
        strengths.append(magnitude(first))
        seconds.append(second)
    return np.stack([channel.ravel() for channel in [*found, *strengths, *seconds]], axis=1), strengths[0]


def pixel_channel_names(n_colors: int) -> list[str]:
    """The columns of :func:`pixel_channels`."""
    names = [f"{letter} at {sigma:g}" for sigma in COLOR_SIGMAS for letter in "Lab"[:n_colors]]
    return names + [f"{what} at {sigma:g}" for what in ("gradient", "Laplacian") for sigma in TEXTURE_SIGMAS]
