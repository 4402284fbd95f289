"""Figure 7 of the 2005 report on other data: word alignment along the regularization path.

The report trains on 100 hand-aligned sentence pairs of the Canadian Hansards (panels a and b), then on pairs that
GIZA++ aligned (e and f), and measures the alignment error rate (AER). Here, 60 of 100 hand-aligned pairs train and 40
test, and the 37 of `dev` validate. Instead of GIZA++, hidden Markov models of both directions give the links on which
they agree, for pairs of at most 20 words a side. Features: Dice coefficients of the words and of their neighbors,
positions, spelling, the five most frequent words of each side. With --synthetic, or without the data, two synthetic
languages. Panels c and d, the report's projected gradient and perceptron, are omitted.

    python examples/figure7_alignment.py [--data FOLDER] [--synthetic] [--quick] [--out out]
"""

from __future__ import annotations

import time
from typing import Any

import _account
import numpy as np
from _data import Alignment, Counts, agreed_links, bitext, hansards, synthetic_bitext

import maxmargin as mm
from maxmargin.report.plots import EXACT, ITERATES
from maxmargin.tasks.alignment import Bitext, Reference, evaluate

LOSS = mm.losses.Hamming(false_positive=1, false_negative=3)


class Links:
    """Features of all links of a sentence pair, from the counts of a bitext."""

    def __init__(self, pairs: Bitext) -> None:
        self.counts = Counts(pairs)
        self.frequent = list(self.counts.english)[:5], list(self.counts.french)[:5]

    def __call__(self, pair: Alignment) -> np.ndarray:
        """Shape ``(n_english, n_french, n_features)``."""
        english, french = pair.english, pair.french
        dice = self.counts.dice(english, french)
        around = np.pad(dice, 1)
        n, m = dice.shape
        across = np.abs((np.arange(n)[:, None] + 0.5) / n - (np.arange(m)[None, :] + 0.5) / m)
        columns = [
            dice,
            np.sqrt(dice),
            np.sqrt(around[2:, 2:]),  # the next words
            np.sqrt(around[:-2, :-2]),  # the words before
            (dice >= dice.max(axis=1, keepdims=True)) & (dice > 0),
            (dice >= dice.max(axis=0, keepdims=True)) & (dice > 0),
            across,
            np.sqrt(across),
            across**2,
            _common_prefix(english, french),
            np.array([[a == b for b in french] for a in english]),
            np.ones((n, m)),
        ]
        columns += [np.repeat([[word == known] for word in english], m, axis=1) for known in self.frequent[0]]
        columns += [np.repeat([[word == known for word in french]], n, axis=0) for known in self.frequent[1]]
        return np.stack(columns, axis=2).astype(np.float64)


def _common_prefix(english: list[str], french: list[str]) -> np.ndarray:
    """Length of the common prefix over the length of the longer word."""
    width = max(map(len, [*english, *french]))
    left, right = (
        np.array([list(word.ljust(width, fill)) for word in words]) for words, fill in ((english, "\0"), (french, "\1"))
    )
    same = np.cumprod(left[:, None, :] == right[None, :, :], axis=2).sum(axis=2)
    longer = np.maximum(np.array([len(w) for w in english])[:, None], np.array([len(w) for w in french])[None, :])
    return same / longer


def aer(gold: list[Any], predicted: list[np.ndarray]) -> float:
    """Alignment error rate; plain links, as in training, are all sure."""
    references = [truth.reference if isinstance(truth, Alignment) else Reference.of(truth) for truth in gold]
    return evaluate(references, predicted).aer


