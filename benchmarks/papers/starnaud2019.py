"""The page of St-Arnaud's notes of 2019 on the dual extragradient method: their statements, each with a number.

    python -m benchmarks.papers.starnaud2019 [--small] [--only bound restricted memory geometry statements] [--write]

The notes have no experiments, so all problems are made here: matchings, cuts and chains whose gold outputs come from
hidden weights and noise. Everything but seconds is reproduced to the last digit shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers.page import Page, table
from maxmargin.encoders import ChainEncoder, CutEncoder, Encoder, MatchingEncoder
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.regions import L1, L2

PLAIN = mm.DualExtragradient.plain()


# --- problems -------------------------------------------------------------------------------------------------------


def grid(side: int) -> np.ndarray:
    """The edges of a square grid."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, down)])


def data(kind: str, small: bool) -> tuple[Encoder, list[Any], list[Any]]:
    """Inputs and outputs of one kind."""
    rng, X, y = np.random.default_rng(0), [], []
    if kind == "matchings":
        hidden, low, high = rng.normal(size=15), *((2, 4) if small else (6, 13))
        for _ in range(6 if small else 60):
            x = 0.5 * rng.normal(size=(*rng.integers(low, high, size=2), 15))
            structure = mm.structures.Matching.dense(np.array([x.shape[:2]]))
            scores = x @ hidden + rng.normal(size=x.shape[:2]) - 0.3
            X.append(x)
            y.append(structure.decode(structure.argmax(scores.ravel()).z)[0])
        return MatchingEncoder(), X, y
    if kind == "cuts":
        hidden, side = rng.normal(size=8), 4 if small else 20
        for _ in range(3):
            spots = rng.normal(size=(side + 4, side + 4))
            smooth = sum(spots[i : i + side, j : j + side] for i in range(5) for j in range(5))
            label = (smooth > 0).astype(np.int64).ravel()
            features = rng.normal(size=(side * side, 8)) + 0.3 * np.outer(2 * label - 1, hidden)
            X.append(mm.Graph(np.column_stack([features, np.ones(side * side)]), grid(side)))
            y.append(label)
        return CutEncoder(), X, y
    nodes, pairs = rng.normal(size=(10, 4)), rng.normal(size=(4, 4))
    for _ in range(5 if small else 30):
        x = rng.normal(size=(int(rng.integers(3, 7)), 10))
        structure = mm.structures.Chain([len(x)], 4)
        scores = np.concatenate([(x @ nodes + rng.gumbel(size=(len(x), 4))).ravel(), pairs.ravel()])
        X.append(x)
        y.append(structure.decode(structure.argmax(scores).z)[0].tolist())
    return ChainEncoder(), X, y


def problem(kind: str, small: bool, **region: float) -> mm.Problem:
    """The training problem in an L2 region."""
    encoder, X, y = data(kind, small)
    encoder = encoder.fit(X, y)[0]
    packed = encoder.transform(X)
    chosen = L2(nonnegative=encoder.nonnegative(), **region)
    return mm.Problem.build(packed.structure, packed.features, encoder.encode(packed, y), mm.losses.Hamming(), chosen)


@dataclass(frozen=True)
class Kept:
    """What a run keeps between two iterations: of the weights player, and of the structures player if it is stored."""

    state: Any
    average_z: Any = None
    sum_z: Any = None

    @classmethod
    def of(cls, game: mm.Problem, run: Run, state: Any) -> Kept:
        """From the run."""
        memory = run.memories()[0]
        if not isinstance(memory, dict):
            return cls(state)
        own, last = memory["steps"][state.now], state.last
        # The last step enters the sum in the next pass.
        total = last.eta * game.augmented(last.weights.weights)
        return cls(state, own.average, total if own.total is None else own.total + total)


def path(game: mm.Problem, solver: mm.solvers.Solver, iterations: int) -> Iterator[tuple[int, Kept, Proposal]]:
    """What a run keeps and what it returns after 1, 2, ... iterations."""
    run = Run.of(game, np.random.default_rng(0), solver.shard_size)
    state = solver.init(run, Start())
    for t in range(1, iterations + 1):
        state = solver.step(run, state)
        yield t, Kept.of(game, run, state), solver.propose(run, state)[0]


