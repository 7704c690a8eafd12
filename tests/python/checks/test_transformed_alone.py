"""A transformer of the means alone before a machine with errors: refused where it shows."""

import numpy as np
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halosvm import (
    EmpiricalBayes,
    Gaussians,
    Propagate,
    SafeSVC,
    TotalSVC,
    UncertainKernelSVC,
    UncertainStandardScaler,
    UncertainSVC,
    UncertainSVR,
)

pd = pytest.importorskip("pandas")

MACHINES = [
    UncertainSVC(),
    UncertainSVR(),
    TotalSVC(),
    UncertainKernelSVC(),
    EmpiricalBayes(),
    UncertainStandardScaler(),
    Propagate(StandardScaler()),
]
N = 30


@pytest.fixture(scope="module")
def data():
    """Return a frame of values, one of their errors, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    index = np.arange(N)[::-1]
    x = pd.DataFrame(rng.normal(size=(N, 3)) + y[:, None], columns=["a", "b", "c"], index=index)
    return x, pd.DataFrame(rng.uniform(0.1, 1, (N, 3)), columns=x.columns, index=index), y


def errors_for(machine, **values):
    return {f"{type(machine).__name__.lower()}__{name}": given for name, given in values.items()}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("step", [StandardScaler(), PCA(3), "passthrough"], ids=repr)
def test_errors_with_names_for_values_that_lost_theirs_are_refused(data, machine, step):
    x, std, y = data
    pipeline = make_pipeline(step, machine)
    if step == "passthrough":
        pipeline.fit(x, y, **errors_for(machine, X_std=std))
        return
    message = "X_std has column names and X has none.*UncertainStandardScaler and Propagate"
    with pytest.raises(ValueError, match=message):
        pipeline.fit(x, y, **errors_for(machine, X_std=std))
    with pytest.raises(ValueError, match=message.replace("X_std", "X_cov", 1)):
        pipeline.fit(x, y, **errors_for(machine, X_cov=std**2))
    if isinstance(machine, EmpiricalBayes):
        return  # the last step of few pipelines
    with pytest.warns(UserWarning, match=r"beside an X that was changed by .*, and were not"):
        pipeline.fit(x, y, **errors_for(machine, X_std=std.to_numpy()))
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.warns(UserWarning, match=r"beside an X that was changed by .*, and were not"),
    ):
        pipeline.fit(x.to_numpy(), y, X_std=std.to_numpy())


def test_safe_machines_have_no_errors_to_lose(data):
    x, _, y = data
    make_pipeline(StandardScaler(), SafeSVC(bounds=(0.0, 0.5), random_state=0)).fit(x, y)


def test_labels_in_one_place_alone_are_no_reason_where_no_transformer_can_stand(data):
    x, std, _ = data
    X = Gaussians(x.to_numpy(), std=std)
    np.testing.assert_array_equal(X.covariances.values, std)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_arrays_of_a_fit_on_frames_have_its_names(data):
    x, std, y = data
    machine = UncertainSVC().fit(x, y, X_std=std)
    swapped = std[["b", "a", "c"]]
    np.testing.assert_array_equal(
        machine.decision_std(x.to_numpy(), X_std=swapped), machine.decision_std(x, X_std=std)
    )


@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_names_that_a_transformer_made_of_those_of_the_errors_are_refused(data, order):
    x, std, y = data
    columns = ColumnTransformer([("s", StandardScaler(), order[:2])], remainder="passthrough")
    columns.set_output(transform="pandas")
    with pytest.raises(ValueError, match=rf"X has column 0 named 's__{order[0]}', as a transf"):
        make_pipeline(columns, UncertainSVC()).fit(x, y, uncertainsvc__X_std=std)
    own = std.set_axis(columns.fit(x).get_feature_names_out(), axis=1)
    make_pipeline(columns, UncertainSVC()).fit(x, y, uncertainsvc__X_std=own)


def test_other_numbers_of_features_and_rows_are_refused(data):
    x, std, y = data
    pipeline = make_pipeline(SelectKBest(k=2), UncertainSVC())
    with pytest.raises(ValueError, match="X_std has 3 columns, X has 2"):
        pipeline.fit(x, y, uncertainsvc__X_std=std.to_numpy())


def test_units_that_a_transformer_took_off_are_missed(data):
    u = pytest.importorskip("astropy.units")
    x, std, y = data
    values, errors = x.to_numpy() * u.m, std.to_numpy() * u.m
    with pytest.raises(ValueError, match="X_std has the unit m, X has no unit"):
        make_pipeline(StandardScaler(), UncertainSVC()).fit(values, y, uncertainsvc__X_std=errors)
    right = make_pipeline(UncertainStandardScaler(), UncertainSVC())
    right.fit(values, y, uncertainstandardscaler__X_std=errors)
    assert right.score(values, y) > 0.5
