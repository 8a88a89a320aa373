"""Standard deviations of effects: how well each is determined, with the selected terms as given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray
from hikernel.explain.effects import effect_groups, labelled_frame
from hikernel.explain.views import Axis, view_rows
from hikernel.graphs import Design
from hikernel.selection import TermModel
from hikernel.selection.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["effect_stds_frame", "view_std"]


def effect_stds_frame(
    posterior: Posterior,
    model: TermModel,
    design: Design,
    rows: Any,
    n_rows: int,
    outputs: Sequence[object] | None,
    index: pd.Index[Any] | None,
    by: str,
) -> pd.DataFrame:
    """Return the standard deviation of the intercept and of every effect or term at rows.

    The columns are those of ``effects_frame``. Effects are estimated together and correlated, so
    that the variance of f(x) is not the sum of theirs.
    """
    kept = model.kept()
    if by == "term":
        found = design.terms(kept.nodes)["term"]
        order = np.argsort(-model.shares[kept.positions], kind="stable").tolist()
        names, parts = [found[i] for i in order], [[i] for i in order]
        constant: list[int] = []
    else:
        groups = effect_groups(model, design)
        names, parts = [group.name for group in groups], [group.members for group in groups]
        within = {i for part in parts for i in part}
        constant = [i for i in range(len(kept.nodes)) if i not in within]

    def std(members: list[int], *, intercept: bool = False) -> FloatArray:
        return posterior.part_std(model, design, rows, n_rows, members, intercept=intercept)

    values = [std(constant, intercept=True), *(std(part) for part in parts)]
    return labelled_frame(np.stack(values, axis=1), ["intercept", *names], by, outputs, index)


def view_std(
    posterior: Posterior,
    model: TermModel,
    design: ColumnDesign,
    members: Sequence[int],
    axes: Sequence[Axis],
) -> FloatArray:
    """Return the standard deviation of the sum of some terms on a grid, as ``effect_view``."""
    rows, shape = view_rows(design, axes)
    n_rows = math.prod(shape)
    found = posterior.part_std(model, design, rows, n_rows, members).reshape(n_rows, -1)
    return np.asarray(found.T.reshape(-1, *shape))
