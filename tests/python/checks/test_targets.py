"""Labels of all containers: integers of any size are classes of their own, none is rounded."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each

from halosvm import (
    Gaussians,
    IsotropicKernelSVC,
    PlattScaling,
    UncertainCalibratedClassifier,
    UncertainKernelSVC,
    UncertainSVC,
    load_model,
    save_model,
)
from halosvm.checks.targets import codes_among, join_labels
from halosvm.uncertainty import from_samples

RNG = np.random.default_rng(5)
N = 24
BIG = 2**53
LABELS = [BIG + k % 2 for k in range(N)]
X = RNG.normal(size=(N, 2)) + 3.0 * (np.arange(N) % 2)[:, None]
CONTAINERS = {
    "list": lambda v: v,
    "objects": lambda v: np.array(v, dtype=object),
    "Series of objects": lambda v: pd.Series(v, dtype=object),
    "Int64": lambda v: pd.Series(v, dtype="Int64"),
    "UInt64": lambda v: pd.Series(v, dtype="UInt64"),
    "pyarrow": lambda v: pd.Series(v, dtype="int64[pyarrow]"),
    "frame": lambda v: pd.DataFrame({"y": pd.array(v, "Int64")})["y"],
    "category": lambda v: pd.Series(v).astype("category"),
    "polars": pl.Series,
    "masked": lambda v: np.ma.array(v, mask=[False] * len(v)),
    "uint64": lambda v: np.array(v, np.uint64),
}
MACHINES = [UncertainSVC, UncertainKernelSVC, IsotropicKernelSVC, UncertainCalibratedClassifier]


@each("wrap", CONTAINERS.values())
@each("make", MACHINES)
def test_neighbouring_integers_are_two_classes_in_every_container(make, wrap):
    for given in (X, Gaussians(X)):
        clf = make().fit(given, wrap(LABELS))
        assert clf.classes_.tolist() == [BIG, BIG + 1]
        assert clf.predict(given).tolist() == LABELS
        assert clf.score(given, wrap(LABELS)) == 1.0
        assert clf.score(given, wrap([LABELS[0]] * N)) == 0.5


@pytest.mark.parametrize("wrap", list(CONTAINERS.values())[:5], ids=list(CONTAINERS)[:5])
def test_a_missing_label_among_integers_is_named(wrap):
    labels = [*LABELS[:7], None, *LABELS[8:]]
    for make in MACHINES:
        with pytest.raises(ValueError, match="y: row 7 is missing"):
            make().fit(X, wrap(labels))


def test_nullable_flags_stay_flags():
    flags = pd.Series([k % 2 == 1 for k in range(N)], dtype="boolean")
    clf = UncertainSVC().fit(X, flags)
    assert clf.classes_.dtype == bool
    plain = PlattScaling().fit(clf.decision_function(X), flags.to_numpy(bool))
    nullable = PlattScaling().fit(clf.decision_function(X), flags)
    assert (nullable.slope_, nullable.offset_) == (plain.slope_, plain.offset_)


@pytest.mark.filterwarnings("ignore:the objective of")  # these labels are random
def test_integers_that_no_array_holds_beside_the_others_are_refused():
    for labels, row in (
        ([BIG, BIG + 1, 2.0] * 8, 1),
        ([-1, 2**63 + 1, 2**63] * 8, 1),
        ([2**70, 2**70 + 1] * 12, 0),
    ):
        text = f"y: row {row} is {labels[row]}, which no array of numbers"
        with pytest.raises(ValueError, match=text):
            UncertainSVC().fit(X, labels)
    with pytest.raises(ValueError, match=f"classes: row 1 is {BIG + 1}, which no array"):
        UncertainSVC().partial_fit(X, LABELS, classes=[BIG, BIG + 1, 2.0])
    with pytest.raises(ValueError, match=f"groups: row 1 is {BIG + 1}, which no array"):
        from_samples(X, [BIG, BIG + 1, 2.0] * 8, of="mean")
    assert UncertainSVC().fit(X, [1, 2.0] * 12).classes_.tolist() == [1.0, 2.0]
    objects = np.array([BIG, BIG + 1, 2.0] * 8, dtype=object)
    assert UncertainSVC().fit(X, objects).classes_.tolist() == [2.0, BIG, BIG + 1]


def test_identifiers_of_groups_are_as_they_were_given():
    groups = [BIG + k // 4 for k in range(N)]
    for wrap in CONTAINERS.values():
        examples = from_samples(X, wrap(groups), of="mean")
        assert examples.groups.tolist() == sorted(set(groups))
        assert examples.labels_by_group({g: g for g in groups}).tolist() == sorted(set(groups))


def test_integers_of_two_types_are_compared_as_integers():
    classes = np.array([BIG, BIG + 1, BIG + 2])
    assert codes_among(classes, np.array([BIG + 1, BIG + 2], np.uint64)).tolist() == [1, 2]
    with pytest.raises(ValueError, match=f"y row 0 is {BIG + 3}, not one of"):
        codes_among(classes, np.array([BIG + 3], np.uint64))
    joined = join_labels([classes, np.array([BIG + 1], np.uint64)], "y")
    assert joined.tolist() == [*classes.tolist(), BIG + 1]
    with pytest.raises(ValueError, match=f"y: row 1 is {BIG + 1}, which no array"):
        join_labels([classes, np.array([2.0])], "y")


def test_models_keep_integers_in_files(tmp_path):
    for wrap in (CONTAINERS["Int64"], CONTAINERS["UInt64"]):
        labels = [2**62 + 1 + k % 2 for k in range(N)]
        clf = UncertainSVC().fit(X, wrap(labels))
        save_model(clf, tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").predict(X).tolist() == labels
