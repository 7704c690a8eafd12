"""ClassPopulations against scikit-learn, brute force and what is known of made populations."""

import pickle

import numpy as np
import pytest
from cases import DTYPES, KINDS, each, in_pairs
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.model_selection import GroupKFold, cross_val_score

from halosvm import (
    ClassPopulations,
    Covariances,
    ErrorsLeftOutWarning,
    Gaussians,
    load_model,
    save_model,
)
from halosvm.reference import class_log_odds

FORMS = ("full", "diagonal", "factors")


def draw(n, rng, d=3, n_classes=2, *, noise=0.7):
    """Return measurements, their errors and labels of classes of several shapes."""
    of_all = np.random.default_rng(7)
    shapes = of_all.normal(size=(n_classes, d, d)) / np.sqrt(d)
    means = 1.5 * of_all.normal(size=(n_classes, d))
    y = rng.integers(n_classes, size=n)
    errors = noise * np.exp(0.5 * rng.normal(size=(n, d)))
    truth = means[y] + np.einsum("ne,nde->nd", rng.normal(size=(n, d)), shapes[y])
    return truth + errors * rng.normal(size=(n, d)), errors, y


def populations_of(clf):
    return [(p.weights_, p.means_, p.covariances_.to_full()) for p in clf.populations_]


def brute_force(clf, x, S):
    """Return the probabilities of the classes of each row by SciPy's normal densities."""
    joint = np.empty((len(x), len(clf.classes_)))
    for i in range(len(x)):
        there = np.flatnonzero(~np.isnan(x[i]))
        for c, (a, m, V) in enumerate(populations_of(clf)):
            p = 1.0
            if there.size:
                part = np.ix_(there, there)
                p = sum(
                    a[k] * multivariate_normal.pdf(x[i, there], m[k, there], (V[k] + S[i])[part])
                    for k in range(len(a))
                )
            joint[i, c] = clf.priors_[c] * p
    return joint / joint.sum(axis=1, keepdims=True)


def test_tied_classes_of_exact_values_are_linear_discriminant_analysis():
    X, _, y = draw(300, np.random.default_rng(0), n_classes=3)
    ours = ClassPopulations(1, tied=True, reg_covar=0, tol=1e-12).fit(X, y)
    # Scatter over n, as "lsqr" has it.
    pooled = sum(np.cov(X[y == c].T, bias=True) * np.mean(y == c) for c in range(3))
    np.testing.assert_allclose(ours.populations_[1].covariances_[0], pooled, atol=1e-12)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # "svd" had it over n - K in older versions: log odds, without priors, differ by a factor.
    theirs = LinearDiscriminantAnalysis(solver="svd", tol=1e-12).fit(X, y)
    fair = np.log(ours.priors_ / ours.priors_[0])[1:]
    decision = theirs.decision_function(X)
    scores, others = ours.log_odds(X) - fair, decision[:, 1:] - decision[:, :1] - fair
    factor = min((1.0, 1.0 - 3 / 300), key=lambda f: np.abs(f * scores - others).max())
    np.testing.assert_allclose(factor * scores, others, atol=1e-6)


def test_own_classes_of_exact_values_are_quadratic_discriminant_analysis():
    X, _, y = draw(300, np.random.default_rng(1), n_classes=3)
    ours = ClassPopulations(1, tied=False, reg_covar=0, tol=1e-12).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis().fit(X, y)
    # Scatter over n here; older versions of scikit-learn divide by n - 1.
    for c, scaling in enumerate(theirs.scalings_):
        mine = X[y == c]
        ratio = scaling.sum() / np.linalg.eigvalsh(np.cov(mine.T, bias=True)).sum()
        theirs.scalings_[c] = scaling / ratio
        np.testing.assert_allclose(
            ours.populations_[c].covariances_[0], np.cov(mine.T, bias=True), atol=1e-12
        )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


