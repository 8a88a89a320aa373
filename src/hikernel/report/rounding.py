"""Makes the summary light enough for a page: grids of effects as exact as a screen shows them.

The function of the what-if panel keeps every digit, since it repeats ``predict``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["lighter"]

CURVE_DIGITS = 5
SURFACE_DIGITS = 4
"""Significant digits of the largest value of a grid; smaller values have as many decimals.

A surface has a thousand values where a curve has eighty, and is read from its colours.
"""


def lighter(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary with the values of effects on grids rounded.

    Examples
    --------
    >>> view = {"axes": [{"values": [0.123456789]}], "values": [[1234.56789]], "held": []}
    >>> lighter({"effects": [{"name": "x", "view": view}]})["effects"][0]["view"]["values"]
    [[1234.6]]
    """
    light = dict(summary)
    light["effects"] = [
        {**effect, "view": _view(effect.get("view"))} for effect in summary.get("effects") or []
    ]
    return light


def _view(view: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if view is None:
        return None
    digits = CURVE_DIGITS if len(view["axes"]) == 1 else SURFACE_DIGITS
    decimals = _decimals(view["values"], digits)
    exact = {name: view[name] for name in ("values", "std") if name in view}
    return {**view, **{name: _rounded(values, decimals) for name, values in exact.items()}}


def _decimals(values: Any, digits: int) -> int:
    """Return the number of decimals that leave the largest number so many digits."""
    size = _largest(values)
    return digits - 1 - math.floor(math.log10(size)) if size > 0 else 0


def _largest(values: Any) -> float:
    if isinstance(values, list):
        return max(map(_largest, values), default=0.0)
    return 0.0 if values is None else abs(values)


def _rounded(values: Any, decimals: int) -> Any:
    if isinstance(values, list):
        return [_rounded(value, decimals) for value in values]
    if values is None:
        return None
    return _shortest(round(values, decimals))


def _shortest(value: float) -> float | int:
    """Return an integer where that writes the same number with fewer characters."""
    whole = int(value) if abs(value) < 1e15 else value
    return whole if whole == value else value