def draw(paths: dict[str, mm.RegularizationPath], about: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 7.6), layout="constrained")
    (gold_loss, gold_error), (auto_loss, auto_error) = figure.subplots(2, 2)
    for which, color, label, style in (
        ("iterates", ITERATES, "dual-ex", {"marker": ".", "markersize": 4}),
        ("exact", EXACT, "reg-path", {"marker": "o", "markersize": 5, "linestyle": "--"}),
    ):
        style = {"color": color, "linewidth": 1.5, **style}
        for place, (name, path) in enumerate(paths.items()):
            loss, error = (auto_loss, auto_error) if place else (gold_loss, gold_error)
            text, shade = (f"{label}, {name}", (0.45, 1.0)[place - 1]) if place else (label, 1.0)
            values = path.arrays(which)
            shown = values["norm"] > 1e-6 * values["norm"].max()
            norm = values["norm"][shown]
            loss.plot(values["norm"], values["hinge"], label=text, alpha=shade, **style)
            error.plot(norm, 100 * values["test_error"][shown], label=text, alpha=shade, **style)
            if not place:
                error.plot(norm, 100 * values["dev_error"][shown], label=f"{label}, valid", alpha=0.4, **style)
    for axes, title, up in (
        (gold_loss, "(a) hand-aligned pairs", "training hinge loss"),
        (gold_error, "(b) hand-aligned pairs", "alignment error rate (%)"),
        (auto_loss, "(e) automatically aligned pairs", "training hinge loss"),
        (auto_error, "(f) automatically aligned pairs", "test alignment error rate (%)"),
    ):
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("norm of the weights")
        axes.set_ylabel(up)
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    for axes in (gold_error, auto_error):  # the first weights predict almost no links, which would dominate the scale
        least = min(line.get_ydata().min() for line in axes.lines)
        axes.set_ylim(0.85 * least, 2.5 * least)
    figure.suptitle(about)
    return figure


def main() -> None:
    options = _account.options(__doc__.splitlines()[0])
    real = not options.synthetic and (options.data / "alignment" / "hansards").is_dir()
    iterations, sizes = (100, (40, 80)) if options.quick else (500, (500, 1000))
    began = time.perf_counter()
    if real:
        about = "Word alignment: Canadian Hansards"
        gold, validation = hansards(options.data, "train"), hansards(options.data, "dev")
        train, test = gold[:60], gold[60:]
        unlabeled = bitext(options.data)
    else:
        about = "Word alignment: two synthetic languages"
        train, validation, test = (synthetic_bitext(n, seed) for n, seed in ((60, 1), (37, 2), (40, 3)))
        made = synthetic_bitext(1000 if options.quick else 8000, 4)
        unlabeled = Bitext([pair.english for pair in made], [pair.french for pair in made])
    links = Links(unlabeled)
    both = zip(unlabeled.source, unlabeled.target, strict=True)
    short = [pair for pair in both if all(0 < len(words) <= 20 for words in pair)]
    short = short[: 1000 if options.quick else 10_000]
    labeled = agreed_links(Bitext(*map(list, zip(*short, strict=True))))[: sizes[-1]]
    data = {f"{len(train)} by hand": train} | {f"{size} pairs": labeled[:size] for size in sizes}
    X_valid, X_test = ([links(pair) for pair in part] for part in (validation, test))
    print(f"{about}; features ready after {time.perf_counter() - began:.0f} s")

    paths: dict[str, mm.RegularizationPath] = {}
    for name, pairs in data.items():
        X = [links(pair) for pair in pairs]
        paths[name] = mm.regularization_path(
            mm.MatchingSVM(loss=LOSS, tol=1e-3, n_jobs=options.jobs, verbose=True),
            X,
            [pair.matching() for pair in pairs],
            dev=(X_valid, validation),
            test=(X_test, test),
            iterations=iterations,
            error=aer,
            dual_extragradient=mm.DualExtragradient.plain(inexact=1e-2),
        )
        print(
            f"trained on {name}: {sum(x.shape[0] * x.shape[1] for x in X)} links, {time.perf_counter() - began:.0f} s"
        )

    account = _account.Account()
    for name, path in paths.items():
        print(f"trained on {name}:")
        _account.check_loss(account, path)
        _account.check_errors(account, path, "AER")
        _account.check_equal_norms(account, path, "AER")
    best = next(iter(paths.values())).best("iterates").iteration
    account.check(
        "on hand-aligned pairs, the smallest AER comes after roughly 200 iterations",
        100 <= best <= 400,
        f"on the validation data after {best}",
    )
    _account.write(
        options.out,
        "figure7",
        draw(paths, about),
        {
            "data": about,
            "account": account.lines,
            "seconds": time.perf_counter() - began,
            "paths": {name: path.to_dict() for name, path in paths.items()},
        },
    )


if __name__ == "__main__":
    main()
