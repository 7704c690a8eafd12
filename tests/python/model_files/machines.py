"""One fitted estimator of every kind that model files hold, and what it says of examples."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from halosvm import (
    ClassPopulations,
    Covariances,
    EmpiricalBayes,
    GaussianMixtures,
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    Propagate,
    SafeSVC,
    TotalSVC,
    UncertainCalibratedClassifier,
    UncertainFourierFeatures,
    UncertainKernelSVC,
    UncertainNystroem,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

N, D = 60, 3


def _data():
    rng = np.random.default_rng(11)
    classes = np.arange(N) % 3
    means = rng.normal(size=(N, D)) + 2.0 * rng.normal(size=(3, D))[classes]
    return means, rng.uniform(0.1, 1.0, size=(N, D)), classes


MEANS, STD, CLASSES = _data()
FACTORS = 0.3 * np.random.default_rng(5).normal(size=(N, D, 2))
EXAMPLES = {
    "certain": Gaussians(MEANS),
    "isotropic": Gaussians(MEANS, std=STD[:, 0]),
    "diagonal": Gaussians(MEANS, std=STD),
    "variances": Gaussians(MEANS.astype(np.float32), variance=STD.astype(np.float32)),
    "full": Gaussians(MEANS, cov=FACTORS @ FACTORS.transpose(0, 2, 1)),
    "low_rank": Gaussians(MEANS, cov=Covariances.low_rank(FACTORS)),
    "factors": Gaussians(MEANS, cov=Covariances.low_rank(FACTORS, STD)),
    "ranks": Gaussians(
        MEANS, cov=Covariances.low_rank([f[:, : i % 3] for i, f in enumerate(FACTORS)], STD)
    ),
    "columns": Gaussians(MEANS, cov=Covariances.diagonal(STD[:, :1], columns=[1], n_features=D)),
    "mixtures": GaussianMixtures(
        Gaussians(np.repeat(MEANS, 2, axis=0), std=np.repeat(STD, 2, axis=0)),
        np.tile([0.3, 0.7], N),
        2,
    ),
    "gram": MEANS @ MEANS.T,
    "positive": np.abs(MEANS) + 0.1,
}

TWO, THREE = np.where(CLASSES > 0, "yes", "no"), CLASSES
VALUES = MEANS @ [1.0, -1.0, 0.3]

# What is fitted, to which examples, and to which labels or values.
MACHINES = {
    "svc": (UncertainSVC(C=0.3), "diagonal", TWO),
    "svc of three classes": (UncertainSVC(random_state=0), "diagonal", THREE),
    "svr": (UncertainSVR(C=3.0), "diagonal", VALUES),
    "safe": (SafeSVC(random_state=0), "certain", TWO),
    "total": (TotalSVC(C=0.3), "isotropic", TWO),
    "total with a kernel": (TotalSVC(kernel="rbf"), "isotropic", TWO),
    "total in a ball": (TotalSVC(kernel="poly", formulation="ball"), "isotropic", TWO),
    "kernel": (UncertainKernelSVC(class_weight={"no": 2.0}), "diagonal", TWO),
    "kernel of mixtures": (UncertainKernelSVC(), "mixtures", TWO),
    "kernel of values": (UncertainKernelSVC(kernel="precomputed"), "gram", THREE),
    "kernel of level 2": (UncertainKernelSVC(level2="gaussian"), "diagonal", TWO),
    "polynomial": (UncertainKernelSVC(kernel="poly", degree=2, coef0=1.0), "full", THREE),
    "gammas": (UncertainKernelSVC(gamma=[0.1, 0.2, 0.3], C=np.inf, tol=1e-3), "diagonal", TWO),
    **{
        f"kernel of {kind}": (UncertainKernelSVC(kernel="rbf"), kind, THREE)
        for kind in ("certain", "isotropic", "variances", "low_rank", "factors", "ranks", "columns")
    },
    "isotropic kernel": (IsotropicKernelSVC(), "isotropic", THREE),
    "population": (EmpiricalBayes(2, random_state=0, tol=0.5), "diagonal", None),
    "population of factors": (
        EmpiricalBayes(covariance="factors", n_factors=1, output="mixture"),
        "diagonal",
        None,
    ),
    "diagonal population": (EmpiricalBayes(covariance="diagonal", output="mean"), "diagonal", None),
    "class populations": (ClassPopulations(2, tied=False, random_state=0), "diagonal", THREE),
    "tied class populations": (ClassPopulations(1, tied=True, priors=[0.4, 0.6]), "full", TWO),
    "paired": (UncertainFourierFeatures(7, random_state=0), "diagonal", None),
    "phases": (UncertainFourierFeatures(6, map="phase", random_state=0), "diagonal", None),
    "float32": (UncertainFourierFeatures(6, dtype=np.float32, random_state=0), "diagonal", None),
    "nystroem": (UncertainNystroem(n_components=7, random_state=0), "diagonal", None),
    "gaussian landmarks": (
        UncertainNystroem(n_components=5, landmarks="gaussians", random_state=0),
        "factors",
        None,
    ),
    "scaler": (UncertainStandardScaler(variance="total"), "diagonal", None),
    "pca": (Propagate(PCA(2)), "diagonal", None),
    "svd": (Propagate(TruncatedSVD(2, random_state=0)), "full", None),
    "whitened": (Propagate(make_pipeline(StandardScaler(), PCA(2, whiten=True))), "full", None),
    "ranges": (Propagate(make_pipeline(MinMaxScaler(), MaxAbsScaler())), "diagonal", None),
    "quartiles": (
        Propagate(make_pipeline(RobustScaler(), VarianceThreshold())),
        "diagonal",
        None,
    ),
    "logarithm": (
        Propagate(FunctionTransformer(np.arctan), method="unscented"),
        "diagonal",
        None,
    ),
    "jacobian": (
        Propagate(FunctionTransformer(np.negative), jacobian=-np.eye(D)),
        "diagonal",
        None,
    ),
    "calibrated": (UncertainCalibratedClassifier(), "diagonal", TWO),
    "calibrated for three": (UncertainCalibratedClassifier(UncertainSVC()), "diagonal", THREE),
    "isotonic": (
        UncertainCalibratedClassifier(UncertainKernelSVC(), method="isotonic"),
        "diagonal",
        TWO,
    ),
    "temperature": (UncertainCalibratedClassifier(method="temperature"), "diagonal", THREE),
    "calibrated pipeline": (
        UncertainCalibratedClassifier(make_pipeline(UncertainStandardScaler(), UncertainSVC())),
        "diagonal",
        TWO,
    ),
    "frozen": (
        UncertainCalibratedClassifier(
            FrozenEstimator(UncertainSVC(random_state=0).fit(EXAMPLES["diagonal"], TWO))
        ),
        "diagonal",
        TWO,
    ),
    "one against the rest": (OneVsRestClassifier(SafeSVC(random_state=0)), "plain", THREE),
    "pipeline": (
        make_pipeline(
            EmpiricalBayes(),
            UncertainStandardScaler(),
            "passthrough",
            UncertainFourierFeatures(10, random_state=0),
            UncertainSVC(random_state=0),
        ),
        "diagonal",
        THREE,
    ),
    "pipeline of others": (make_pipeline(StandardScaler(), PCA(2), UncertainSVC()), "plain", TWO),
}
EXAMPLES["plain"] = MEANS

METHODS = (
    "predict",
    "decision_function",
    "decision_std",
    "side_probability",
    "predict_proba",
    "transform",
    "score_samples",
)


def fitted(name):
    """Return the machine of a name, and its examples."""
    machine, kind, y = MACHINES[name]
    X = EXAMPLES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(X) if y is None else machine.fit(X, y), X


def fitted_platt():
    """Return a curve, which takes decision values in place of examples."""
    return PlattScaling().fit(VALUES, TWO == "yes")


def told(machine, X):
    """Return all that a machine says of examples, as bytes by method."""
    answers = {}
    for method in METHODS:
        if not hasattr(machine, method):
            continue
        try:
            found = getattr(machine, method)(X)
        except ValueError:  # not with this kernel
            continue
        answers[method] = [np.asarray(each).tobytes() for each in _arrays(found)]
    if is_regressor(machine) and not isinstance(X, np.ndarray):
        answers["std"] = machine.predict(X, return_std=True)[1].tobytes()
    return answers


def _arrays(found):
    if isinstance(found, GaussianMixtures):
        return [*_arrays(found.components), found.weights, found.offsets]
    if isinstance(found, Gaussians):
        return [found.mean, found.covariances.to_full()]
    return [found]


def parts_of(machine):
    """Return a machine, and all estimators that it is made of."""
    found = [machine]
    for value in vars(machine).values():
        values = value if isinstance(value, list) else [value]
        for each in values:
            inner = each[1] if isinstance(each, tuple) and len(each) == 2 else each
            if isinstance(inner, BaseEstimator):
                found += parts_of(inner)
    return found