def farthest(game: mm.Problem) -> float:
    """``D_z = sum_i max_z 1/2 ||z - y_i||^2``: linear in vertices of zeros and ones, so one argmax."""
    return float(game.structure.argmax(0.5 * game.structure.part_bound - game.gold).value.sum() + 0.5 * game.gold.sum())


def gap(game: mm.Problem, at: Proposal, radius: float) -> float:
    """``G`` as the report defines it, with ``D_w = radius^2 / 2`` around zero and all of Z: no mixing with the gold."""
    steepness = game.region.steepness(at.g)
    assert steepness is not None
    return game.hinge(at.weights) - (at.loss - radius * steepness)


def moments(page: Page, full: tuple[int, ...]) -> tuple[int, ...]:
    """The iterations that a table shows."""
    return (1, 5, 20) if page.options.small else full


# --- blocks ---------------------------------------------------------------------------------------------------------


def bound(page: Page) -> None:
    """Eq. (13) in a ball: the gap of the averages below ``(D_w + D_z) L / t``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    rows, shares, shown = [], [], moments(page, (1, 10, 100, 1000))
    for kind, axes in zip(("matchings", "cuts", "chains"), figure.subplots(1, 3), strict=True):
        game = problem(kind, page.options.small, radius=1.0)
        constant = (0.5 + farthest(game)) * game.norm
        at = sorted({int(t) for t in np.geomspace(1, shown[-1], 30)} | set(shown))
        gaps = {t: gap(game, found, 1.0) for t, _, found in path(game, PLAIN, shown[-1]) if t in at}
        lengths = (1.0 + np.sqrt(2.0 * farthest(game))) * game.norm
        worst = [max(gaps[t] * t / whole for t in at) for whole in (constant, lengths)]
        page.numbers[f"bound_{kind}"] = {"constant": constant, "gaps": gaps, "largest_shares": worst}
        shares.append([kind, *(f"{100 * share:.0f}%" for share in worst)])
        for t in shown:
            rows.append([kind, t, f"{constant / t:.4g}", f"{gaps[t]:.4g}", f"{100 * gaps[t] * t / constant:.2g}%"])
        axes.loglog(at, [constant / t for t in at], "--", color="tab:gray", label="bound (13)")
        axes.loglog(at, [gaps[t] for t in at], color="tab:blue", label="gap of the averages")
        axes.set_title(kind)
        axes.set_xlabel("iterations")
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("gap")
    figure.axes[0].legend(frameon=False)
    page.figure("bound", figure)
    page.text(
        "bound",
        table(["problem", "iterations", "bound (13)", "gap", "share of the bound"], rows)
        + "\n\nThe largest share of the bound that the gap takes up, for two readings of D:\n\n"
        + table(["problem", "half a squared distance", "a distance"], shares),
    )


def restricted(page: Page) -> None:
    """Eq. (8) on a run without regularization, its literal reading, and radii that reach a solution."""
    game = problem("matchings", page.options.small)
    d_z, radii, rows = farthest(game), (1.0, 3.0, 10.0), []
    shown = moments(page, (10, 100, 1000))
    for t, _, found in path(game, PLAIN, shown[-1]):
        if t in shown:
            length = float(np.linalg.norm(found.weights))
            cells = [f"{gap(game, found, r):.4g} of {(0.5 * r * r + d_z) * game.norm / t:.4g}" for r in radii]
            own = f"{gap(game, found, length):.3g}"
            rows.append([t, f"{game.hinge(found.weights):.4g}", f"{length:.3g}", own, *cells])
    header = ["iterations", "H(w)", "norm of w", "gap, R = that norm", *(f"gap of its bound, R = {r:g}" for r in radii)]
    literal = literal_share(problem("matchings", True))
    reach = reaching(problem("chains", True, radius=50.0))
    page.numbers["restricted"] = {"rows": rows, "literal_share_of_bound": literal, "reaching": reach}
    cells = [[t, *(f"{value:.3g}" for value in values)] for t, values in reach["gaps"].items()]
    columns = ["iterations", "gap (7)", "D_w reaching the solution", "D_w and D_z reaching it", "H(w) less the optimum"]
    page.text(
        "restricted",
        f"""{table(header, rows)}

