"""Columns of numbers with the bases that a test names, as a design."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hikernel.columns import ColumnGrid
from hikernel.losses import SquaredError
from hikernel.selection import TrainingProblem


def design_of(X, bases, weights=None, *, names=None, **parameters):
    """Fit one basis per column of X; ``parameters`` are those of ``ColumnGrid``."""
    grid = ColumnGrid(basis=dict(enumerate(bases)), **parameters)
    rows = grid.read(X if names is None else pd.DataFrame(X, columns=list(names)))
    return grid.fit(rows, np.ones(len(rows)) if weights is None else weights)


def training_problem(X, y, basis, loss=None, weights=None, **parameters):
    """A training problem over columns of numbers; ``basis`` is that of all, or one per column."""
    spec = dict(enumerate(basis)) if isinstance(basis, list) else basis
    grid = ColumnGrid(basis=spec, **parameters)
    weights = np.ones(len(X)) if weights is None else weights
    loss = SquaredError() if loss is None else loss
    return TrainingProblem.make(grid, grid.read(X), y, weights, loss)