@in_pairs
@each("dtype", DTYPES)
@each("kind", KINDS)
@each(
    "form, tied, missing",
    [
        ("full", True, True),
        ("full", False, False),
        ("diagonal", False, True),
        ("factors", True, False),
        ("factors", False, True),
    ],
)
def test_probabilities_are_bayes_rule_by_brute_force(
    kind, form, tied, missing, dtype, make_covariances
):
    rng = np.random.default_rng(0)
    X, _, y = draw(40, rng, n_classes=3)
    X = X.astype(dtype)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[5] = np.nan
    cov = make_covariances(kind, *X.shape, rng, dtype)
    clf = ClassPopulations(2, tied=tied, covariance=form, random_state=0, tol=1e-2)
    clf.fit(X, y, X_cov=cov)
    S = cov.to_full().astype(np.float64)
    right = brute_force(clf, X.astype(np.float64), S)
    np.testing.assert_allclose(clf.predict_proba(X, X_cov=cov), right, atol=1e-9)
    np.testing.assert_allclose(
        clf.log_odds(X, X_cov=cov),
        class_log_odds(X.astype(np.float64), S, clf.priors_, populations_of(clf)),
        rtol=1e-8,
        atol=1e-8,
    )
    np.testing.assert_array_equal(clf.predict(X, X_cov=cov), clf.classes_[right.argmax(axis=1)])


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_tied_covariances_are_one_and_the_likelihood_never_falls(form, n_components):
    X, errors, y = draw(200, np.random.default_rng(2), n_classes=3)
    clf = ClassPopulations(n_components, tied=True, covariance=form, random_state=0, tol=1e-9)
    clf.fit(X, y, X_std=errors)
    V = np.concatenate([p.covariances_.to_full() for p in clf.populations_])
    assert (V[0] == V).all()
    assert (np.diff(clf.log_likelihood_) >= 0).all()


def test_posterior_mean_is_the_mean_over_classes_and_true_values():
    X, errors, y = draw(150, np.random.default_rng(3))
    clf = ClassPopulations(1, tied=False).fit(X, y, X_std=errors)
    right = np.zeros(X.shape)
    for p, (_, m, V) in zip(clf.predict_proba(X, X_std=errors).T, populations_of(clf), strict=True):
        for i in range(len(X)):
            gain = V[0] @ np.linalg.inv(V[0] + np.diag(errors[i] ** 2))
            right[i] += p[i] * (m[0] + gain @ (X[i] - m[0]))
    np.testing.assert_allclose(clf.posterior_mean(X, X_std=errors), right, atol=1e-9)


def known_classes(n, rng):
    """Return a majority of one lobe and 15 % of two lobes, and their log odds by the truth."""
    y = (rng.random(n) < 0.15).astype(int)
    truth = rng.normal(size=(n, 2)) * np.array([1.0, 0.5])
    lobe = rng.choice([-1.0, 1.0], n)
    minority = np.column_stack([2.5 * lobe, 1.0 + 0.3 * lobe]) + 0.4 * rng.normal(size=(n, 2))
    truth[y == 1] = minority[y == 1]
    errors = 0.6 * np.exp(0.5 * rng.normal(size=(n, 2)))
    S = errors[:, :, np.newaxis] * np.eye(2) * errors[:, np.newaxis]
    one = (np.ones(1), np.zeros((1, 2)), np.diag([1.0, 0.25])[np.newaxis])
    lobes = np.array([[2.5, 1.3], [-2.5, 0.7]])
    two = (np.full(2, 0.5), lobes, np.stack([0.16 * np.eye(2)] * 2))
    x = truth + errors * rng.normal(size=(n, 2))
    return x, errors, y, class_log_odds(x, S, [0.85, 0.15], [one, two])[:, 0]


def test_known_populations_are_told_apart_as_well_as_can_be():
    rng = np.random.default_rng(4)
    X, errors, y, _ = known_classes(3000, rng)
    new, new_errors, new_y, odds = known_classes(20000, rng)
    clf = ClassPopulations(random_state=0).fit(X, y, X_std=errors)
    assert clf.n_components_ >= 2
    best = np.mean((odds > 0) == new_y)
    assert clf.score(new, new_y, X_std=new_errors) > best - 0.005
    p = clf.predict_proba(new, X_std=new_errors)[:, 1]
    bins = np.minimum((10 * p).astype(int), 9)
    of_bin = [abs(np.mean(p[bins == b]) - np.mean(new_y[bins == b])) for b in np.unique(bins)]
    assert np.average(of_bin, weights=np.bincount(bins)[np.unique(bins)]) < 0.02