On six small matchings, R = 1, the gap takes up at most {100 * literal[0]:.0f}% of the bound if distances are
measured from the start, and {100 * literal[1]:.0f}% if they are measured from the point itself, as eq. (8) is written.

On {reach["examples"]} short chains in a ball of radius 50, with a solution of norm {reach["norm"]:.3g} at a half
squared distance of {reach["d_z"]:.2g} from the gold outputs:

{table(columns, cells)}""",
    )


def literal_share(game: mm.Problem) -> list[float]:
    """The largest share of the bound at R = 1 that the gap takes up: distances from the start, and from the point."""
    shares, d_z = [0.0, 0.0], farthest(game)
    constant = (0.5 + d_z) * game.norm
    for t, held, found in path(game, PLAIN, 60):
        w = found.weights
        most = within(game, game.augmented(w), held.average_z, d_z) - w @ game.gold_features + game.constant
        least = found.loss + w @ found.g - np.linalg.norm(found.g)
        both = gap(game, found, 1.0), most - least
        shares = [max(share, float(one) * t / constant) for share, one in zip(shares, both, strict=True)]
    return shares


def reaching(game: mm.Problem) -> dict[str, Any]:
    """The gaps of a run: whole, restricted to radii that just reach a solution, and the true error of its weights."""
    settings = mm.Extragradient(geometry=mm.Euclidean())
    best = mm.solve(game, settings, stop=mm.Stop(tol=1e-7, max_iter=20_000))
    assert best.duals is not None
    r_w, d_z = float(np.linalg.norm(best.weights)), 0.5 * float(((best.duals - game.gold) ** 2).sum())
    gaps: dict[int, list[float]] = {}
    for t, _, found in path(game, PLAIN, 60):
        if t in (1, 5, 12, 20, 60):
            most = within(game, game.augmented(found.weights), game.gold, d_z)
            nearby = most - float(found.weights @ game.gold_features) + game.constant
            both = nearby - (found.loss - r_w * float(np.linalg.norm(found.g)))
            error = game.hinge(found.weights) - best.certificate.primal
            gaps[t] = [gap(game, found, 50.0), gap(game, found, r_w), both, error]
    return {"examples": game.structure.n_examples, "norm": r_w, "d_z": d_z, "gaps": gaps}


def within(game: mm.Problem, scores: np.ndarray, center: np.ndarray, d_z: float) -> float:
    """``max scores'z`` over ``z in Z`` with ``1/2 ||z - center||^2 <= d_z``, by a search over the multiplier."""
    free = game.structure.argmax(scores).z
    if 0.5 * ((free - center) ** 2).sum() <= d_z:
        return float(scores @ free)
    low, high = 1e-6, 1e6
    for _ in range(80):
        middle = np.sqrt(low * high)
        z = game.structure.project(center + scores / middle).z
        low, high = (middle, high) if 0.5 * ((z - center) ** 2).sum() > d_z else (low, middle)
    return float(scores @ game.structure.project(center + scores / low).z)  # from outside: never too small


