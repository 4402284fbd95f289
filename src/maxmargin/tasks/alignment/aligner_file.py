"""Model files of aligners, see docs/model-format.md: written, and read with all contents checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import model_file
from maxmargin._version import __version__
from maxmargin.model_file import ModelFileError
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.confidence import Calibration
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES
from maxmargin.tasks.alignment.encoder.features import LinkFeatures
from maxmargin.tasks.alignment.training import LinkModel
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels

KIND = "word alignment"
LOADER = "maxmargin.tasks.alignment.load_aligner"
"""The function that errors name if a file of this kind is loaded as another."""


class AlignerState(NamedTuple):
    """The state of a fitted aligner.

    ``lexical`` has the entries of the frequent word pairs in the co-occurrences of words, ``metadata`` says how the
    aligner was trained.
    """

    link_model: LinkModel
    models: BitextModels
    lexical: IntArray
    weights: FloatArray
    calibration: Calibration
    metadata: dict[str, Any]


def write(path: str | Path, state: AlignerState) -> None:
    """Write a file; an existing one is replaced only when the new one is complete."""
    curve = state.calibration
    header = {
        "kind": KIND,
        "loader": LOADER,
        "library": __version__,
        "fertility": state.link_model.fertility,
        "features": state.link_model.links.header(),
        "models": state.models.header(),
        "calibration": [curve.slope, curve.intercept, curve.bend],
        "metadata": state.metadata,
    }
    arrays = {"weights": state.weights, "lexical": state.lexical, **state.models.arrays()}
    model_file.write(path, header, arrays)


def read(path: str | Path) -> AlignerState:
    """The state in a file, or ModelFileError."""
    header, arrays = model_file.read(path)
    try:
        return _checked(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(
            f"{path} cannot be loaded: {reason}; give a file written by save() or by align train"
        ) from None


def _checked(header: dict[str, Any], arrays: dict[str, Any]) -> AlignerState:
    if header.get("kind") != KIND:
        raise ValueError(f"it holds a model of kind {header.get('kind')!r}, not {KIND!r}")
    models = BitextModels.restore(header["models"], arrays)
    features, fertility = LinkFeatures.from_header(header["features"]), header["fertility"]
    if isinstance(fertility, bool) or not isinstance(fertility, int) or not 1 <= fertility <= 1000:
        raise ValueError("its fertility is damaged")
    if features.posterior_names != POSTERIOR_NAMES:
        raise ValueError("its columns of posteriors are not those of this version")
    link_model = LinkModel(features, fertility)
    lexical, weights = arrays["lexical"], arrays["weights"]
    if lexical.dtype != np.int64 or lexical.shape != (features.n_lexical,) or (np.diff(lexical) <= 0).any():
        raise ValueError("its frequent word pairs are damaged")
    if len(lexical) and not 0 <= lexical[0] <= lexical[-1] < models.words.cooccurrences.n_entries:
        raise ValueError("its frequent word pairs are damaged")
    if weights.dtype != np.float64 or weights.shape != (link_model.n_weights,):
        raise ValueError(f"it needs {link_model.n_weights} weights, it has shape {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("its weights are not finite")
    metadata = header["metadata"]
    if not isinstance(metadata, dict):
        raise ValueError("its metadata is damaged")
    slope, intercept, bend = (float(value) for value in header["calibration"])
    if not (np.isfinite([slope, intercept, bend]).all() and slope > 0 and bend >= 0):
        raise ValueError("its calibration is damaged")
    return AlignerState(link_model, models, lexical, weights, Calibration(slope, intercept, bend), metadata)
