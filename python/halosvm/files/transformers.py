"""Transformers of scikit-learn that model files can hold: what is kept of the fit of each.

Only those that are numbers once they are fitted; functions are NumPy's of one array, by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from halosvm.files.parts import Number, Numbers, OrNone, Part

_EACH = Numbers("features")
_SCALE = Numbers("features", least=float(np.finfo(np.float32).tiny))
_COMPONENTS = Numbers("components", "features")
_OF_COMPONENTS = Numbers("components", least=0.0)

_ENTRIES: tuple[tuple[type[Any], dict[str, Part], tuple[str, ...]], ...] = (
    (
        StandardScaler,
        {"mean_": OrNone(_EACH), "var_": OrNone(_EACH), "scale_": OrNone(_SCALE)},
        ("n_samples_seen_",),
    ),
    (
        MinMaxScaler,
        {
            "scale_": _SCALE,
            "min_": _EACH,
            "data_min_": _EACH,
            "data_max_": _EACH,
            "data_range_": _EACH,
        },
        ("n_samples_seen_",),
    ),
    (MaxAbsScaler, {"scale_": _SCALE, "max_abs_": _EACH}, ("n_samples_seen_",)),
    (RobustScaler, {"center_": OrNone(_EACH), "scale_": OrNone(_SCALE)}, ()),
    (
        PCA,
        {
            "components_": _COMPONENTS,
            "mean_": _EACH,
            "explained_variance_": _OF_COMPONENTS,
            "explained_variance_ratio_": _OF_COMPONENTS,
            "singular_values_": _OF_COMPONENTS,
            "noise_variance_": Number(),
        },
        ("n_components_", "n_samples_"),
    ),
    (
        TruncatedSVD,
        {
            "components_": _COMPONENTS,
            "explained_variance_": _OF_COMPONENTS,
            "explained_variance_ratio_": _OF_COMPONENTS,
            "singular_values_": _OF_COMPONENTS,
        },
        (),
    ),
    (VarianceThreshold, {"variances_": Numbers("features", least=0.0)}, ()),
    (FunctionTransformer, {}, ()),
)

TRANSFORMERS = {kind.__name__: (kind, parts, measures) for kind, parts, measures in _ENTRIES}
