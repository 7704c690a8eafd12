"""Parts of fitted estimators: what an attribute may hold, written as JSON and read with checks.

A part names the sizes of its arrays; in one estimator equal names are equal sizes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halosvm import _core
from halosvm.files import json_examples as examples_json
from halosvm.files import json_values as values
from halosvm.kernel.expected_kernel import KINDS, ExpectedKernel, check_kernel
from halosvm.kernel.given_kernel import GivenKernel, PrecomputedKernel
from halosvm.linear.stream import Stream

if TYPE_CHECKING:
    from halosvm.files.json_tree import Node


class Sizes(dict[str, int]):
    """Sizes of one estimator by name, each with the place that told it first."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, str] = {}

    def bind(self, name: str, size: int, node: Node) -> None:
        """Remember a size, or raise if it is another one."""
        if self.setdefault(name, size) != size:
            node.fail(f"has {size} {name}, {self._told[name]} has {self[name]}")
        self._told.setdefault(name, node.place)


class Part(ABC):
    """What one attribute holds."""

    @abstractmethod
    def write(self, value: Any) -> Any:
        """Return the value as JSON."""

    @abstractmethod
    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value, or raise ValueError with its place."""


class Numbers(Part):
    """An array of finite numbers.

    Parameters
    ----------
    *names : str
        The sizes of its dimensions.
    of : {"f", "i"}
        Floating numbers or integers.
    least, most : float
        Bounds of the numbers.
    readable : bool
        Whether it is written as plain numbers, however long.
    flat : bool
        The first dimension, of one row, is not in the attribute.
    """

    def __init__(
        self,
        *names: str,
        of: str = "f",
        least: float = -np.inf,
        most: float = np.inf,
        readable: bool = False,
        flat: bool = False,
    ) -> None:
        self.names, self.of, self.least, self.most = names, of, least, most
        self.readable, self.flat = readable, flat

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError("a value is not finite")
        if self.flat:
            array = array[np.newaxis]
        return values.array_to_json(array, readable=self.readable)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        array = values.array_from_json(node)
        if array.ndim != len(self.names) or array.dtype.kind != self.of:
            word = "numbers" if self.of == "f" else "integers"
            node.fail(f"must be {word} in {len(self.names)} dimensions")
        for name, size in zip(self.names, array.shape, strict=True):
            sizes.bind(name, size, node)
        bad = np.argwhere(~((array >= self.least) & (array <= self.most)))
        if bad.size:
            node.fail(f"holds {array[tuple(bad[0])]:g} at {bad[0].tolist()}")
        if not self.flat:
            return array
        return array[0] if array.ndim > 1 else float(array[0])


class OrNone(Part):
    """A part, or None."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return None if value is None else self.part.write(value)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        return None if node.value is None else self.part.read(node, sizes)


class Number(Part):
    """A finite number."""

    def __init__(self, *, positive: bool = False) -> None:
        self.positive = positive

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        if not np.isfinite(value):
            raise ValueError("a value is not finite")
        return float(value)

    def read(self, node: Node, sizes: Sizes) -> Any:  # noqa: ARG002
        """Return the value."""
        value = node.number()
        if self.positive and not value > 0.0:
            node.fail(f"is {value:g}; it must be positive")
        return value


class Degrees(Number):
    """Degrees of freedom: a number above 0, null where it is infinite."""

    def __init__(self) -> None:
        super().__init__(positive=True)

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return None if value == np.inf else super().write(value)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        return np.inf if node.value is None else super().read(node, sizes)


class Flag(Part):
    """True or false."""

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return bool(value)

    def read(self, node: Node, sizes: Sizes) -> Any:  # noqa: ARG002
        """Return the value."""
        return node.flag()


class Classes(Part):
    """Labels, at least two, of classes or of what the name says."""

    def __init__(self, name: str = "classes") -> None:
        self.name = name

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return values.classes_to_json(value)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        classes = values.classes_from_json(node)
        sizes.bind(self.name, len(classes), node)
        if len(classes) < 2:
            node.fail(f"{len(classes)} {self.name} are too few")
        return classes


