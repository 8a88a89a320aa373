"""Which parameters of an estimator a model file keeps, and in which form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hikernel.bases import Basis
from hikernel.checks import outside_level
from hikernel.columns.interactions import check_interactions
from hikernel.engines import is_engine_name
from hikernel.losses import Loss
from hikernel.persistence.content import ContentError, shown

__all__ = ["check_parameters", "kept_parameters"]

_SCALARS: tuple[type, ...] = (str, int, float, np.generic, type(None))
_KINDS: dict[str, tuple[type, ...]] = {"loss": (str, Loss), "basis": (str, Basis)}
_MAPPINGS = ("basis", "class_weight", "monotone", "ordered")
_LISTS = ("alphas", "categorical", "ordered")
_FOR_FITS_ALONE = (*_LISTS, "cv", "scoring")
"""Parameters that a file may leave out, because a fitted model no longer needs them."""
_NEVER_KEPT = "graph"
"""Parameter that is never in a file: models with a graph of their own cannot be saved."""

_LATER = {"max_memory": None, "proof_effort": 1.0}
"""Parameters that came after the format, with their defaults: in a file only where they differ."""


def kept_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters for a file: arrays as lists, splitters and scorers as defaults."""
    params: dict[str, Any] = estimator.get_params(deep=False)
    if params.pop(_NEVER_KEPT) is not None:
        raise ValueError(
            "This model has a graph of its own (graph=), which a file without pickle cannot hold; "
            "use pickle or joblib, or keep hull_, coef_ and intercept_."
        )
    params["random_state"] = _seed(params["random_state"])
    params |= {name: _as_list(params[name]) for name in _LISTS if name in params}
    params["interactions"] = _as_groups(params["interactions"])
    defaults = type(estimator)().get_params(deep=False)
    for name in _FOR_FITS_ALONE:
        if name in params and not _can_be_kept(name, params[name]):
            _warn_not_kept(name, params[name], defaults[name])
            params[name] = defaults[name]
    return {
        name: value for name, value in params.items() if name not in _LATER or value != _LATER[name]
    }


def check_parameters(cls: type[Any], params: Mapping[str, Any]) -> None:
    """Raise unless ``params`` are the parameters of ``cls``, of types that a file may hold."""
    expected = set(cls._get_param_names()) - {_NEVER_KEPT}
    if set(params) | set(_LATER) != expected:
        wrong = sorted((set(params) | set(_LATER)) ^ expected)
        raise ContentError(f"the parameters of {cls.__name__} are wrong: {shown(wrong)}")
    for name, value in params.items():
        if not _can_be_kept(name, value):
            raise ContentError(f"the parameter {name} is {shown(value)}")
    if not is_engine_name(params["engine"]):
        engine = shown(params["engine"])
        raise ContentError(f"its engine {engine} is not in hikernel.engines.ENGINES; add it there")


def _can_be_kept(name: str, value: object) -> bool:
    parts: list[Any] = [value]
    if name == "interactions" and value is not None:
        try:
            rules = check_interactions(value)
        except (TypeError, ValueError):
            return False
        named = [column for groups in rules.values() for group in groups for column in group]
        parts = [one for key in named for one in (key if isinstance(key, tuple) else [key])]
    if isinstance(value, Mapping) and name in _MAPPINGS:
        parts = list(value.values())
    for kinds in ((list, tuple), (tuple,)) if name in _LISTS else ():  # a tuple names a column
        parts = [one for part in parts for one in (part if isinstance(part, kinds) else [part])]
    return all(isinstance(part, _KINDS.get(name, _SCALARS)) for part in parts)


def _as_list(value: Any) -> Any:
    """Return an array, an index or a set as a list; anything else as it is."""
    if isinstance(value, Mapping):
        return {key: _as_list(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (str, bytes, list, tuple, Iterator)):
        return value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)  # so that equal models give equal files
    return list(value) if isinstance(value, Iterable) else value


def _as_groups(value: Any) -> Any:
    """Return groups of columns with every set as a list."""
    if isinstance(value, Mapping):
        return {key: _as_groups(item) for key, item in value.items()}
    return value if value is None or isinstance(value, str) else [_as_list(g) for g in value]


def _warn_not_kept(name: str, value: object, default: object) -> None:
    warnings.warn(
        f"{name}={' '.join(shown(value).split())} is not kept in the file; the loaded model "
        f"predicts the same, and would be fitted again with {name}={default!r}.",
        UserWarning,
        stacklevel=outside_level(),
    )


def _seed(random_state: object) -> object:
    """Return ``random_state`` if it is an integer or None; raise otherwise."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return random_state
    raise ValueError(
        f"random_state is {shown(random_state)}, a generator in use, which a model file cannot "
        "hold; call estimator.set_params(random_state=0) first (the fitted model does not depend "
        "on it), or use pickle."
    )
