"""hikernel: sparse, readable, provably optimal nonlinear models by hierarchical kernel learning.

Public names are imported on first use, so ``import hikernel`` itself is fast.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hikernel._version import __version__

if TYPE_CHECKING:
    from hikernel.estimators import (
        HKLClassifier,
        HKLClassifierCV,
        HKLRegressor,
        HKLRegressorCV,
        HKLSurvival,
        HKLSurvivalCV,
        bootstrap,
        hkl_path,
        stability_selection,
    )
    from hikernel.estimators.saving import load

__all__ = [
    "HKLClassifier",
    "HKLClassifierCV",
    "HKLRegressor",
    "HKLRegressorCV",
    "HKLSurvival",
    "HKLSurvivalCV",
    "__version__",
    "bootstrap",
    "hkl_path",
    "load",
    "stability_selection",
]

# The package logs its stages and writes nothing itself, until a user asks for it.
logging.getLogger("hikernel").addHandler(logging.NullHandler())

_HOMES = {"load": "hikernel.estimators.saving"} | dict.fromkeys(
    [
        "HKLClassifier",
        "HKLClassifierCV",
        "HKLRegressor",
        "HKLRegressorCV",
        "HKLSurvival",
        "HKLSurvivalCV",
        "bootstrap",
        "hkl_path",
        "stability_selection",
    ],
    "hikernel.estimators",
)

_MODULES = (
    "bases",
    "consistency",
    "datasets",
    "engines",
    "errors",
    "export",
    "graphs",
    "losses",
    "plots",
)
"""Public modules, available as attributes of the package."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hikernel.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'hikernel' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