class Examples(Part):
    """Gaussians, or mixtures of them."""

    def __init__(self, *names: str, mixtures: bool = False) -> None:
        self.names, self.mixtures = names, mixtures

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return examples_json.examples_to_json(value)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        examples = examples_json.examples_from_json(node)
        if not self.mixtures and hasattr(examples, "components"):
            node.fail("expected Gaussians, got mixtures")
        for name, size in zip(self.names, examples.shape, strict=True):
            sizes.bind(name, size, node)
        return examples


class CovarianceMatrices(Part):
    """Covariances."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        return examples_json.covariances_to_json(value)

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        covariances = examples_json.covariances_from_json(node)
        for name, size in zip(self.names, covariances.shape, strict=True):
            sizes.bind(name, size, node)
        return covariances


class Kernel(Part):
    """An expected kernel, or one whose values come in place of features."""

    def __init__(self, *, precomputed: bool = False) -> None:
        self.precomputed = precomputed

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        if isinstance(value, PrecomputedKernel):
            return {"kind": value.kind}
        if isinstance(value, GivenKernel):
            raise TypeError("kernel is a function, which cannot be saved; use joblib.dump")
        return {
            "kind": value.kind,
            "gamma": values.array_to_json(value.gamma),
            "degree": value.degree,
            "coef0": value.coef0,
            "normalize": value.normalize,
            "tau": value.tau,
        }

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        kinds = (*KINDS, PrecomputedKernel.kind) if self.precomputed else KINDS
        name = node.fields(("kind",), None)["kind"].choice(kinds)
        if name not in KINDS:
            node.fields(("kind",))
            return PrecomputedKernel()
        fields = node.fields(("kind", "gamma", "degree", "coef0", "normalize", "tau"))
        gamma = Numbers("gammas", least=np.finfo(float).tiny).read(fields["gamma"], Sizes())
        if len(gamma) != 1:
            sizes.bind("features", len(gamma), fields["gamma"])
        degree, coef0 = fields["degree"].count(), fields["coef0"].number()
        if degree >= 2**31:  # also where the kernel has none
            fields["degree"].fail(f"{degree} is too large")
        normalize = fields["normalize"].flag()
        try:
            check_kernel(name, degree, coef0, normalize)
        except (TypeError, ValueError) as error:
            node.fail(str(error))
        tau = OrNone(Number(positive=True)).read(fields["tau"], sizes)
        return ExpectedKernel(name, gamma, degree, coef0, normalize, tau)


class Walk(Part):
    """A stream in the middle, which goes on with the same bits."""

    # The state in the core's order: arrays by the names of their sizes, numbers, and counts.
    _state: ClassVar[dict[str, Any]] = {
        "coef": ("models", "features"),
        "average": ("models", "features"),
        "centre": ("features",),
        "scale": float,
        "factors": ("models", "factors"),
        "centre_square": float,
        "along_centre": ("models",),
        "coef_square": ("models",),
        "changed": int,
        "intercept": ("models",),
        "average_intercept": ("models",),
        "square": float,
        "weight": float,
        "steps": int,
    }

    def write(self, value: Stream) -> Any:
        """Return the value as JSON."""
        state = {
            name: form(each) if isinstance(form, type) else values.array_to_json(np.asarray(each))
            for (name, form), each in zip(self._state.items(), value.state, strict=True)
        }
        parameters = {
            name: values.parameter_to_json(name, each) for name, each in value.parameters.items()
        }
        return state | {"parameters": parameters}

    def read(self, node: Node, sizes: Sizes) -> Any:
        """Return the value."""
        fields = node.fields((*self._state, "parameters"))

        def one(name: str, form: Any) -> Any:
            if form is float:
                return fields[name].number()
            if form is int:
                return fields[name].count()
            return Numbers(*form).read(fields[name], sizes)

        state = tuple(one(name, form) for name, form in self._state.items())
        try:
            _core.stream_model(state)
        except ValueError as error:
            node.fail(str(error))
        names = ("C", "loss", "norm", "fit_intercept", "n_total")
        own = fields["parameters"].fields(names)
        parameters = {name: values.parameter_from_json(own[name]) for name in names}
        return Stream(state, parameters)
