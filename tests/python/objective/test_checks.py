"""Checks of numbers: the core leaves to Python what Python has done, as a look costs a pass."""

import numpy as np
import pytest

from halosvm import Gaussians, UncertainSVC, _core


def test_the_core_does_not_look_again_at_what_python_has_checked():
    """A number that Python let through would be refused by a second look."""
    mean = np.array([[0.0, 1.0], [2.0, np.nan]])
    std = np.array([[0.5, 0.5], [-1.0, 0.5]])
    X = _core.Gaussians(mean, _core.Covariances.diagonal(std, squared=True))
    codes = np.array([0, 1], np.int16)
    _core.Objective(X, codes, 1, None, 1.0)
    coef = np.ones((1, 2))
    assert np.isnan(_core.decision_function(mean, coef, np.zeros(1))[1, 0])
    covariances = _core.Covariances.diagonal(std, squared=True)
    np.testing.assert_allclose(_core.decision_std(covariances, coef)[1, 0], np.hypot(1.0, 0.5))


def test_python_itself_refuses_them():
    with pytest.raises(ValueError, match=r"row 1, column 1 is missing \(nan\)"):
        Gaussians([[0.0, 1.0], [2.0, np.nan]]).core_view()
    with pytest.raises(ValueError, match=r"row 1, column 0 is -1"):
        Gaussians(np.zeros((2, 2)), std=[[0.5, 0.5], [-1.0, 0.5]])
    with pytest.raises(ValueError, match=r"row 1, column 1 is nan"):
        UncertainSVC().fit([[0.0, 1.0], [2.0, np.nan]], [0, 1])
