"""
Calibrated probabilities
========================

A decision value is no probability. `UncertainCalibratedClassifier` fits a curve from decision
values to probabilities on examples that the classifier has not seen, and takes its expectation over
the error bar of each new example: a wide one across the border gets a probability near 1/2.
"""

# %%
# Measurements of unequal quality
# -------------------------------
# Cells read with noise, some of them ten times better than others. Posteriors come first, for these
# are measurements; see the second example.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    ReliabilityDisplay,
    UncertainCalibratedClassifier,
    UncertainSVC,
)

data = load_breast_cancer()
truth, y = scale(data.data[:, :10]), data.target
rng = np.random.default_rng(0)
std = np.exp(rng.normal(0.0, 1.0, (len(y), 1)) + rng.normal(0.0, 0.5, truth.shape))
X = Gaussians(truth + std * rng.normal(size=truth.shape), std=std)
train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)

prior = EmpiricalBayes().fit(X[train])
known, asked = prior.transform(X[train]), prior.transform(X[test])
clf = UncertainCalibratedClassifier(UncertainSVC()).fit(known, y[train])

# %%
# With and without the errors of test examples
# --------------------------------------------

with_errors = clf.predict_proba(asked)[:, 1]
means_alone = clf.predict_proba(asked.mean, X_std=0)[:, 1]
print(f"log loss with errors {log_loss(y[test], with_errors):.3f}")
print(f"    of means alone   {log_loss(y[test], means_alone):.3f}")

# %%
# Each point is a bin of test examples: how probable their class was said to be, and how often it
# was theirs. On the diagonal the two agree.

figure, axes = plt.subplots(
    2, 1, figsize=(5.5, 5.5), sharex=True, height_ratios=[3, 1], layout="constrained"
)
for name, examples in (("with errors", asked), ("means alone", Gaussians(asked.mean))):
    ReliabilityDisplay.from_estimator(clf, examples, y[test], n_bins=6, name=name, ax=axes)
plt.show()

# %%
# What an error bar does
# ----------------------
# One posterior mean, whose probability alone is near 0.9, with error bars of growing size.

sizes = np.linspace(0, 3, 30)
place = asked.mean[np.argmin(np.abs(means_alone - 0.9))]
same = Gaussians(np.tile(place, (30, 1)), std=np.outer(sizes, np.ones(10)))
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(sizes, clf.predict_proba(same)[:, 1])
ax.set(xlabel="standard deviation of each feature", ylabel=f"P({data.target_names[1]})")
plt.show()

# %%
# Half of 569 cells are few to compare calibrations on: the two log losses above are of one split.
# Over many, expectations win where test examples have errors of unequal size.
