r"""
Why extragradient: steps around a saddle point
==============================================

Training is a game: the weights minimize what the structures maximize, :math:`\min_w
\max_z L(w, z)`. When both players follow their gradients, they chase each other
around the saddle point. Extragradient (Korpelevich 1976; Taskar, Lacoste-Julien and
Jordan 2006) looks one step ahead and corrects.
"""

# %%
# The smallest problem of the library has one weight and one list of two candidates;
# the first is right, the second wrong. The output player mixes the two: ``z`` is the
# share of the wrong one. With features 1 and -1,
#
# .. math:: L(w, z) = \tfrac{1}{2C} w^2 + z\,(1 - 2w), \qquad 0 \le z \le 1,
#
# whose inner maximum over ``z`` is the structured hinge loss, and whose saddle point
# is at ``w = 1/2``.

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

C = 1.0
saddle = np.array([0.5, 0.25 / C])  # both derivatives are zero: w / C - 2 z and 1 - 2 w
model = mm.CandidatesSVM(C=C, tol=1e-6, solver=mm.Extragradient(geometry=mm.Euclidean()))
model.fit([np.array([[1.0], [-1.0]])], [0])
print(f"saddle point at w = {saddle[0]}, z = {saddle[1]}")
print(f"the solver's weight is {model.coef_[0]:.6f}: {model.solution_.certificate}")

# %%
# Both methods take the same steps from the same start, and project ``z`` onto the
# interval.


def gradients(w, z):
    """Descent direction of the weights, ascent direction of the outputs."""
    return np.array([-(w / C - 2 * z), 1 - 2 * w])


def clipped(point):
    return np.array([point[0], np.clip(point[1], 0.0, 1.0)])


def run(step, extra, n=60, start=(1.1, 0.2)):
    points = [np.array(start)]
    for _ in range(n):
        ahead = clipped(points[-1] + step * gradients(*points[-1]))
        points.append(clipped(points[-1] + step * gradients(*ahead)) if extra else ahead)
    return np.array(points)


STEP = 0.3
paths = {"gradient": run(STEP, extra=False), "extragradient": run(STEP, extra=True)}

# %%
# The picture shows the paths in the plane of the two players, and the distance to the
# saddle point after each step.

COLORS = {"gradient": "#D55E00", "extragradient": "#0072B2"}
figure, (plane, distance) = plt.subplots(
    2, 1, figsize=(6.0, 7.4), layout="constrained", height_ratios=[1.3, 1]
)
w, z = np.meshgrid(np.linspace(-0.35, 1.35, 200), np.linspace(0, 1, 200))
plane.contourf(w, z, w**2 / (2 * C) + z * (1 - 2 * w), levels=14, cmap="Greys", alpha=0.45)
for name, points in paths.items():
    plane.plot(*points.T, ".-", color=COLORS[name], linewidth=1.2, markersize=4, label=name)
    away = np.linalg.norm(points - saddle, axis=1)
    distance.semilogy(away, color=COLORS[name], linewidth=2, label=name)
    print(f"{name:14} distance at the start {away[0]:.3f}, at the end {away[-1]:.3g}")
plane.plot(*saddle, "*", color="black", markersize=11)
plane.annotate("saddle point", saddle, (0.9, 0.33), arrowprops={"arrowstyle": "-", "color": "0.3"})
plane.set_xlabel("weight w (minimizes)")
plane.set_ylabel("share z of the wrong output\n(maximizes)")
plane.set_title("Gradient steps circle, extragradient converges")
plane.legend(loc="upper right", framealpha=0.9)
distance.set_xlabel("step")
distance.set_ylabel("distance to the saddle point")
distance.set_title("Distance, same step size")
distance.grid(alpha=0.3)
distance.spines[["top", "right"]].set_visible(False)
plt.show()
