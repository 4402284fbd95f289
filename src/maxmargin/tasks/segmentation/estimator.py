"""Segmenter and ScanSegmenter: scikit-learn estimators for segmentation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from maxmargin import _threads
from maxmargin._estimator import Estimator, Outputs
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.cut import CutEncoder
from maxmargin.execution import Executor
from maxmargin.explanation.result import Explanation
from maxmargin.optimization.callbacks import Callback
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.solver import Solver
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.encoder.images import ImageEncoder
from maxmargin.tasks.segmentation.encoder.scans import ScanEncoder
from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor
from maxmargin.tasks.segmentation.interactive import Interactive
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
from maxmargin.tasks.segmentation.sharding import BLOCK, SAMPLE, SegmentationRecipe, train_segmenter_on
from maxmargin.tasks.segmentation.training import ClassWeight, StageSettings, train_segmenter
from maxmargin.training import Settings


class _Segmenting(Estimator, ABC):
    """What both estimators share."""

    model_: SegmenterModel
    n_jobs: int | None
    verbose: bool

    @abstractmethod
    def _encoder(self) -> SegmentationEncoder:
        """The encoder that has not been fitted."""

    def fit(
        self,
        X: Sequence[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        *,
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Train.

        Args:
            X: images or scans, one per example; or, without ``y``, a dataset of :meth:`build_dataset`, which has the
                stages (for images with ``refine=False``).
            y: for each an array of integers, the label of each pixel or point; ``void`` where it has none.
            dev: held-out examples ``(X, y)`` that choose the stopping point, and C if there are several.
        """
        settings, stages = self._chosen(Settings, verbose=False), self._chosen(StageSettings)
        if isinstance(X, ShardedDataset):
            if y is not None:
                raise ValueError("a dataset has its own y; leave it out, or give it to build_dataset")
            if getattr(self, "refine", False):
                raise ValueError(
                    "refine=True learns the cut of pixels from images, which a dataset does not have; give "
                    "refine=False, or images and labels in memory"
                )
            X.require(self._recipe(X.metadata.get("sample", SAMPLE)))
            model = train_segmenter_on(X, settings, dev=dev, verbose=self.verbose)
        elif y is None:
            raise ValueError("y is missing: give labels for each input, or a ShardedDataset in place of X and y")
        else:
            how: dict[str, Any] = {"dev": dev, "refine": getattr(self, "refine", True), "verbose": self.verbose}
            model = train_segmenter(self._encoder(), X, y, settings, stages, **how)
        assert model.training is not None
        self.model_, self.solution_ = model, model.training.solution
        self.dev_scores_ = model.training.dev_scores
        return self

    def build_dataset(self, folder: str | Path, source: Any, *, sample: int = SAMPLE, **options: Any) -> ShardedDataset:
        """Encode images or scans into a folder, from which :meth:`fit` trains in the memory of one shard.

        Args:
            folder: the folder.
            source: inputs and labels ``(x, y)`` as :meth:`fit` takes them; see
                :meth:`maxmargin.ShardedDataset.build`.
            sample: how many inputs, drawn at random and in memory together, teach the stages; the others are read a
                few at a time.
            options: further options of :meth:`maxmargin.ShardedDataset.build`.
        """
        options = {"block_examples": BLOCK, **options, "metadata": {**options.get("metadata", {}), "sample": sample}}
        with _threads.threads(self.n_jobs):
            return ShardedDataset.build(folder, self._recipe(sample), source, **options)

    def _recipe(self, sample: int) -> SegmentationRecipe:
        seed = self._chosen(Settings, verbose=False).random_state or 0
        return SegmentationRecipe(
            self._encoder(), self._chosen(StageSettings), sample=sample, seed=seed, verbose=self.verbose
        )

    def _chosen(self, kind: Any, **given: Any) -> Any:
        """The settings of a kind: those given, and others that this estimator has."""
        own = {
            field.name: getattr(self, field.name) for field in fields(kind) if field.init and hasattr(self, field.name)
        }
        return kind(**{**own, **given})

    def _model(self) -> SegmenterModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @property
    def classes_(self) -> list[Any]:
        """The labels, in the order of the columns of probabilities."""
        return list(self._model().encoder.classes or ())

    @property
    def coef_(self) -> FloatArray:
        """The weights of nodes and edges, shape ``(n_weights,)``."""
        return self._model().weights

    def predict(self, X: Sequence[Any], *, seeds: Sequence[Any] | None = None) -> list[IntArray]:
        """The label of every pixel or point; see :meth:`SegmenterModel.predict`."""
        return Outputs(self._model().predict(X, seeds=seeds))

    def explain(self, x: Any, *, against: Any = None, at: int | Sequence[int] | None = None) -> Explanation:
        """Explain the prediction for one image or scan; see :meth:`SegmenterModel.explain`."""
        return self._model().explain(x, against=against, at=at)

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """The class probabilities of every pixel or point; see :meth:`SegmenterModel.predict_proba`."""
        return self._model().predict_proba(X)

    def interactive(self, given: Any) -> Interactive:
        """The segmentation of one image or scan, solved again as seeds come in."""
        return Interactive(self._model(), given)

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """The share of labeled pixels or points that are right."""
        return self._model().score(X, y, sample_weight)

    def save(self, path: str | Path) -> None:
        """Write the model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)


class Segmenter(_Segmenting):
    """Classes of the pixels of images: stages of auto-context over superpixels, then learned cuts.

    X is a list of images: arrays ``(height, width)``, ``(height, width, 3)``, or stacks ``(depth, height, width)`` and
    ``(depth, height, width, 3)``, of bytes, 16-bit integers or floats; or
    :class:`~maxmargin.tasks.segmentation.Presegmented`, an image with regions of your own. y is a list of arrays of
    integers, the label of each pixel. Two classes are labeled by minimum cuts, more by associative networks; a second
    learned cut then labels the pixels near the boundaries of regions.

    Args:
        graph: "superpixels", or "pixels" for a node per pixel.
        n_regions: superpixels of an image, whatever its size.
        region_size: pixels of a superpixel in place of ``n_regions``, for images of one scale and different sizes.
        compactness: the color difference that counts as much as the side of a superpixel; larger is more regular.
        working_pixels: larger images are reduced to so many pixels for superpixels and features: "auto" for the median
            of the training images, None never reduces.
        connectivity: neighbors of a pixel: 4 or 8 in images, 6 or 26 in stacks; None for the smaller number.
        refine: whether pixels near boundaries get a second cut.
        classifier: the node classifier: "lightgbm", "boosting" (that of scikit-learn), "auto" for the first of these
            that is installed, "linear" (logistic regression on bins of each feature), or any classifier of
            scikit-learn with ``predict_proba``.
        stages: number of stages; all but the first see the probabilities of the stage before.
        folds: folds of images by which probabilities are out of fold.
        class_weight: costs of errors at pixels of each class, by label; "balanced"; or None for 1.
        potentials: of edges: "potts", or "regular", of two classes, with four weight sets for the labels of an edge's
            ends, as :class:`maxmargin.CutSVM` takes them.
        void: the label of pixels that have none.
        C: larger means less regularization; of a list, the best on the dev data is chosen.
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto".
        tol: relative duality gap at which training of the cut of regions stops; that of pixels stops at 1e-2, or at
            ``tol`` if that is larger.
        max_iter: iteration limit; None for the default of the solver.
        max_seconds: time limit of the training of each cut.
        n_jobs: threads, as in scikit-learn; never changes the result.
        executor: where the training of cuts is done, in shards: an executor of :mod:`maxmargin.execution`; None for
            this process.
        random_state: the seed of folds and classifiers.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.
        verbose: draw progress bars on a terminal.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes.

    Attributes:
        model_: the trained :class:`ImageSegmenterModel`, which :func:`maxmargin.load` reads from a file.
        classes_: the labels.
        coef_: the weights of nodes and edges of the cut of regions.
        solution_: certificate, status and history of that cut's training.
        dev_scores_: pairs of iteration and dev score; empty without dev data.
    """

    def __init__(
        self,
        *,
        graph: str = ImageExtractor.graph,
        n_regions: int = ImageExtractor.n_regions,
        region_size: float | None = None,
        compactness: float = ImageExtractor.compactness,
        working_pixels: int | str | None = ImageExtractor.working_pixels,
        connectivity: int | None = None,
        refine: bool = True,
        classifier: Any = "auto",
        stages: int = 3,
        folds: int = 5,
        class_weight: ClassWeight = None,
        potentials: str = "potts",
        void: int = -1,
        C: float | Sequence[float] | None = 1.0,
        solver: Solver | str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: int | None = 0,
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
        checkpoint: str | Path | Checkpoint | None = None,
    ) -> None:
        self.graph, self.n_regions, self.region_size, self.compactness = graph, n_regions, region_size, compactness
        self.working_pixels, self.connectivity, self.refine = working_pixels, connectivity, refine
        self.classifier, self.stages, self.folds = classifier, stages, folds
        self.class_weight, self.void, self.C, self.solver, self.tol = class_weight, void, C, solver, tol
        self.max_iter, self.max_seconds, self.n_jobs, self.random_state = max_iter, max_seconds, n_jobs, random_state
        self.callbacks, self.verbose, self.potentials, self.executor = callbacks, verbose, potentials, executor
        self.checkpoint = checkpoint

    def _encoder(self) -> ImageEncoder:
        graph = CutEncoder(potentials=self.potentials)
        return ImageEncoder(self._chosen(ImageExtractor), void=self.void, graph=graph)


class ScanSegmenter(_Segmenting):
    """Classes of the points of scans: stages of auto-context, then a learned cut or associative network.

    X is a list of scans: ``(n, 3)`` arrays of coordinates, pairs ``(points, attributes)`` with a dictionary of arrays
    of one value per point, or :class:`~maxmargin.tasks.segmentation.Scan`. y is a list of arrays of integers, the label
    of each point. Points are thinned to one node per voxel, and the results carried back to every point. Lengths are in
    units of the coordinates.

    Args:
        voxel: size of the voxels; 0 makes every point a node.
        radii: radii of the neighborhoods whose shape is measured, rising.
        context_radii: radii of the neighborhoods over which probabilities are averaged.
        neighbors: edges join each node to so many nearest ones.
        edge_radius: edges also join nodes at most so far apart; None for none of them.
        spin_reaches: reaches of spin images, none by default.
        spin_components: principal components of the spin images.
        attributes: names of the attributes that are features; None for all.
        classifier: the node classifier: "lightgbm", "boosting" (that of scikit-learn), "auto" for the first of these
            that is installed, "linear" (logistic regression on bins of each feature), or any classifier of
            scikit-learn with ``predict_proba``.
        stages: number of stages; all but the first see the probabilities of the stage before.
        folds: folds of scans by which probabilities are out of fold.
        class_weight: costs of errors at points of each class, by label; "balanced"; or None for 1.
        potentials: of edges: "potts", or "regular", of two classes, with four weight sets for the labels of an edge's
            ends, as :class:`maxmargin.CutSVM` takes them.
        void: the label of points that have none.
        C: larger means less regularization; of a list, the best on the dev data is chosen.
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto".
        tol: relative duality gap at which training stops.
        max_iter: iteration limit; None for the default of the solver.
        max_seconds: time limit of the cut's training.
        n_jobs: threads, as in scikit-learn; never changes the result.
        executor: where the training of cuts is done, in shards: an executor of :mod:`maxmargin.execution`; None for
            this process.
        random_state: the seed of folds and classifiers.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.
        verbose: draw progress bars on a terminal.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes.

    Attributes:
        model_: the trained :class:`SegmenterModel`, which :func:`maxmargin.load` reads from a file.
        classes_: the labels.
        coef_: the weights of nodes and edges.
        solution_: certificate, status and history of the cut's training.
        dev_scores_: pairs of iteration and dev score; empty without dev data.
    """

    def __init__(
        self,
        *,
        voxel: float = ScanExtractor.voxel,
        radii: Sequence[float] = ScanExtractor.radii,
        context_radii: Sequence[float] = ScanExtractor.context_radii,
        neighbors: int = ScanExtractor.neighbors,
        edge_radius: float | None = None,
        spin_reaches: Sequence[float] = (),
        spin_components: int = ScanExtractor.spin_components,
        attributes: Sequence[str] | None = None,
        classifier: Any = "auto",
        stages: int = 2,
        folds: int = 5,
        class_weight: ClassWeight = None,
        potentials: str = "potts",
        void: int = -1,
        C: float | Sequence[float] | None = 0.01,
        solver: Solver | str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: int | None = 0,
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
        checkpoint: str | Path | Checkpoint | None = None,
    ) -> None:
        self.voxel, self.radii, self.context_radii = voxel, radii, context_radii
        self.neighbors, self.edge_radius = neighbors, edge_radius
        self.spin_reaches, self.spin_components, self.attributes = spin_reaches, spin_components, attributes
        self.classifier, self.stages, self.folds = classifier, stages, folds
        self.class_weight, self.void, self.C, self.solver, self.tol = class_weight, void, C, solver, tol
        self.max_iter, self.max_seconds, self.n_jobs, self.random_state = max_iter, max_seconds, n_jobs, random_state
        self.callbacks, self.verbose, self.potentials, self.executor = callbacks, verbose, potentials, executor
        self.checkpoint = checkpoint

    def _encoder(self) -> ScanEncoder:
        attributes: Any = self.attributes
        if attributes is not None and not isinstance(attributes, str):
            attributes = tuple(attributes)
        graph = CutEncoder(potentials=self.potentials)
        return ScanEncoder(self._chosen(ScanExtractor, attributes=attributes), void=self.void, graph=graph)
