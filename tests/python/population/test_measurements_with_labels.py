"""Measurements keep the units, masks and labels that they come with."""

import astropy.units as u
import numpy as np
import pandas as pd
import pytest
from astropy.table import QTable

from halosvm import EmpiricalBayes, Gaussians


def measured(n=60):
    rng = np.random.default_rng(4)
    truth = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    std = rng.lognormal(-0.5, 0.5, size=(n, 2))
    return truth + std * rng.normal(size=(n, 2)), std


def test_errors_in_another_unit_are_converted_and_posteriors_have_the_unit_of_the_values():
    X, std = measured()
    plain = EmpiricalBayes().fit(X, X_std=std)
    with_units = EmpiricalBayes().fit(X * u.deg, X_std=(std * u.deg).to(u.mas))
    np.testing.assert_allclose(with_units.means_, plain.means_, rtol=1e-9)
    posterior = with_units.transform(X * u.deg, X_std=(std * u.deg).to(u.arcsec))
    np.testing.assert_allclose(posterior.mean, plain.transform(X, X_std=std).mean, rtol=1e-9)
    assert isinstance(posterior, Gaussians)
    assert posterior.feature_units == (u.deg, u.deg)


def test_new_measurements_are_converted_to_the_unit_of_the_fit_or_refused():
    X, std = measured()
    fitted = EmpiricalBayes(output="mean").fit(X * u.deg, X_std=std * u.deg)
    np.testing.assert_allclose(
        fitted.transform((X * u.deg).to(u.arcmin), X_std=(std * u.deg).to(u.arcmin)),
        fitted.transform(X * u.deg, X_std=std * u.deg),
        rtol=1e-9,
    )
    with pytest.raises(ValueError, match="unit"):
        fitted.transform(X, X_std=std)
    with pytest.raises(ValueError, match="unit"):
        fitted.transform(X * u.deg, X_std=std)


def test_tables_with_units_and_names_are_read_like_arrays():
    X, std = measured()
    table = QTable({"a": X[:, 0] * u.m, "b": X[:, 1] * u.s})
    errors = QTable({"b": std[:, 1] * 1e3 * u.ms, "a": std[:, 0] * u.m})
    fitted = EmpiricalBayes().fit(table, X_std=errors)
    np.testing.assert_allclose(fitted.means_, EmpiricalBayes().fit(X, X_std=std).means_, rtol=1e-9)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]


def test_missing_values_and_units_go_together():
    X, std = measured()
    gone = np.random.default_rng(0).random(X.shape) < 0.2
    holes = np.where(gone, np.nan, X)
    np.testing.assert_allclose(
        EmpiricalBayes().fit(holes * u.m, X_std=(std * u.m).to(u.cm)).means_,
        EmpiricalBayes().fit(holes, X_std=std).means_,
        rtol=1e-9,
    )


def test_errors_are_paired_by_the_index_of_the_frame():
    X, std = measured()
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(100, 160))
    errors = pd.DataFrame(std, columns=["a_err", "b_err"], index=frame.index)
    mixed = errors.sample(frac=1.0, random_state=0)[["b_err", "a_err"]]
    np.testing.assert_array_equal(
        EmpiricalBayes().fit(frame, X_std=mixed).means_,
        EmpiricalBayes().fit(X, X_std=std).means_,
    )
    with pytest.raises(ValueError, match="index"):
        EmpiricalBayes().fit(frame, X_std=errors.set_index(np.arange(60)))
