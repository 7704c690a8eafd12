"""
Pipelines and scaling
=====================

A transformer must change errors with the values. `UncertainStandardScaler` and `Propagate` do, and
`Gaussians` go through pipelines and searches of scikit-learn like an array.
"""

# %%
# Wine, with the errors of an instrument
# --------------------------------------
# Thirteen features in very different units, each read with an error of a tenth of a typical value.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import Gaussians, Propagate, UncertainStandardScaler, UncertainSVC

data = load_wine(as_frame=True)
X = Gaussians(data.data, std=np.tile(0.1 * data.data.median().to_numpy(), (len(data.data), 1)))
y = data.target

# %%
# A plain scaler would lose the errors, and refuses Gaussians instead of doing so.

try:
    make_pipeline(StandardScaler(), UncertainSVC()).fit(X, y)
except TypeError as error:
    print(error)

# %%
# The pipeline
# ------------
# Scaling, then two principal components, exactly: both are affine, so a Gaussian stays one. The
# errors, independent before, are correlated afterwards, and the covariances have become full.

pipeline = make_pipeline(UncertainStandardScaler(), Propagate(PCA(2)), UncertainSVC())
search = GridSearchCV(pipeline, {"uncertainsvc__C": [0.1, 1.0, 10.0]}).fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")
plane = search.best_estimator_[:-1].transform(X)
print(plane)

# %%
# The picture
# -----------
# Each error bar is now an ellipse, the same for all in this example.

figure, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
turn = np.linspace(0, 2 * np.pi, 60)
circle = np.array([np.cos(turn), np.sin(turn)])
covariances = plane.covariances.to_full()
for name, label in zip(data.target_names, range(3), strict=True):
    rows = np.flatnonzero(y == label)
    ax.plot(*plane.mean[rows].T, "o", ms=3, color=f"C{label}", label=name)
    for row in rows[::4]:
        ellipse = plane.mean[row][:, None] + np.linalg.cholesky(covariances[row]) @ circle
        ax.plot(*ellipse, color=f"C{label}", lw=0.6)
machine = search.best_estimator_[-1]
grid = np.stack(
    np.meshgrid(*(np.linspace(a, b, 200) for a, b in (ax.get_xlim(), ax.get_ylim()))), -1
)
sides = (grid @ machine.coef_.T + machine.intercept_).argmax(axis=-1)
ax.contour(*np.moveaxis(grid, -1, 0), sides, levels=[0.5, 1.5], colors="black", linewidths=0.8)
ax.set(xlabel="component 1", ylabel="component 2")
ax.legend()
plt.show()

# %%
# Transformers that are not affine
# --------------------------------
# The image of a Gaussian under a logarithm is no Gaussian. `Propagate` refuses to guess; it
# approximates when told how: by slopes, by chosen points, or by draws.

from sklearn.preprocessing import FunctionTransformer

values = Gaussians([[1.0], [5.0]], std=[[0.3], [0.3]])
for method in ("linear", "unscented", "monte_carlo"):
    log = Propagate(FunctionTransformer(np.log), method=method, random_state=0)
    image = log.fit_transform(values)
    spread = np.sqrt(image.covariances.variances())
    print(f"{method:12} mean {image.mean.ravel().round(3)}  std {spread.ravel().round(3)}")
