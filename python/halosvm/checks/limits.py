"""Limits of readings that are not known themselves: "< 0.25", "> 3", or between two numbers.

In:  what the user gave as lower and upper limits, NaN where there is none, beside means and errors.
Out: float64 arrays of the shape of the means, or None; errors name the argument, row and column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halosvm.checks import frames, reading, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halosvm.checks.error_arguments import Names
    from halosvm.checks.units import FeatureUnits

    Array = NDArray[np.float64]


class Limits(NamedTuple):
    """Lower and upper limits, (n_samples, n_features) each, NaN where there is none."""

    lower: Array
    upper: Array

    @property
    def there(self) -> NDArray[np.bool_]:
        """Mark the readings that have a limit."""
        return ~(np.isnan(self.lower) & np.isnan(self.upper))

    def taken(self, key: Any) -> Limits | None:
        """Return those of some rows, or of rows and columns; None if these have none."""
        some = Limits(*(np.ascontiguousarray(each[key]) for each in self))
        return some if some.there.any() else None

    def times(self, factor: float) -> Limits:
        """Return them in another unit."""
        return Limits(self.lower * factor, self.upper * factor)

    def middles(self) -> Array:
        """Return the middle between two limits, the limit where there is one, NaN without any."""
        lower = np.where(np.isnan(self.lower), self.upper, self.lower)
        upper = np.where(np.isnan(self.upper), self.lower, self.upper)
        return lower + 0.5 * (upper - lower)

    def first(self) -> str:
        """Say where the first limit is, and which."""
        index = np.unravel_index(int(np.argmax(self.there)), self.lower.shape)
        low, high = self.lower[index], self.upper[index]
        what = f"< {high:g}" if np.isnan(low) else f"> {low:g}"
        if not (np.isnan(low) or np.isnan(high)):
            what = f"between {low:g} and {high:g}"
        return f"{reading.place(index)} is a limit, {what}"


def joined(
    parts: Sequence[Limits | None], shapes: Sequence[tuple[int, int]], axis: int = 0
) -> Limits | None:
    """Return the limits of parts of these shapes, one after the other; None if none has any."""
    if all(part is None for part in parts):
        return None
    none = [np.full(shape, np.nan) for shape in shapes]
    each = [part or (n, n) for part, n in zip(parts, none, strict=True)]
    return Limits(*(np.concatenate(some, axis=axis) for some in zip(*each, strict=True)))


def read_limits(
    lower: Any,
    upper: Any,
    names: Names,
    means: Any,
    labels: frames.Labels,
    features: FeatureUnits,
) -> Limits | None:
    """Return the limits of means; None if there are none."""
    if lower is None and upper is None:
        return None
    if hasattr(means, "toarray"):
        raise TypeError(
            f"{names.mean} is sparse, and limits stand for values of arrays that are NaN"
        )
    read, mean = [], names.mean
    for argument, given in ((names.lower, lower), (names.upper, upper)):
        if given is None:
            read.append(np.full(means.shape, np.nan))
            continue
        bare, unit = units.split(given)
        values = reading.as_float_array(reading.unmasked(bare), argument)
        if values.shape != means.shape:
            raise ValueError(
                f"{argument} has shape {values.shape}, {mean} has {means.shape}; give a limit for "
                "each value, NaN where there is none"
            )
        values = units.matched_values(values, unit, given, argument, labels, features, mean)
        rule = (
            f"a limit must be finite and at most {reading.LARGEST:g} in size; NaN where there is "
            "none"
        )
        reading.refuse_where(np.abs(values) > reading.LARGEST, argument, rule, values)
        reading.refuse_where(
            ~np.isnan(values) & ~np.isnan(means),
            argument,
            f"{mean} has a value there, too; of a value that is known leave out the limit, of one "
            f"that is not make {mean} NaN",
            values,
        )
        read.append(np.ascontiguousarray(values, np.float64))
    limits = Limits(*read)
    crossed = limits.lower >= limits.upper
    if crossed.any():
        index = np.unravel_index(int(np.argmax(crossed)), crossed.shape)
        raise ValueError(
            f"{names.lower}: {reading.place(index)} is {limits.lower[index]:g}, which is not below "
            f"{names.upper}, {limits.upper[index]:g}"
        )
    return limits if limits.there.any() else None


def require_errors_of_limited(errors: Any, limited: Any, argument: str, mean: str) -> None:
    """Raise ValueError unless the errors, (n, d) or (n, 1), of limited readings are finite."""
    reading.refuse_where(
        limited & ~np.isfinite(errors),
        argument,
        f"{mean} has a limit there: give the error of the reading that the limit is of, 0 if the "
        "limit is of the true value itself",
        np.broadcast_to(errors, limited.shape),
    )
