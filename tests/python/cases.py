"""Many small cases of one property in one test: to pytest, a test costs more than such a case.

`each` is used like `pytest.mark.parametrize`; a failure tells its case in a note. Stacked, it goes
through all combinations, or, below `in_pairs`, through some of them in which any two values of two
arguments meet.
"""

import functools
import inspect
import itertools

import numpy as np
import pytest

# Ways to store covariances; those of VARIANTS only differ from others in how they are given.
COVARIANCE_KINDS = (
    "zero",
    "isotropic",
    "isotropic_std",
    "diagonal",
    "diagonal_std",
    "half_certain",
    "low_rank",
    "low_rank_diagonal",
    "ragged",
    "ragged_diagonal",
    "full",
    "sparse_diagonal",
    "sparse_std",
    "columns_diagonal",
    "columns_low_rank",
    "columns_full",
)
VARIANTS = ("sparse_std", "columns_diagonal", "columns_full")
KINDS = tuple(kind for kind in COVARIANCE_KINDS if kind not in VARIANTS)
DTYPES = (np.float64, np.float32)  # that the core reads in place


def _covering(sizes):
    """Return tuples of places in sets of these sizes, in which any two places of two sets meet."""
    whole = range(len(sizes))
    left = {
        frozenset({(a, i), (b, j)}): None
        for a, b in itertools.combinations(sorted(whole, key=lambda k: -sizes[k]), 2)
        for i, j in itertools.product(range(sizes[a]), range(sizes[b]))
    }
    while left:
        case = dict(next(iter(left)))
        for k in whole:
            if k not in case:
                news = [
                    sum(frozenset({(k, v), other}) in left for other in case.items())
                    for v in range(sizes[k])
                ]
                case[k] = news.index(max(news))
        for pair in itertools.combinations(case.items(), 2):
            left.pop(frozenset(pair), None)
        yield tuple(case[k] for k in whole)


def _over(test, sets, covering=False):
    names = [name.strip() for names, _ in sets for name in names.split(",")]
    values = [list(some) for _, some in sets]
    if covering:
        places = _covering([len(some) for some in values])
        cases = [[v[i] for v, i in zip(values, some, strict=True)] for some in places]
    else:
        cases = list(itertools.product(*values))

    @functools.wraps(test)
    def run(**fixtures):
        skipped = []
        for case in cases:
            parts = (v if "," in some else (v,) for (some, _), v in zip(sets, case, strict=True))
            arguments = dict(zip(names, itertools.chain.from_iterable(parts), strict=True))
            try:
                run.body(**fixtures, **arguments)
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except BaseException as error:
                error.add_note(f"in the case {arguments}")
                raise
        if len(skipped) == len(cases):
            raise skipped[0]

    run.body = getattr(test, "body", test)
    run.sets = sets
    signature = inspect.signature(run.body)
    left = [p for name, p in signature.parameters.items() if name not in names]
    run.__signature__ = signature.replace(parameters=left)
    return run


def each(names, values):
    """Run a test for each of the values, of one argument or, as tuples, of several."""
    return lambda test: _over(test, [(names, values), *getattr(test, "sets", [])])


def in_pairs(test):
    """Run a test for so many combinations of the values below that any two of them meet."""
    assert len(test.sets) > 2, "of two sets, those are all combinations"
    return _over(test, test.sets, covering=True)
