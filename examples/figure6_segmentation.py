"""Figure 6 of the 2005 report on other data: segmenting 3-D scans along the regularization path.

The report separates puppets from background in eleven scans of 7,000 points: 45 principal components of two spin images
per point, one constant feature per surface link, five scans to train on, three to validate, three to test. Here the
scans are parts of the Oakland laser scans and the object is vegetation, with the same kind of features, or synthetic
streets with bushes (--synthetic, or without the data). Draws the exact regularization path and the unregularized
dual-extragradient path; the report's perceptron and projected gradient are omitted.

    python examples/figure6_segmentation.py [--data FOLDER] [--synthetic] [--quick] [--out out]
"""

from __future__ import annotations

import time

import _account
import numpy as np
from _data import Scan, oakland, spin_images, surface_links, synthetic_scans
from sklearn.decomposition import PCA

import maxmargin as mm
from maxmargin.report import plot_path

COMPONENTS = 45


def graphs(scans: list[list[Scan]]) -> list[tuple[list[mm.Graph], list[np.ndarray]]]:
    """Inputs and outputs of each part; scaling and principal components come from the first, the training data."""
    images = [[spin_images(points, (0.6, 1.8)) for points, _ in part] for part in scans]
    train = np.concatenate(images[0])
    mean, spread = train.mean(axis=0), train.std(axis=0) + 1e-3
    pca = PCA(COMPONENTS, svd_solver="full").fit((train - mean) / spread)
    found = []
    for part, rows in zip(scans, images, strict=True):
        X = []
        for (points, _), image in zip(part, rows, strict=True):
            nodes = pca.transform((image - mean) / spread) / np.sqrt(COMPONENTS)
            X.append(mm.Graph(np.column_stack([nodes, np.ones(len(points))]), surface_links(points)))
        found.append((X, [labels for _, labels in part]))
    return found


def main() -> None:
    options = _account.options(__doc__.splitlines()[0])
    real = not options.synthetic and (options.data / "segmentation" / "oakland").is_dir()
    size, iterations = (250, 100) if options.quick else (3000, 600)
    began = time.perf_counter()
    if real:
        scans = list(oakland(options.data, size))
        about = f"Oakland laser scans thinned to 20 cm, the {size} points around a random plant in each; vegetation"
    else:
        scans = [synthetic_scans(n, size, seed) for n, seed in ((5, 1), (3, 2), (3, 3))]
        about = f"synthetic streets of {size} points; bushes"
    train, dev, test = graphs(scans)
    share = np.mean(np.concatenate(train[1]))
    edges = sum(len(graph.edges) for graph in train[0])
    print(f"{about} against the rest ({100 * share:.0f}% of the points)")
    print(f"training: {len(train[0])} scans, {5 * size} nodes, {edges} links; {time.perf_counter() - began:.0f} s")

    # Inexact projections with summable errors give the same path in half the time.
    path = mm.regularization_path(
        mm.CutSVM(tol=5e-3, max_iter=1000, n_jobs=options.jobs, verbose=True),
        *train,
        dev=dev,
        test=test,
        iterations=iterations,
        dual_extragradient=mm.DualExtragradient.plain(inexact=1e-2),
    )
    account = _account.Account()
    _account.check_loss(account, path)
    _account.check_norm(account, path)
    _account.check_errors(account, path)
    _account.check_chosen_norm(account, path)
    figure = plot_path(
        path, title=f"Segmenting {'laser scans: vegetation' if real else 'synthetic scans: bushes'} against the rest"
    )
    _account.write(
        options.out,
        "figure6",
        figure,
        {"data": about, "account": account.lines, "seconds": time.perf_counter() - began, **path.to_dict()},
    )


if __name__ == "__main__":
    main()
