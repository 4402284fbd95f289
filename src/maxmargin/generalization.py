"""The generalization bound of Wang and Shawe-Taylor (2009): Theorem 6.2 with Corollary 6.3, for a trained model.

A *triple* is an input with a right and a wrong output, ``f(x, y, y') = w'(phi(x, y) - phi(x, y'))``, and its error is
``f < 0``. With the ``|S|`` triples of ``m`` examples, with probability ``1 - eta`` over them,

    P(f < 0)  <=  2 / |S| (log2 N(2 |S|, gamma / 2) + log2(2 / eta)),
    log2 N(l, gamma)  <=  36 c^2 b^2 (1 + ln(d + m)) / gamma^2  log2(2 ceil(4 c b / gamma + 2) l + 1)

where ``c = ||w||_1 + C sum_i xi_i``, ``xi_i = max(0, gamma - min f)`` over the triples of example ``i``, ``b`` is at
least ``1/C`` and every ``|phi_k(x, y) - phi_k(x, y')|``, and ``d`` counts nonnegative weights: a weight of either sign
is two of them. Only ``c / gamma`` enters; LP (8), here ``norm="l1"`` with ``rescaling="none"``, minimizes it.

What it assumes, and what that is worth: see :func:`generalization_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.encoders.data import checks
from maxmargin.losses import Hamming
from maxmargin.models.base import Model
from maxmargin.problem import CandidateSets, Problem
from maxmargin.regions import L1
from maxmargin.structures._arrays import vector


@dataclass(frozen=True)
class GeneralizationBound:
    """A bound on the probability that a wrong output scores higher than a right one, and what it is made of.

    Attributes:
        log2_error: the paper's bound as its logarithm to base 2: the bound itself is often too small for a number.
        over_examples: the same with ``2 / m`` in place of ``2 / |S|``: a bound on the probability that *any* wrong
            output of an input scores higher, which asks only that the examples are independent.
        norm: ``c / gamma``.
        largest: ``b``.
        dimension: ``d``.
        n_examples: ``m``.
        log_triples: ``ln |S|``.
        eta: the probability that the bound fails.
    """

    log2_error: float
    over_examples: float
    norm: float
    largest: float
    dimension: int
    n_examples: int
    log_triples: float
    eta: float

    @property
    def error(self) -> float:
        """The paper's bound; 0 where it is below the smallest number."""
        return float(np.exp2(self.log2_error)) if self.log2_error < 1024 else np.inf

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing even if all triples were independent draws."""
        return self.log2_error >= 0.0

    def __str__(self) -> str:
        ten = np.log10(2.0)
        size = f"10^{ten * self.log2_error:.1f}" if abs(self.log2_error) > 20 else f"{self.error:.3g}"
        empty = ", which is vacuous" if self.over_examples >= 1.0 else ""
        return (
            f"error of triples at most {size} with probability {1.0 - self.eta:g}, if the 10^"
            f"{self.log_triples / np.log(10.0):.1f} triples were independent draws"
            f"{', which is vacuous' if self.vacuous else ''}; over the {self.n_examples} examples, which may be, "
            f"{self.over_examples:.3g}{empty}"
        )


def generalization_bound(
    model: Any,
    X: Any,
    y: Any,
    *,
    C: float | None = None,
    gamma: float = 1.0,
    eta: float = 0.05,
    nonnegative: bool = False,
    largest: float | None = None,
    log_outputs: Any = None,
) -> GeneralizationBound:
    """The bound of a trained model on its training data (formulas above); costs one pass of 2-best decoding.

    It assumes that ``C``, ``gamma`` and the norm ``c`` were fixed before the data was seen (the norm of the solution
    is used, so it holds for all models of at most this norm), that differences of features stay below ``b`` for unseen
    inputs as well, and that training points with a slack are not met again. Above all it takes the triples for
    independent draws. They are not: all wrong outputs of one input come together, and of those there are exponentially
    many. So the paper's bound is tiny for any weights, good or bad, where outputs are many, and says little;
    ``over_examples`` makes no such assumption and is vacuous (1 or more) unless the margins are very large or the
    examples very many. Compare bounds of models of the same data; do not quote them as error rates.

    Args:
        model: a :class:`Model`, or an estimator that has one. Kernel models are refused.
        X: the training inputs.
        y: the gold outputs; of lists of candidates, all good ones: triples are then pairs of a good and a bad one.
        C: of the objective ``||w||_1 + C sum_i xi_i``; None for that of the model's training.
        gamma: the margin.
        eta: the probability that the bound fails.
        nonnegative: whether training kept all weights >= 0; otherwise each counts as two.
        largest: the largest difference of two outputs in any feature; None for the largest sum of a feature's absolute
            values over the parts of an example of ``X``, which is not below it on these examples.
        log_outputs: natural logarithm of the number of outputs of each example, where the structure does not know it.

    Returns:
        The bound with all numbers that enter it.
    """
    trained: Model = getattr(model, "model_", model)
    if not isinstance(trained, Model):
        raise ValueError(f"model must be a Model or an estimator that has been fitted, got {shown(model)}")
    encoder = trained.encoder
    if encoder.l1_unsupported:
        raise ValueError(f"the bound is about sums of absolute weights: {encoder.l1_unsupported}")
    given = trained.metadata.get("C") if C is None else C
    if given is None:
        raise ValueError("the model does not say which C it was trained with; give C")
    cost = _checks.positive("C", given, hint="the bound has C in its norm; give the finite C of the objective")
    gamma, eta = _checks.positive("gamma", gamma), _checks.number("eta", eta, above=0, below=1)
    _checks.flag("nonnegative", nonnegative)
    X, y = checks.examples(X), checks.examples(y, "y")
    checks.same_length(X, y)
    with _threads.threads(trained.n_jobs):
        batch = encoder.transform(X)
        good = None
        if isinstance(encoder, CandidatesEncoder):
            good = CandidateSets.build(batch.structure, batch.features, encoder.good(batch, y), "all")
        gold = encoder.encode(batch, encoder.parse_outputs(y))
        problem = Problem.build(
            batch.structure, batch.features, gold, Hamming(), L1(C=cost), rescaling="none", good=good
        )
        # Margins of gamma at w are gamma times margins of 1 at w / gamma.
        weights = trained.weights / gamma
        norm = float(np.abs(weights).sum()) + cost * problem.hinge(weights)
        triples = _log_triples(problem, log_outputs)
        b = _largest(batch) if largest is None else _checks.positive("largest", largest)
    n, d = problem.structure.n_examples, len(weights) * (1 if nonnegative else 2)
    return bound_of(norm, max(b, 1.0 / cost), d, n, triples, eta)


def bound_of(
    norm: float, largest: float, dimension: int, n_examples: int, log_triples: float, eta: float
) -> GeneralizationBound:
    """The bound of ``c / gamma``, ``b``, ``d``, ``m``, ``ln |S|`` and ``eta``; by logarithms, as ``|S|`` is huge."""
    product = norm * largest
    inner = np.log2(4.0 * np.ceil(8.0 * product + 2.0))  # 2 ceil(4 c b / (gamma/2) + 2) times l = 2 |S|
    log2_size = log_triples / np.log(2.0)
    cover = 144.0 * product * product * (1.0 + np.log(dimension + n_examples))
    cover *= np.logaddexp2(inner + log2_size, 0.0)
    bits = float(cover + np.log2(2.0 / eta))
    return GeneralizationBound(
        log2_error=1.0 + float(np.log2(bits)) - log2_size,
        over_examples=2.0 / n_examples * bits,
        norm=norm,
        largest=largest,
        dimension=dimension,
        n_examples=n_examples,
        log_triples=log_triples,
        eta=eta,
    )


def _log_triples(problem: Problem, log_outputs: Any) -> float:
    """``ln |S|``: pairs of a good and a bad candidate, or the wrong outputs of all examples."""
    structure = problem.structure
    if isinstance(problem.good, CandidateSets):
        good = structure.by_example(problem.good.mask.astype(np.float64))
        counts = good * (structure.sizes - good)
        logs = np.log(counts, out=np.full(len(counts), -np.inf), where=counts > 0.0)
    else:
        if log_outputs is not None:
            outputs = vector(log_outputs, structure.n_examples, "log_outputs")
        else:
            outputs = np.concatenate([np.zeros(0), *(shard.structure.log_outputs() for shard in problem.shards())])
        if not (np.isfinite(outputs) & (outputs >= 0.0)).all():
            raise ValueError(f"log_outputs must be {structure.n_examples} finite numbers >= 0, one per example")
        share = -np.expm1(-outputs)  # of wrong ones among all outputs
        logs = outputs + np.log(share, out=np.full(len(share), -np.inf), where=share > 0.0)
    total = float(np.logaddexp.reduce(logs)) if len(logs) else -np.inf
    if total == -np.inf:
        raise ValueError("no example has a wrong output, so there is nothing to bound; give examples with a choice")
    return total


def _largest(batch: Batch) -> float:
    """The largest sum, over the parts of one example, of what a feature can contribute."""
    most = 0.0
    for _, piece in batch.pieces():
        structure = piece.structure
        owner = structure.to_parts(np.arange(structure.n_examples, dtype=np.float64)).astype(np.int64)
        sums = sp.csr_array((structure.part_bound, (owner, np.arange(structure.n_parts))))
        most = max(most, float((sums @ abs(piece.features.to_sparse())).max())) if structure.n_parts else most
    return most
