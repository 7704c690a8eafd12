"""Errors that rows share, in EmpiricalBayes: what is found, what is known of new rows, labels."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from halosvm import EmpiricalBayes, Gaussians, load_model, save_model
from halosvm.population import batches as module

SPREAD = np.array([1.0, 0.5, 2.0])


def nights(n=240, n_nights=12, d=3, offset=2.0, seed=0, *, uneven=False):
    """Return values, standard deviations, classes, nights, offsets and true values of rows."""
    rng = np.random.default_rng(seed)
    night = np.r_[np.arange(n_nights), rng.integers(n_nights, size=n - n_nights)]
    share = np.where(np.arange(n_nights) % 2, 0.95, 0.05) if uneven else np.full(n_nights, 0.5)
    y = (rng.random(n) < share[night]).astype(int)
    v = 2.0 * y[:, None] * (np.arange(d) < 2) + rng.normal(size=(n, d))
    offsets = offset * rng.normal(size=(n_nights, d)) * np.resize(SPREAD, d)
    std = np.exp(0.5 * rng.normal(size=(n, d)))
    x = v + offsets[night] + std * rng.normal(size=(n, d))
    return x, std, y, night, offsets, v


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("form", ["full", "diagonal", "isotropic"])
def test_population_and_offsets_are_recovered_within_their_errors(d, form):
    rng = np.random.default_rng(d)
    n, n_nights = 3000, 60
    half = rng.normal(size=(d, d))
    W = {
        "full": half @ half.T / d + 0.2 * np.eye(d),
        "diagonal": np.diag(rng.uniform(0.3, 2.0, d)),
        "isotropic": 0.8 * np.eye(d),
    }[form]
    half = rng.normal(size=(d, d))
    V = half @ half.T / d + 0.5 * np.eye(d)
    night = rng.integers(n_nights, size=n)
    offsets = rng.multivariate_normal(np.zeros(d), W, n_nights)
    std = np.exp(0.4 * rng.normal(size=(n, d)))
    x = 1.0 + rng.multivariate_normal(np.zeros(d), V, n) + offsets[night]
    x += std * rng.normal(size=(n, d))
    found = EmpiricalBayes(batch_covariance=form, tol=1e-7).fit(x, X_std=std, batch=night)
    assert found.converged_
    assert (np.diff(found.log_likelihood_) >= 0).all()
    # standard errors of a covariance of so many draws, with the noise of each
    of_W = np.sqrt((np.outer(np.diag(W), np.diag(W)) + W**2) / n_nights)
    assert np.all(np.abs(found.batch_covariance_ - W) < 4 * of_W + 0.1 * np.trace(V) / d / 50)
    T = np.diag(V) + np.exp(0.4)
    of_V = np.sqrt(2 * np.outer(T, T) / n)
    assert np.all(np.abs(found.covariances_.to_full()[0] - V) < 4 * of_V)
    assert np.all(np.abs(found.means_[0] - 1.0) < 4 * np.sqrt(np.diag(W) / n_nights))
    # offsets are known but for what all share with the mean
    relative = found.batch_offsets_ - found.batch_offsets_.mean(axis=0)
    apart = relative - (offsets - offsets.mean(axis=0))
    z = apart / np.sqrt(np.einsum("gjj->gj", found.batch_offset_covariances_))
    assert 0.8 < z.std() < 1.2


def conditional(rest, joint, prior, cross):
    """Return mean and covariance of a normal vector given others, which have the mean 0."""
    return cross @ np.linalg.solve(joint, rest), prior - cross @ np.linalg.solve(joint, cross.T)


def brute_force(model, x, S, y, night, row):
    """Posterior of a true value from all rows of its night, classes of all others known.

    A class of -1 is not known: every assignment of such rows is summed over.
    """
    mine = np.r_[row, np.setdiff1d(np.flatnonzero(night == night[row]), row)]
    d, k = x.shape[1], len(mine)
    V, W = model.covariances_.to_full(), model.batch_covariance_
    a, m = model.weights_, model.means_
    components = getattr(model, "component_classes_", np.zeros(len(a)))
    choices = [
        np.flatnonzero((components == y[i]) | (y[i] == -1)) if i != row else np.arange(len(a))
        for i in mine
    ]
    logs, means, covariances = [], [], []
    for z in np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, k):
        joint = np.kron(np.ones((k, k)), W)
        for i, at in enumerate(mine):
            joint[i * d : (i + 1) * d, i * d : (i + 1) * d] += V[z[i]] + S[at]
        rest = (x[mine] - m[z]).ravel()
        logs.append(np.log(a[z]).sum() + multivariate_normal(cov=joint).logpdf(rest))
        cross = np.hstack([V[z[0]], np.zeros((d, (k - 1) * d))])
        mean, covariance = conditional(rest, joint, V[z[0]], cross)
        means.append(m[z[0]] + mean)
        covariances.append(covariance)
    r = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    means = np.array(means)
    mean = r @ means
    apart = means - mean
    return mean, np.einsum("k,kij->ij", r, np.array(covariances)) + (r * apart.T) @ apart


@pytest.mark.parametrize("labelled", [False, True])
def test_training_rows_have_the_posterior_of_all_rows_and_the_labels_of_the_others(labelled):
    x, std, y, night, _, _ = nights(60, 8)
    model = EmpiricalBayes(batch_covariance="full")
    y = y if labelled else None
    found = model.fit_transform(x, y, X_std=std, batch=night)
    S = np.stack([np.diag(s**2) for s in std])
    for row in range(0, 60, 7):
        known = np.zeros(60) if y is None else y
        mean, covariance = brute_force(model, x, S, known, night, row)
        np.testing.assert_allclose(found.mean[row], mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.covariances[row], covariance, rtol=1e-6, atol=1e-8)


def test_new_rows_and_training_rows_of_a_night_are_used_together():
    x, std, _, night, _, _ = nights(70, 8)
    S = np.stack([np.diag(s**2) for s in std])
    model = EmpiricalBayes(batch_covariance="full").fit(x[:50], X_std=std[:50], batch=night[:50])
    found = model.transform(x[50:], X_std=std[50:], batch=night[50:])
    for row in range(50, 70, 3):
        mean, covariance = brute_force(model, x, S, np.zeros(70), night, row)
        np.testing.assert_allclose(found.mean[row - 50], mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.covariances[row - 50], covariance, rtol=1e-6, atol=1e-8)


def test_single_rows_of_new_nights_have_the_covariance_of_offsets_beside_their_errors():
    x, std, y, night, _, _ = nights()
    model = EmpiricalBayes(batch_covariance="full").fit(x, y, X_std=std, batch=night)
    names = [f"new {i}" for i in range(len(x))]
    found = model.transform(x, X_std=std, batch=names)
    plain = EmpiricalBayes(2, max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="passes"):
        plain.fit(x, X_std=std)
    plain.weights_, plain.means_, plain.covariances_ = (
        model.weights_,
        model.means_,
        model.covariances_,
    )
    S = np.stack([np.diag(s**2) for s in std]) + model.batch_covariance_
    expected = plain.transform(x, X_cov=S)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        found.covariances.to_full(), expected.covariances.to_full(), rtol=1e-7, atol=1e-8
    )
    np.testing.assert_allclose(
        model.score_samples(x, X_std=std, batch=names), plain.score_samples(x, X_cov=S), rtol=1e-7
    )


def test_unlabelled_new_nights_are_nearly_as_by_a_sum_over_all_assignments():
    # An approximation: the classes of the rows of a new night, all unknown.
    x, std, y, night, _, v = nights(400, 20)
    std = 0.5 * std
    x = v + (x - v) * 0.5  # errors and offsets of half the size
    train = night < 12
    model = EmpiricalBayes(batch_covariance="full")
    model.fit(x[train], y[train], X_std=std[train], batch=night[train])
    S = np.stack([np.diag(s**2) for s in std])
    apart, sds = [], []
    for each in range(12, 20):
        rows = np.flatnonzero(night == each)[:6]
        found = model.transform(x[rows], X_std=std[rows], batch=night[rows])
        for i, row in enumerate(rows[:2]):
            unknown = np.full(len(rows), -1)
            mean, covariance = brute_force(model, x[rows], S[rows], unknown, night[rows], i)
            apart.append(found.mean[i] - mean)
            sds.append(np.sqrt(np.diag(covariance)))
            assert row == rows[i]
    assert np.sqrt(np.mean(np.square(apart) / np.square(sds))) < 0.2


def test_labels_keep_uneven_classes_from_being_taken_for_offsets():
    x, std, y, night, offsets, _ = nights(1200, offset=1.0, uneven=True)
    with_labels, without = (
        EmpiricalBayes(batch_covariance="full").fit(x, each, X_std=std, batch=night)
        for each in (y, None)
    )

    def error(model):
        apart = model.batch_offsets_ - offsets
        return np.sqrt(np.mean((apart - apart.mean(axis=0)) ** 2))

    assert error(with_labels) < 0.3 < 0.5 < error(without)
    difference = with_labels.means_[1] - with_labels.means_[0]
    np.testing.assert_allclose(difference, [2.0, 2.0, 0.0], atol=0.8)
    np.testing.assert_array_equal(with_labels.component_classes_, [0, 1])


def test_values_to_predict_are_no_classes():
    x, std, _, night, _, v = nights()
    model = EmpiricalBayes(batch_covariance="full")
    with_values = model.fit(x, v[:, 0], X_std=std, batch=night).batch_offsets_
    np.testing.assert_array_equal(
        with_values, clone(model).fit(x, X_std=std, batch=night).batch_offsets_
    )
    assert not hasattr(model, "component_classes_")


def test_columns_and_texts_of_classes_are_read_alike():
    x, std, y, night, _, _ = nights()
    model = EmpiricalBayes(batch_covariance="full")
    expected = model.fit_transform(x, y, X_std=std, batch=night)
    for each in (y.astype(str), y.tolist(), pd.Series(y, dtype="category"), y.astype(float)):
        found = clone(model).fit_transform(x, each, X_std=std, batch=night)
        np.testing.assert_array_equal(found.mean, expected.mean)
    with pytest.warns(DataConversionWarning):
        found = clone(model).fit_transform(x, y[:, np.newaxis], X_std=std, batch=night)
    np.testing.assert_array_equal(found.mean, expected.mean)


def test_a_night_of_one_class_tells_its_offset():
    x, std, y, night, offsets, _ = nights(2000, offset=1.0)
    kept = (night != 3) | (y == 1)
    x, std, y, night = x[kept], std[kept], y[kept], night[kept]
    model = EmpiricalBayes(batch_covariance="full").fit(x, y, X_std=std, batch=night)
    apart = model.batch_offsets_ - offsets
    apart -= apart.mean(axis=0)
    assert np.abs(apart[3]).max() < 5 * np.sqrt(model.batch_offset_covariances_[3].max())
    assert np.abs(apart[3]).max() < 0.6


@pytest.mark.parametrize("n_components", [1, 2])
def test_order_of_rows_and_names_of_batches_do_not_matter(n_components):
    x, std, y, night, _, _ = nights()
    order = np.random.default_rng(1).permutation(len(x))
    settings = {"batch_covariance": "full", "random_state": 0, "init": "kmeans"}
    model, other = (EmpiricalBayes(n_components, **settings) for _ in range(2))
    found = model.fit_transform(x, y, X_std=std, batch=night)
    names = np.array([f"night {11 - i:02d}" for i in night])
    moved = other.fit_transform(x[order], y[order], X_std=std[order], batch=names[order])
    tolerance = 1e-6 if n_components == 1 else 0.05
    np.testing.assert_allclose(moved.mean, found.mean[order], atol=tolerance)
    np.testing.assert_allclose(other.batch_offsets_[::-1], model.batch_offsets_, atol=tolerance)
    np.testing.assert_array_equal(other.batches_, [f"night {i:02d}" for i in range(12)])


@pytest.mark.parametrize(
    "as_labels",
    [
        list,
        np.asarray,
        lambda g: g.astype(float),
        lambda g: g.astype(str),
        lambda g: g.astype(object),
        lambda g: np.datetime64("2020-01-01") + g,
        pd.Series,
        lambda g: pd.Series(g.astype(str), dtype="category"),
        lambda g: pd.Series(g, dtype="Int64"),
    ],
)
def test_labels_of_every_type_are_read(as_labels):
    x, std, y, night, _, _ = nights()
    model = EmpiricalBayes(batch_covariance="diagonal")
    expected = model.fit_transform(x, y, X_std=std, batch=night).mean
    again = model.transform(x, X_std=std, batch=night).mean
    labels = as_labels(night)
    np.testing.assert_allclose(
        model.fit_transform(x, y, X_std=std, batch=labels).mean, expected, atol=1e-6
    )
    np.testing.assert_allclose(model.transform(x, X_std=std, batch=labels).mean, again, atol=1e-6)
    assert len(model.batches_) == 12


def test_whole_weights_are_repetitions_and_rows_of_weight_zero_are_as_if_they_were_not_there():
    x, std, y, night, _, _ = nights(120, 6)
    counts = np.random.default_rng(0).integers(3, size=len(x))
    often = np.repeat(np.arange(len(x)), counts)
    model, other = (EmpiricalBayes(batch_covariance="full", tol=1e-9) for _ in range(2))
    found = model.fit_transform(x, y, X_std=std, batch=night, sample_weight=counts)
    repeated = other.fit_transform(x[often], y[often], X_std=std[often], batch=night[often])
    np.testing.assert_allclose(model.batch_offsets_, other.batch_offsets_, atol=1e-4)
    np.testing.assert_allclose(found.mean[often], repeated.mean, atol=1e-4)
    new = model.transform(x[counts == 0], X_std=std[counts == 0], batch=night[counts == 0])
    assert np.isfinite(new.mean).all()
    assert np.isfinite(found.mean).all()


def test_missing_values_and_rows_without_any_have_posteriors():
    x, std, y, night, _, v = nights()
    x[np.random.default_rng(0).random(x.shape) < 0.3] = np.nan
    x[5] = np.nan
    model = EmpiricalBayes(batch_covariance="full")
    found = model.fit_transform(x, y, X_std=std, batch=night)
    assert np.isfinite(found.mean).all()
    z = (found.mean - v) / np.sqrt(found.covariances.variances())
    assert 0.8 < z.std() < 1.2
    gaussians = Gaussians(np.nan_to_num(x), std=std)
    assert np.isfinite(model.transform(gaussians, batch=night).mean).all()


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, std, y, night, _, _ = nights()
    model = EmpiricalBayes(batch_covariance="full", output="mixture")
    model.fit(x, y, X_std=std, batch=night)
    whole = model.transform(x, X_std=std, batch=night)
    densities = model.score_samples(x, X_std=std, batch=night)
    monkeypatch.setattr(module, "_BLOCK", 64 * 9)
    parts = model.transform(x, X_std=std, batch=night)
    np.testing.assert_array_equal(parts.components.mean, whole.components.mean)
    np.testing.assert_array_equal(parts.weights, whole.weights)
    np.testing.assert_array_equal(model.score_samples(x, X_std=std, batch=night), densities)


def test_files_pickles_and_clones_keep_the_batches(tmp_path):
    x, std, y, night, _, _ = nights()
    labels = np.array([f"night {i}" for i in night])
    model = EmpiricalBayes(batch_covariance="diagonal", n_threads=1)
    model.fit(x, y, X_std=std, batch=labels)
    expected = model.transform(x, X_std=std, batch=labels)
    save_model(model, tmp_path / "model.json")
    for other in (load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        found = other.transform(x, X_std=std, batch=labels)
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.covariances.to_full(), expected.covariances.to_full())
        np.testing.assert_array_equal(other.batches_, model.batches_)
    assert clone(model).batch_covariance == "diagonal"
    model.set_params(batch_covariance=None).fit(x, y, X_std=std)
    assert not hasattr(model, "batches_")
    assert model.transform(x, X_std=std).shape == x.shape


def call(method="fit", x=None, batch=None, y=None, **parameters):
    values, std, labels, night, _, _ = nights()
    x = values if x is None else x
    model = EmpiricalBayes(**({"batch_covariance": "full"} | parameters))
    if method == "fit":
        return model.fit(x, labels if y is None else y, X_std=std, batch=batch(night))
    model.fit(values, labels, X_std=std, batch=night)
    return getattr(model, method)(x, X_std=std, batch=batch(night))


NIGHTS = np.arange(240) % 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": lambda _: None}, "batch_covariance is 'full', but batch is not given"),
        ({"batch": lambda g: g, "batch_covariance": None}, "batch is given, but batch_covariance"),
        ({"batch": lambda g: g, "batch_covariance": "factors"}, "batch_covariance must be one of"),
        ({"batch": lambda g: g[:-1]}, r"batch has shape \(239,\), expected \(240,\)"),
        ({"batch": lambda g: np.where(NIGHTS == 3, np.nan, g)}, "batch: row 3 is missing"),
        ({"batch": lambda g: [None, *g[1:]]}, "batch: row 0 is missing"),
        ({"batch": lambda g: 0 * g}, "batch is 0 in all rows"),
        ({"batch": lambda g: np.arange(len(g))}, "batch is another one in each row"),
        ({"batch": lambda g: g, "y": nights()[3]}, "each batch has classes of its own"),
        ({"batch": lambda g: g, "n_components": "bic"}, "n_components is 'bic'"),
        ({"batch": lambda g: g, "error_scale": "estimate"}, "error_scale is to be estimated"),
        ({"batch": lambda _: None, "method": "transform"}, "batch is not given, but fit had"),
        ({"batch": lambda _: None, "method": "score"}, "batch is not given, but fit had"),
        ({"batch": lambda g: [3, "a", *g[2:]], "method": "transform"}, "batch"),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(options, message):
    if message == "batch":  # strings and numbers in one list are strings
        assert call(**options).mean.shape == (240, 3)
        return
    with pytest.raises(ValueError, match=message):
        call(**options)


def test_batches_of_a_transform_after_a_fit_without_are_refused():
    x, std, y, night, _, _ = nights()
    model = EmpiricalBayes().fit(x, y, X_std=std)
    with pytest.raises(ValueError, match="batch is given, but fit had no batches"):
        model.transform(x, X_std=std, batch=night)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"noise": "student"}, "noise is 'student', which does not go with batch_covariance"),
        ({"tied": True}, "tied is True, which does not go with batch_covariance"),
        ({"fixed": {"means": True}}, "fixed holds parts, which does not go with"),
    ],
)
def test_what_knows_no_offsets_is_refused_beside_them(other, message):
    x, std, _, night, _, _ = nights(60)
    with pytest.raises(ValueError, match=message):
        EmpiricalBayes(batch_covariance="full", **other).fit(x, X_std=std, batch=night)


def test_limits_and_tails_of_batches_are_refused():
    x, std, _, night, _, _ = nights(60)
    model = EmpiricalBayes(batch_covariance="full").fit(x, X_std=std, batch=night)
    with pytest.raises(ValueError, match="tail_probability knows no batches"):
        model.tail_probability(x, X_std=std)
    upper = np.full(x.shape, np.nan)
    upper[7, 1], x[7, 1] = 0.5, np.nan
    limited = {"X_std": std, "X_upper": upper, "batch": night}
    with pytest.raises(ValueError, match=r"row 7.*offsets of batches are not estimated"):
        clone(model).fit(x, **limited)
    with pytest.raises(ValueError, match="row 7"):
        model.transform(x, **limited)


def test_responsibilities_of_batches_are_those_of_the_mixtures_of_transform():
    x, std, _, night, _, _ = nights(120)
    model = EmpiricalBayes(2, batch_covariance="full", output="mixture", random_state=0)
    given = {"X_std": std, "batch": night}
    mixtures = model.fit(x, **given).transform(x, **given)
    np.testing.assert_allclose(model.responsibilities(x, **given).ravel(), mixtures.weights)


def test_error_tests_of_batches_are_refused():
    x, std, _, _, _, _ = nights()
    with pytest.raises(ValueError, match="error_test knows no batches"):
        EmpiricalBayes(batch_covariance="full").error_test(x, X_std=std)


def test_labels_of_several_types_are_refused():
    x, std, y, night, _, _ = nights()
    mixed = np.array([1, "a", *night[2:]], dtype=object)
    model = EmpiricalBayes(batch_covariance="full")
    with pytest.raises(ValueError, match="batch has labels of types int"):
        model.fit(x, y, X_std=std, batch=mixed)
