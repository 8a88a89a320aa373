"""Every graph with rows and a target; a new graph joins the shared tests by one line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hikernel.columns import ColumnGrid
from hikernel.datasets import make_clouds, make_molecules, make_motifs
from hikernel.graphs import (
    GraphSource,
    KernelGraph,
    PrecomputedGrid,
    SubstringGraph,
    pyramid_match,
    take,
    weisfeiler_lehman,
)

N = 60
RNG = np.random.default_rng(0)
COLUMNS = RNG.uniform(-1.0, 1.0, size=(N, 4))
NUMBERS = COLUMNS[:, 0] + COLUMNS[:, 1] * COLUMNS[:, 2] + 0.1 * RNG.standard_normal(N)
TABLE = pd.DataFrame(COLUMNS[:, :3].copy(), columns=list("abc"))  # it gets missing values below
TABLE["town"] = RNG.choice(["Oslo", "Bergen", "Rome"], N)
TABLE.loc[5, "b"] = np.nan


@dataclass(frozen=True)
class Case:
    """A graph, rows that it takes, and a target."""

    source: GraphSource
    X: Any
    y: np.ndarray

    def rows(self, chosen):
        return take(self.X, np.asarray(chosen))


def both(X):
    return X[:, [1]] * X[:, [2]]


def of_motifs():
    data = make_motifs(N, 30, noise=0.1, seed=0)
    return Case(SubstringGraph(3), data.X, data.y)


def of_clouds():
    data = make_clouds(N, 1, seed=0)
    return Case(pyramid_match(2), data.X, data.y)


def of_molecules():
    data = make_molecules(N, seed=0)
    return Case(weisfeiler_lehman(2), data.X, data.y)


GRAMS = [[np.outer(x, x), np.outer(x**2, x**2)] for x in COLUMNS[:, :3].T]

CASES = {
    "columns": Case(ColumnGrid(degree=2), COLUMNS, NUMBERS),
    "table": Case(ColumnGrid(degree=2), TABLE, NUMBERS + (TABLE["town"] == "Oslo")),
    "features": Case(
        KernelGraph(
            {"pair": ["first", "second"]},
            features={"first": [1], "second": [2], "pair": both, "other": [0, 3]},
        ),
        COLUMNS,
        NUMBERS,
    ),
    "grams": Case(
        KernelGraph([("first", "all")], grams={"first": GRAMS[0][0], "all": COLUMNS @ COLUMNS.T}),
        np.arange(N),
        NUMBERS,
    ),
    "grid of grams": Case(PrecomputedGrid(GRAMS), np.arange(N), NUMBERS),
    "strings": of_motifs(),
    "point clouds": of_clouds(),
    "labelled graphs": of_molecules(),
}
