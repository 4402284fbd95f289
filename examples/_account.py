"""Options of the figures' examples, and checks of the 2005 report's observations against the numbers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from _data import FOLDER

import maxmargin as mm

CLOSE = 0.01
"""Two hinge losses are close if they differ by less than this share of the loss of zero weights."""


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the public data sets")
    parser.add_argument("--synthetic", action="store_true", help="use synthetic data even if the folder exists")
    parser.add_argument("--quick", action="store_true", help="less data and fewer iterations")
    parser.add_argument("--jobs", type=int, default=-1, help="threads")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the plot and the numbers")
    return parser.parse_args()


class Account:
    """Observations of the report, each with whether it holds here and the numbers."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str | bool]] = []

    def check(self, claim: str, holds: bool, numbers: str) -> None:
        """Record and print one observation."""
        self.lines.append({"report": claim, "agrees": bool(holds), "here": numbers})
        print(f"  {'agrees   ' if holds else 'DISAGREES'}  {claim}: {numbers}")


def check_loss(account: Account, path: mm.RegularizationPath) -> None:
    """Panel (a): exact points lie below the run, which comes close at the end of its path."""
    excess = path.excess() / path.iterates[0].hinge
    norms = path.arrays("exact")["norm"]
    shared = np.flatnonzero(np.isfinite(excess))
    if not len(shared):
        account.check("both paths cover the same norms", False, "no exact point lies between the iterates")
        return
    lowest, widest, last = shared[excess[shared].argmin()], shared[excess[shared].argmax()], shared[-1]
    account.check(
        "at equal norm the exact path has the smaller hinge loss",
        bool(excess[lowest] > -1e-3),
        f"the run exceeds it by {100 * excess[lowest]:.2f}% to {100 * excess[widest]:.2f}% of the loss of zero weights",
    )
    account.check(
        "the two paths meet at the end",
        bool(excess[last] < min(CLOSE, 0.5 * excess[widest])),
        f"{100 * excess[last]:.2f}% apart at norm {norms[last]:.3g}, {100 * excess[widest]:.2f}% at norm "
        f"{norms[widest]:.3g}",
    )


def check_norm(account: Account, path: mm.RegularizationPath) -> None:
    """Panel (b): the norm grows slowly and levels off."""
    values = path.arrays("iterates")
    half = np.interp(values["iteration"][-1] / 2, values["iteration"], values["norm"])
    last = values["norm"][-1]
    account.check(
        "the norm of the run grows ever more slowly",
        bool(last - half < 0.5 * half),
        f"{half:.3g} after half of the iterations, {last:.3g} at the end",
    )


def check_errors(account: Account, path: mm.RegularizationPath, word: str = "error") -> None:
    """Panels (c) and (d): equally good models, found at different norms."""
    run, exact = path.best("iterates"), path.best("exact")
    values = (run.dev_error, exact.dev_error, run.test_error, exact.test_error)
    seen_run, seen_exact, run_error, exact_error = (100 * (value or 0.0) for value in values)
    account.check(
        f"similar best dev {word}s",
        abs(seen_run - seen_exact) <= 0.25 * max(seen_run, seen_exact),
        f"{seen_run:.1f}% on the dual-extragradient path, {seen_exact:.1f}% on the exact one",
    )
    account.check(
        f"test {word} of the model chosen on dev data: the run is no worse",
        run_error <= exact_error,
        f"{run_error:.1f}% (norm {run.norm:.3g}, iteration {run.iteration}) against {exact_error:.1f}% "
        f"(norm {exact.norm:.3g})",
    )


def check_chosen_norm(account: Account, path: mm.RegularizationPath) -> None:
    """Segmentation: dev and test data prefer different norms."""
    values, chosen = path.arrays("exact"), path.best("exact").norm
    on_test = values["norm"][np.argmin(values["test_error"])]
    account.check(
        "dev and test data prefer different norms",
        not 0.8 <= chosen / on_test <= 1.25,
        f"{chosen:.3g} and {on_test:.3g} on the exact path",
    )


def check_equal_norms(account: Account, path: mm.RegularizationPath, word: str) -> None:
    """Alignment: between the ends of the path the run generalizes better than the exact models."""
    run, exact = path.arrays("iterates"), path.arrays("exact")
    order = np.argsort(run["norm"], kind="stable")
    middle = (exact["norm"] > 0.1 * run["norm"].max()) & (exact["norm"] < 0.9 * run["norm"].max())
    there = np.interp(exact["norm"], run["norm"][order], run["test_error"][order])
    ahead = 100 * (exact["test_error"] - there)[middle]
    account.check(
        f"between the ends the run has the smaller test {word} at equal norm",
        bool(ahead.size and ahead.mean() > 0 and 2 * (ahead > 0).sum() > ahead.size),
        f"smaller by {ahead.mean():.2f} points on average, at {int((ahead > 0).sum())} of {ahead.size} exact points"
        if ahead.size
        else "no exact points there",
    )


def write(out: Path, name: str, figure: object, numbers: dict[str, object]) -> None:
    """Write the plot and the numbers."""
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.png", dpi=130)  # type: ignore[attr-defined]
    (out / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {out / name}.png and {out / name}.json")
