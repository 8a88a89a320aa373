"""The arguments of ``fit`` where X lies in blocks: columns of X by name, and what is refused."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hikernel.columns.block_table import as_block_table
from hikernel.estimators.survival import SurvivalPredictions

__all__ = ["split_columns"]


def split_columns(
    estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Return X without the columns that the other arguments name, and these columns.

    Raises
    ------
    ValueError
        For a column that X does not have, and for models that take all rows at once.
    """
    sample = "or pass a sample of the rows that fits into memory."
    if isinstance(estimator, SurvivalPredictions) or getattr(estimator, "_holds_times", False):
        raise ValueError(
            "X lies in blocks, and the loss of censored times compares all rows with each other; "
            f"fit another loss, {sample}"
        )
    if getattr(estimator, "warm_start", False):
        raise ValueError(
            "warm_start keeps the rows of a fit, and those of X lie in blocks; leave it out, "
            + sample
        )
    if getattr(estimator, "refit", None) == "variables":
        raise ValueError(
            'refit="variables" takes products of many levels of all rows, which lie in blocks; '
            f'use refit="sparse", {sample}'
        )
    table = as_block_table(X)
    assert table is not None
    named = {"y": y, "sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    rest, found = table.split(**named)
    for name, given in named.items():
        if isinstance(given, str):
            found[name] = pd.Series(found[name], name=given, copy=False)
    return rest, *found.values()
