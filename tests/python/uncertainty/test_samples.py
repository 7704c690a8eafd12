"""uncertainty.from_samples against np.cov, scikit-learn and Monte Carlo."""

import numpy as np
import pytest
from cases import each
from sklearn.covariance import ledoit_wolf

from halosvm import Covariances, Gaussians
from halosvm.uncertainty import from_samples

SIZES = (2, 3, 7, 40)


@pytest.fixture
def bags():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(5, 5))
    return [rng.normal(size=(n, 5)) @ mix + rng.normal(size=5) for n in SIZES]


def expected_covariances(bags, of):
    divisors = [len(bag) if of == "mean" else 1 for bag in bags]
    return np.array([np.cov(bag, rowvar=False) / k for bag, k in zip(bags, divisors, strict=True)])


@pytest.mark.parametrize("of", ["observations", "mean"])
def test_mean_and_covariance_are_those_of_numpy(bags, of):
    expected = expected_covariances(bags, of)
    X = from_samples(bags, of=of)
    assert isinstance(X, Gaussians)
    np.testing.assert_allclose(X.mean, [bag.mean(axis=0) for bag in bags], rtol=1e-14)
    np.testing.assert_allclose(X.covariances.values, expected, rtol=1e-12, atol=1e-14)
    diagonal = from_samples(bags, of=of, kind="diagonal").covariances
    np.testing.assert_allclose(diagonal.values, np.einsum("ndd->nd", expected), rtol=1e-12)
    low = from_samples(bags, of=of, kind="low_rank").covariances
    assert np.diff(low.offsets).tolist() == [min(n - 1, 5) for n in SIZES]
    np.testing.assert_allclose(low.to_full(), expected, rtol=1e-10, atol=1e-13)


def test_covariances_of_observations_and_means_are_unbiased():
    rng = np.random.default_rng(1)
    factor = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.4, 0.2, 2.0]])
    truth = factor @ factor.T
    bags = rng.normal(size=(5_000, 4, 3)) @ factor.T
    estimates = from_samples(bags, of="observations").covariances.to_full()
    error = 4 * estimates.std(axis=0) / np.sqrt(len(bags))
    assert (np.abs(estimates.mean(axis=0) - truth) < error).all()
    X = from_samples(bags, of="mean")
    of_means = np.cov(X.mean, rowvar=False)
    estimates = X.covariances.to_full()
    # both sides are estimates: the sampling error of a covariance entry is below 2 l_max / sqrt(n)
    assert np.abs(estimates.mean(axis=0) - of_means).max() < 8 * truth.max() / 4 / np.sqrt(5_000)


