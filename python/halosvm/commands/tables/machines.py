"""The estimators of the command line: options in; a pipeline that is not fitted out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

import halosvm
from halosvm import _core
from halosvm.commands.choices import (
    CLASSIFIERS,
    ESTIMATORS,
    LOSSES_OF,
    MAPS,
    REGRESSORS,
    CommandError,
)
from halosvm.maps import UncertainStandardScaler
from halosvm.population import EmpiricalBayes

if TYPE_CHECKING:
    import argparse

_BOUNDED = [name for name in _core.loss_names() if _core.loss_traits(name)["has_radius"]]
# the options that mean something to a few losses alone
OF_LOSSES = {
    "radius": _BOUNDED,
    "norm": _BOUNDED,
    "epsilon": ["epsilon_insensitive", "squared_epsilon_insensitive"],
    "quantile": ["pinball"],
    "delta": ["huber"],
}
_OF_KERNELS = ("gamma", "degree", "coef0")
_PARAMETERS = (*OF_LOSSES, *_OF_KERNELS, "error_scale", "subspace", "solver", "tol", "max_iter")


def make_machine(arguments: argparse.Namespace) -> Any:
    """Return the estimator that the options ask for, C aside, after a check that they agree."""
    regression = arguments.task == "regression"
    name = arguments.estimator or _default_estimator(arguments)
    if name not in (REGRESSORS if regression else CLASSIFIERS):
        raise CommandError(f"--estimator {name} is not for --task {arguments.task}")
    estimator = getattr(halosvm, name)()
    known = estimator.get_params()
    given = _loss_and_its_options(name, arguments)
    for option in _PARAMETERS:
        value = getattr(arguments, option)
        if value is not None and option not in given:
            given[option] = value
    if arguments.class_weight is not None:
        if regression:
            raise CommandError("--class-weight is of use only with --task classification")
        given["class_weight"] = arguments.class_weight
    direct = arguments.kernel is not None and arguments.approximate is None
    if direct and (arguments.kernel != "linear" or "kernel" in known):
        given["kernel"] = arguments.kernel
    if arguments.approximate is not None:
        given.pop("gamma", None)
    for option in given:
        if option not in known:
            those = [n for n in ESTIMATORS if option in getattr(halosvm, n)().get_params()]
            raise CommandError(
                f"--{option.replace('_', '-')} is of use only with {' or '.join(those)}, not with "
                f"{name}"
            )
    for option in ("degree", "coef0"):
        if option in given and arguments.kernel != "poly":
            raise CommandError(f"--{option} is of use only with --kernel poly")
    if arguments.approximate is not None and arguments.kernel not in (None, "rbf"):
        raise CommandError(f"--approximate is of --kernel rbf, not of {arguments.kernel}")
    for key, value in arguments.set:
        if key == "C":
            raise CommandError("--set C: give it by --C")
        if key not in known:
            raise CommandError(f"--set {key}: {name} has the parameters {', '.join(sorted(known))}")
        given[key] = value
    if "random_state" in known and "random_state" not in given:
        given["random_state"] = arguments.seed
    return estimator.set_params(**given)


def make_pipeline(machine: Any, arguments: argparse.Namespace, *, sparse: bool) -> Pipeline:
    """Return the steps before a machine, and it; all take weights from scikit-learn's routing."""
    steps: list[tuple[str, Any]] = []
    if arguments.errors == "measurement":
        # the spread of a posterior would shrink the slopes of a regression: it knows nothing of y
        output = "gaussian" if arguments.task == "classification" else "mean"
        truth = EmpiricalBayes(arguments.components, output=output, random_state=arguments.seed)
        known = sorted({*truth.get_params()} - {"n_components", "output", "init"})
        for key, value in arguments.population:
            if key not in known:
                raise CommandError(
                    f"--population {key}: EmpiricalBayes has the parameters {', '.join(known)}"
                )
            truth.set_params(**{key: value})
        if arguments.batch is not None and truth.batch_covariance is None:
            truth.set_params(batch_covariance="full")
        steps.append(("truth", truth))
    if arguments.scale == "standard":
        steps.append(("scale", UncertainStandardScaler(with_mean=not sparse)))
    if arguments.approximate is not None:
        form, count = arguments.approximate
        options = {} if arguments.gamma is None else {"gamma": arguments.gamma}
        steps.append(
            (
                "map",
                getattr(halosvm, MAPS[form])(
                    n_components=count, random_state=arguments.seed, **options
                ),
            )
        )
    for _, step in (*steps, ("machine", machine)):
        taken = [each for each in ("sample_weight", "y_std") if has_fit_parameter(step, each)]
        step.set_fit_request(**dict.fromkeys(taken, True))
    return Pipeline([*steps, ("machine", machine)])


def described(model: Any) -> str:
    """Return a loss and the parameters that it has."""
    parts = [model.loss]
    own = [name for name, losses in OF_LOSSES.items() if model.loss in losses]
    parts += [f"{name} {getattr(model, name):g}" for name in own]
    if model.error_scale != 1.0:
        parts.append(f"errors times {model.error_scale:g}")
    return ", ".join(parts)


def _default_estimator(arguments: argparse.Namespace) -> str:
    if arguments.task == "regression":
        return "UncertainSVR"
    with_kernel = arguments.kernel not in (None, "linear") and arguments.approximate is None
    return "UncertainKernelSVC" if with_kernel else "UncertainSVC"


def _loss_and_its_options(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the loss and its parameters after a check that these go with it and the task."""
    if name not in LOSSES_OF:
        if arguments.loss is not None:
            raise CommandError(
                f"--loss is of use only with {' or '.join(LOSSES_OF)}, not with {name}"
            )
        return {}
    losses = LOSSES_OF[name]
    loss = arguments.loss or losses[0]
    if loss not in losses:
        raise CommandError(
            f"--loss {loss} is not for --task {arguments.task}, whose losses are "
            f"{', '.join(losses)}"
        )
    for option, those in OF_LOSSES.items():
        if getattr(arguments, option) is not None and loss not in those:
            raise CommandError(f"--{option} is of use only with --loss {' or '.join(those)}")
    return {"loss": loss}
