"""The description of an aligner that ``maxmargin inspect`` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maxmargin.tasks.alignment.aligner_file import KIND
from maxmargin.tasks.alignment.estimator import load_aligner


def describe(path: Path) -> dict[str, Any]:
    """Describe the aligner of a model file, as plain JSON values."""
    aligner = load_aligner(path)
    models, links = aligner.models_, aligner.link_model_.links
    return {
        "kind": KIND,
        "weights": len(aligner.coef_),
        "nonzero": int((aligner.coef_ != 0).sum()),
        **{f"trained {key}": value for key, value in aligner.metadata_.items() if key != "weights"},
        "fertility": aligner.fertility,
        "features": list(links.groups),
        "extra_columns": list(links.extra_names),
        "bitext_pairs": models.n_pairs,
        "source_words": len(models.words.cooccurrences.source),
        "target_words": len(models.words.cooccurrences.target),
        "word_pairs": models.words.cooccurrences.n_entries,
    }
