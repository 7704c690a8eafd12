"""Records: fitted estimators, maybe made of others, as JSON and back, by a closed table.

In:  a fitted estimator; or the node of a record, which may hold anything.
Out: the record, of its parameters and the parts of its fit; or the estimator.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from halosvm.calibration.calibrated_classifier import UncertainCalibratedClassifier
from halosvm.checks.units import text
from halosvm.files import json_values as values
from halosvm.files.parts import Part, Sizes
from halosvm.linear.safe_svc import SafeSVC
from halosvm.population import EmpiricalBayes

if TYPE_CHECKING:
    from collections.abc import Callable

    from halosvm.files.json_tree import Node


@dataclass(frozen=True)
class Saved:
    """How an estimator is saved.

    Attributes
    ----------
    estimator : type
    parts : dict
        What must be there, by attribute. Parameters among them are fitted estimators.
    others : dict
        What may be there.
    measures : tuple of str
        What is known of the fit, numbers and texts that predictions do not depend on.
    left_out : tuple of str
        Attributes that are not kept, and made again by `finish` where predictions need them.
    derived : tuple of str
        Parameters that `finish` makes of the parts.
    of_features : bool
        Whether it knows the number of its features by itself.
    check : callable
        Raises for parameters that make no sense.
    finish : callable
        Of estimator, sizes and node: checks what goes together, and sets what is not kept.
    """

    estimator: type[Any]
    parts: dict[str, Part]
    others: dict[str, Part] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    of_features: bool = True
    check: Callable[[Any], object] = lambda _: None
    finish: Callable[[Any, Sizes, Any], None] = lambda *_: None


# The table, by the names of the classes; `saved_estimators` fills it.
SAVED: dict[str, Saved] = {}

# ---- records -------------------------------------------------------------------------------------
_FRAMES = "_sklearn_output_config"  # what `set_output` leaves
_ERRORS = "_had_errors"  # where examples of the fit had errors
# A folder of a cache: a fit would write there, and unpickle what is there, which runs code.
_NEVER = ("memory",)
_KEYS = {"estimator": "machine", "estimator_": "machine"}  # the name of the class is "estimator"


def key_of(attribute: str) -> str:
    """Return the name of an attribute in a record."""
    return _KEYS.get(attribute, attribute.strip("_"))


def record_of(estimator: Any) -> dict[str, Any]:
    """Return the record of a fitted estimator."""
    if hasattr(estimator, "to_local"):  # the machines of dask, whose models are ours
        estimator = estimator.to_local()
    saved, name = _entry_of(estimator), type(estimator).__name__
    if hasattr(estimator, "get_params") and not isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
    if hasattr(estimator, "feature_units_in_") and "feature_units_in_" in vars(estimator):
        raise ValueError(
            f"{name} was fitted to features with {text(estimator.feature_units_in_)}, which a "
            "model file cannot hold; fit it to plain numbers"
        )
    own = vars(estimator)
    record: dict[str, Any] = {"estimator": name, "parameters": _parameters_of(estimator, saved)}
    if saved.of_features and "n_features_in_" in own:
        record["n_features"] = int(estimator.n_features_in_)
        names = own.get("feature_names_in_")
        record["feature_names"] = None if names is None else [str(each) for each in names]
    if _FRAMES in own:
        record["frames"] = estimator._sklearn_output_config["transform"]  # noqa: SLF001
    for attribute, part in (saved.parts | saved.others).items():
        if attribute in saved.parts or attribute in own:
            if not hasattr(estimator, attribute):
                raise TypeError(f"{name} has no {attribute} that a model file could hold")
            try:
                record[key_of(attribute)] = part.write(getattr(estimator, attribute))
            except ValueError as error:
                raise ValueError(f"{attribute} of {name}: {error}") from error
    kept = [measure for measure in (*saved.measures, _ERRORS) if measure in own]
    if saved.measures or kept:
        record["fit"] = {each: values.measure_to_json(own[each]) for each in kept}
    return record


def estimator_from(node: Node) -> Any:
    """Return the estimator of a record, which may be anything."""
    name = node.fields(("estimator",), None)["estimator"].choice(SAVED)
    saved = SAVED[name]
    needed = ["estimator", "parameters", *map(key_of, saved.parts)]
    others = [
        *map(key_of, saved.others),
        "frames",
        *(() if saved.measures else ("fit",)),
        *(("n_features", "feature_names") if saved.of_features else ()),
    ]
    if saved.measures:
        needed.append("fit")
    fields = node.fields(needed, others)
    sizes = Sizes()
    given = fields["parameters"].fields((), None)
    parameters = {
        key: values.parameter_from_json(each) for key, each in given.items() if key not in _NEVER
    }
    parts = {
        attribute: part.read(fields[key_of(attribute)], sizes)
        for attribute, part in (saved.parts | saved.others).items()
        if key_of(attribute) in fields
    }
    if "n_features" in fields:
        sizes.bind("features", fields["n_features"].count(), fields["n_features"])
    own = signature(saved.estimator).parameters
    arguments = {key: parts.pop(key) for key in list(parts) if key in own}
    try:
        estimator = saved.estimator(**parameters, **arguments, **dict.fromkeys(saved.derived))
        saved.check(estimator)
    except (TypeError, ValueError) as error:
        fields["parameters"].fail(str(error))
    for attribute, value in parts.items():
        setattr(estimator, attribute, value)
    if saved.of_features:
        if "features" not in sizes:
            node.fail("'n_features' is missing")
        estimator.n_features_in_ = sizes["features"]
    if "feature_names" in fields and fields["feature_names"].value is not None:
        names = [each.text() for each in fields["feature_names"].items()]
        sizes.bind("features", len(names), fields["feature_names"])
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if "frames" in fields:
        estimator.set_output(transform=fields["frames"].choice(("default", "pandas", "polars")))
    saved.finish(estimator, sizes, node)
    measures = fields["fit"].fields((), None) if "fit" in fields else {}
    for measure in measures.keys() & set(saved.measures):
        setattr(estimator, measure, values.measure_from_json(measures[measure]))
    if _ERRORS in measures and measures[_ERRORS].flag():
        setattr(estimator, _ERRORS, True)
    return estimator


def _entry_of(estimator: Any) -> Saved:
    name = type(estimator).__name__
    saved = SAVED.get(name)
    if saved is None or saved.estimator is not type(estimator):
        own = [each for each, entry in SAVED.items() if _is_ours(entry)]
        others = [each for each, entry in SAVED.items() if not _is_ours(entry)]
        raise TypeError(
            f"estimator is a {name}, which a model file of JSON cannot hold; it holds "
            f"{', '.join(own)}, and of scikit-learn's {', '.join(others)}. For others name the "
            "file *.skops"
        )
    return saved


def _is_ours(entry: Saved) -> bool:
    return entry.estimator.__module__.startswith("halosvm.")


def _parameters_of(estimator: Any, saved: Saved) -> dict[str, Any]:
    if not hasattr(estimator, "get_params"):
        return {}
    parameters = estimator.get_params(deep=False)
    if isinstance(estimator, SafeSVC):
        parameters["bounds"] = tuple(estimator.bounds)
        if not isinstance(estimator.validation, numbers.Real):
            parameters["validation"] = SafeSVC().validation
    if isinstance(parameters.get("init"), tuple):
        parameters["init"] = EmpiricalBayes().init
    if isinstance(parameters.get("error_scale"), list | tuple):  # groups, of which a new fit asks
        parameters["error_scale"] = EmpiricalBayes().error_scale
    for name in ("kw_args", "inv_kw_args"):
        if parameters.get(name) is not None:
            raise TypeError(f"{name} are arguments of a function, which cannot be saved")
    if "cv" in parameters and not isinstance(parameters["cv"], int | None):
        parameters["cv"] = UncertainCalibratedClassifier().cv
    if hasattr(parameters.get("jacobian"), "toarray"):
        parameters["jacobian"] = parameters["jacobian"].toarray()
    return {
        name: values.parameter_to_json(name, value)
        for name, value in parameters.items()
        if name not in (*saved.derived, *saved.parts, *_NEVER)
    }


# ---- parts made of records -----------------------------------------------------------------------
class Fitted(Part):
    """A fitted estimator."""

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return record_of(value)

    def read(self, node: Node, sizes: Sizes) -> Any:  # noqa: ARG002
        """Return the value."""
        return estimator_from(node)


class Several(Part):
    """A list of fitted estimators, or of curves, of some kinds alone."""

    def __init__(self, name: str, *kinds: type[Any]) -> None:
        self.name, self.kinds = name, kinds

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return [record_of(each) for each in value]

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        items = node.items()
        found = [estimator_from(each) for each in items]
        sizes.bind(self.name, len(found), node)
        for each, item in zip(found, items, strict=True):
            if self.kinds and not isinstance(each, self.kinds):
                item.fail(f"there is no place for a {type(each).__name__} here")
        return found


class Steps(Part):
    """Steps of a pipeline, each with its name."""

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        steps: list[dict[str, Any]] = []
        before = None
        for name, step in value:
            try:
                own: dict[str, Any] = (
                    {"estimator": "passthrough"} if _passes(step) else record_of(step)
                )
            except (TypeError, ValueError) as error:
                raise type(error)(f"step {name!r}: {error}") from error
            means = isinstance(before, EmpiricalBayes) and before.output == "mean"
            if means and "feature_names" in own and not hasattr(before, _FRAMES):
                own = own | {"feature_names": None}  # means are arrays, which have none
            steps.append({"name": name} | own)
            before = step
        return steps

    def read(self, node: Node, sizes: Sizes) -> Any:  # noqa: ARG002
        """Return the value."""
        steps = []
        for item in node.items():
            name = item.fields(("name", "estimator"), None)["name"].text()
            members = {key: each for key, each in item.value.items() if key != "name"}
            if members == {"estimator": "passthrough"}:
                steps.append((name, "passthrough"))
            else:
                steps.append((name, estimator_from(type(item)(members, item.place))))
        if not steps:
            node.fail("a pipeline has at least one step")
        if len({name for name, _ in steps}) < len(steps):
            node.fail("two steps have the same name")
        for (_, step), item in zip(steps[:-1], node.items(), strict=False):
            if not _passes(step) and not hasattr(step, "transform"):
                item.fail(f"a {type(step).__name__} can be the last step alone")
        return steps


def _passes(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")
