"""The judge of the campaign: its numbers are those of others, and lies are found out."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from campaign.generator import KINDS, make
from campaign.judge import judge, minimise
from campaign.newton import Smoothed
from campaign.normal import LD, cdf, expected_hinge
from campaign.problem import Problem, from_fraction, to_fraction
from campaign.runner import run
from sklearn.svm import SVC


def as_mpf(value):
    """Return a longdouble, or a sum of two doubles, as a number of any precision."""
    fraction = to_fraction(LD(value))
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def best_model(problem, relative=1e-12):
    """Return the least J found, the greatest bound of it from below, and (w, b) in doubles."""
    smoothed, best = Smoothed(problem), {"value": LD(np.inf), "bound": LD(0)}

    def done(u, value, bound):
        if value < best["value"]:
            best.update(u=u, value=value)
        best["bound"] = max(best["bound"], bound)
        return best["bound"] * (1 + LD(relative)) >= best["value"]

    minimise(smoothed, done)
    w, b = problem.round_to_model(best["u"][:-1] / smoothed.unit, best["u"][-1])
    return best["value"], best["bound"], w, b if problem.fit_intercept else 0.0


def test_rationals_of_longdoubles_are_exact_and_round_trip():
    value = LD(1) / 3 + LD(2.0**-60)

    assert to_fraction(LD(0.1) + LD(2.0**-62)) == Fraction(0.1) + Fraction(1, 2**62)
    assert from_fraction(to_fraction(value)) == value


def test_normal_distribution_and_expected_hinge_have_the_digits_of_longdoubles():
    z = np.linspace(-14, 14, 293).astype(LD) + LD(1) / 7
    with mpmath.workdps(40):
        for one, share, loss in zip(z, cdf(z), expected_hinge(z, np.ones_like(z)), strict=True):
            x = as_mpf(one)
            true_loss = x * mpmath.ncdf(x) + mpmath.npdf(x)
            assert abs(as_mpf(share) - mpmath.ncdf(x)) < 2e-19
            assert abs(as_mpf(loss) - true_loss) < min(1e-17 * max(1, true_loss), true_loss)
            assert abs(as_mpf(loss) / true_loss - 1) < (2e-12 if one < -5 else 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_objective_equals_that_in_forty_digits(kind):
    case = make(kind, 3)
    problem, rng = case.problem, np.random.default_rng(0)
    w = rng.normal(size=len(problem.centre)) / np.sqrt(problem.c @ problem.side**2 + 1e-30)
    w = w.astype(np.float64)
    b = float(0.3 - w @ problem.centre)
    with mpmath.workdps(40):
        total = as_mpf(problem.lam) / 2 * mpmath.fsum(mpmath.mpf(v) ** 2 for v in w)
        for i, c in enumerate(problem.c):
            x = [mpmath.mpf(float(v)) for v in problem.X[i]]
            m = 1 - int(problem.y[i]) * (mpmath.fdot(x, w) + b)
            rows = [[as_mpf(v) for v in row] for row in problem.F[i]]
            variance = mpmath.fsum(mpmath.fdot(row, w) ** 2 for row in rows)
            variance += mpmath.fsum(
                as_mpf(v) * mpmath.mpf(a) ** 2 for v, a in zip(problem.V[i], w, strict=True)
            )
            s = mpmath.sqrt(variance)
            loss = m * mpmath.ncdf(m / s) + s * mpmath.npdf(m / s) if s else max(m, 0)
            total += as_mpf(c) * loss

    value, rounding = problem.objective(w, b)

    assert abs(as_mpf(value) / total - 1) < 1e-15
    assert rounding >= 0


@pytest.mark.parametrize("seed", range(20))
def test_optimum_of_certain_data_is_that_of_libsvm_and_of_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n, d, C = int(rng.integers(6, 30)), int(rng.integers(1, 6)), float(10 ** rng.uniform(-2, 1))
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    X[:, 0] += y
    problem = Problem(X, y, C)
    libsvm = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)

    value, bound, w, b = best_model(problem)
    theirs, _ = problem.objective(libsvm.coef_[0], libsvm.intercept_[0])

    assert bound * (1 - LD(1e-15)) <= value <= bound * (1 + LD(1e-12))
    assert bound * (1 - LD(1e-15)) <= theirs <= value * (1 + 1e-6)  # it has kernels in float32
    beta = problem.centred_intercept(w, b)
    exact = problem.exact_hinge_objective(w.astype(LD), beta)
    assert float(exact / to_fraction(problem.objective(w, b)[0]) - 1) == pytest.approx(0, abs=1e-16)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_from_below_meet_the_least_value(kind):
    for seed in range(5):
        value, bound, *_ = best_model(make(kind, seed).problem, relative=1e-9)
        assert 0 <= value / bound - 1 + LD(1e-15) <= 2e-9


@pytest.mark.parametrize("kind", KINDS)
def test_lies_are_found_out_and_truths_believed(kind):
    problem = make(kind, 5).problem
    _, bound, w, b = best_model(problem, relative=1e-10)
    value, rounding = problem.objective(w, b)
    gap = float(value / bound - 1) + 1e-10
    unknown = float(rounding / value)

    truth = judge(problem, w, b, float(value), gap)
    assert (truth.certificate, truth.objective_true) == ("true", True)

    worse, unknown_worse = problem.objective(w, b + 0.1)
    lie = float((worse - 2 * unknown_worse) / bound) * (1 - 1e-5) - 1
    assert judge(problem, w, b + 0.1, float(worse), lie).certificate == "false"

    wrong = float(value) * (1 + 1e-8 + 4 * unknown) + 2 * float(problem.margin_rounding(w, b))
    assert not judge(problem, w, b, wrong, gap + 1e-7).objective_true


def test_reduced_problem_has_the_same_minimum():
    rng = np.random.default_rng(2)
    X, V = rng.normal(size=(12, 40)), np.zeros((12, 40))
    V[:, :3] = 0.1
    problem = Problem(X, np.arange(12) % 2, 10.0, V=V)
    reduced = problem.reduced()

    assert reduced.side.shape[1] < 20
    value, bound, *_ = best_model(problem)
    other, *_ = best_model(reduced)
    assert bound * (1 - LD(1e-15)) <= other <= value * (1 + LD(1e-12))


@pytest.mark.parametrize("kind", KINDS)
def test_cases_are_the_same_each_time_and_the_fit_sees_what_the_judge_sees(kind):
    first, again = make(kind, 11), make(kind, 11)
    records = [run(case) for case in (first, again)]

    assert not records[0].error
    assert records[0].verdict == records[1].verdict
    assert records[0].suboptimality == records[1].suboptimality
