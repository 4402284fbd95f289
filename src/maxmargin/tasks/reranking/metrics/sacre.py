"""What sacrebleu is used for: tokenizers, and the signatures that make scores reproducible."""

from __future__ import annotations

from typing import Any

from maxmargin import _version
from maxmargin._messages import shown
from maxmargin.tasks.common.packages import MissingPackageError, optional


def twin(name: str, **settings: Any) -> Any:
    """Return a metric of sacrebleu: ``BLEU``, ``CHRF`` or ``TER``."""
    return getattr(optional("sacrebleu.metrics", "rerank"), name)(**settings)


def tokenizer(name: str) -> Any:
    """Return a tokenizer of sacrebleu, a function from line to line; ValueError if there is no such one."""
    known = list(optional("sacrebleu.metrics", "rerank").BLEU.TOKENIZERS)
    if name not in known:
        raise ValueError(f"tokenize must be one of {', '.join(known)}, got {shown(name)}")
    try:
        return twin("BLEU", tokenize=name).tokenizer
    except (ImportError, RuntimeError) as error:  # a package that a tokenizer needs
        raise ValueError(f"tokenize={shown(name)}: {' '.join(str(error).split())}") from None


def signature(name: str, own: str, **settings: Any) -> str:
    """Return the signature that sacrebleu gives a metric, without the number of references.

    Args:
        name: of the metric in sacrebleu.
        own: the settings in the same form, for a signature of our own where sacrebleu is not installed.
        settings: of the metric in sacrebleu.
    """
    try:
        metric = twin(name, **settings)
    except MissingPackageError:
        return f"{own}|version:maxmargin-{_version.__version__}"
    metric.num_refs = 1
    found = metric.get_signature()
    found.update("nrefs", None)
    return str(found.format())
