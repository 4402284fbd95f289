"""What ``maxmargin inspect`` says of an aligner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maxmargin.tasks.alignment.aligner import load_aligner
from maxmargin.tasks.alignment.aligner_file import KIND


def describe(path: Path) -> dict[str, Any]:
    """What a model file says about its aligner, as plain JSON values."""
    aligner = load_aligner(path)
    models, links = aligner.models_, aligner.link_model_.links
    return {
        "kind": KIND,
        "weights": len(aligner.coef_),
        "nonzero": int((aligner.coef_ != 0).sum()),
        **{f"trained {key}": value for key, value in aligner.metadata_.items() if key != "weights"},
        "fertility": aligner.fertility,
        "features": list(links.groups),
        "extra columns": list(links.user_names),
        "sentence pairs of the translation models": models.n_pairs,
        "source words": len(models.words.lexicon.source),
        "target words": len(models.words.lexicon.target),
        "word pairs": models.words.lexicon.n_slots,
    }
