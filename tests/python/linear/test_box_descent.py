"""The search in a box, on functions that need no fits."""

import numpy as np

from halosvm.linear.box_descent import descend_in_box


def test_the_point_of_the_lowest_loss_is_returned_if_its_step_was_taken_back():
    """A loss that falls by less than its gradient says, as one of fits that are not exact."""
    seen = {}

    def evaluate(point):
        seen[point[0]] = 1.0 - 1e-7 * np.sqrt(abs(point[0] - 0.5))
        return seen[point[0]], np.array([-1.0])

    found = descend_in_box(evaluate, [np.array([0.5])], 10, 1e-9)
    assert found.losses[-1] == seen[found.point[0]] == min(seen.values()) < 1.0


def test_the_minimum_of_a_quadratic_in_the_box_is_found():
    centre = np.array([0.3, 1.4, -2.0])
    found = descend_in_box(
        lambda p: (float(np.sum((p - centre) ** 2)), 2 * (p - centre)), [np.full(3, 0.5)], 50, 0.0
    )
    np.testing.assert_allclose(found.point, [0.3, 1.0, 0.0], atol=1e-8)
    assert (np.diff(found.losses) <= 0).all()