def memory(page: Page) -> None:
    """Section 2.4: what the sum of gradients is, and the form that stores no z."""
    small, iterations, rows = page.options.small, 10 if page.options.small else 100, []
    for kind in ("matchings", "cuts", "chains"):
        game = problem(kind, small, radius=1.0)
        stored = list(path(game, PLAIN, iterations))
        lean = list(path(game, replace(PLAIN, store_duals=False), iterations))
        apart = max(
            float(np.abs(a.weights - b.weights).max()) for (_, _, a), (_, _, b) in zip(stored, lean, strict=True)
        )
        t, held, found = stored[-1]
        eta = 1.0 / game.norm
        right = eta * t * game.augmented(found.weights)
        wrong = eta * t * (t * game.augmented(found.weights))
        size = float(np.abs(held.sum_z).max())
        error, factor = float(np.abs(held.sum_z - right).max()) / size, float(np.abs(wrong).max()) / size
        numbers = [count(held), count(lean[-1][1])]
        page.numbers[f"memory_{kind}"] = {"apart": apart, "identity": error, "literal": factor, "numbers": numbers}
        rows.append([kind, f"{apart:.0e}", f"{error:.0e}", f"{factor:.4g}", *(f"{one:,}" for one in numbers)])
    header = [
        "problem",
        "w of both forms differ by",
        "s_z = t (F'wbar + c), relative error",
        "the notes' s_z, times too large",
    ]
    header += ["numbers between iterations, stored", "without duals"]
    page.text("memory", table(header, rows))


def count(held: Kept) -> int:
    """How many numbers a state holds, without the warm starts of projections and the gold outputs it starts from."""
    state, average = held.state, held.state.average
    arrays = [state.sum_w, held.sum_z, average.weights, average.g, held.average_z, state.epoch.weights.weights]
    return sum(one.size for one in arrays if one is not None)


def geometry(page: Page) -> None:
    """Sections 2.1 and 2.3: Euclidean projections where the notes say they are out of reach."""
    small, rng, rows = page.options.small, np.random.default_rng(1), []
    side, words, many = (6, 6, 1000) if small else (84, 40, 1_000_000)
    structures: dict[str, Any] = {
        f"cut of a {side} x {side} grid, 2^{side * side} labelings": mm.structures.Cut(
            [side * side], grid(side), [0, 2 * side * (side - 1)]
        ),
        f"matching of {words} and {words} words": mm.structures.Matching.dense([[words, words]]),
    }
    for name, structure in structures.items():
        point = rng.normal(size=structure.n_parts)
        began = time.perf_counter()
        z = structure.project(point).z
        seconds = time.perf_counter() - began
        # The polytope of cuts is larger than the hull of the cuts: an edge may be 1 whatever its ends.
        away = point - z
        if "cut" in name:
            edges = structure.blocks[1].offsets[-1]
            free = np.maximum(away[-edges:], 0.0)
            scores = np.append(away[:-edges], np.minimum(away[-edges:], 0.0))
            best = float(structure.argmax(scores).value.sum() + free.sum())
        else:
            best = float(structure.argmax(away).value.sum())
        left = best - float(away @ z)
        page.numbers[name] = {"seconds": seconds, "certificate": left}
        rows.append(
            [
                name,
                f"{structure.n_parts:,}",
                milliseconds(seconds),
                f"{left:.0e}" if left > 0.0 else "0",
                structure.marginals_unsupported.split(";")[0],
            ]
        )
    header = ["Euclidean projection", "parts", "time", "max_v (a - z)'(v - z)", "the entropic one"]
    ball = L1(1.0)
    far = rng.normal(size=many)
    began = time.perf_counter()
    near = ball.project(far)
    seconds = time.perf_counter() - began
    away = far - near
    left = float(np.abs(away).max() - away @ near)
    page.numbers["l1_ball"] = {"seconds": seconds, "certificate": left}
    rows.append(
        [
            f"L1 ball, {many:,} weights",
            f"{many:,}",
            milliseconds(seconds),
            f"{left:.0e}" if left > 0.0 else "0",
            "a multiplication",
        ]
    )
    game = replace(problem("matchings", small), region=L1(2.0))
    stop = mm.Stop(tol=1e-3, max_iter=5000)
    both = {"multiplicative": mm.Extragradient(), "Euclidean": mm.Extragradient(geometry=mm.Euclidean())}
    runs = {name: mm.solve(game, solver, stop=stop).counters.iterations for name, solver in both.items()}
    page.numbers["l1_ball_iterations"] = runs
    page.text(
        "geometry",
        table(header, rows)
        + f"""

Extragradient to a certified relative gap of 1e-3 on the matchings above in an L1 ball of radius 2:
{runs["multiplicative"]} iterations with multiplicative weights, {runs["Euclidean"]} with Euclidean projections.""",
    )


