"""Metrics by name, as options of commands give them."""

from __future__ import annotations

from maxmargin._messages import shown
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.metrics.bleu import Bleu
from maxmargin.tasks.reranking.metrics.chrf import ChrF
from maxmargin.tasks.reranking.metrics.error_rates import CharacterErrorRate, WordErrorRate
from maxmargin.tasks.reranking.metrics.ter import Ter

METRICS = ("bleu", "chrf", "chrf++", "ter", "wer", "cer")
"""The names that :func:`metric_named` knows."""


def metric_named(name: str, *, tokenize: str = "none") -> Metric:
    """Return a metric with its usual settings.

    Args:
        name: one of :data:`METRICS`; case does not matter.
        tokenize: the tokenizer of BLEU, as :class:`Bleu` takes it.
    """
    if not isinstance(name, str):
        raise ValueError(f"the name of a metric must be one of {', '.join(METRICS)}, got {shown(name)}")
    match name.lower():
        case "bleu":
            return Bleu(tokenize=tokenize)
        case "chrf":
            return ChrF()
        case "chrf++":
            return ChrF(word_order=2)
        case "ter":
            return Ter()
        case "wer":
            return WordErrorRate()
        case "cer":
            return CharacterErrorRate()
    raise ValueError(f"no metric is named {shown(name)}; give one of {', '.join(METRICS)}")


def second_metrics(tuned: Metric) -> tuple[Metric, ...]:
    """Return what to show beside a metric that weights are tuned to: one that they were not tuned to."""
    others: dict[type[Metric], Metric] = {
        Bleu: ChrF(),
        ChrF: Bleu(),
        Ter: Bleu(),
        WordErrorRate: CharacterErrorRate(),
        CharacterErrorRate: WordErrorRate(),
    }
    return (others[type(tuned)],) if type(tuned) in others else ()
