"""Limits as they are given: what contradicts itself is refused with its place and its value."""

import numpy as np
import pandas as pd
import pytest

from halosvm import EmpiricalBayes, Gaussians

X = np.array([[1.0, np.nan], [np.nan, 4.0], [5.0, 6.0]])
STD = np.full((3, 2), 0.1)
NONE = np.full((3, 2), np.nan)


def limits(*cells):
    out = NONE.copy()
    for row, column, value in cells:
        out[row, column] = value
    return out


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (None, limits((0, 0, 2.0)), r"X_upper: row 0, column 0 is 2; X has a value there, too"),
        (limits((2, 1, 7.0)), None, r"X_lower: row 2, column 1 is 7; X has a value there, too"),
        (
            limits((0, 1, 3.0)),
            limits((0, 1, 2.0)),
            r"X_lower: row 0, column 1 is 3, which is not below X_upper, 2",
        ),
        (limits((0, 1, 2.0)), limits((0, 1, 2.0)), r"which is not below X_upper, 2"),
        (None, limits((0, 1, np.inf)), r"X_upper: row 0, column 1 is inf; a limit must be finite"),
        (
            limits((1, 0, -np.inf)),
            None,
            r"X_lower: row 1, column 0 is -inf; a limit must be finite",
        ),
        (limits((1, 0, 1e200)), None, r"X_lower: row 1, column 0 is 1e\+200; .* at most 1e\+150"),
        (None, NONE[:2], r"X_upper has shape \(2, 2\), X has \(3, 2\)"),
        (None, [["a", "b"]] * 3, "X_upper"),
    ],
)
def test_limits_that_make_no_sense_are_refused(lower, upper, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EmpiricalBayes().fit(X, X_std=STD, X_lower=lower, X_upper=upper)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_limited_reading_needs_its_error(bad):
    std = STD.copy()
    std[0, 1] = bad
    with pytest.raises(
        ValueError, match=rf"X_std: row 0, column 1 is {bad:g}; X has a limit there"
    ):
        EmpiricalBayes().fit(X, X_std=std, X_upper=limits((0, 1, 2.0)))
    cov = np.stack([np.diag(s**2) for s in STD])
    cov[0, 1, 1] = bad
    with pytest.raises(
        ValueError, match=rf"X_cov: row 0, column 1 is {bad:g}; X has a limit there"
    ):
        EmpiricalBayes().fit(X, X_cov=cov, X_upper=limits((0, 1, 2.0)))


def test_the_error_of_a_limited_reading_is_kept_and_that_of_a_missing_value_is_not_read():
    std = STD.copy()
    std[0, 1], std[1, 0] = 0.7, np.nan
    made = Gaussians(X, std=std, upper=limits((0, 1, 2.0)))
    assert made.covariances.to_full()[0, 1, 1] == pytest.approx(0.49)


def test_limits_without_any_number_are_none():
    assert Gaussians(X, std=STD, lower=NONE, upper=NONE).limits is None


def test_gaussians_name_their_own_arguments_and_keep_their_limits():
    with pytest.raises(ValueError, match=r"upper: row 0, column 0 is 2; mean has a value there"):
        Gaussians(X, std=STD, upper=limits((0, 0, 2.0)))
    made = Gaussians(X, std=STD, upper=limits((0, 1, 2.0)))
    with pytest.raises(ValueError, match="X_upper is given, but X is Gaussians"):
        EmpiricalBayes().fit(made, X_upper=limits((0, 1, 2.0)))


def test_frames_of_limits_are_paired_by_their_labels():
    frame = pd.DataFrame(X, columns=["a", "b"], index=[3, 4, 5])
    upper = pd.DataFrame(limits((0, 1, 2.0), (1, 0, 3.0)), columns=["a", "b"], index=[3, 4, 5])
    made = Gaussians(frame, upper=upper.loc[[5, 3, 4], ["b", "a"]])
    assert made.limits.upper[0, 1] == 2.0
    assert made.limits.upper[1, 0] == 3.0
    with pytest.raises(ValueError, match="upper"):
        Gaussians(frame, upper=upper.rename(index={3: 9}))
