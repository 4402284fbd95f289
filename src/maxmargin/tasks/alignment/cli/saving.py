"""The end of ``train`` and ``bootstrap``: the model file, the report on it, and what Ctrl-C leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from maxmargin._terminal import report
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import written_line


def save(
    model: AlignerModel, checkpoints: Checkpoints, began: float, *, least: float, annotated: int, as_json: bool
) -> None:
    """Write a model file, with word pairs of at least a probability, remove its checkpoints, and report on it."""
    out = checkpoints.out
    if not model.trained:  # interrupted before the first weights: translation models alone replace no other model
        if not out.exists():
            model.save(out, min_probability=least)
        raise KeyboardInterrupt
    checkpoints.save(model, min_probability=least)
    metadata = {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "bitext_pairs": model.encoder.models.n_pairs,
        "annotated_pairs": annotated,
        "weights": len(model.weights),
        **{key: value for key, value in model.metadata.items() if value is not None},
        "seconds": time.perf_counter() - began,
    }
    report(metadata, as_json=as_json)


def left_with(checkpoints: Checkpoints) -> Callable[[Sequence[Path], bool], str]:
    """What Ctrl-C leaves of a training that saves checkpoints."""

    def left(written: Sequence[Path], best: bool) -> str:
        model = [one for one in written if one == checkpoints.out]  # not checkpoints
        return "; ".join(filter(None, (_left_behind(model, best), checkpoints.kept())))

    return left


def _left_behind(written: Sequence[Path], best: bool) -> str:
    """What Ctrl-C leaves of a training: nothing, translation models, the best weights so far, or the whole model."""
    if not written:
        return "nothing was written"
    bare = not AlignerModel.load(written[0]).trained
    rest = f" with translation models, but without weights: --reuse {written[0]} uses them again" if bare else ""
    return written_line(written[0], best) + rest
