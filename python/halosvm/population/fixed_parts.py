"""What of a population is given and stays as it is: a parameter in, flags of its parts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .populations import Form

PARTS = ("weights", "means", "covariances")


class Flags(NamedTuple):
    """Whether the part of each component stays as it is; empty lists for none."""

    weights: list[bool]
    means: list[bool]
    covariances: list[bool]

    def n_parameters(self, form: Form, n_components: int, d: int) -> int:
        """Count the parameters that are not free."""
        fixed = sum(self.weights)
        of_weights = fixed if fixed < n_components else n_components - 1
        return of_weights + sum(self.means) * d + sum(self.covariances) * form.n_of_one(d)


def flags_of(fixed: Mapping[str, Any] | None, n_components: int) -> Flags:
    """Return the flags that `fixed` of EmpiricalBayes means."""
    found = dict.fromkeys(PARTS, [False] * 0)
    for part, which in (fixed or {}).items():
        chosen = np.zeros(n_components, dtype=bool)
        if which is True:
            chosen[:] = True
        else:
            numbers = np.asarray(which)
            outside = numbers[(numbers < 0) | (numbers >= n_components)]
            if outside.size:
                raise ValueError(
                    f"fixed: {part} names component {outside[0]}; there are {n_components}, from 0"
                )
            chosen[numbers] = True
        found[part] = chosen.tolist()
    return Flags(**found)


def require_fixed(fixed: Any, *, tied: bool) -> None:
    """Raise unless `fixed` names parts of components."""
    if fixed is None:
        return
    if not isinstance(fixed, dict):
        raise TypeError(f"fixed must be a dict of {', '.join(PARTS)}, got {fixed!r}")
    for part, which in fixed.items():
        if part not in PARTS:
            raise ValueError(f"fixed has the key {part!r}; it can have {', '.join(PARTS)}")
        numbers = np.asarray(which)
        if which is not True and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            raise TypeError(
                f"fixed: {part} must be True or a list of numbers of components, got {which!r}"
            )
    if tied and "covariances" in fixed:
        raise ValueError("fixed holds covariances, and tied=True estimates one for all")
