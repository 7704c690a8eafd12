"""What left-out losses tell: means, and standard errors by textbook and by repeated rows."""

import numpy as np
import pytest

from halosvm.measurement.comparison import LeftOut

RNG = np.random.default_rng(0)
LOSSES = RNG.exponential(size=(2, 60))
TIMES = RNG.integers(0, 4, 60).astype(float)
ROWS = np.repeat(np.arange(60), TIMES.astype(int))


def test_the_standard_error_of_a_mean_is_the_textbook_s_widened_by_overlap():
    left_out = LeftOut(LOSSES, np.ones(60), None, 0.25)
    naive = np.std(LOSSES[0], ddof=1) / np.sqrt(60)
    assert left_out.error(LOSSES[0], widened=False) == pytest.approx(naive, rel=1e-12)
    # Nadeau and Bengio: the variance of a mean of n, 1 / n, becomes 1 / n + overlap / n.
    widened = left_out.error(LOSSES[0], widened=True)
    assert widened == pytest.approx(naive * np.sqrt(1.25), rel=1e-12)


@pytest.mark.parametrize("groups", [None, np.arange(60) // 5])
def test_whole_weights_are_repetitions_and_other_weights_have_no_unit(groups):
    weighted = LeftOut(LOSSES, TIMES, groups, 0.25)
    repeated = LeftOut(
        LOSSES[:, ROWS], np.ones(len(ROWS)), None if groups is None else groups[ROWS], 0.25
    )
    np.testing.assert_allclose(weighted.mean(), repeated.mean(), rtol=1e-12)
    np.testing.assert_allclose(weighted.difference(0, 1), repeated.difference(0, 1), rtol=1e-12)
    uneven = RNG.uniform(0.5, 2.0, 60)
    one, other = (LeftOut(LOSSES, unit * uneven, groups, 0.25) for unit in (1.0, 1e-6))
    np.testing.assert_allclose(one.difference(0, 1), other.difference(0, 1), rtol=1e-12)


def test_rows_of_a_group_tell_as_much_as_their_mean():
    groups = np.repeat(np.arange(12), 5)
    left_out = LeftOut(LOSSES, np.ones(60), groups, 0.0)
    means = LOSSES[0].reshape(12, 5).mean(axis=1)
    expected = np.std(means, ddof=1) / np.sqrt(12)
    assert left_out.error(LOSSES[0], widened=False) == pytest.approx(expected, rel=1e-12)
