"""Weights that are powers of a base, and the range of all weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["WEIGHT_RANGE", "check_weight_base", "geometric_weights"]

WEIGHT_RANGE = (1e-30, 1e30)
"""Range of the weights: products and squares of a few weights must not overflow or underflow."""


def geometric_weights(max_levels: Sequence[int], base: float) -> tuple[tuple[float, ...], ...]:
    """Return the weights of the paper, d_{m,j} = base^j for every variable.

    >>> geometric_weights([2, 1], 2.0)
    ((1.0, 2.0, 4.0), (1.0, 2.0))
    """
    highest = max(max_levels, default=0)
    with np.errstate(over="ignore"):
        powers = tuple(np.power(float(base), np.arange(highest + 1.0)).tolist())
    return tuple(powers[: q + 1] for q in max_levels)


def check_weight_base(weight_base: Any, depth: int) -> float:
    """Return ``weight_base`` as a float; raise unless it is positive and its powers are in range.

    ``depth`` is the largest exponent.
    """
    number = isinstance(weight_base, Real) and not isinstance(weight_base, bool)
    if not (number and 0.0 < float(weight_base) < math.inf):
        raise ValueError(f"weight_base must be a number above 0, got {weight_base!r}.")
    low, high = WEIGHT_RANGE
    reach = depth * abs(math.log10(float(weight_base)))
    if reach > math.log10(high):
        raise ValueError(
            f"With weight_base={weight_base!r} the weights of depth {depth} leave the range from "
            f"{low:g} to {high:g}; bring it nearer to 1, or make the graph less deep."
        )
    return float(weight_base)