@pytest.mark.parametrize("tied", [True, False])
def test_whole_weights_are_repetitions_in_the_fit_and_in_the_choice(tied):
    rng = np.random.default_rng(5)
    X, errors, y = draw(80, rng)
    times = rng.integers(0, 4, 80)
    rows = np.repeat(np.arange(80), times)
    for settings in ({"n_components": 1, "tied": tied}, {}):
        clf = ClassPopulations(random_state=0, tol=1e-9, **settings)
        repeated = clf.fit(X[rows], y[rows], X_std=errors[rows])
        p, table = repeated.predict_proba(X, X_std=errors), getattr(repeated, "cv_results_", None)
        weighted = clf.fit(X, y, X_std=errors, sample_weight=times)
        np.testing.assert_allclose(weighted.predict_proba(X, X_std=errors), p, atol=1e-4)
        if table is not None:
            np.testing.assert_allclose(clf.cv_results_["log_loss"], table["log_loss"], rtol=1e-2)
            assert clf.cv_results_["chosen"] == table["chosen"]


@pytest.mark.parametrize("tied", [True, False])
def test_order_of_rows_and_columns_and_units_do_not_matter(tied):
    rng = np.random.default_rng(6)
    X, errors, y = draw(120, rng)
    clf = ClassPopulations(1, tied=tied, tol=1e-10)
    p = clf.fit(X, y, X_std=errors).predict_proba(X, X_std=errors)
    rows, columns = rng.permutation(120), [2, 0, 1]
    moved = clf.fit(X[rows][:, columns], y[rows], X_std=errors[rows][:, columns])
    np.testing.assert_allclose(
        moved.predict_proba(X[:, columns], X_std=errors[:, columns]), p, atol=1e-4
    )
    unit = np.array([1e-6, 3.0, 1e5])
    scaled = clf.fit(X * unit, y, X_std=errors * unit)
    np.testing.assert_allclose(scaled.predict_proba(X * unit, X_std=errors * unit), p, atol=1e-4)


def test_order_of_rows_does_not_matter_to_the_choice():
    rng = np.random.default_rng(6)
    X, errors, y = draw(120, rng)
    first = ClassPopulations(max_components=1, random_state=0).fit(X, y, X_std=errors)
    rows = rng.permutation(120)
    other = ClassPopulations(max_components=1, random_state=0)
    other.fit(X[rows], y[rows], X_std=errors[rows])
    np.testing.assert_allclose(
        other.cv_results_["log_loss"], first.cv_results_["log_loss"], rtol=1e-6
    )


def test_the_table_of_the_choice_is_of_rows_that_were_left_out():
    X, errors, y = draw(60, np.random.default_rng(7))
    groups = np.arange(60) % 6
    clf = ClassPopulations(1, cv=6, random_state=0).fit(X, y, X_std=errors, groups=groups)
    losses = np.empty((2, 60))
    for g in range(6):
        train, test = groups != g, groups == g
        for i, tied in enumerate([True, False]):
            own = ClassPopulations(1, tied=tied, tol=1e-9)
            own.fit(X[train], y[train], X_std=errors[train])
            p = own.predict_proba(X[test], X_std=errors[test])
            losses[i, test] = -np.log(p[np.arange(10), y[test]])
    np.testing.assert_allclose(clf.cv_results_["log_loss"], losses.mean(axis=1), rtol=0.02)
    np.testing.assert_array_equal(clf.cv_results_["tied"], [True, False])
    assert clf.tied_ == bool(clf.cv_results_["tied"][clf.cv_results_["chosen"]])
    pairs = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(6)]
    other = ClassPopulations(1, cv=pairs).fit(X, y, X_std=errors)
    np.testing.assert_allclose(other.cv_results_["log_loss"], clf.cv_results_["log_loss"])


