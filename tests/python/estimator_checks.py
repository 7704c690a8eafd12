"""scikit-learn's checks of estimators, all of one estimator in one test."""

import warnings

import sklearn
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

# scikit-learn 1.6 asks for more than the tags offer.
_OFTEN_FAIL = (
    {f"check_sample_weight_equivalence_on_{kind}_data": "1.6" for kind in ("dense", "sparse")}
    if parse_version(sklearn.__version__) < parse_version("1.7")
    else {}
)


def pass_checks(estimator, failing=None):
    """Fail unless an estimator passes all checks but those that are said to fail, with a reason."""
    failing = failing or {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, expected_failed_checks=_OFTEN_FAIL | failing)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed - set(_OFTEN_FAIL) == set(failing) - set(_OFTEN_FAIL)
