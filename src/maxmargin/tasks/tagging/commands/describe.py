"""What ``maxmargin inspect`` says of a tagger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.tasks.tagging.model import KIND, load_tagger

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.model import TaggerModel


def describe(path: Path) -> dict[str, Any]:
    """What a model file says about its tagger, as plain JSON values."""
    return metadata_of(load_tagger(path))


def metadata_of(model: TaggerModel) -> dict[str, Any]:
    """What there is to say of a tagger in a few words."""
    layout, extractor = model.layout, model.extractor
    template = getattr(extractor, "template", None)
    file = model.metadata.get("file")
    more = {} if not isinstance(file, dict) else {f"trained on {key}": value for key, value in file.items()}
    return {
        "kind": KIND,
        "weights": len(model.weights),
        "nonzero": int(np.count_nonzero(model.weights)),
        **{f"trained {key}": value for key, value in model.metadata.items() if key != "file"},
        **more,
        "labels": len(model.labels),
        "order": layout.order,
        "rules": "none"
        if layout.constraints is None
        else f"{int((~layout.constraints.pairs).sum())} pairs of labels forbidden",
        "input": extractor.kind,
        "attributes": extractor.n_attributes,
        "attributes of pairs": extractor.n_edge_attributes,
        "columns needed": [] if template is None else list(template.columns_used),
        "temperature": model.temperature,
    }
