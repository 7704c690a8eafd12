"""scikit-learn's own tests of sparse data for LinearSVC and SGDClassifier, with the class swapped.

They are imported from the installed wheel and run as they are. Left out are those of parameters and
methods that `UncertainSVC` does not have, sparsify, intercept_scaling, penalty="l1", coef_init and
predict_proba, and of partial_fit, which takes other steps; and test_class_weights and
test_sample_weights, which ask for the side of a point that the optimum, w = (-1, -0.2), has exactly
on its boundary.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model.tests import test_sgd as of_sgd
from sklearn.svm.tests import test_sparse as of_svm
from sklearn.utils.fixes import CSR_CONTAINERS, DOK_CONTAINERS, LIL_CONTAINERS

from halosvm import UncertainSVC

LOSSES = {
    "hinge": "hinge",
    "squared_hinge": "expected_squared_hinge",
    "log_loss": "expected_logistic",
    "modified_huber": "expected_huber_hinge",
}


class AsLinearSVC(UncertainSVC):
    """UncertainSVC with the losses and defaults of LinearSVC, whose coefficients are dense."""

    def __init__(self, *, class_weight=None, random_state=None):
        super().__init__(
            loss="expected_squared_hinge", class_weight=class_weight, random_state=random_state
        )

    def sparsify(self):
        """Leave the coefficients as they are."""
        return self


class AsSGDClassifier(UncertainSVC):
    """UncertainSVC with the parameters of SGDClassifier; all that it is given becomes sparse."""

    def __init__(
        self,
        *,
        loss="hinge",
        penalty="l2",
        alpha=1e-4,
        fit_intercept=True,
        max_iter=1000,
        shuffle=True,
        class_weight=None,
        random_state=None,
        n_jobs=None,
    ):
        super().__init__(
            loss=loss,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            class_weight=class_weight,
            random_state=random_state,
        )
        self.penalty, self.alpha, self.shuffle, self.n_jobs = penalty, alpha, shuffle, n_jobs

    def fit(self, X, y, sample_weight=None):
        # sum_i c_i loss_i / n + alpha / 2 |w|^2, whatever the weights add up to
        machine = UncertainSVC(
            C=1.0 / (self.alpha * np.shape(X)[0]),
            loss=LOSSES[self.loss],
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(sparse.csr_array(X), y, sample_weight=sample_weight)
        for name in ("coef_", "intercept_", "classes_", "n_features_in_", "n_iter_"):
            setattr(self, name, getattr(machine, name))
        return self

    def decision_function(self, X, **errors):
        return super().decision_function(sparse.csr_array(X), **errors)


@pytest.fixture(autouse=True)
def swapped(monkeypatch):
    """Let scikit-learn's tests find the other class."""
    monkeypatch.setattr(svm, "LinearSVC", AsLinearSVC)


# It ends where it cannot be certified that rounding has left more digits; scikit-learn's tests take
# data as they come.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(
    ("lil", "dok"), zip(LIL_CONTAINERS, DOK_CONTAINERS, strict=True), ids=("matrix", "array")
)
def test_linear_svc(lil, dok):
    of_svm.test_linearsvc(lil, dok)


@pytest.mark.parametrize("csr", CSR_CONTAINERS)
@pytest.mark.parametrize("name", ["test_linearsvc_iris", "test_weight"])
def test_linear_svc_in_csr(name, csr):
    getattr(of_svm, name)(csr)


@pytest.mark.parametrize(
    "name",
    [
        "test_input_format",
        "test_clone",
        "test_sgd_clf",
        "test_sgd_at_least_two_labels",
        "test_sgd_multiclass",
        "test_sgd_multiclass_njobs",
        "test_equal_class_weight",
        "test_wrong_class_weight_label",
        "test_weights_multiplied",
        "test_balanced_weight",
        "test_multiple_fit",
    ],
)
def test_sgd_classifier(name):
    getattr(of_sgd, name)(AsSGDClassifier)