def test_groups_are_bags_in_the_order_of_their_names(bags):
    rng = np.random.default_rng(2)
    names = np.repeat(["d", "a", "c", "b"], SIZES)
    order = rng.permutation(len(names))
    X = from_samples(np.concatenate(bags)[order], names[order], of="mean")
    expected = from_samples([bags[i] for i in (1, 3, 2, 0)], of="mean")
    np.testing.assert_allclose(X.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(X.covariances.values, expected.covariances.values, rtol=1e-11)


@each("kind, scale", [("full", 1e-150), ("diagonal", 1e-6), ("low_rank", 1.0), ("full", 1e70)])
def test_every_bag_of_two_has_a_shrunk_covariance(kind, scale):
    # Many of their shares are 0, estimated as -1e-16.
    rng = np.random.default_rng(0)
    bags = list(rng.normal(size=(200, 2, 3)))
    plain = from_samples(bags, of="observations").covariances.to_full()
    shares = np.clip([ledoit_wolf(bag)[1] for bag in bags], 0.0, 1.0)[:, None, None]
    trace = np.einsum("nii->n", plain)[:, None, None]
    expected = (1 - shares) * plain + shares * trace / 3 * np.eye(3)
    scaled = [scale * bag for bag in bags]
    X = from_samples(scaled, of="observations", kind=kind, shrinkage="ledoit_wolf")
    found = X.covariances.to_full() / scale**2
    if kind == "diagonal":
        expected = expected * np.eye(3)
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("kind", ["full", "diagonal", "low_rank"])
def test_a_bag_of_equal_observations_is_certain_with_any_shrinkage(kind):
    for shrinkage in (None, 0.5, 1.0, "ledoit_wolf"):
        bag = np.full((3, 2), 0.1)  # whose rounded mean is another number
        X = from_samples([bag], of="mean", kind=kind, shrinkage=shrinkage)
        assert not X.covariances.to_full().any()


@pytest.mark.parametrize("shrinkage", ["ledoit_wolf", 0.3, 0, 1.0])
@pytest.mark.parametrize("kind", ["full", "diagonal", "low_rank"])
def test_shrinkage_is_that_of_scikit_learn_on_the_unbiased_covariance(bags, kind, shrinkage):
    expected = []
    for bag in bags:
        shrunk, a = ledoit_wolf(bag)
        n, d = bag.shape
        if shrinkage != "ledoit_wolf":
            sample = np.cov(bag, rowvar=False, ddof=0)
            a = shrinkage
            shrunk = (1 - a) * sample + a * np.trace(sample) / d * np.eye(d)
        expected.append(shrunk / (n - 1))  # n / (n - 1) unbiased, 1 / n of the mean
    S = from_samples(bags, of="mean", kind=kind, shrinkage=shrinkage).covariances
    assert S.kind == kind
    expected = np.array(expected)
    if kind == "diagonal":
        expected *= np.eye(5)
    np.testing.assert_allclose(S.to_full(), expected, rtol=1e-10, atol=1e-14)


def test_no_matrix_is_made_of_a_low_rank_bag():
    d = 200_000  # a matrix would take 320 GB
    bag = np.random.default_rng(3).normal(size=(3, d)).astype(np.float32)
    S = from_samples([bag, bag[:2]], of="observations", kind="low_rank").covariances
    assert np.diff(S.offsets).tolist() == [2, 1]
    np.testing.assert_allclose(S.variances()[0], bag.astype(float).var(axis=0, ddof=1), rtol=1e-9)


def test_equal_observations_are_certain():
    bags = np.full((2, 3, 4), 0.1)
    for kind in ("full", "diagonal", "low_rank"):
        S = from_samples(bags, of="mean", kind=kind, shrinkage="ledoit_wolf").covariances
        assert np.abs(S.to_full()).max() < 1e-33


def test_arrays_that_are_read_only_or_not_contiguous_give_the_same(bags):
    expected = from_samples(bags, of="mean")
    views = [np.asfortranarray(np.repeat(bag, 2, axis=1))[:, ::2] for bag in bags]
    for view in views:
        view.flags.writeable = False
    X = from_samples(views, of="mean")
    assert (X.mean == expected.mean).all()
    assert (X.covariances.values == expected.covariances.values).all()


def test_covariances_from_samples_is_the_same_estimate(bags):
    one = Covariances.from_samples(bags, "full", shrinkage=0.2, of="mean")
    assert (one.values == from_samples(bags, of="mean", shrinkage=0.2).covariances.values).all()


@pytest.mark.parametrize(
    ("samples", "groups", "options", "message"),
    [
        ([[[1.0]]], None, {}, r"samples\[0\] holds 1 observation"),
        ([], None, {}, "samples is empty"),
        ([[[1.0], [np.nan]]], None, {}, r"samples\[0\] row 1, column 0 is nan"),
        ([[[1.0], [2.0]], [[1.0, 2.0]] * 2], None, {}, r"samples\[1\] has shape \(2, 2\)"),
        ([[1.0], [np.inf], [2.0]], [0, 0, 1], {}, "samples row 1, column 0 is inf"),
        ([[1.0], [2.0], [2.0]], [0, 0, 7], {}, "groups: 7 has one observation"),
        ([[1.0], [2.0]], [0, 0, 7], {}, r"groups has shape \(3,\), samples has 2 rows"),
        ([[1.0], [2.0]], [0.0, np.nan], {}, "groups: row 1 is missing"),
        ([[[1.0], [2.0]]], None, {"of": "sample"}, "of must be 'observations' or 'mean'"),
        ([[[1.0], [2.0]]], None, {"kind": "iso"}, "kind must be 'full', 'diagonal' or 'low_rank'"),
        ([[[1.0], [2.0]]], None, {"shrinkage": 1.5}, "shrinkage must be None"),
        ([[[1.0], [2.0]]], None, {"shrinkage": "oas"}, "got 'oas'"),
        ([[[1.0], [2.0]]], None, {"shrinkage": np.nan}, "got nan"),
    ],
)
def test_bad_input_is_named(samples, groups, options, message):
    with pytest.raises(ValueError, match=message):
        from_samples(samples, groups, **{"of": "mean", **options})


def test_what_the_covariance_is_of_must_be_said(bags):
    with pytest.raises(TypeError, match="of"):
        from_samples(bags)


def test_masked_observations_do_not_pass():
    masked = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    with pytest.raises(ValueError, match=r"samples\[0\]: row 1, column 0 is masked"):
        from_samples([masked], of="mean")


def test_feature_names_are_kept_and_must_agree():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=["a", "b"])
    for X in (
        from_samples([frame, frame + 1], of="mean"),
        from_samples(iter([frame]), of="mean"),
        from_samples(frame, [0, 0], of="mean"),
    ):
        assert list(X.feature_names) == ["a", "b"]
    assert from_samples([frame, frame.to_numpy()], of="mean").feature_names is None
    with pytest.raises(ValueError, match=r"^samples\[1\] has column 0 named 'b', in samples\[0\]"):
        from_samples([frame, frame[["b", "a"]]], of="mean")


def groups_with(missing):
    """Return groups of four rows, that of row 2 missing, in several forms."""
    pandas = pytest.importorskip("pandas")
    names = ["a", "a", missing, "b"]
    return [
        names,
        np.array(names, object),
        pandas.Series(names),
        pandas.Series(names, dtype="string"),
    ]


@pytest.mark.parametrize("missing", [None, np.nan, "NA"])
def test_missing_groups_are_refused(missing):
    pandas = pytest.importorskip("pandas")
    for groups in groups_with(pandas.NA if missing == "NA" else missing):
        with pytest.raises(ValueError, match="groups: row 2 is missing"):
            from_samples(np.ones((4, 2)), groups, of="mean")
    dates = np.array(["2020-01-01", "2020-01-01", "NaT", "NaT"], "datetime64[D]")
    with pytest.raises(ValueError, match="groups: row 2 is missing"):
        from_samples(np.ones((4, 2)), dates, of="mean")


def test_names_of_groups_may_be_a_list_and_must_be_sortable():
    X = from_samples([[1.0], [3.0], [2.0], [5.0]], ["b", "a", "b", "a"], of="mean")
    assert X.mean.ravel().tolist() == [4.0, 1.5]
    with pytest.raises(TypeError, match="groups has names that cannot be sorted, of the types int"):
        from_samples(np.ones((4, 2)), ["a", 1, "a", 1], of="mean")
