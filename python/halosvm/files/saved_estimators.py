"""The estimators that model files can hold: a closed table, one entry for each.

In:  what an estimator is made of once it is fitted, and what of it goes together.
Out: the table `SAVED`, which `records` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer

from halosvm.calibration import METHODS
from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.calibration.curves import IsotonicCurve, Temperature
from halosvm.calibration.platt import PlattScaling
from halosvm.checks.parameters import require_choice
from halosvm.files.parts import (
    Classes,
    CovarianceMatrices,
    Degrees,
    Examples,
    Flag,
    Kernel,
    Number,
    Numbers,
    OrNone,
    Part,
    Sizes,
    Walk,
)
from halosvm.files.records import SAVED, Fitted, Saved, Several, Steps, key_of
from halosvm.files.transformers import TRANSFORMERS
from halosvm.kernel.expected_kernel import check_kernel
from halosvm.kernel.given_kernel import PrecomputedKernel
from halosvm.kernel.isotropic_kernel_svc import IsotropicKernelSVC
from halosvm.kernel.kernel_svc import UncertainKernelSVC
from halosvm.linear.linear_fit import BATCH_SOLVERS, SOLVERS, Settings
from halosvm.linear.safe_svc import SafeSVC
from halosvm.linear.svc import UncertainSVC
from halosvm.linear.svr import UncertainSVR
from halosvm.linear.total import TotalSVC
from halosvm.maps import (
    Propagate,
    UncertainFourierFeatures,
    UncertainNystroem,
    UncertainStandardScaler,
)
from halosvm.maps.known_maps import affine, known_map
from halosvm.population import ClassPopulations, EmpiricalBayes
from halosvm.population.batches import BATCH_PARTS

if TYPE_CHECKING:
    from halosvm.files.json_tree import Node


class Indicators(Part):
    """What makes a column for each class."""

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return Classes().write(value.classes_)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        return LabelBinarizer(sparse_output=True).fit(Classes().read(node, sizes))


# ---- what goes together --------------------------------------------------------------------------
def _linear(machine: Any, sizes: Sizes, node: Node) -> None:
    """Require as many models as the classes ask for."""
    n_models, n_classes = sizes["models"], sizes.get("classes", 0)
    if n_models != (n_classes if n_classes > 2 else 1):
        node.fail(f"{n_classes} classes do not go with {n_models} models")
    if n_classes > 2 and not machine.__sklearn_tags__().classifier_tags.multi_class:
        node.fail(f"{type(machine).__name__} has 2 classes, not {n_classes}")


def _total(machine: Any, sizes: Sizes, node: Node) -> None:
    kernel = ("dual_coef_", "support_vectors_", "_kernel")
    of_kernel = [name for name in kernel if hasattr(machine, name)]
    if hasattr(machine, "coef_") == bool(of_kernel) or len(of_kernel) not in (0, 3):
        node.fail(f"needs either coef or {', '.join(map(key_of, kernel))}")
    if of_kernel:
        machine.gamma_ = machine._kernel.gamma  # noqa: SLF001
    _linear(machine, sizes, node)


def _isotropic(machine: Any, sizes: Sizes, node: Node) -> None:
    machine.gamma_ = machine._kernel.gamma  # noqa: SLF001
    _linear(machine, sizes, node)


def _kernel(machine: Any, sizes: Sizes, node: Node) -> None:
    kernel, n_classes = machine._kernel, sizes["classes"]  # noqa: SLF001
    machine.gamma_, machine.tau_ = kernel.gamma, kernel.tau
    if sizes["pairs"] != n_classes * (n_classes - 1) // 2 or sizes["others"] != n_classes - 1:
        node.fail(f"{n_classes} classes do not go with {sizes['pairs']} intercepts")
    if int(machine.n_support_.sum()) != sizes["support"]:
        node.fail(f"n_support sums to {machine.n_support_.sum()}, support has {sizes['support']}")
    machine.n_support_ = machine.n_support_.astype(np.int32)
    precomputed = isinstance(kernel, PrecomputedKernel)
    if precomputed == hasattr(machine, "support_gaussians_"):
        node.fail("support_gaussians go with a kernel of features, and with no other")
    if precomputed and machine.support_.max(initial=-1) >= sizes.get("features", 0):
        node.fail(f"support has {machine.support_.max()}, of {sizes.get('features', 0)} columns")


_STORED = {"full": "full", "diagonal": "diagonal", "factors": "low_rank"}


def _population(population: Any, sizes: Sizes, node: Node) -> None:
    population.n_components_ = sizes["components"]
    fields = node.fields((), None)["covariances"].fields(("kind",), None)
    fields["kind"].choice([_STORED[population.covariance]])
    if population.covariance == "factors" and "diagonal_values" not in fields:
        node.fail("factors go with diagonal_values")
    if population.covariances_.squared:
        node.fail("covariances must be variances")
    of_batches = [name for name in BATCH_PARTS if not hasattr(population, name)]
    if 0 < len(of_batches) < len(BATCH_PARTS):
        node.fail(f"has batches, but no {of_batches[0].strip('_')}")
    if abs(population.weights_.sum() - 1.0) > 1e-6:
        node.fail(f"weights sum to {population.weights_.sum():g}, not to 1")


def _populations(classifier: Any, sizes: Sizes, node: Node) -> None:
    if abs(classifier.priors_.sum() - 1.0) > 1e-6:
        node.fail(f"priors sum to {classifier.priors_.sum():g}, not to 1")
    counts = [each.n_components_ for each in classifier.populations_]
    if max(counts) > classifier.n_components_ or int(classifier.n_components_) < 1:
        node.fail(f"n_components is {classifier.n_components_:g}, a population has {max(counts)}")
    classifier.n_components_ = int(classifier.n_components_)
    for population in classifier.populations_:
        if population.n_features_in_ != sizes.get("features"):
            node.fail(f"a population has {population.n_features_in_} features")


def _features(map_: Any, sizes: Sizes, node: Node) -> None:
    D = sizes["frequencies"]
    n_phases = sizes.get("phases", 0)
    if map_.phases_ is not None and n_phases not in ((1,) if map_.map == "paired" else (D,)):
        node.fail(f"{n_phases} phases do not go with {D} frequencies")
    map_._n_features_out = (2 * D if map_.map == "paired" else D) - (n_phases == 1 != D)  # noqa: SLF001


def _landmarks(map_: Any, sizes: Sizes, node: Node) -> None:  # noqa: ARG001
    map_._n_features_out = sizes["outputs"]  # noqa: SLF001


def _calibrated(classifier: Any, sizes: Sizes, node: Node) -> None:
    n_classes, machine = sizes["classes"], classifier.estimator_
    n_curves = 1 if classifier.method == "temperature" or n_classes == 2 else n_classes
    if sizes["curves"] != n_curves:
        node.fail(f"{sizes['curves']} curves do not go with {n_classes} classes")
    kinds = dict(zip(METHODS, (PlattScaling, IsotonicCurve, Temperature), strict=True))
    if not all(isinstance(curve, kinds[classifier.method]) for curve in classifier.curves_):
        node.fail(f"curves do not go with method={classifier.method!r}")
    known = np.asarray(getattr(machine, "classes_", [])).tolist()
    if known != classifier.classes_.tolist():
        node.fail(f"classes are {classifier.classes_.tolist()}, those of the machine {known}")
    classifier.estimator = machine if isinstance(machine, FrozenEstimator) else clone(machine)


def _rising(curve: Any, sizes: Sizes, node: Node) -> None:  # noqa: ARG001
    if (np.diff(curve._at) < 0.0).any() or (np.diff(curve._heights) < 0.0).any():  # noqa: SLF001
        node.fail("at and heights must rise")


def _propagated(map_: Any, sizes: Sizes, node: Node) -> None:
    d = sizes["features"]
    map_.transformer = clone(map_.transformer_)
    try:
        map_._check_parameters()  # noqa: SLF001
        if map_.jacobian is None:
            map_.known_map_ = known_map(map_.transformer_, d)
        else:
            map_.known_map_ = affine(np.asarray(map_.jacobian, dtype=np.float64))
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        node.fail(f"transformer and parameters do not go together: {error}")
    matrix = map_.known_map_.matrix
    if matrix is None and map_.method == "auto":
        node.fail(f"{map_.known_map_.not_affine} is not affine, and method is 'auto'")
    if matrix is not None and matrix.shape[1] != d:
        node.fail(f"the transformer takes {matrix.shape[1]} features, not {d}")


def _one_vs_rest(classifier: Any, sizes: Sizes, node: Node) -> None:
    classes = classifier.label_binarizer_.classes_
    if sizes["machines"] != (1 if len(classes) == 2 else len(classes)):
        node.fail(f"{sizes['machines']} machines do not go with {len(classes)} classes")
    if not isinstance(getattr(OneVsRestClassifier, "classes_", None), property):
        classifier.classes_ = classes
    classifier.estimator = clone(classifier.estimators_[0])
    inner = classifier.estimators_[0]
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(inner, name):
            setattr(classifier, name, getattr(inner, name))


def _check_classifier(machine: Any) -> None:
    Settings.of(machine, SOLVERS)
    machine._check_parameters(None)  # noqa: SLF001


def _check_isotropic(machine: Any) -> None:
    Settings.of(machine, BATCH_SOLVERS)
    check_kernel(machine.kernel, machine.degree, machine.coef0, argument="kernel")


def _check_transformer(transformer: Any) -> None:
    transformer._validate_params()  # noqa: SLF001
    for name in ("kw_args", "inv_kw_args"):
        if getattr(transformer, name, None) is not None:
            raise ValueError(f"{name} must be None")


def _check_scaler(scaler: Any) -> None:
    require_choice(scaler.variance, "variance", ("means", "total", "true"))
    for name in ("with_mean", "with_std"):
        if not isinstance(getattr(scaler, name), bool):
            raise TypeError(f"{name} must be True or False, got {getattr(scaler, name)!r}")


# ---- the table -----------------------------------------------------------------------------------
_SUMMARY = ("n_iter_", "objective_", "status_")
_COEF = Numbers("models", "features", readable=True)
_INTERCEPT = Numbers("models", readable=True)
_EXPANSION: dict[str, Part] = {
    "_kernel": Kernel(),
    "dual_coef_": Numbers("models", "support"),
    "support_vectors_": Numbers("support", "features"),
}
_POSITIVE = np.finfo(float).tiny

_ENTRIES = (
    Saved(
        UncertainSVC,
        {"coef_": _COEF, "intercept_": _INTERCEPT, "classes_": Classes()},
        {"_stream": Walk()},
        (*_SUMMARY, "suboptimality_"),
        check=_check_classifier,
        finish=_linear,
    ),
    Saved(
        UncertainSVR,
        {
            "coef_": Numbers("models", "features", readable=True, flat=True),
            "intercept_": Numbers("models", readable=True, flat=True),
        },
        {"_stream": Walk()},
        (*_SUMMARY, "suboptimality_"),
        check=lambda machine: Settings.of(machine, SOLVERS, loss=machine._checked_loss().half),  # noqa: SLF001
        finish=_linear,
    ),
    Saved(
        SafeSVC,
        {"coef_": _COEF, "intercept_": _INTERCEPT, "classes_": Classes()},
        measures=("n_iter_", "objective_", "std_", "validation_losses_"),
        check=lambda machine: machine._check_parameters(),  # noqa: SLF001
        finish=_linear,
    ),
    Saved(
        TotalSVC,
        {"intercept_": _INTERCEPT, "classes_": Classes()},
        {"coef_": _COEF, **_EXPANSION},
        (*_SUMMARY, "is_global_"),
        ("corrections_", "gamma_"),  # the first are as large as the training data
        check=lambda machine: machine._settings(),  # noqa: SLF001
        finish=_total,
    ),
    Saved(
        UncertainKernelSVC,
        {
            "classes_": Classes(),
            "support_": Numbers("support", of="i", least=0),
            "n_support_": Numbers("classes", of="i", least=0),
            "dual_coef_": Numbers("others", "support"),
            "intercept_": Numbers("pairs"),
            "_kernel": Kernel(precomputed=True),
        },
        {"support_gaussians_": Examples("support", "features", mixtures=True)},
        ("n_iter_",),
        ("gamma_", "tau_"),
        check=lambda machine: machine._check_parameters(),  # noqa: SLF001
        finish=_kernel,
    ),
    Saved(
        IsotropicKernelSVC,
        {
            "classes_": Classes(),
            "intercept_": Numbers("models"),
            "support_": Numbers("support", of="i", least=0),
            "_lengths": Numbers("models", least=0.0),
            **_EXPANSION,
        },
        measures=(*_SUMMARY, "suboptimality_"),
        left_out=("gamma_",),
        check=_check_isotropic,
        finish=_isotropic,
    ),
    Saved(
        EmpiricalBayes,
        {
            "weights_": Numbers("components", least=0.0, most=1.0 + 1e-6),
            "means_": Numbers("components", "features"),
            "covariances_": CovarianceMatrices("components", "features"),
        },
        {
            "with_errors_": Flag(),
            "error_scale_": Numbers("features", least=0.0),
            "nu_": Degrees(),
            "left_out_tails_": Numbers("left_out", least=0.0, most=1.0),
            "batches_": Classes("batches"),
            "batch_covariance_": Numbers("features", "features"),
            "batch_offsets_": Numbers("batches", "features"),
            "batch_offset_covariances_": Numbers("batches", "features", "features"),
        },
        measures=("error_scale_interval_", "log_likelihood_", "n_iter_", "converged_", "status_"),
        left_out=("n_components_", "component_classes_"),
        check=lambda population: population._check_parameters(),  # noqa: SLF001
        finish=_population,
    ),
    Saved(
        ClassPopulations,
        {
            "classes_": Classes(),
            "priors_": Numbers("classes", least=_POSITIVE, most=1.0 + 1e-6),
            "populations_": Several("classes", EmpiricalBayes),
            "n_components_": Number(),
            "tied_": Flag(),
        },
        measures=("log_likelihood_", "n_iter_", "converged_", "status_"),
        left_out=("cv_results_",),
        check=lambda classifier: classifier._check_parameters(),  # noqa: SLF001
        finish=_populations,
    ),
    Saved(
        UncertainFourierFeatures,
        {
            "gamma_": Numbers("gammas", least=_POSITIVE),
            "frequencies_": Numbers("frequencies", "features"),
            "phases_": OrNone(Numbers("phases")),
        },
        left_out=("_n_features_out",),
        check=lambda map_: map_._check_parameters(),  # noqa: SLF001
        finish=_features,
    ),
    Saved(
        UncertainNystroem,
        {
            "gamma_": Numbers("gammas", least=_POSITIVE),
            "landmarks_": Examples("landmarks", "features"),
            "landmark_indices_": Numbers("landmarks", of="i", least=0),
            "projection_": Numbers("outputs", "landmarks"),
        },
        left_out=("_n_features_out",),
        check=lambda map_: map_._check_parameters(),  # noqa: SLF001
        finish=_landmarks,
    ),
    Saved(
        UncertainStandardScaler,
        {"mean_": Numbers("features"), "scale_": Numbers("features", least=_POSITIVE)},
        check=_check_scaler,
    ),
    Saved(
        Propagate,
        {"transformer_": Fitted(), "_spreads": Numbers("features", least=0.0)},
        left_out=("known_map_",),
        derived=("transformer",),
        finish=_propagated,
    ),
    Saved(
        UncertainCalibratedClassifier,
        {
            "classes_": Classes(),
            "estimator_": Fitted(),
            "curves_": Several("curves", PlattScaling, IsotonicCurve, Temperature),
        },
        derived=("estimator",),
        check=lambda classifier: require_choice(classifier.method, "method", METHODS),
        finish=_calibrated,
    ),
    Saved(PlattScaling, {"slope_": Number(), "offset_": Number()}, of_features=False),
    Saved(
        IsotonicCurve,
        {"_at": Numbers("points"), "_heights": Numbers("points", least=0.0, most=1.0)},
        of_features=False,
        finish=_rising,
    ),
    Saved(Temperature, {"temperature": Number(positive=True)}, of_features=False),
    Saved(Pipeline, {"steps": Steps()}, of_features=False),
    Saved(FrozenEstimator, {"estimator": Fitted()}, of_features=False),
    Saved(
        OneVsRestClassifier,
        {"estimators_": Several("machines"), "label_binarizer_": Indicators()},
        left_out=("classes_", "n_features_in_", "feature_names_in_"),
        derived=("estimator",),
        of_features=False,
        finish=_one_vs_rest,
    ),
)

SAVED.update({entry.estimator.__name__: entry for entry in _ENTRIES})
for _name, (_kind, _parts, _measures) in TRANSFORMERS.items():
    SAVED[_name] = Saved(_kind, _parts, measures=_measures, check=_check_transformer)
LINEAR = ("UncertainSVC", "UncertainSVR", "SafeSVC", "TotalSVC")