def milliseconds(seconds: float) -> str:
    """In two digits or more."""
    return f"{1000 * seconds:.2g} ms" if seconds < 0.1 else f"{1000 * seconds:.0f} ms"


def statements(page: Page) -> None:
    """The remaining statements, one number each."""
    small, rng = page.options.small, np.random.default_rng(2)
    game = problem("matchings", small, radius=1.0)
    found = mm.solve(game, mm.Extragradient(geometry=mm.Euclidean()), stop=mm.Stop(tol=1e-5, max_iter=20_000))
    assert found.duals is not None

    def operator(w: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.concatenate([game.gradient(z), -game.augmented(w)])

    def value(w: np.ndarray, z: np.ndarray) -> float:
        return float(w @ game.gradient(z) + game.loss(z))

    def point() -> tuple[np.ndarray, np.ndarray]:
        return game.region.project(rng.normal(size=game.n_weights)), game.structure.project(
            rng.random(len(game.gold))
        ).z

    (w_1, z_1), (w_2, z_2) = point(), point()
    turned, moved = operator(w_1, z_1) - operator(w_2, z_2), np.concatenate([w_1 - w_2, z_1 - z_2])
    step, h = rng.normal(size=len(moved)), 1e-5
    dw, dz = step[: game.n_weights], step[game.n_weights :]
    slope = (value(w_1 + h * dw, z_1 + h * dz) - value(w_1 - h * dw, z_1 - h * dz)) / (2 * h)
    linear = operator(w_1, z_1)
    monotone = float(turned @ moved)
    weak = float(operator(w_2, z_2) @ moved)
    difference = weak - (value(w_1, z_2) - value(w_2, z_1))
    at_solution = float(np.linalg.norm(operator(found.weights, found.duals)))
    *_, (t, held, averaged) = path(game, PLAIN, 20 if small else 200)
    last = held.state.last.proposal
    subgradient = {
        kind: mm.solve(problem(kind, small, C=0.1), mm.Subgradient(), stop=mm.Stop(tol=0.02), random_state=0)
        for kind in ("matchings", "cuts")
    }
    planes = mm.solve(problem("matchings", small, C=0.1), mm.CuttingPlane(), stop=mm.Stop(tol=1e-4))
    extra = mm.solve(problem("matchings", small, C=0.1), mm.Extragradient(), stop=mm.Stop(tol=1e-4))
    exact = mm.solve(game, mm.Exact(), stop=mm.Stop(tol=1e-6))
    polytope = game.structure.polytope()
    assert polytope is not None
    variables, constraints = game.n_weights + polytope.ub.shape[0], polytope.lift.shape[1]
    page.numbers["statements"] = {
        "ratio": float(np.linalg.norm(turned) / np.linalg.norm(moved)),
        **{"turned": float(np.linalg.norm(turned)), "moved": float(np.linalg.norm(moved)), "norm": game.norm},
        **{"monotone": monotone, "weak_less_gap": difference, "operator_at_solution": at_solution},
        **{"gap_of_average": gap(game, averaged, 1.0), "gap_of_last": gap(game, last, 1.0), "iterations": t},
        **{f"subgradient_{kind}": one.certificate.relative_gap for kind, one in subgradient.items()},
        **{"cutting_planes": planes.counters.argmax, "extragradient": extra.counters.iterations},
        **{"program": exact.certificate.primal, "saddle": [found.certificate.dual, found.certificate.primal]},
    }
    gaps = [
        f"{100 * one.certificate.relative_gap:.2g}% after {one.counters.iterations} passes"
        for one in subgradient.values()
    ]
    steepest = abs(slope - (linear[: len(dw)] @ dw - linear[len(dw) :] @ dz))
    free = z_1 + game.augmented(w_1)
    shares = rng.dirichlet(np.ones(5), size=(2, 20_000))
    entropy = (shares[0] * np.log(shares[0] / shares[1])).sum(axis=1)
    pinsker = float((entropy / (0.5 * np.abs(shares[0] - shares[1]).sum(axis=1) ** 2)).min())
    page.numbers["statements"] |= {"pinsker": pinsker, "stationary_point": float(free.max())}
    rows = [
        [
            "1: gradient-based methods cannot be applied to matchings and cuts",
            "They can: a subgradient needs an argmax alone.",
            f"`Subgradient`: certified gap {gaps[0]} (matchings), {gaps[1]} (cuts)",
        ],
        [
            "1: generating constraints does not scale well",
            "With few weights it takes fewer passes.",
            f"gap of 1e-4 on matchings, C = 0.1: cutting planes {planes.counters.argmax:.0f} argmax passes, "
            f"extragradient {extra.counters.iterations} iterations of two projections",
        ],
        [
            "(1): the best output maximizes f(x, y)",
            "w'f(x, y). The z of (3) are indicators of parts, not potentials.",
            "",
        ],
        [
            "(4): a joint minimum, linear in parameters and data",
            "Right.",
            f"the optimum of (4), {exact.certificate.primal:.5f}, is within the saddle point's bounds, "
            f"{found.certificate.dual:.5f} and {found.certificate.primal:.5f}; {variables:,} variables and "
            f"{constraints:,} constraints for {game.structure.n_parts:,} parts (mu is idle for matchings)",
        ],
        [
            "(5), (6): L is bilinear, its operator is Fu - a",
            "Affine in each player; (5) lacks the z_i of c_i'z_i.",
            f"slope of L along a random direction, less that by the operator with z's sign turned: {steepest:.0e}",
        ],
        [
            "2: the algorithm is an extragradient method of Nesterov's and returns u^tau",
            "Extragradient is Korpelevich's (1976), its dual form Nesterov's. The average of the u is returned; the "
            "last one may be better, without a guarantee.",
            f"gap after {t} iterations: average {gap(game, averaged, 1.0):.3g}, last u {gap(game, last, 1.0):.3g}",
        ],
        [
            "2: at a saddle point g(y*) is close to 0",
            "Not with constraints: only g(y*)'(y - y*) >= 0 holds.",
            f"norm of the operator at a solution, relative gap {found.certificate.relative_gap:.0e}: {at_solution:.3g}",
        ],
        ['(9): the proximal step is a maximum, with "<= D"', "The argmax over u', without D.", ""],
        [
            "(10), (11): a divergence is at least sigma/2 times the squared distance",
            "Right; for entropy sigma = 1 in the 1-norm.",
            f"smallest ratio of relative entropy to half the squared distance, 20,000 random pairs: {pinsker:.3f}",
        ],
        [
            "(12): setting the gradient to 0 gives the projection",
            "Inside U only; elsewhere the constraints hold u' back.",
            f"a step of 1 from a random point: largest part {free.max():.3g} at the zero of (12), at most 1 in U",
        ],
        [
            "(14)-(16): the gap is <g(y), x - y> at the best y",
            'Right, as the operator is skew; (14) lacks its "<= D".',
            f"<g(y), x - y> less L(w_x, z_y) - L(w_y, z_x) for random x, y: {abs(difference):.0e}",
        ],
        [
            "2.2: g is constant and thus monotone",
            "Affine and monotone: (g(u) - g(u'))'(u - u') = 0.",
            f"for two random points: norm of g(u) - g(u') {np.linalg.norm(turned):.3g}, its inner product with u - u' "
            f"{monotone:.0e}",
        ],
        [
            "2.2: L <= the norm of F",
            "Right.",
            f"ratio for these points {np.linalg.norm(turned) / np.linalg.norm(moved):.3g}, norm {game.norm:.4g}",
        ],
        ["2.2: g is exactly the gradient of L", "In w; in z it is minus the gradient, as z maximizes.", ""],
    ]
    page.text("statements", table(["the notes", "what is true", "measured"], rows))


if __name__ == "__main__":
    blocks = {
        "bound": bound,
        "restricted": restricted,
        "memory": memory,
        "geometry": geometry,
        "statements": statements,
    }
    Page("starnaud2019", str(__doc__).splitlines()[0], blocks).run()
