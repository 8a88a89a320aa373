"""Parameters of estimators as a model file can hold them.

A file holds data and no code. What an estimator was given to be fitted with, and no prediction
needs, may be anything: arrays become lists, splitters and scorers are left out with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hikernel.bases import Basis
from hikernel.estimators.validation import outside_level
from hikernel.losses import Loss
from hikernel.persistence.content import ContentError, shown

__all__ = ["check_params", "kept_params"]

_SCALARS: tuple[type, ...] = (str, int, float, np.generic, type(None))
_KINDS: dict[str, tuple[type, ...]] = {"loss": (str, Loss), "basis": (str, Basis)}
_MAPPINGS = ("basis", "class_weight")
_LISTS = ("alphas", "categorical")
_FOR_FITS_ALONE = (*_LISTS, "cv", "scoring")
"""Parameters that a file may leave out: what they did is in the fitted model."""

_NEVER_KEPT = "graph"
"""A parameter that no file has: models of a graph of kernels are not saved."""


def kept_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that go into its file.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV
        Fitted.

    Returns
    -------
    dict of str to object
        All parameters: arrays as lists, and for splitters and scorers the default.

    Raises
    ------
    ValueError
        For a random generator.

    Warns
    -----
    UserWarning
        For every parameter that is not kept.
    """
    params: dict[str, Any] = estimator.get_params(deep=False)
    params.pop(_NEVER_KEPT)
    params["random_state"] = _seed(params["random_state"])
    for name in _LISTS:
        if name in params:
            params[name] = _as_list(params[name])
    defaults = type(estimator)().get_params(deep=False)
    for name in _FOR_FITS_ALONE:
        if name in params and not _can_be_kept(name, params[name]):
            _warn_of_loss(name, params[name], defaults[name])
            params[name] = defaults[name]
    return params


def check_params(cls: type[Any], params: Mapping[str, Any]) -> None:
    """Raise unless these are the parameters of an estimator, of types that a file may hold."""
    expected = set(cls._get_param_names()) - {_NEVER_KEPT}
    if set(params) != expected:
        wrong = sorted(set(params) ^ expected)
        raise ContentError(f"the parameters of {cls.__name__} are wrong: {shown(wrong)}")
    for name, value in params.items():
        if not _can_be_kept(name, value):
            raise ContentError(f"the parameter {name} is {shown(value)}")


def _can_be_kept(name: str, value: object) -> bool:
    parts = [value]
    if isinstance(value, Mapping) and name in _MAPPINGS:
        parts = list(value.values())
    elif isinstance(value, (list, tuple)) and name in _LISTS:
        parts = list(value)
    return all(isinstance(part, _KINDS.get(name, _SCALARS)) for part in parts)


def _as_list(value: Any) -> Any:
    """Return an array, an index or a set as a list; anything else as it is."""
    if isinstance(value, (str, bytes, list, tuple, Mapping, Iterator)):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)  # equal models give equal files
    return list(value) if isinstance(value, Iterable) else value


def _warn_of_loss(name: str, value: object, default: object) -> None:
    text = shown(value)
    warnings.warn(
        f"{name}={' '.join(text.split())} is not kept in the file; the loaded model predicts the "
        f"same, and would be fitted again with {name}={default!r}.",
        UserWarning,
        stacklevel=outside_level(),
    )


def _seed(random_state: object) -> object:
    """Return a random state that a file can hold: a number or None."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return random_state
    raise ValueError(
        f"random_state is {shown(random_state)}, a generator in use, which a model file cannot "
        "hold; call estimator.set_params(random_state=0) first (the fitted model does not depend "
        "on it), or use pickle."
    )
