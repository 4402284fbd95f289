"""The page of Wang and Shawe-Taylor (2009): LP column generation, on GENIA part-of-speech tags and on 100-best lists.

    python -m benchmarks.papers.wang2009 [--data ../shared/data] [--only spiral letter genia size bound smt] [--write]

GENIA: the first 6,700 sentences, five samplings of 5,700 to train on and 1,000 to test on; features are the word and
the tag before it, weights >= 0. All times are CPU seconds of one thread.
"""

from __future__ import annotations

import gzip
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.papers import bleu
from benchmarks.papers.page import Page, table
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L1
from maxmargin.structures.candidates import Candidates
from maxmargin.tasks.reranking import Judged, RerankerSettings, train_reranker
from maxmargin.tasks.reranking.tuning.references import costs_of, good_by_rank

SENTENCES, TEST, SAMPLINGS = 6700, 1000, 5
C, TOL = 30.0, 1e-2
"""Of LP (6), and the certified gap aimed at."""

LIMIT = {"highs": 40.0, "proximal": 900.0}
"""The seconds after which a run with such masters is stopped."""

FIRST = "LP, extragradient / proximal"
"""The paper's masters by first-order steps, and ours."""

LOSS = "LP, margin rescaled"
"""Not in the paper: the number of wrong tags in place of the margin of 1."""

LOSS_COSTS = (1.0, 2.0, 4.0, 8.0)
"""The values of C to choose from for it."""

PASSES = {"perceptron": 100, "MIRA": 46}
"""The paper's iterations."""

PAPER = {
    "CRF": ("4.58 ± 0.14", 51403, 205),
    "MIRA": ("4.91 ± 0.06", 9084, 46),
    "perceptron": ("5.38 ± 0.19", 26, 100),
    "LP, simplex": ("4.94 ± 0.18", 3879, 23),
    "LP, extragradient / proximal": ("4.92 ± 0.13", 856, 14),
    LOSS: ("–", "–", "–"),
    "HMM": ("20.02 ± 0.29", "–", "–"),
}

Sentences = list[list[tuple[str, str]]]


def genia(page: Page) -> Sentences:
    """Sentences of words and tags; without the lines of identifiers and the marks of titles and abstracts."""
    if page.options.small:
        return made_up()
    file = page.options.data / "tagging/genia/train.pos.gz"
    if not file.exists():
        raise SystemExit(f"{file} does not exist: give --data or set MAXMARGIN_DATA")
    found: Sentences = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            tokens = re.findall(r"(\S(?:.*?\S)??)/([^/\s]+)(?:\s|$)", line)  # a few words have blanks: "G + C/NN"
            marked = bool(tokens) and tokens[0] in (("TI", "LS"), ("AB", "LS"))
            if tokens[2 * marked :] and not line.startswith("UI/LS"):
                found.append(tokens[2 * marked :])
    return found[:SENTENCES]


def made_up(n: int = 70) -> Sentences:
    """Sentences of a small hidden Markov model, whose words are ambiguous."""
    rng = np.random.default_rng(0)
    K, V = 5, 80
    moves, words = rng.dirichlet(np.full(K, 0.4), size=K), rng.dirichlet(np.full(V, 0.1), size=K)
    found = []
    for length in rng.integers(4, 12, size=n):
        tags = [int(rng.integers(K))]
        for _ in range(length - 1):
            tags.append(int(rng.choice(K, p=moves[tags[-1]])))
        found.append([(f"w{rng.choice(V, p=words[tag])}", f"T{tag}") for tag in tags])
    return found


