"""Arrays of the packages uncertainties and astropy, where they are installed."""

import numpy as np
import pytest

from halosvm.uncertainty import standard_errors

VALUES = np.array([[1.0, 2.0], [3.0, 4.0]])
ERRORS = np.array([[0.1, 0.2], [0.0, 0.4]])


@pytest.fixture
def unumpy():
    return pytest.importorskip("uncertainties.unumpy")


@pytest.fixture
def nddata():
    return pytest.importorskip("astropy.nddata")


def test_independent_uncertainties_are_standard_errors(unumpy):
    X = standard_errors(unumpy.uarray(VALUES, ERRORS))
    assert (X.mean == VALUES).all()
    assert X.covariances.kind == "diagonal"
    np.testing.assert_allclose(X.covariances.variances(), ERRORS**2)


def test_errors_in_common_become_a_factor_with_the_signs_of_the_package(unumpy):
    uncertainties = pytest.importorskip("uncertainties")
    a, b = uncertainties.ufloat(1.0, 0.5), uncertainties.ufloat(2.0, 0.25)
    rows = [[a - b, 3 * b, a * a], [a, b, uncertainties.ufloat(0.0, 1.0)], [a + a, 1.0, -a]]
    X = standard_errors(np.array(rows, dtype=object))
    assert X.covariances.kind == "low_rank"
    for i, row in enumerate(rows):
        made = [u if hasattr(u, "derivatives") else 0 * a + u for u in row]
        expected = uncertainties.covariance_matrix(made)
        np.testing.assert_allclose(X.covariances[i], expected, rtol=1e-12)
        np.testing.assert_allclose(X.mean[i], [u.nominal_value for u in made])
    with pytest.raises(ValueError, match="errors of values depend on each other"):
        standard_errors(np.array(rows, dtype=object), n_observations=3)


def test_missing_uncertainties_do_not_pass(unumpy):
    with pytest.raises(ValueError, match="values row 0, column 1 is nan"):
        standard_errors(unumpy.uarray([[1.0, np.nan]], [[1.0, 1.0]]))
    with np.errstate(invalid="ignore"):
        unknown = unumpy.uarray([[1.0, 1.0]], [[1.0, np.nan]])
    with pytest.raises(ValueError, match="errors of values row 0, column 1 is nan"):
        standard_errors(unknown)
    with pytest.raises(ValueError, match="values hold their errors"):
        standard_errors(unumpy.uarray(VALUES, ERRORS), ERRORS)


@pytest.mark.parametrize("kind", ["StdDevUncertainty", "VarianceUncertainty", "InverseVariance"])
def test_each_uncertainty_of_astropy_is_read_as_what_it_is(nddata, kind):
    std = ERRORS + 0.1
    array = {"S": std, "V": std**2, "I": std**-2}[kind[0]]
    uncertainty = getattr(nddata, kind)(array)
    X = standard_errors(VALUES, uncertainty)
    np.testing.assert_allclose(X.covariances.variances(), std**2, rtol=1e-14)
    data = nddata.NDData(VALUES, uncertainty=getattr(nddata, kind)(array), unit="m")
    X = standard_errors(data)
    assert (X.mean == VALUES).all()
    np.testing.assert_allclose(X.covariances.variances(), std**2, rtol=1e-14)


def test_units_that_differ_masks_and_unknown_uncertainties_do_not_pass(nddata):
    data = nddata.NDData(VALUES, uncertainty=nddata.StdDevUncertainty(ERRORS, unit="cm"), unit="m")
    X = standard_errors(data)
    assert X.feature_units == (data.unit, data.unit)
    np.testing.assert_allclose(X.covariances.variances(), (ERRORS / 100) ** 2, rtol=1e-14)
    with pytest.raises(ValueError, match="errors has the unit cm, values has no unit"):
        standard_errors(VALUES, nddata.StdDevUncertainty(ERRORS, unit="cm"))
    data = nddata.NDData(VALUES, uncertainty=nddata.StdDevUncertainty(ERRORS), mask=VALUES == 3)
    with pytest.raises(ValueError, match="values: row 1, column 0 is masked"):
        standard_errors(data)
    with pytest.raises(ValueError, match="without an uncertainty"):
        standard_errors(nddata.NDData(VALUES))
    with pytest.raises(ValueError, match="of the type 'unknown'"):
        standard_errors(VALUES, nddata.UnknownUncertainty(ERRORS))
    with pytest.raises(ValueError, match="errors row 1, column 0 is -1"):
        standard_errors(VALUES, nddata.StdDevUncertainty([[1.0, 1.0], [-1.0, 1.0]]))
    with pytest.raises(ValueError, match="errors: row 0, column 1 is -1; a variance"):
        standard_errors(VALUES, nddata.VarianceUncertainty([[1.0, -1.0], [1.0, 1.0]]))
