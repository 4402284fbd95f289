"""
Certified gaps of six solvers
=============================

Every solver of the library ends with the same kind of proof: a lower bound on the
objective of *any* weights. Solvers can therefore be compared by the gap they can prove
after the same number of passes over the data.
"""

# %%
# The task is to read dates, written with one digit of scikit-learn's handwritten
# digits per position, from noisy images. A chain of eight positions learns which
# digits follow each other.

import datetime

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import maxmargin as mm

rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
X, y = [], []
for day in rng.integers(0, 16000, size=100).tolist():
    text = (datetime.date(1980, 1, 1) + datetime.timedelta(days=day)).strftime("%Y%m%d")
    chosen = [rng.choice(np.flatnonzero(digits == int(character))) for character in text]
    noisy = images[chosen] / 16 + rng.normal(scale=0.6, size=(len(text), 64))
    X.append(np.column_stack([noisy, np.ones(len(text))]))
    y.append(list(text))

# %%
# All solvers minimize the same objective, ``1/(2C) ||w||^2 + H(w)``, and stop at a
# relative gap of 0.001 or after 400 passes. A pass is one argmax, projection or
# sum-product of every example. An iteration of a solver may take several, so the
# records of ``solution_.history`` count them.

solvers = {
    "block Frank-Wolfe": mm.BlockFrankWolfe(),
    "simplicial decomposition": mm.SimplicialDecomposition(),
    "exponentiated gradient": mm.ExponentiatedGradient(),
    "extragradient": mm.Extragradient(),
    "dual extragradient": mm.DualExtragradient(),
    "projected subgradient": mm.ProjectedSubgradient(),
}
PASSES = 400


def enough(record):
    return record.argmax + record.projections / len(X) >= PASSES


curves = {}
for name, solver in solvers.items():
    model = mm.ChainSVM(
        C=0.05, solver=solver, tol=1e-3, max_iter=2 * PASSES, callbacks=[enough], random_state=0
    )
    history = model.fit(X, y).solution_.history
    passes = np.array([record.argmax + record.projections / len(X) for record in history])
    gaps = np.array([record.certificate.relative_gap for record in history])
    curves[name] = passes, gaps
    status = model.solution_.status
    print(f"{name:25} {passes[-1]:4.0f} passes, gap {gaps[-1]:.1e}: {status}")

# %%
# Block Frank-Wolfe and simplicial decomposition keep the violated outputs that they
# have found and optimize over all of them between passes. They need fewer passes,
# which counts where inference takes most of the time.

reached = {name: passes[-1] for name, (passes, gaps) in curves.items() if gaps[-1] <= 1e-3}
fast = [reached[name] for name in ("simplicial decomposition", "block Frank-Wolfe")]
colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "black")
styles = ("-", "--", "-.", "-", "--", ":")
figure, axes = plt.subplots(figsize=(6.0, 5.2), layout="constrained")
for (name, (passes, gaps)), color, style in zip(curves.items(), colors, styles, strict=True):
    axes.loglog(passes, gaps, style, color=color, linewidth=2, label=name)
axes.axhline(1e-3, color="0.6", linewidth=1)
axes.text(1.1, 1.1e-3, "tolerance", color="0.4")
axes.set_xlabel("passes over the data")
axes.set_ylabel("certified relative gap")
needed = f"{fast[0]:.0f} and {fast[1]:.0f} passes"
axes.set_title(f"Solvers that keep violated outputs prove\na gap of 0.001 in {needed}")
axes.grid(alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()
