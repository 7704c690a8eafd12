"""Tests of scikit-learn that fail with a class of this package in its place, and why they may.

A test stands under the class that it is run with, by its file and the beginning of its name. One
that passes takes no place here: the run says so.
"""

import sklearn

# Parameters that the constructors do not have, in whichever test they are passed.
PARAMETERS = {
    "alpha": "the weight of the regulariser is 1 / (C n) here",
    "average": "averaging of the iterates has a parameter of its own name and meaning",
    "break_ties": "ties of votes are always broken, at no cost",
    "dual": "solvers choose for themselves between primal and dual",
    "early_stopping": "the fit ends by a certified bound of the objective, not by held-out scores",
    "eta0": "step sizes follow from lambda, as in Algorithm 1 of SVM-GSU",
    "l1_ratio": "the regulariser is |w|^2",
    "learning_rate": "as eta0",
    "multi_class": "classes are handled one against the rest",
    "n_jobs": "threads are told by n_threads",
    "power_t": "as eta0",
    "probability": "deprecated there too; CalibratedClassifierCV has probabilities",
    "random_state": "nothing in the dual solver is random",
    "shuffle": "mini-batches are always drawn at random",
}

_LOSS = "losses have names of their own: their expectation is taken"
_MESSAGE = "compares the words of a message, or the name of the class in it"
_NO_TOL = "tol=None, to run all passes, is 0 here"
_PARAMETER = "sets a parameter that does not exist here, after the constructor"
_PRIVATE = "looks at a private attribute"
_SPARSE = "kernel machines take dense examples alone, and say so"
_START = "models to start from come from warm_start, not from arguments of fit"

DESELECTED = {
    "LinearSVC": {
        "svm/tests/test_svm.py::test_linear_svm_convergence_warnings": _MESSAGE,
        "svm/tests/test_svm.py::test_linearsvm_liblinear_sample_weight": _PARAMETER,
        "tests/test_multioutput.py::test_multi_output_delegate_predict_proba": _MESSAGE,
        "tests/test_calibration.py::test_calibration_inconsistent_prefit_n_features_in": _MESSAGE,
    },
    "LinearSVR": {
        "svm/tests/test_svm.py::test_linear_svm_convergence_warnings": _MESSAGE,
        "svm/tests/test_svm.py::test_linearsvm_liblinear_sample_weight": _PARAMETER,
        "feature_selection/tests/test_rfe.py::test_rfe_wrapped_estimator[RFECV": (
            "wants the number of features that cross-validation finds best with liblinear, which "
            "regularises the intercept"
        ),
    },
    "SGDClassifier": {
        "linear_model/tests/test_sgd.py::test_partial_fit_weight_class_balanced": (
            "partial_fit is absent, rather than refused, where class_weight needs all examples"
        ),
        "linear_model/tests/test_sgd.py::test_fit_then_partial_fit": _NO_TOL,
        "tests/test_multioutput.py::test_multi_output_classification_partial_fit": _LOSS,
        "linear_model/tests/test_sgd.py::test_provide_coef": _START,
        "linear_model/tests/test_sgd.py::test_set_intercept_offset": _START,
        "linear_model/tests/test_sgd.py::test_set_intercept_to_intercept": _NO_TOL,
        "linear_model/tests/test_sgd.py::test_set_coef_multiclass": _START,
        "linear_model/tests/test_sgd.py::test_sgd_predict_proba_method_access": _PRIVATE,
        "linear_model/tests/test_sgd.py::test_tol_parameter": _NO_TOL,
        "linear_model/tests/test_sgd.py::test_sgd_random_state": (
            "wants two seeds to give two models, as the solver that is swapped in is not random"
        ),
        "linear_model/tests/test_sgd.py::test_sgd_verbose": _NO_TOL,
        "linear_model/tests/test_sgd.py::test_sgd_dtype_match": (
            "tol=None; besides, coefficients are float64 for float32 data, as those of LinearSVC"
        ),
        "tests/test_multioutput.py::test_hasattr_multi_output_predict_proba": _LOSS,
        "tests/test_multioutput.py::test_multi_output_predict_proba": _LOSS,
        "tests/test_calibration.py::"
        "test_calibrated_classifier_cv_works_with_large_confidence_scores": _LOSS,
        "model_selection/tests/test_search.py::test_stochastic_gradient_loss_param": _LOSS,
        "model_selection/tests/test_search.py::test_scalar_fit_param_compat": _PARAMETER,
        "model_selection/tests/test_validation.py::test_cross_val_predict_method_checking": _LOSS,
    },
    "SVC": {
        "svm/tests/test_svm.py::test_bad_input": _SPARSE,
        "svm/tests/test_svm.py::test_sparse_precomputed": _SPARSE,
        "ensemble/tests/test_bagging.py::test_sparse_classification": _SPARSE,
        "feature_selection/tests/test_rfe.py::test_rfe[": _SPARSE,
        "feature_selection/tests/test_rfe.py::test_rfecv[": _SPARSE,
        "model_selection/tests/test_validation.py::test_permutation_score": _SPARSE,
        "model_selection/tests/test_validation.py::test_cross_val_predict_sparse": _SPARSE,
        "svm/tests/test_svm.py::test_tweak_params": (
            "sets the private _dual_coef_; dual_coef_ itself can be set here"
        ),
        "svm/tests/test_svm.py::test_negative_sample_weights_mask_all_samples": _MESSAGE,
        "svm/tests/test_svm.py::test_negative_weights_svc_leave_just_one_label": _MESSAGE,
        "svm/tests/test_svm.py::test_svc_nonfinite_params": (
            "features of 1e307 are refused as such, before the fit rather than after it"
        ),
        "svm/tests/test_svm.py::test_unfitted": _MESSAGE,
        "svm/tests/test_svm.py::test_gamma_scale": _PRIVATE,
        "svm/tests/test_svm.py::test_custom_kernel_not_array_input": (
            "examples are Gaussians, which words are not"
        ),
        "svm/tests/test_svm.py::test_svc_raises_error_internal_representation": _PRIVATE,
        "svm/tests/test_svm.py::test_n_iter_libsvm": (
            "n_iter_ is one number here, the largest among the pairs of classes"
        ),
        "svm/tests/test_svm.py::test_svc_nusvc_probA_probB_deprecated": (
            "wants the warning of an attribute that is deprecated there and does not exist here"
        ),
    },
}

# Tests that are not run: what they ask of the class is asked by others.
SLOW = {
    "ensemble/tests/test_bagging.py::test_oob_score_classification": "1,200 fits of one kind",
    "ensemble/tests/test_bagging.py::test_parallel_classification": "processes, and many fits",
}

if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7):
    DESELECTED["SGDClassifier"] |= {
        "linear_model/tests/test_sgd.py::test_sgd_numerical_consistency": _NO_TOL
    }
