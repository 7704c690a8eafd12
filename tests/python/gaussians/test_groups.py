"""Groups of repeated observations: examples know what they are called, and take labels by it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from halosvm import Gaussians, UncertainSVC
from halosvm.uncertainty import from_samples

RNG = np.random.default_rng(3)
NAMES = np.repeat([f"S{i}" for i in range(12)], 4)  # S0, S1, S10, S11, S2, ... when sorted
LABELS = np.repeat(RNG.integers(0, 2, 12), 4)
SAMPLES = RNG.normal(size=(48, 2)) + 3 * LABELS[:, None]
BY_GROUP = dict(zip(NAMES.tolist(), LABELS.tolist(), strict=True))
X = from_samples(SAMPLES, NAMES, of="mean")
EXPECTED = np.array([BY_GROUP[name] for name in sorted(set(NAMES.tolist()))])


def test_groups_are_carried_and_kept_by_selecting_and_joining():
    assert X.groups.tolist() == sorted(set(NAMES.tolist()))
    assert X[3:5].groups.tolist() == ["S11", "S2"]
    assert X[[4, 0]].groups.tolist() == ["S2", "S0"]
    assert pickle.loads(pickle.dumps(X)).groups.tolist() == X.groups.tolist()
    assert X.truncate(0.9).groups.tolist() == X.groups.tolist()
    assert Gaussians.concatenate([X[:2], X[5:6]]).groups.tolist() == ["S0", "S1", "S3"]
    assert Gaussians.concatenate([X, Gaussians(np.ones((1, 2)))]).groups is None
    assert from_samples([SAMPLES[:4], SAMPLES[4:]], of="mean").groups is None
    with pytest.raises(ValueError, match="read-only"):
        X.groups[0] = "S7"


def test_labels_come_into_the_order_of_the_groups_however_they_are_given():
    shuffled = pd.Series(BY_GROUP).sample(frac=1.0, random_state=0)
    repeated = pd.Series(LABELS, index=NAMES)
    for labels in (
        X.labels_by_group(BY_GROUP),
        X.labels_by_group(shuffled),
        X.labels_by_group(repeated),
        X.labels_by_group(LABELS, NAMES),
        X.labels_by_group(LABELS.tolist(), pd.Series(NAMES)),
    ):
        np.testing.assert_array_equal(labels, EXPECTED)
    texts = np.where(LABELS, "ill", "well")
    assert X.labels_by_group(texts, NAMES).dtype == texts.dtype
    np.testing.assert_array_equal(X[[4, 0]].labels_by_group(BY_GROUP), EXPECTED[[4, 0]])
    numbers = from_samples(SAMPLES, np.repeat(np.arange(12), 4)[::-1], of="mean")
    assert numbers.labels_by_group({i: -i for i in range(12)}).tolist() == list(range(0, -12, -1))


def test_labels_of_groups_must_be_there_and_agree():
    with pytest.raises(ValueError, match="labels: group 'S10' has none"):
        X.labels_by_group({name: 0 for name in BY_GROUP if name != "S10"})
    changed = LABELS.copy()
    changed[7] = 1 - changed[7]
    with pytest.raises(ValueError, match="labels: group 'S1' has both"):
        X.labels_by_group(changed, NAMES)
    with pytest.raises(ValueError, match="labels: row 5 is missing"):
        X.labels_by_group(np.where(np.arange(48) == 5, None, LABELS), NAMES)
    with pytest.raises(ValueError, match=r"labels has shape \(47,\), groups has shape \(48,\)"):
        X.labels_by_group(LABELS[1:], NAMES)
    with pytest.raises(TypeError, match="labels of observations need groups too"):
        X.labels_by_group(LABELS)
    with pytest.raises(ValueError, match="these Gaussians have no groups"):
        Gaussians(SAMPLES).labels_by_group(BY_GROUP)
    with pytest.raises(ValueError, match="labels has row 0 labelled 47, in groups it is 0"):
        X.labels_by_group(pd.Series(LABELS)[::-1], pd.Series(NAMES))


def test_a_fit_checks_the_groups_of_its_labels():
    by_group = pd.Series(EXPECTED, index=X.groups)
    clf = UncertainSVC().fit(X, by_group)
    assert clf.score(X, by_group) == 1.0
    in_order_of_appearance = by_group[list(BY_GROUP)]
    for y in (in_order_of_appearance, by_group.reset_index(drop=True)):
        with pytest.raises(ValueError, match=r"in X\.groups it is .*X\.labels_by_group\(y\)"):
            UncertainSVC().fit(X, y)
        with pytest.raises(ValueError, match=r"in X\.groups it is"):
            clf.score(X, y)
    with pytest.raises(ValueError, match="sample_weight has row"):
        UncertainSVC().fit(X, by_group, sample_weight=in_order_of_appearance + 1.0)
    again = UncertainSVC().fit(X, X.labels_by_group(in_order_of_appearance))
    np.testing.assert_array_equal(clf.coef_, again.coef_)
    parts = train_test_split(X, by_group, random_state=0, stratify=by_group)
    assert UncertainSVC().fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.5