@pytest.mark.parametrize("few", [1, 2])
def test_a_class_of_few_rows_borrows_the_common_covariance(few):
    X, errors, y = draw(60, np.random.default_rng(8))
    rows = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:few]])
    for settings in ({}, {"n_components": 2, "tied": False}):
        clf = ClassPopulations(random_state=0, **settings).fit(X[rows], y[rows], X_std=errors[rows])
        p = clf.predict_proba(X, X_std=errors)
        assert np.isfinite(p).all()
    own = ClassPopulations(1, tied=False).fit(X[rows], y[rows], X_std=errors[rows])
    variances = [np.diag(each.covariances_[0]) for each in own.populations_]
    assert (variances[1] > 0.3 * variances[0]).all()


def test_a_class_with_a_constant_feature_is_fitted():
    X, _, y = draw(80, np.random.default_rng(9))
    X[y == 1, 0] = 3.0
    for tied in (True, False):
        clf = ClassPopulations(1, tied=tied).fit(X, y)
        assert np.isfinite(clf.predict_log_proba(X)).all()
        assert clf.score(X, y) > 0.9
    with pytest.raises(ValueError, match="reg_covar is too small"):
        ClassPopulations(1, tied=False, reg_covar=0).fit(X, y)


def test_rows_however_far_away_have_probabilities():
    X, errors, y = draw(90, np.random.default_rng(10), n_classes=3)
    unit = 1e-8
    clf = ClassPopulations(1, tied=False).fit(X * unit, y, X_std=errors * unit)
    far = np.array([1.0, -2.0, 0.5])
    X_std = np.full((4, 3), unit)
    rows = far * np.array([1e3, 1e60, 1e140, 1e149])[:, np.newaxis]
    p = clf.predict_proba(rows, X_std=X_std)
    assert np.isfinite(clf.log_odds(rows, X_std=X_std)).all()
    np.testing.assert_allclose(p, np.tile(p[0], (4, 1)), atol=1e-12)


def test_draws_have_the_moments_of_the_populations():
    X, errors, y = draw(200, np.random.default_rng(11))
    labels = np.array(["no", "yes"])[y]
    clf = ClassPopulations(1, priors=[0.3, 0.7], random_state=0).fit(X, labels, X_std=errors)
    values, drawn = clf.sample(20000)
    assert np.mean(drawn == "yes") == pytest.approx(0.7, abs=0.015)
    for label, (_, m, V) in zip(clf.classes_, populations_of(clf), strict=True):
        mine = values[drawn == label]
        spread = np.sqrt(np.diag(V[0]) / len(mine))
        assert (np.abs(mine.mean(axis=0) - m[0]) < 5 * spread).all()


def test_priors_shift_the_log_odds():
    X, errors, y = draw(100, np.random.default_rng(12))
    plain = ClassPopulations(1, tied=True).fit(X, y, X_std=errors)
    given = ClassPopulations(1, tied=True, priors=[0.9, 0.1]).fit(X, y, X_std=errors)
    shift = np.log(1 / 9) - np.log(plain.priors_[1] / plain.priors_[0])
    np.testing.assert_allclose(
        given.log_odds(X, X_std=errors), plain.log_odds(X, X_std=errors) + shift, atol=1e-12
    )


def test_more_rows_than_choose_end_where_all_rows_lead(monkeypatch):
    X, errors, y = draw(500, np.random.default_rng(13))
    whole = ClassPopulations(1, tied=False, tol=1e-10).fit(X, y, X_std=errors)
    monkeypatch.setattr("halosvm.population.class_fitting.ROWS_OF_CHOICE", 100)
    monkeypatch.setattr("halosvm.population.class_fitting._LEAST_OF_CLASS", 30)
    by_part = ClassPopulations(1, tied=False, tol=1e-10, random_state=0).fit(X, y, X_std=errors)
    # What the classes borrow is found from the part.
    np.testing.assert_allclose(
        by_part.predict_proba(X, X_std=errors), whole.predict_proba(X, X_std=errors), atol=0.03
    )


