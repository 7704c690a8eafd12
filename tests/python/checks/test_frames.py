"""Labels of data frames: rows and columns are paired by them, or the pair is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, train_test_split

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    SafeSVC,
    UncertainKernelSVC,
    UncertainSVC,
    calibrate_scale,
)
from halosvm.uncertainty import asymmetric_errors, from_samples, standard_errors

SCIKIT_LEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
RNG = np.random.default_rng(2)
N, D = 40, 3
IDS = [f"star {i}" for i in RNG.permutation(N)]
Y = pd.Series(np.arange(N) % 2, index=IDS)
X = pd.DataFrame(RNG.normal(size=(N, D)) + Y.to_numpy()[:, None], index=IDS, columns=list("abc"))
STD = pd.DataFrame(RNG.uniform(0.1, 1.0, (N, D)), index=IDS, columns=list("abc"))
ORDER = RNG.permutation(N)
MACHINES = [UncertainSVC, UncertainKernelSVC, IsotropicKernelSVC]


def other_labels(frame):
    return frame.set_axis([*IDS[:7], "moon", *IDS[8:]], axis=0)


def test_rows_of_errors_are_paired_by_the_index():
    plain = Gaussians(X.to_numpy(), std=STD.to_numpy()).covariances.values
    for keyword in ("std", "variance", "cov"):
        for std in (STD, STD.iloc[ORDER], STD.iloc[ORDER, [2, 0, 1]], STD.add_suffix("_err")):
            made = Gaussians(X, **{keyword: std})
            np.testing.assert_array_equal(made.covariances.values, plain)
        made = Gaussians(X, **{keyword: STD["a"].iloc[ORDER]})
        np.testing.assert_array_equal(made.covariances.values, plain[:, 0])
        with pytest.raises(ValueError, match=f"{keyword} has no row labelled '{IDS[7]}', which is"):
            Gaussians(X, **{keyword: other_labels(STD)})
    without = Gaussians(X.to_numpy(), std=STD.iloc[ORDER])
    np.testing.assert_array_equal(without.covariances.values, plain[ORDER])


def test_repeated_labels_pair_only_what_is_in_the_same_order():
    twice = X.set_axis([0] * N)
    made = Gaussians(twice, std=STD.set_axis([0] * N))
    np.testing.assert_array_equal(made.covariances.values, STD.to_numpy())
    with pytest.raises(ValueError, match="differ in their index, and the label 0 is repeated"):
        Gaussians(twice, std=STD)


def test_estimators_pair_errors_by_the_index():
    for make in MACHINES[:2]:
        plain = make().fit(X.to_numpy(), Y.to_numpy(), X_std=STD.to_numpy())
        clf = make().fit(X, Y, X_std=STD.iloc[ORDER, [1, 2, 0]])
        expected = plain.decision_std(X.to_numpy(), X_std=STD.to_numpy())
        np.testing.assert_array_equal(clf.decision_std(X, X_std=STD.iloc[ORDER]), expected)
        with pytest.raises(ValueError, match="X_std has no row labelled"):
            make().fit(X, Y, X_std=other_labels(STD))
        with pytest.raises(ValueError, match="X_std has no row labelled"):
            clf.decision_std(X, X_std=other_labels(STD))
    sigma = STD["a"]
    expected = IsotropicKernelSVC().fit(X, Y, X_std=sigma.to_numpy()).decision_function(X)
    clf = IsotropicKernelSVC().fit(X, Y, X_std=sigma.iloc[ORDER])
    np.testing.assert_array_equal(clf.decision_function(X), expected)


def test_sizes_of_errors_are_learnt_from_labels_in_the_order_of_the_rows():
    SafeSVC(random_state=0).fit(X, Y, sample_weight=STD["a"])
    for learn in (SafeSVC().fit, lambda X, y: calibrate_scale(X, y, X_std=STD)):
        with pytest.raises(ValueError, match="y has row 0 labelled"):
            learn(X, Y.iloc[::-1])
    for learn in (
        lambda judging: SafeSVC(validation=judging).fit(X, Y),
        lambda judging: calibrate_scale(X, Y, X_std=STD, validation=judging),
    ):
        with pytest.raises(ValueError, match=r"^validation: y has row 0 labelled"):
            learn((X, Y.iloc[::-1]))


@pytest.mark.parametrize("make", MACHINES)
def test_labels_and_weights_with_the_index_in_another_order_are_refused(make):
    weights = STD["a"]
    clf = make().fit(X, Y, sample_weight=weights)
    plain = make().fit(X.to_numpy(), Y.to_numpy(), sample_weight=weights.to_numpy())
    np.testing.assert_array_equal(
        clf.dual_coef_ if make is not UncertainSVC else clf.coef_,
        plain.dual_coef_ if make is not UncertainSVC else plain.coef_,
    )
    for series in (Y.iloc[::-1], Y.reset_index(drop=True)):
        with pytest.raises(ValueError, match=rf"y has row 0 labelled .*, in X it is '{IDS[0]}'"):
            make().fit(X, series)
        with pytest.raises(ValueError, match="y has row 0 labelled"):
            clf.score(X, series)
    with pytest.raises(ValueError, match="sample_weight has row 0 labelled"):
        make().fit(X, Y, sample_weight=weights.iloc[::-1])
    make().fit(X, Y.iloc[::-1].to_numpy())
    make().fit(X.to_numpy(), Y.iloc[::-1])


def test_splits_of_scikit_learn_keep_what_belongs_together():
    parts = train_test_split(X, Y, STD, random_state=0)
    X_train, X_test, y_train, y_test, std_train, std_test = parts
    clf = UncertainSVC().fit(X_train, y_train, X_std=std_train)
    assert clf.score(X_test, y_test) > 0.5
    assert clf.decision_std(X_test, X_std=std_test).shape == y_test.shape
    search = GridSearchCV(UncertainSVC(), {"C": [0.1, 1.0]}, error_score="raise", cv=3)
    assert search.fit(X, Y).best_score_ > 0.5


def test_error_models_pair_by_the_index():
    expected = standard_errors(X.to_numpy(), STD.to_numpy()).covariances.values
    made = standard_errors(X, STD.iloc[ORDER])
    np.testing.assert_array_equal(made.covariances.values, expected)
    plain = asymmetric_errors(X.to_numpy(), STD.to_numpy(), 2 * STD.to_numpy())
    made = asymmetric_errors(X, STD.iloc[ORDER], 2 * STD.iloc[::-1])
    np.testing.assert_array_equal(made.mean, plain.mean)
    groups = pd.Series(np.arange(N) // 4, index=IDS)
    with pytest.raises(ValueError, match="groups has row 0 labelled"):
        from_samples(X, groups.iloc[::-1], of="mean")


def polars_frame(frame):
    return pl.from_pandas(frame)


def arrow_table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("make_frame", [polars_frame, arrow_table])
@pytest.mark.parametrize("make", MACHINES[:2])
def test_frames_of_polars_and_pyarrow_are_frames_of_pandas(make, make_frame):
    x, std = make_frame(X), make_frame(STD)
    if SCIKIT_LEARN < (1, 7) and not hasattr(x, "__dataframe__"):
        pytest.skip("scikit-learn 1.6 reads names by a protocol that polars 2 has dropped")
    labels = make_frame(pd.DataFrame({"y": Y.map({0: "star", 1: "quasar"})}))["y"]
    plain = make().fit(X, Y.map({0: "star", 1: "quasar"}), X_std=STD)
    for errors in (std, make_frame(STD[["c", "a", "b"]])):
        clf = make().fit(x, labels, X_std=errors, sample_weight=make_frame(STD + 1)["a"])
        weighted = make().fit(X, plain.classes_[1 - Y], X_std=STD, sample_weight=STD["a"] + 1)
        expected = weighted.decision_function(X, X_std=0)
        np.testing.assert_array_equal(clf.decision_function(x, X_std=0), expected)
        assert clf.feature_names_in_.tolist() == list("abc")
        np.testing.assert_array_equal(
            clf.decision_std(x, X_std=errors), weighted.decision_std(X, X_std=STD)
        )
    with pytest.raises(ValueError, match="X_std has column 2 named 'z', in X it is 'c'"):
        make().fit(x, labels, X_std=make_frame(STD.rename(columns={"c": "z"})))
    with pytest.raises(ValueError, match=r"2 named 'z'|should match"):
        clf.predict(make_frame(X.rename(columns={"c": "z"})))
    with pytest.raises(ValueError, match="row 7, column 1 is nan"):
        make().fit(make_frame(X.where(X.iloc[7, 1] != X)), labels, X_std=std)
    with pytest.raises(TypeError, match=r"row 0.* is '.*', which is text"):
        make().fit(make_frame(X.astype({"b": str})), labels, X_std=std)
