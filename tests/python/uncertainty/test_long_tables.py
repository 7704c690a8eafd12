"""uncertainty.from_long against the wide tables that the long ones were made of."""

import numpy as np
import pytest

from halosvm import Gaussians
from halosvm.uncertainty import combined_readings, from_long, pooled_errors


def melted(wide, std=None, seed=0):
    """Return objects, features, values and errors of the values that are there, shuffled."""
    rows, columns = np.nonzero(~np.isnan(wide))
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, columns = rows[order], columns[order]
    names = np.array(["K", "Na", "Ca", "Mg"], dtype=object)
    out = {"objects": rows, "features": names[columns], "values": wide[rows, columns]}
    return out if std is None else out | {"errors": std[rows, columns]}


@pytest.fixture
def wide():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 4))
    x[rng.random(x.shape) < 0.2] = np.nan
    x[5] = [np.nan, 1.0, np.nan, np.nan]
    return x, np.exp(rng.normal(size=x.shape))


def test_combinations_without_a_row_are_missing(wide):
    x, std = wide
    X = from_long(**melted(x, std), names=["K", "Na", "Ca", "Mg"])
    expected = Gaussians(x, std=np.where(np.isnan(x), np.inf, std))
    np.testing.assert_array_equal(X.mean, expected.mean)
    np.testing.assert_allclose(X.covariances.variances(), expected.covariances.variances())
    assert X.groups.tolist() == list(range(12))
    certain = from_long(**melted(x), names=["K", "Na", "Ca", "Mg"])
    assert certain.covariances.certain


def test_features_come_in_the_order_of_the_table_or_as_they_are_named(wide):
    x, std = wide
    table = melted(x, std)
    own = from_long(**table)
    assert own.feature_names.tolist() == list(dict.fromkeys(table["features"]))
    part = from_long(**table, names=["Ca", "Zn", "K"])
    np.testing.assert_array_equal(
        part.mean, np.column_stack([x[:, 2], np.full(12, np.nan), x[:, 0]])
    )


def test_frames_are_read_by_the_names_of_their_columns(wide):
    pd = pytest.importorskip("pandas")
    x, std = wide
    table = melted(x, std)
    frame = pd.DataFrame(table).sample(frac=1, random_state=0)
    X = from_long(
        frame,
        objects="objects",
        features="features",
        values="values",
        errors="errors",
        names=["K", "Na", "Ca", "Mg"],
    )
    np.testing.assert_array_equal(X.mean, x)
    labels = np.where(frame["objects"] < 6, "a", "b")
    assert X.labels_by_group(labels, frame["objects"].to_numpy()).tolist() == ["a"] * 6 + ["b"] * 6


def test_missing_values_and_infinite_errors_are_no_readings(wide):
    x, std = wide
    table = melted(x, std)
    more = {
        "objects": np.append(table["objects"], [5, 5]),
        "features": np.append(table["features"], ["K", "Ca"]),
        "values": np.append(table["values"], [np.nan, 3.0]),
        "errors": np.append(table["errors"], [1.0, np.inf]),
    }
    X = from_long(**more, names=["K", "Na", "Ca", "Mg"])
    np.testing.assert_array_equal(X.mean, x)


def test_repeats_are_combined_by_their_errors_or_pooled():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 2))
    groups = np.repeat(np.arange(20), 2)
    std = np.exp(rng.normal(size=x.shape))
    rows, columns = np.divmod(np.arange(80), 2)
    table = {"objects": groups[rows], "features": columns, "values": x[rows, columns]}
    with pytest.raises(ValueError, match=r"object 0 has a second value of '0' in row 2; repeats="):
        from_long(**table)
    pooled = from_long(**table, repeats="combine")
    expected = pooled_errors(x, groups).X
    np.testing.assert_allclose(pooled.mean, expected.mean)
    np.testing.assert_allclose(pooled.covariances.variances(), expected.covariances.variances())
    assert pooled.feature_names.tolist() == ["0", "1"]
    combined = from_long(**table, errors=std[rows, columns], repeats="combine")
    expected = combined_readings(x, groups, X_std=std).X
    np.testing.assert_allclose(combined.mean, expected.mean)
    np.testing.assert_allclose(combined.covariances.variances(), expected.covariances.variances())


def test_units_are_those_of_the_values():
    u = pytest.importorskip("astropy.units")
    X = from_long(
        objects=["a", "b"], features=["g", "g"], values=[1, 2] * u.m, errors=[10, 20] * u.cm
    )
    assert X.feature_units == (u.m,)
    np.testing.assert_allclose(X.covariances.variances().ravel(), [0.01, 0.04])


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"values": [1.0, np.inf]}, ValueError, "values: row 1 is inf; it must be finite"),
        ({"errors": [1.0, -2.0]}, ValueError, "errors: row 1 is -2; it must be >= 0"),
        ({"errors": [1.0, np.nan]}, ValueError, "errors: row 1 is missing, but values has one"),
        ({"errors": [1.0]}, ValueError, r"errors has shape \(1,\), expected \(2,\)"),
        ({"objects": ["a", None]}, ValueError, "objects: row 1 is missing"),
        ({"features": [1.0, np.nan]}, ValueError, "features: row 1 is missing"),
        ({"features": ["g"]}, ValueError, r"features has shape \(1,\), values has 2 rows"),
        ({"objects": "star"}, TypeError, "objects is 'star', the name of a column; give its frame"),
        ({"repeats": "mean"}, ValueError, "repeats must be 'refuse' or 'combine', got 'mean'"),
        ({"names": ["g", "g"]}, ValueError, "names: a feature is named twice"),
    ],
)
def test_bad_tables_are_refused(changed, error, message):
    table = {"objects": ["a", "b"], "features": ["g", "g"], "values": [1.0, 2.0]}
    with pytest.raises(error, match=message):
        from_long(**(table | changed))
