"""Checks of the parameters of the baselines."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = ["check_basis", "check_count", "check_kernel", "check_positive"]


def check_positive(model: Any, name: str = "alpha", *, alphas: FloatArray | None = None) -> None:
    """Raise ValueError if a parameter, or one of the alphas of a path, is not positive."""
    value = getattr(model, name)
    if alphas is None:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a positive number, got {value!r}.")
        alphas = np.array([value], dtype=np.float64)
    if alphas.ndim != 1 or len(alphas) == 0:
        raise ValueError(f"alphas must be a list of positive numbers, got shape {alphas.shape}.")
    for one in alphas:
        if not (np.isfinite(one) and one > 0.0):
            raise ValueError(f"{name} must be a positive number, got {one:g}.")


def check_count(model: Any, name: str) -> None:
    """Raise ValueError if a parameter is not an integer of at least 1."""
    value = getattr(model, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}.")


def check_kernel(model: Any) -> None:
    """Raise ValueError if basis, share or decay do not define a kernel."""
    check_basis(model)
    if model.share is not None:
        check_positive(model, "share")
    check_positive(model, "decay")


def check_basis(model: Any) -> None:
    """Raise ValueError for basis="auto": the baselines use one basis for all columns."""
    if isinstance(model.basis, str) and model.basis == "auto":
        raise ValueError(
            "basis='auto' chooses a basis for every column; the baselines have one for all. Take "
            "'polynomial', another name, or a basis object."
        )
