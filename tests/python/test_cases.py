"""Many cases in one test: none is left out, pairs of values meet, and a failure tells its case."""

import itertools

import pytest
from cases import each, in_pairs


def test_all_combinations_are_run_with_the_fixtures_of_the_test():
    seen = []

    @each("a, b", [(1, 2), (3, 4)])
    @each("c", "xy")
    def body(fixture, a, b, c):
        seen.append((fixture, a, b, c))

    body(fixture=0)
    assert sorted(seen) == [(0, 1, 2, "x"), (0, 1, 2, "y"), (0, 3, 4, "x"), (0, 3, 4, "y")]


def test_any_two_values_of_two_arguments_meet_in_few_cases():
    sizes, seen = (7, 5, 4, 2), []

    @in_pairs
    @each("a", range(sizes[0]))
    @each("b", range(sizes[1]))
    @each("c", range(sizes[2]))
    @each("d", range(sizes[3]))
    def body(a, b, c, d):
        seen.append((a, b, c, d))

    body()
    assert len(seen) < 50  # of 280
    for i, j in itertools.combinations(range(4), 2):
        assert {(case[i], case[j]) for case in seen} == set(
            itertools.product(range(sizes[i]), range(sizes[j]))
        )


def test_the_first_failure_tells_its_case():
    @each("a", [1, 2, 3])
    def body(a):
        assert a < 2

    with pytest.raises(AssertionError) as caught:
        body()
    assert caught.value.__notes__ == ["in the case {'a': 2}"]


@pytest.mark.parametrize(("last", "outcome"), [(2, pytest.skip.Exception), (3, AssertionError)])
def test_a_test_is_skipped_where_all_of_its_cases_are(last, outcome):
    @each("a", [1, last])
    def body(a):
        if a < 3:
            pytest.skip("too small")
        raise AssertionError

    with pytest.raises(outcome):
        body()