def test_errors_in_the_fit_and_none_in_predict_are_warned_of():
    X, errors, y = draw(60, np.random.default_rng(14))
    clf = ClassPopulations(1, tied=True).fit(X, y, X_std=errors)
    with pytest.warns(ErrorsLeftOutWarning):
        clf.predict(X)
    clf.predict(X, X_std=np.zeros(60))
    clf.predict(Gaussians(X))


def test_files_pickles_and_gaussians_give_the_same(tmp_path):
    X, errors, y = draw(60, np.random.default_rng(15))
    measured = Gaussians(X, std=errors)
    clf = ClassPopulations(2, random_state=0).fit(measured, y)
    p = clf.predict_proba(X, X_std=errors)
    np.testing.assert_array_equal(clf.predict_proba(measured), p)
    save_model(clf, tmp_path / "model.json")
    for other in (pickle.loads(pickle.dumps(clf)), load_model(tmp_path / "model.json")):
        np.testing.assert_array_equal(other.predict_proba(measured), p)
        assert other.populations_[0].with_errors_


def test_frames_bring_names_and_errors():
    pd = pytest.importorskip("pandas")
    X, errors, y = draw(60, np.random.default_rng(16))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = ClassPopulations(1, tied=True).fit(
        frame, y, X_std=pd.DataFrame(errors, columns=frame.columns)
    )
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    assert clf.populations_[0].feature_names_in_.tolist() == ["a", "b", "c"]
    swapped = frame[["b", "a", "c"]]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(swapped, X_std=errors)


def test_errors_and_groups_are_routed():
    X, errors, y = draw(90, np.random.default_rng(19))
    groups = np.arange(90) % 9
    clf = ClassPopulations(1, random_state=0)
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(
            clf, X, y, cv=GroupKFold(3), params={"X_std": errors, "groups": groups}
        )
    right = []
    for train, test in GroupKFold(3).split(X, y, groups):
        clf.fit(X[train], y[train], X_std=errors[train], groups=groups[train])
        right.append(clf.score(X[test], y[test], X_std=errors[test]))
    np.testing.assert_array_equal(found, right)


def test_columns_that_tell_nothing_are_warned_of():
    X, errors, y = draw(40, np.random.default_rng(20))
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="column 1 has no value"):
        clf = ClassPopulations(1, tied=False).fit(X, y, X_std=errors)
    rest = ClassPopulations(1, tied=False, reg_covar=3).fit(X[:, ::2], y, X_std=errors[:, ::2])
    np.testing.assert_allclose(
        clf.predict_proba(X, X_std=errors),
        rest.predict_proba(X[:, ::2], X_std=errors[:, ::2]),
        atol=1e-4,
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": "bic"}, "n_components is 'bic'"),
        ({"n_components": 0}, "n_components"),
        ({"tied": "yes"}, "tied is 'yes'"),
        ({"covariance": "round"}, "covariance"),
        ({"priors": [0.5, 0.6]}, "priors sum to 1.1"),
        ({"priors": [1.0, 0.0]}, "priors: that of class 1 is 0"),
        ({"cv": 1}, "cv"),
        ({"reg_covar": -1.0}, "reg_covar"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    X, errors, y = draw(30, np.random.default_rng(17))
    with pytest.raises((ValueError, TypeError), match=message):
        ClassPopulations(**parameters).fit(X, y, X_std=errors)


def test_data_that_make_no_sense_are_refused():
    X, errors, y = draw(30, np.random.default_rng(18))
    with pytest.raises(ValueError, match="one class"):
        ClassPopulations().fit(X, np.zeros(30), X_std=errors)
    with pytest.raises(ValueError, match="sample_weight is 0 for all examples of class 1"):
        ClassPopulations().fit(X, y, X_std=errors, sample_weight=(y == 0).astype(float))
    with pytest.raises(ValueError, match="groups has shape"):
        ClassPopulations().fit(X, y, X_std=errors, groups=[1, 2])
    with pytest.raises(ValueError, match="class 1 has no rows where a part, or a group"):
        ClassPopulations(random_state=0).fit(X, y, X_std=errors, groups=y)
    covariances = Covariances.diagonal(errors[:20] ** 2)
    with pytest.raises(ValueError, match="X_cov"):
        ClassPopulations().fit(X, y, X_cov=covariances)
