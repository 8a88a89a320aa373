"""Small fitted models of every kind that a file can hold."""

from __future__ import annotations

import functools
import os
import tempfile
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from persistence.files import bytes_of

import hikernel
from hikernel import losses

__all__ = ["MODELS", "saved"]

_RNG = np.random.default_rng(0)
_X = _RNG.uniform(-1.0, 1.0, (40, 3))
_Y = _X[:, 0] + _X[:, 0] * _X[:, 1] + 0.1 * _RNG.standard_normal(40)
_LABELS = np.array(["low", "middle", "high"], dtype=object)[np.digitize(_Y, [-0.3, 0.3])]
_FRAME = pd.DataFrame(
    {
        "größe": np.where(_RNG.random(40) < 0.1, np.nan, _X[:, 0]),
        "town": _RNG.choice(["Oslo", "東京", "x"], 40),
        "day": pd.date_range("2020-01-01", periods=40, freq="9D"),
        "grade": pd.Categorical(_RNG.choice(["a", "b", "c"], 40), ["a", "b", "c"], ordered=True),
    }
)
_SPARSE = sp.csr_array(np.where(_RNG.random((40, 3)) < 0.6, 0.0, _X))
_TIMES = np.column_stack([np.exp(_Y), _RNG.random(40) < 0.7])
_SMALL = {"certify": "none", "max_kernels": 20}


def _regressor(X=_X, y=_Y, **parameters):
    return hikernel.HKLRegressor(0.01, **_SMALL, **parameters).fit(X, y), X


def _calibrated():
    model, X = _regressor(refit="ridge")
    return model.calibrate(X, _Y), X


def _classifier(y=_LABELS, **parameters):
    return hikernel.HKLClassifier(0.03, **_SMALL, **parameters).fit(_X, y), _X


def _cross_validated():
    return hikernel.HKLRegressorCV(cv=2, n_alphas=3, **_SMALL).fit(_FRAME, _Y), _FRAME


MODELS = {
    "numbers": _regressor,
    "rank": lambda: _regressor(basis="rank"),
    "hermite": lambda: _regressor(basis="hermite"),
    "gaussian": lambda: _regressor(basis="gaussian"),
    "spline": lambda: _regressor(basis="spline"),
    "kernel_pca": lambda: _regressor(basis="kernel_pca"),
    "anova": lambda: _regressor(basis="anova"),
    "steps": lambda: _regressor(basis="auto+steps"),
    "variables": lambda: _regressor(refit="variables", degree=2),
    "monotone": lambda: _regressor(monotone={0: 1}, refit="ridge"),
    "interactions": lambda: _regressor(interactions=[(0, 1)]),
    "frame": lambda: _regressor(_FRAME),
    "sparse": lambda: _regressor(_SPARSE, max_order=2, basis="orthonormal"),
    "tweedie": lambda: _regressor(y=np.exp(_Y), loss=losses.Tweedie(1.3)),
    "calibrated": _calibrated,
    "labels": _classifier,
    "two labels": lambda: _classifier(_Y > 0.0, loss="squared_hinge"),
    "cross-validated": _cross_validated,
    "survival": lambda: (hikernel.HKLSurvival(0.01, **_SMALL).fit(_X, _TIMES), _X),
}


@functools.cache
def saved(name):
    """Return a model as it is loaded, the bytes of its file, and three rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, X = MODELS[name]()
        data = bytes_of(model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.hik")
        with open(path, "wb") as stream:
            stream.write(data)
        # What loading imports is imported here, before it is watched.
        return hikernel.load(path), data, X[:3]