class Sampling:
    """Training and test sentences as rows of indicators: a column per word, and one for the start of a sentence."""

    def __init__(self, sentences: Sentences, seed: int, n_train: int | None = None) -> None:
        order = np.random.default_rng(seed).permutation(len(sentences))
        n_test = min(TEST, len(sentences) // 4)
        train, test = order[n_test:], order[:n_test]
        self.train = [sentences[i] for i in train[:n_train]]
        self.test = [sentences[i] for i in test]
        names = dict.fromkeys(word for sentence in self.train for word, _ in sentence)
        self.column = {name: at for at, name in enumerate(names)}
        self.X, self.X_test = self.rows(self.train), self.rows(self.test)
        self.y, self.y_test = ([[tag for _, tag in s] for s in part] for part in (self.train, self.test))
        self.tags = sorted({tag for sentence in self.y for tag in sentence})

    def rows(self, sentences: Sentences) -> list[sp.csr_array]:
        """A row per word; words that no training sentence has are in no column."""
        first, width, found = len(self.column), len(self.column) + 1, []
        for sentence in sentences:
            columns = [[first] if at == 0 else [] for at in range(len(sentence))]
            for at, (word, _) in enumerate(sentence):
                columns[at] += [self.column[word]] if word in self.column else []
            starts = np.cumsum([0, *map(len, columns)])
            flat = np.array(list(chain.from_iterable(columns)), dtype=np.int64)
            found.append(sp.csr_array((np.ones(len(flat)), flat, starts), shape=(len(sentence), width)))
        return found

    def error(self, model: Any) -> float:
        """Wrong tags of the test sentences, in percent."""
        found, gold = (list(chain.from_iterable(labels)) for labels in (model.predict(self.X_test), self.y_test))
        return 100.0 * float(np.mean([a != b for a, b in zip(found, gold, strict=True)]))

    def unknown(self) -> float:
        """Test words that no training sentence has, in percent."""
        words = [word for sentence in self.test for word, _ in sentence]
        return 100.0 * float(np.mean([word not in self.column for word in words]))

    def svm(self, **settings: Any) -> Any:
        """A chain with the given settings."""
        return mm.ChainSVM(classes=self.tags, n_jobs=1, random_state=0, **settings)

    def hmm(self, smoothing: float = 0.1) -> mm.Model:
        """Relative frequencies as weights of the same chain; a word not seen is as likely under every tag."""
        encoder = self.svm()._encoder().fit(self.X, self.y)[0]
        number = {tag: k for k, tag in enumerate(encoder.classes)}
        K, V = len(number), len(self.column)
        emitted, moved, begun = np.full((V, K), smoothing), np.full((K, K), smoothing), np.full(K, smoothing)
        for sentence in self.train:
            tags = [number[tag] for _, tag in sentence]
            np.add.at(emitted, ([self.column[word] for word, _ in sentence], tags), 1.0)
            np.add.at(moved, (tags[:-1], tags[1:]), 1.0)
            begun[tags[0]] += 1.0
        nodes = np.log(np.vstack([emitted / emitted.sum(axis=0), begun / begun.sum()]))
        pairs = np.log(moved / moved.sum(axis=1, keepdims=True))
        return mm.Model(np.concatenate([nodes.ravel(), pairs.ravel()]), encoder, n_jobs=1)


class Timed(mm.ColumnGeneration):
    """Column generation that notes the CPU seconds after every round."""

    def step(self, run: Any, state: Any) -> Any:
        """One round."""
        state = super().step(run, state)
        CLOCK[run.counters.iterations] = time.process_time()  # rounds of a warm-up are steps inside a step
        return state


CLOCK: dict[int, float] = {}
"""Of the last run."""


def fitted(sampling: Sampling, **settings: Any) -> tuple[Any, dict[str, Any]]:
    """A trained chain; its error, CPU seconds, rounds, and gap."""
    CLOCK.clear()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that ends at its limit says so in the table
        model = sampling.svm(**settings).fit(sampling.X, sampling.y)
    used, solution = time.process_time() - began, model.solution_
    return model, {
        "error": sampling.error(model),
        "cpu": used,
        "rounds": solution.counters.iterations,
        "gap": solution.certificate.relative_gap,
        "primal": solution.certificate.primal,
        "status": str(solution.status),
        "nonzero": int((model.coef_ != 0).sum()),
        "clock": [round(at - began, 2) for at in CLOCK.values()],
    }


def program(master: str, cost: float = C, rescaling: str = "none", tol: float = TOL) -> dict[str, Any]:
    """LP (6), or with the margin rescaled, with weights >= 0, by column generation."""
    limit = {"tol": tol, "max_seconds": LIMIT[master], "solver": Timed(master=master)}
    return {"norm": "l1", "C": cost, "rescaling": rescaling, "nonnegative": True, **limit}


def chosen_cost(sampling: Sampling) -> tuple[float, dict[float, float]]:
    """The C with the least error on a held-out part of the training sentences, and all errors, by C."""
    held_out = Sampling(sampling.train, 0)
    errors = {}
    for cost in LOSS_COSTS:
        errors[cost] = fitted(held_out, **program("proximal", cost, "margin", 5 * TOL))[1]["error"]
    return min(errors, key=errors.__getitem__), errors


METHODS: dict[str, dict[str, Any]] = {
    "MIRA": {"solver": mm.Mira(max_iter=PASSES["MIRA"]), "C": np.inf},
    "perceptron": {"solver": mm.AveragedPerceptron(max_iter=PASSES["perceptron"]), "C": np.inf},
    "LP, simplex": program("highs"),
    FIRST: program("proximal"),
}
MODELS: dict[str, Any] = {}
"""The models of the first sampling, for the bound."""


def measure_genia(page: Page) -> None:
    sentences, found = genia(page), {name: [] for name in ("HMM", *METHODS, LOSS)}  # type: ignore[var-annotated]
    cost, held_out = chosen_cost(Sampling(sentences, 0))
    samplings = 2 if page.options.small else SAMPLINGS
    unknown = []
    for seed in range(samplings):
        sampling = Sampling(sentences, seed)
        unknown.append(sampling.unknown())
        found["HMM"].append({"error": sampling.error(sampling.hmm()), "cpu": 0.0, "rounds": 0, "gap": 0.0})
        for name, settings in {**METHODS, LOSS: program("proximal", cost, "margin")}.items():
            model, result = fitted(sampling, **settings)
            found[name].append(result)
            if seed == 0:
                MODELS[name] = model
    rows = []
    for name in PAPER:
        if name not in found:
            rows.append([name, PAPER[name][0], *(f"{x:,}" for x in PAPER[name][1:]), "not trained", "", "", ""])
            continue
        errors, cpu, rounds = (np.array([one[key] for one in found[name]]) for key in ("error", "cpu", "rounds"))
        spread = f"{errors.mean():.2f} ± {errors.std(ddof=1):.2f}"
        paper = [f"{x:,}" if isinstance(x, int) else x for x in PAPER[name]]
        gaps = max(one["gap"] for one in found[name])
        counts = ["–", "–"] if name == "HMM" else [f"{cpu.mean():,.1f}", f"{rounds.mean():.0f}"]
        rows.append([name, *paper, spread, *counts, f"{gaps:.2g}" if name.startswith("LP") else ""])
    header = ["", "paper: error %", "CPU s", "iterations", "ours: error %", "CPU s", "iterations", "largest gap"]
    words = (
        f"{len(sampling.X):,} training and {len(sampling.X_test):,} test sentences, {samplings} samplings, "
        f"{np.mean(unknown):.1f}% of the test words unknown. C = {C:g}; the LPs stop at a certified gap of {TOL:g}, or "
        f"after {LIMIT['highs']:g} (simplex) and {LIMIT['proximal']:g} seconds. With the margin rescaled C = {cost:g}, "
        f"of {', '.join(f'{value:g}' for value in LOSS_COSTS)} the one with the least error on a held-out part of the "
        f"first sampling's training sentences."
    )
    page.numbers["genia"] = {"unknown": unknown, "held_out": held_out, **found}
    page.text("genia", table(header, rows) + "\n\n" + words)
    page.figure("rounds", rounds_figure(found))


def rounds_figure(found: dict[str, list[dict[str, Any]]]) -> Any:
    """Figure 2: the CPU seconds up to each round, a curve for each sampling."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for name, mark, color in (("LP, simplex", ".", "tab:blue"), (FIRST, "x", "tab:orange")):
        for number, one in enumerate(found[name]):
            times, label = one["clock"], name if number == 0 else None
            axes.plot(range(1, len(times) + 1), times, marker=mark, color=color, alpha=0.7, label=label)
    axes.set(xlabel="round", ylabel="CPU seconds up to the round", title="Both masters, one curve for each sampling")
    axes.legend()
    return figure


def measure_size(page: Page) -> None:
    import matplotlib.pyplot as plt

    sentences = genia(page)
    sizes = [15, 30] if page.options.small else [350, 700, 1400, 2800, 5700]
    methods = {name: METHODS[name] for name in ("perceptron", "MIRA", FIRST)}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
    for n in sizes:
        sampling = Sampling(sentences, 0, n)
        for name, settings in methods.items():
            found[name].append(fitted(sampling, **settings)[1])
    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for name, runs in found.items():
        axes.loglog(sizes, [run["cpu"] for run in runs], marker="o", label=name)
    axes.set(xlabel="training sentences", ylabel="CPU seconds", title="CPU seconds against training size")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.legend()
    rows = []
    for i, n in enumerate(sizes):
        lp = found[FIRST][i]
        cells = (f"{runs[i]['cpu']:,.1f} s, {runs[i]['error']:.2f}%" for runs in found.values())
        rows.append([f"{n:,}", *cells, f"{lp['gap']:.2g}", lp["rounds"]])
    page.numbers["size"] = {"sizes": sizes, **found}
    page.text("size", table(["sentences", *found, "gap of the LP", "rounds"], rows))
    page.figure("size", figure)


def measure_bound(page: Page) -> None:
    sampling, rows, found = Sampling(genia(page), 0), [], {}
    for name in (FIRST, "MIRA", "perceptron"):
        model = MODELS.get(name) or fitted(sampling, **METHODS[name])[0]
        signs = bool(name.startswith("LP"))
        bound = mm.generalization_bound(model, sampling.X, sampling.y, C=C, nonnegative=signs)
        found[name] = {"log10_error": bound.log2_error * np.log10(2.0), **vars(bound)}
        exponent = f"10^{found[name]['log10_error']:.0f}"
        rows.append([name, f"{bound.norm:,.0f}", f"{bound.largest:g}", exponent, f"{bound.over_examples:.2g}"])
    page.numbers["bound"] = found
    header = ["model", "‖w‖₁ + C Σξ", "b", "bound, triples as draws", "bound, examples as draws"]
    size = f"10^{bound.log_triples / np.log(10.0):.0f}"
    page.text("bound", table(header, rows) + f"\n\n|S| = {size} triples of {bound.n_examples:,} sentences, η = 0.05.")


# --- Figure 1 -------------------------------------------------------------------------------------------------------


def small_problem(cost: float = 2.0) -> Problem:
    """Lists of four candidates with three features, weights >= 0: an LP to look at."""
    rng = np.random.default_rng(1)
    structure = Candidates([4] * 5)
    rows = rng.normal(size=(20, 3))
    features = mm.features.PartFeatures(rows, structure.blocks[0].offsets)
    gold = structure.argmax(rows @ [1.0, 0.5, 0.2] + 0.8 * rng.normal(size=20)).z
    region = L1(C=cost, nonnegative=np.ones(3, dtype=bool))
    return Problem.build(structure, features, gold, Hamming(), region, rescaling="none")


def trajectories(problem: Problem, cost: float, steps: int) -> dict[str, list[tuple[float, float]]]:
    """The primal and dual objectives of gradient steps and of extragradient, process (13), on the whole LP."""
    matrix, gold = problem.features.to_sparse().toarray(), problem.gold > 0.5
    owner = np.repeat(np.arange(5), 4)[~gold]
    H, M = (np.repeat(matrix[gold], 4, axis=0) - matrix)[~gold], np.eye(5)[owner]
    alpha = (2 * (H**2).sum() + 2 * (M**2).sum()) ** -0.5
    found: dict[str, list[tuple[float, float]]] = {}
    for name in ("gradient", "extragradient"):
        w, xi, lam = np.ones(3), np.zeros(5), np.zeros(len(H))
        found[name] = [(w.sum() + cost * xi.sum(), lam.sum())]
        for _ in range(steps):
            at = w, xi, lam
            for _ in range(1 if name == "gradient" else 2):
                at = (
                    np.maximum(w - alpha * (1 - H.T @ at[2]), 0),
                    np.maximum(xi - alpha * (cost - M.T @ at[2]), 0),
                    np.maximum(lam + alpha * (1 - M @ at[1] - H @ at[0]), 0),
                )
            w, xi, lam = at
            found[name].append((w.sum() + cost * xi.sum(), lam.sum()))
    return found


def with_rounds(problem: Problem, cost: float, steps: int) -> list[list[tuple[float, float]]]:
    """The same objectives in each round of Algorithm 2, whose first point is where the fresh rows move it."""
    solver = mm.ColumnGeneration.plain(epsilon_1=1e-12, epsilon_2=1e-12)
    run = Run.of(problem, np.random.default_rng(0))
    state, rounds = solver.init(run, Start()), []
    for _ in range(6):  # masters that are not exact may find rows again and again
        points = []
        for done in range(1, steps + 1):
            moved = replace(solver, max_steps=done).step(run, state)
            points.append((moved.weights.sum() + cost * moved.slacks.sum(), moved.multipliers.sum()))
        rounds.append(points)
        if len(moved.rows) == len(state.rows):
            break
        state = moved
    return rounds


def measure_spiral(page: Page) -> None:
    import matplotlib.pyplot as plt

    cost, steps = 2.0, 60 if page.options.small else 600
    problem = small_problem(cost)
    optimum = cost * mm.solve(problem, mm.Exact(), stop=mm.Stop(tol=1e-6)).certificate.primal
    paths = trajectories(problem, cost, steps)
    rounds = with_rounds(problem, cost, 20 if page.options.small else 120)
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for axes, (name, path) in zip(panels, paths.items(), strict=False):
        axes.plot(*np.array(path).T, lw=0.8, marker=".", ms=2)
        axes.set_title({"gradient": "gradient steps", "extragradient": "extragradient, the whole LP"}[name])
    for number, points in enumerate(rounds, 1):
        panels[2].plot(*np.array(points).T, lw=0.8, marker=".", ms=2, label=f"round {number}")
        if number > 1:
            panels[2].plot(*np.array([rounds[number - 2][-1], points[0]]).T, "k--", lw=0.8)
    panels[2].set_title("column generation, Algorithm 2")
    panels[2].legend(fontsize=8, ncols=3, loc="upper center")  # above the curves
    for axes in panels:
        ends = [min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])]
        axes.plot(ends, ends, color="0.7", lw=0.8, zorder=0)
        axes.plot(optimum, optimum, "r+", ms=10)
        axes.set(xlabel="primal objective", ylabel="dual objective")
    page.figure("spiral", figure)
    shown = [at for at in (10, 30, 100, 300, 600) if at <= steps]
    rows = [[at, *(f"{p:.3f} and {d:.3f}" for p, d in (paths[name][at] for name in paths))] for at in shown]
    ends = [points[-1] for points in rounds]
    page.numbers["spiral"] = {
        "optimum": optimum,
        **{name: {str(at): path[at] for at in shown} for name, path in paths.items()},
        "ends of rounds": ends,
    }
    words = f"The optimum is {optimum:.3f}. Rounds of column generation end at the primal and dual objectives "
    words += "; ".join(f"{p:.3f} and {d:.3f}" for p, d in ends) + "."
    page.text("spiral", table(["steps", "gradient: primal and dual", "extragradient"], rows) + "\n\n" + words)


# --- Algorithms 1 and 2 to the letter -------------------------------------------------------------------------------


def measure_letter(page: Page) -> None:
    sampling = Sampling(genia(page), 0, 20 if page.options.small else 100)
    common = {"norm": "l1", "C": C, "rescaling": "none", "nonnegative": True, "tol": TOL}
    seconds = 1.0 if page.options.small else 60.0
    solvers = {
        "Algorithm 2, ε₁ = 10⁻³, ε₂ = 1": mm.ColumnGeneration.plain(epsilon_1=1e-3, epsilon_2=1.0),
        "Algorithm 2, ε₁ = 10⁻⁴, ε₂ = 0.1": mm.ColumnGeneration.plain(epsilon_1=1e-4, epsilon_2=0.1),
        "Algorithm 1, exact masters": mm.ColumnGeneration.plain(master="highs"),
        "`ColumnGeneration()`": mm.ColumnGeneration(),
    }
    found, rows = {}, []
    for name, solver in solvers.items():
        found[name] = one = fitted(sampling, solver=solver, max_seconds=seconds, **common)[1]
        cells = [one["rounds"], f"{one['cpu']:.1f}", f"{C * one['primal']:,.1f}", f"{one['gap']:.2g}", one["status"]]
        rows.append([name, *cells, f"{one['error']:.2f}"])
    page.numbers["letter"] = {"sentences": len(sampling.X), **found}
    header = ["method", "rounds", "CPU s", "objective", "certified gap", "status", "error %"]
    limit = f"{len(sampling.X)} sentences, C = {C:g}, stopped after {seconds:g} seconds or at a gap of {TOL:g}."
    page.text("letter", table(header, rows) + "\n\n" + limit)


# --- Table 2 --------------------------------------------------------------------------------------------------------


MARGINS = {"one": "none", "BLEU": "margin"}
"""A margin of 1, or as large as a candidate's sentence BLEU is lower; the library's names."""


class Lists:
    """The lists with their BLEU statistics, pseudo-references and costs."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.offsets = judged, judged.lists.offsets[1:-1]
        values = judged.lists.values
        self.tuning = judged.tuning_lists(values, np.zeros(values.shape[1], dtype=np.int8))
        self.values = np.split(values, self.offsets)
        self.quality = np.split(self.tuning.quality, self.offsets)

    def good(self, levels: int) -> list[Any]:
        """For each list a mask of the candidates with one of the highest sentence BLEUs."""
        return np.split(good_by_rank(self.tuning, self.tuning.quality, levels), self.offsets)

    def costs(self, margin: str) -> list[Any] | None:
        """By how much each candidate's sentence BLEU is below the highest of its list; None for a margin of 1."""
        return None if margin == "one" else np.split(costs_of(self.tuning, self.tuning.quality), self.offsets)


def reranked(
    lists: Lists, good: list[Any], part: Any, rest: Any, *, trigrams: bool, margin: str, **settings: Any
) -> list[int]:
    """What a model of the other lists chooses in one fold; a quarter of those chooses C by its BLEU."""
    dev, train = np.split(rest, [len(rest) // 4])
    X, held_out = bleu.features(lists.judged.lists, train, trigrams=trigrams), lists.judged.select(dev)
    costs = lists.costs(margin)

    def metric(_: Any, picks: list[int]) -> float:
        return bleu.scores(held_out, picks)["bleu"]

    common = {
        "norm": "l1",
        "rescaling": MARGINS[margin],
        "tol": 1e-2,
        "max_seconds": 30.0,
        "n_jobs": 1,
        "metric": metric,
    }
    model = mm.CandidatesSVM(C=[0.01, 0.1, 1.0, 10.0], **common, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            [X[i] for i in train],
            [good[i] for i in train],
            costs=None if costs is None else [costs[i] for i in train],
            dev=([X[i] for i in dev], [good[i] for i in dev]),
        )
    picks: list[int] = model.predict([X[i] for i in part])
    return picks


def by_mert(lists: Lists, part: Any, rest: Any) -> list[int]:
    """What minimum error rate training on the other lists chooses in one fold."""
    model = train_reranker(lists.judged.select(rest), RerankerSettings(method="mert", folds=0, n_jobs=1))
    return model.predict(lists.judged.lists.select(part))


def least_hinges(lists: Lists, formulation: str, margin: str) -> dict[str, float]:
    """The sum of hinges at zero weights, and a certified lower bound of it over all weights with ||w||_1 <= 1000.

    Decoder features, pseudo-references of the highest BLEU.
    """
    X = bleu.features(lists.judged.lists, np.arange(len(lists.judged)), trigrams=False)
    good, costs = lists.good(1), lists.costs(margin)
    settings = {"formulation": formulation, "rescaling": MARGINS[margin], "solver": mm.ColumnGeneration(master="highs")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.CandidatesSVM(norm="l1", C=np.inf, radius=1e3, tol=1e-6, **settings).fit(X, good, costs=costs)
    hinges = [1.0 - float(one.all()) for one in good] if costs is None else [float(one.max()) for one in costs]
    return {"at zero": sum(hinges), "least": model.solution_.certificate.dual}


def measure_smt(page: Page) -> None:
    read, shipped = bleu.made_up() if page.options.small else bleu.read(page.options.data / "reranking")
    lists, order = Lists(read), np.random.default_rng(0).permutation(len(read))
    found: dict[str, dict[str, dict[str, float]]] = {}

    def judged(name: str, picks: list[int], *columns: str) -> None:
        found[name] = found.get(name, {}) | dict.fromkeys(columns, bleu.scores(read, picks))

    def cross_validated(choose: Callable[[Any, Any], list[int]]) -> list[int]:
        picks = np.zeros(len(read), dtype=np.int64)
        for part in np.array_split(order, 2 if page.options.small else 10):
            picks[part] = choose(part, order[~np.isin(order, part)])
        chosen: list[int] = picks.tolist()
        return chosen

    columns = {"highest": 1, "two highest": 2}
    judged("first of the list", [0] * len(read), *columns)
    programs = {"LP (7)": "nearest", "LP (8)": "all"}
    runs = product((False, True), MARGINS, programs.items(), columns.items())
    for trigrams, margin, (name, formulation), (column, levels) in runs:
        settings = {"trigrams": trigrams, "margin": margin, "formulation": formulation}
        picks = cross_validated(partial(reranked, lists, lists.good(levels), **settings))
        wide = "and trigrams" if trigrams else "decoder features"
        judged(f"{name}, {wide}{'' if margin == 'one' else ', margins by BLEU'}", picks, column)
    judged("minimum error rate, decoder features", cross_validated(partial(by_mert, lists)), *columns)
    if shipped:
        judged("minimum error rate, in sample", shipped, *columns)
    judged("best sentence BLEU", [int(one.argmax()) for one in lists.quality], *columns)
    rows = [
        [name, *chain.from_iterable((f"{one[c]['bleu']:.2f}", f"{one[c]['nist']:.2f}") for c in columns)]
        for name, one in found.items()
    ]
    least = {
        f"{name}, {'a margin of 1' if margin == 'one' else 'margins by BLEU'}": least_hinges(lists, formulation, margin)
        for margin in MARGINS
        for name, formulation in programs.items()
    }
    choice = [pair for pair in zip(lists.values, lists.good(1), strict=True) if not pair[1].all()]
    alone = sum(bleu.separable(*pair) for pair in choice)
    page.numbers["smt"] = found | {"hinges": least, "lists with a choice": len(choice), "separable alone": alone}
    sentence = "; ".join(f"{name}: {one['at zero']:.2f} and {one['least']:.2f}" for name, one in least.items())
    note = "Sum of hinges at w = 0, and a certified lower bound of it over all weights with ||w||_1 <= 1,000, decoder "
    note += f"features, pseudo-references of the highest BLEU. {sentence}. Of the {len(choice)} lists with a bad "
    note += f"candidate {alone} have a direction of their own that puts every good candidate above every bad one."
    scores = table(["choice", *chain.from_iterable((f"{c}: BLEU %", "NIST") for c in columns)], rows)
    page.text("smt", f"{scores}\n\n{note}")


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("Agg")
    blocks = {
        "spiral": measure_spiral,
        "letter": measure_letter,
        "genia": measure_genia,
        "size": measure_size,
        "bound": measure_bound,
        "smt": measure_smt,
    }
    Page("wang2009", __doc__.splitlines()[0], blocks).run()
