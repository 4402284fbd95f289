"""CRF: SequenceTagger with the constructor, methods and attributes of sklearn_crfsuite.CRF.

Scripts written for that class run with another import line. Every algorithm trains this library's large-margin chain:
c1 and c2 are translated, other settings without an equivalent are accepted and ignored.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from maxmargin import _checks
from maxmargin._estimator import Outputs
from maxmargin._files import regular_file
from maxmargin._messages import shown
from maxmargin.tasks.tagging.estimator import Predictor, SequenceTagger
from maxmargin.tasks.tagging.model import TaggerModel

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
LEAST_PENALTY = 1e-4
"""Smaller ``c2`` are the same: the hinge loss, unlike the log-likelihood, is zero beyond the margin."""


class CRF(Predictor):
    """Drop-in for ``sklearn_crfsuite.CRF``: ``from maxmargin.tasks.tagging import CRF``.

    Args:
        algorithm: "lbfgs", "l2sgd", "ap", "pa" or "arow"; all are the same here.
        min_freq: attributes of fewer tokens are dropped.
        all_possible_states: True is ``support="all"`` of :class:`SequenceTagger`, False "observed", None "negative".
        all_possible_transitions: ignored, every pair of labels has a weight.
        c1: there is no L1 penalty here, but small weights are dropped: ``prune = sqrt(c1) / 5`` of
            :class:`SequenceTagger`, which leaves two to three times as many weights as CRFsuite's ``c1``.
        c2: ``C = 0.3 (0.1 / c2) ** (1 / 4)`` of SequenceTagger (:func:`translated`): 0.1 is 0.3, 1 is 0.17, 0.01 is
            0.53. If neither c1 nor c2 is given, folds of the training sentences choose C.
        max_iterations: maximal number of passes.
        num_memories: ignored, as are ``epsilon``, ``period``, ``delta``, ``linesearch``, ``max_linesearch``,
            ``calibration_eta``, ``calibration_rate``, ``calibration_samples``, ``calibration_candidates``,
            ``calibration_max_trials``, ``pa_type``, ``c``, ``error_sensitive``, ``averaging``, ``variance``, ``gamma``,
            ``keep_tempfiles`` and ``trainer_cls``.
        verbose: draw a progress bar on a terminal.
        model_filename: a model file: ``fit`` writes it; an untrained CRF reads it if it exists.

    Attributes:
        sequence_tagger_: the trained :class:`SequenceTagger`, with certificate, k-best lists, margins and files.
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
        self.algorithm, self.min_freq, self.all_possible_states = algorithm, min_freq, all_possible_states
        self.all_possible_transitions, self.c1, self.c2 = all_possible_transitions, c1, c2
        self.max_iterations, self.num_memories, self.epsilon = max_iterations, num_memories, epsilon
        self.period, self.delta, self.linesearch, self.max_linesearch = period, delta, linesearch, max_linesearch
        self.calibration_eta, self.calibration_rate = calibration_eta, calibration_rate
        self.calibration_samples, self.calibration_candidates = calibration_samples, calibration_candidates
        self.calibration_max_trials, self.pa_type, self.c = calibration_max_trials, pa_type, c
        self.error_sensitive, self.averaging, self.variance, self.gamma = error_sensitive, averaging, variance, gamma
        self.verbose, self.model_filename, self.keep_tempfiles = verbose, model_filename, keep_tempfiles
        self.trainer_cls = trainer_cls

    def _settings(self) -> dict[str, Any]:
        """Return the equivalent settings of SequenceTagger."""
        if self.algorithm is not None and self.algorithm not in ALGORITHMS:
            raise ValueError(
                f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, got {shown(self.algorithm)}"
            )
        given = {name: getattr(self, name) for name in ("c1", "c2", "min_freq")}
        numbers = {name: _checks.number(name, value, least=0) for name, value in given.items() if value is not None}
        found: dict[str, Any] = {"verbose": self.verbose is not None and _flag("verbose", self.verbose)}
        if "c1" in numbers or "c2" in numbers:
            found |= translated(numbers.get("c1", 0.0), numbers.get("c2", 1.0))
        if (least := numbers.get("min_freq")) is not None:
            found["min_count"] = max(1, math.ceil(least))
        if self.all_possible_states is not None:
            found["support"] = "all" if _flag("all_possible_states", self.all_possible_states) else "observed"
        if self.max_iterations is not None:
            found["max_iter"] = _checks.integer("max_iterations", self.max_iterations, least=1)
        return found

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Train; dev data choose the stopping point and calibrate probabilities.

        Args:
            X: feature dictionaries (or lists of attributes) of the tokens of each sentence.
            y: labels of the tokens.
            X_dev: held-out sentences.
            y_dev: their labels.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("give both X_dev and y_dev, or neither")
        dev = None if X_dev is None else (X_dev, y_dev)
        tagger = SequenceTagger(**self._settings())
        if self.model_filename is not None and not regular_file(self.model_filename).parent.is_dir():
            raise FileNotFoundError(
                f"model_filename {shown(str(self.model_filename))}: its folder does not exist; create it, or name "
                "another"
            )
        self.sequence_tagger_ = tagger.fit(X, y, dev=dev)
        if self.model_filename is not None:
            self.sequence_tagger_.save(self.model_filename)
        return self

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> Any:
        """Return the best labels of each sentence, lists in an array of objects as sklearn-crfsuite returns them."""
        return np.asarray(super().predict(X, known=known))

    def predict_marginals(self, X: Any) -> Any:
        """Return the probabilities as dictionaries, one per token, in an array of a list per sentence."""
        return np.asarray(Outputs(super().predict_marginals(X)))

    def _tagger(self) -> SequenceTagger:
        if not hasattr(self, "sequence_tagger_"):
            if self.model_filename is None or not Path(self.model_filename).exists():
                raise NotFittedError("This CRF is not fitted yet; call fit with sentences and their labels first")
            self.sequence_tagger_ = SequenceTagger.load(self.model_filename)
        return self.sequence_tagger_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sequence_tagger_")

    def _model(self) -> TaggerModel:
        return self._tagger()._model()

    @property
    def size_(self) -> int:
        """Size of the model file in bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self.save(path)
            return path.stat().st_size

    @property
    def num_attributes_(self) -> int:
        """Number of attributes."""
        return self._model().extractor.n_attributes

    @property
    def tagger_(self) -> Any:
        """CRFsuite's own object, which does not exist here."""
        raise AttributeError("there is no pycrfsuite.Tagger behind this CRF; use predict_single and predict_marginals")


def translated(c1: float, c2: float) -> dict[str, float]:
    """Return C and prune of SequenceTagger for CRFsuite's penalties ``c1 ||w||_1 + c2 ||w||^2``.

    Both rise and fall with the regularization. The hinge loss needs less change of C than the log-likelihood of c2, as
    it is zero beyond the margin: C between 0.1 and 1 suits feature dictionaries, where c2 between 0.001 and 10 does.
    """
    return {"C": 0.3 * float((0.1 / max(c2, LEAST_PENALTY)) ** 0.25), "prune": 0.2 * math.sqrt(c1)}


def _flag(name: str, value: Any) -> bool:
    """True or False, or an integer that stands for one, as sklearn-crfsuite takes it."""
    return _checks.flag(name, bool(value) if isinstance(value, int) else value)
