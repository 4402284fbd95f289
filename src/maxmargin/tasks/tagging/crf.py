"""CRF: SequenceTagger with the constructor, methods and attributes of sklearn_crfsuite.CRF.

Scripts written for that class run with another import line. What is trained is this library's large-margin chain, by
whatever name of an algorithm: settings that mean the same here are translated, those of other algorithms are accepted
and have no effect.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from maxmargin import _callers
from maxmargin.encoders import checks
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.tagging.tagger import SequenceTagger

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
LEAST_PENALTY = 0.5
"""The smallest ``c2`` that is translated. A hinge is content with a margin where a log-likelihood asks for more and
more: chains this free fit their sentences as well as they can, and freer ones only take longer."""


class CRF(BaseEstimator):  # type: ignore[misc]
    """Drop-in for ``sklearn_crfsuite.CRF``: ``from maxmargin.tasks.tagging import CRF``.

    Args:
        algorithm: "lbfgs", "l2sgd", "ap", "pa" or "arow"; all mean the same here.
        min_freq: attributes that are in fewer tokens are left out.
        all_possible_states: True gives every pair of an attribute and a label a weight, False those that occur; None
            those that occur and those that the first passes take for right.
        all_possible_transitions: no effect: every pair of labels has a weight.
        c1: no effect: there is no L1 penalty here. A warning says so where it is not 0.
        c2: the penalty is ``c2 ||w||^2``: ``C = 1 / (2 c2)`` of :class:`SequenceTagger`. Values under
            :data:`LEAST_PENALTY` are taken as that; None takes SequenceTagger's own default.
        max_iterations: passes at most.
        num_memories: no effect, nor have ``epsilon``, ``period``, ``delta``, ``linesearch``, ``max_linesearch``,
            ``calibration_eta``, ``calibration_rate``, ``calibration_samples``, ``calibration_candidates``,
            ``calibration_max_trials``, ``pa_type``, ``c``, ``error_sensitive``, ``averaging``, ``variance``, ``gamma``,
            ``keep_tempfiles`` and ``trainer_cls``.
        verbose: draw a progress bar on a terminal.
        model_filename: a model file: ``fit`` writes it; an untrained CRF reads it if it is there.

    Attributes:
        sequence_tagger_: the trained :class:`SequenceTagger`, for what CRFsuite has not: certificate, k-best lists,
            margins, files.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | Path | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls

    def _settings(self) -> dict[str, Any]:
        """Those of SequenceTagger that mean the same."""
        if self.algorithm is not None and self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, got {self.algorithm!r}")
        numbers = {name: _number(getattr(self, name), name) for name in ("c1", "c2", "min_freq")}
        found: dict[str, Any] = {"verbose": bool(self.verbose)}
        if (penalty := numbers["c2"]) is not None:
            found["C"] = 1.0 / (2.0 * max(penalty, LEAST_PENALTY))
        if (least := numbers["min_freq"]) is not None:
            found["min_count"] = max(1, math.ceil(least))
        if self.all_possible_states is not None:
            found["states"] = "all" if self.all_possible_states else "observed"
        if self.max_iterations is not None:
            found["max_iter"] = checks.integer(self.max_iterations, "max_iterations", at_least=1)
        if numbers["c1"]:
            warnings.warn(
                f"c1={self.c1!r} has no effect: there is no L1 penalty here, c2 alone counts; leave c1 out",
                UserWarning,
                stacklevel=_callers.callers_level(),
            )
        return found

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Train; with dev data the stopping point is chosen on them and probabilities are calibrated.

        Args:
            X: feature dictionaries (or lists of attributes) of the tokens of each sentence.
            y: labels of the tokens.
            X_dev: held-out sentences.
            y_dev: their labels.
        """
        tagger = SequenceTagger(**self._settings()).fit(X, y, X_dev, y_dev)
        if self.model_filename is not None:
            tagger.save(self.model_filename)
        self.sequence_tagger_ = tagger
        return self

    def _tagger(self) -> SequenceTagger:
        if not hasattr(self, "sequence_tagger_"):
            if self.model_filename is None or not Path(self.model_filename).exists():
                raise NotFittedError("This CRF is not fitted yet; call fit with sentences and their labels first")
            self.sequence_tagger_ = SequenceTagger.load(self.model_filename)
        return self.sequence_tagger_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sequence_tagger_")

    def predict(self, X: Any) -> list[list[Hashable]]:
        """The best labels of each sentence."""
        return self._tagger().predict(X)

    def predict_single(self, xseq: Any) -> list[Hashable]:
        """The best labels of one sentence."""
        return self._tagger().predict_single(xseq)

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """For each token of each sentence the probability of every label."""
        return self._tagger().predict_marginals(X)

    def predict_marginals_single(self, xseq: Any) -> list[dict[Hashable, float]]:
        """:meth:`predict_marginals` of one sentence."""
        return self._tagger().predict_marginals_single(xseq)

    def predict_proba(self, X: Any) -> list[FloatArray]:
        """The same as arrays, columns in the order of ``classes_``."""
        return self._tagger().predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Token accuracy."""
        return self._tagger().score(X, y)

    @property
    def classes_(self) -> list[Hashable]:
        """All labels."""
        return self._tagger().classes_

    @property
    def size_(self) -> int:
        """Bytes of the model as a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self._tagger().save(path)
            return path.stat().st_size

    @property
    def num_attributes_(self) -> int:
        """Number of attributes."""
        return self._tagger().model_.extractor.n_attributes

    @property
    def attributes_(self) -> list[str]:
        """All attributes."""
        return self._tagger().attributes_

    @property
    def state_features_(self) -> dict[tuple[str, Hashable], float]:
        """The weights of pairs of an attribute and a label."""
        return self._tagger().state_features_

    @property
    def transition_features_(self) -> dict[tuple[Hashable, Hashable], float]:
        """The weights of pairs of neighboring labels."""
        return self._tagger().transition_features_

    @property
    def tagger_(self) -> Any:
        """CRFsuite's own object, which is not there."""
        raise AttributeError("there is no pycrfsuite.Tagger behind this CRF; use predict_single and predict_marginals")

    @property
    def training_log_(self) -> Any:
        """CRFsuite's own log, which is not there."""
        raise AttributeError("there is no log of CRFsuite; crf.sequence_tagger_.solution_.history has the run")


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return found
