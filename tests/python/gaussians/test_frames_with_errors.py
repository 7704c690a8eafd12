"""Frames with columns of errors: pairs are those of the command line, and every one is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from astropy import units as u
from astropy.table import QTable

from halosvm import Gaussians, UncertainStandardScaler, UncertainSVC, chunks
from halosvm.files.tables.table import read_table

RNG = np.random.default_rng(5)
N = 12
COLUMNS = {
    "flux": RNG.normal(size=N),
    "flux_err": RNG.uniform(0.1, 1, N),
    "z": RNG.normal(size=N),
    "z_ivar": RNG.uniform(1, 4, N),
    "b": RNG.normal(size=N),
    "kind": np.arange(N) % 2,
}
STD = np.column_stack([COLUMNS["flux_err"], COLUMNS["z_ivar"] ** -0.5, np.zeros(N)])
PAIRS = {"flux": "flux_err", "z": "z_ivar"}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


@pytest.mark.parametrize("make", FRAMES)
def test_errors_of_a_frame_are_those_that_the_command_line_reads(make, tmp_path):
    frame = make(COLUMNS)
    with pytest.warns(UserWarning, match="taken as errors: 'flux_err' of 'flux', 'z_ivar' of 'z'"):
        by_name = Gaussians.from_frame(frame, label="kind")
    given = Gaussians.from_frame(frame, label="kind", errors=PAIRS)
    path = tmp_path / "t.csv"
    pd.DataFrame(COLUMNS).to_csv(path, index=False)
    table = read_table(path, label="kind")
    for X in (by_name, given):
        assert X.feature_names.tolist() == ["flux", "z", "b"] == list(table.features)
        np.testing.assert_array_equal(X.mean, table.mean)
        np.testing.assert_allclose(np.sqrt(X.covariances.variances()), STD, rtol=1e-15)
        np.testing.assert_array_equal(np.sqrt(X.covariances.variances()), table.std)


def test_no_pairs_are_made_where_the_caller_says_there_are_none():
    X = Gaussians.from_frame(pd.DataFrame(COLUMNS), label=["kind", "b"], errors={})
    assert X.feature_names.tolist() == ["flux", "flux_err", "z", "z_ivar"]
    assert X.covariances.certain


def test_sides_are_joined_by_the_mean_of_their_sizes():
    frame = pd.DataFrame({"x": [1.0, 2.0], "up": [0.5, 1.0], "low": [-1.5, -3.0]})
    with pytest.warns(UserWarning, match="more than a factor of 2, of 'x' in 2 rows"):
        X = Gaussians.from_frame(frame, errors={"x": ("up", "low")})
    np.testing.assert_array_equal(X.covariances.variances(), [[1.0], [4.0]])


def test_errors_are_converted_to_the_units_of_their_features():
    table = QTable({"d": [1.0, 2.0] * u.m, "d_err": [10.0, 20.0] * u.cm})
    X = Gaussians.from_frame(table, errors={"d": "d_err"})
    assert X.feature_units == (u.m,)
    np.testing.assert_allclose(X.covariances.variances(), [[0.01], [0.04]], rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"flux_err": -1.0}, {"errors": PAIRS}, "column 'flux_err', row 0 is -1; an error must be"),
        ({"z_ivar": 0.0}, {"errors": PAIRS}, "column 'z_ivar', row 0 is 0, an infinite error"),
        ({}, {"errors": {"flux": "flax"}}, "frame has no column 'flax'; its columns are flux, fl"),
        ({}, {"label": "class"}, "frame has no column 'class'"),
        ({}, {"errors": {"flux": "flux"}}, "errors: 'flux' is no feature"),
        ({"flux_std": 1.0}, {}, "'flux' has two error columns, 'flux_std' and 'flux_err'"),
    ],
)
def test_what_is_wrong_is_named(change, options, message):
    frame = pd.DataFrame(COLUMNS | change)
    with pytest.raises(ValueError, match=message):
        Gaussians.from_frame(frame, **{"label": "kind"} | options)


def test_a_fit_that_takes_errors_for_features_says_so():
    frame = pd.DataFrame(COLUMNS).drop(columns="kind")
    told = "taken as features: 'flux_err' of 'flux', 'z_ivar' of 'z'; Gaussians.from_frame"
    for take in (
        lambda: UncertainSVC().fit(frame, COLUMNS["kind"]),
        lambda: UncertainStandardScaler().fit(frame),
        lambda: Gaussians(frame),
    ):
        with pytest.warns(UserWarning, match=told):
            take()
    UncertainSVC().fit(Gaussians.from_frame(frame, errors=PAIRS), COLUMNS["kind"])


def test_chunks_pair_columns_as_frames_do(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(COLUMNS).to_parquet(path)
    [(X, y, _)] = chunks(path, "kind").map(lambda chunk: chunk)
    assert X.feature_names.tolist() == ["flux", "z", "b"]
    np.testing.assert_allclose(np.sqrt(X.covariances.variances()), STD, rtol=1e-15)
    np.testing.assert_array_equal(y, COLUMNS["kind"])
    pd.DataFrame(COLUMNS).rename(columns={"flux_err": "FluxSigma"}).to_parquet(path)
    with pytest.warns(UserWarning, match="'FluxSigma' of 'flux'"):
        list(chunks(path, "kind").map(len))
