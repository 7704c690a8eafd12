"""
Kernels and random features
===========================

A border that is not straight needs a kernel. `UncertainKernelSVC` uses the expectation of a kernel
between two Gaussians, exactly, and a matrix of all pairs. Random features of Gaussians before the
linear machine come near to it, in time that grows with the number of examples only.
"""

# %%
# Two moons with error bars
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

from halosvm import (
    Gaussians,
    UncertainDecisionBoundaryDisplay,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainSVC,
)

rng = np.random.default_rng(0)
centres, y = make_moons(240, noise=0.1, random_state=0)
std = rng.lognormal(-2.0, 0.6, centres.shape)
X = Gaussians(centres + std * rng.normal(size=centres.shape), std=std)
train, test = np.arange(120), np.arange(120, 240)

machines = {
    "expected kernel": UncertainKernelSVC(C=10.0, gamma=2.0),
    "200 Fourier features": make_pipeline(
        UncertainFourierFeatures(200, gamma=2.0, random_state=0), UncertainSVC(C=10.0, tol=1e-3)
    ),
    "30 Nystroem features": make_pipeline(
        UncertainNystroem(n_components=30, gamma=2.0, random_state=0),
        UncertainSVC(C=10.0, tol=1e-3),
    ),
}
for name, machine in machines.items():
    machine.fit(X[train], y[train])
    print(f"{name:21} {100 * machine.score(X[test], y[test]):.1f} % of the test examples")

# %%
# The borders
# -----------
# `UncertainDecisionBoundaryDisplay` draws the border with the error bars of the examples. For the
# pipelines the grid of points goes through the features, too.

UncertainDecisionBoundaryDisplay.from_estimator(machines["expected kernel"], X[train], y=y[train])
plt.show()

# %%

edges = [np.linspace(low, high, 80) for low, high in ((-1.7, 2.7), (-1.2, 1.7))]
grid = np.stack(np.meshgrid(*edges), -1)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(*X.mean[train].T, c=y[train], cmap="coolwarm", s=12)
for name, colour in zip(machines, ("black", "C2", "C4"), strict=True):
    values = machines[name].decision_function(Gaussians(grid.reshape(-1, 2))).reshape(80, 80)
    ax.contour(*np.moveaxis(grid, -1, 0), values, levels=[0], colors=colour)
    ax.plot([], [], color=colour, label=name)
ax.set(xlabel="feature 0", ylabel="feature 1")
ax.legend()
plt.show()

# %%
# Expected values alone
# ---------------------
# The mean of the features is the feature of the expected kernel: an inner product of two of them
# estimates the expectation of the kernel, the closer the more features there are.

from halosvm import expected_kernel

exact = expected_kernel(X[train], gamma=2.0)
for count in (100, 1000, 10000):
    features = UncertainFourierFeatures(count, gamma=2.0, output="mean", random_state=0)
    means = features.fit_transform(X[train])
    print(f"{count:6} features: largest error {np.abs(means @ means.T - exact).max():.3f}")
