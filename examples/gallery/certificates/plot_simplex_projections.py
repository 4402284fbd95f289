"""
Sparse and entropic projections
===============================

The extragradient methods let a *structures player* move a point of the polytope of
outputs along a gradient, and bring it back inside. The geometry decides how:
``mm.Euclidean()`` takes the nearest point, ``mm.Entropic()`` a Gibbs distribution.
The smallest polytope with something to see is the triangle: mixtures of three
outputs.
"""

# %%
# ``structures.Candidates`` chooses one output of a list; with three candidates its
# polytope is a triangle. ``project`` returns the nearest point, ``marginals`` the
# Gibbs distribution. Other structures have these methods under the same names.

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.structures import Candidates

list_of_three = Candidates([3])
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def draw_triangle(axes, title):
    axes.fill(*CORNERS.T, facecolor="0.95", edgecolor="0.4", linewidth=1)
    for (x, y), name, (dx, dy) in zip(
        CORNERS, "abc", ((-0.05, -0.04), (0.05, -0.04), (0.0, 0.04)), strict=True
    ):
        axes.text(x + dx, y + dy, name, ha="center", va="center", style="italic", fontsize=12)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=11)


# %%
# Scores move along straight lines ``t * s`` from zero, where all three outputs are
# equal, in 24 directions. The Euclidean projection follows a straight line until it
# meets a side, slides along it, and can stop *in* a corner. The Gibbs distribution
# bends toward a corner and never quite reaches a side: all outputs keep some
# probability.

BLUE, VERMILION = "#0072B2", "#D55E00"
angles = np.arange(24) * 2 * np.pi / 24 + np.pi / 24
plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
steps = np.linspace(0.0, 4.0, 81)

figure, axes = plt.subplots(1, 2, figsize=(6.0, 3.6), layout="constrained")
zeros = {}
for own, name, inside, color in (
    (axes[0], "Euclidean", lambda s: list_of_three.project(s).z, BLUE),
    (axes[1], "entropic", lambda s: list_of_three.marginals(s).z, VERMILION),
):
    ends = []
    draw_triangle(own, "")
    for angle in angles:
        direction = np.array([np.cos(angle), np.sin(angle)]) @ plane
        # Both paths start in the middle: scores of 1/3 for projections.
        points = np.array([inside(1 / 3 + t * direction) for t in steps])
        own.plot(*(points @ CORNERS).T, color=color, linewidth=1.1)
        ends.append(points[-1])
    own.plot(*(np.array(ends) @ CORNERS).T, "o", color=color, markersize=5)
    own.plot(*(np.full(3, 1 / 3) @ CORNERS), "o", color="black", markersize=4)
    zeros[name] = int((np.array(ends) == 0.0).sum())
    print(f"{name}: {zeros[name]} of {3 * len(ends)} probabilities at the ends are 0")
axes[0].set_title("Euclidean: paths reach\nthe sides, where some\nprobabilities are 0", pad=12)
axes[1].set_title("entropic: paths bend\ntoward the corners, no\nprobability is ever 0", pad=12)
plt.show()

# %%
# So Euclidean geometry can end on the face of the polytope where the optimum is, and
# is faster for very small gaps; entropic geometry needs only sum-product passes,
# which on chains and trees are cheaper than projections.
