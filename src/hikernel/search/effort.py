"""Work, counted and not timed: what limits a proof without asking a clock.

The unit is one multiplication in a large matrix product; 10^10 of them take about a second on two
cores. The counts follow from the sizes of the arrays, so that they are the same on every machine
and at every load. The factors below were fitted to the times of twelve paths on real data (253 to
8,000 rows, 8 to 73 columns, one to four outputs) and of 60 sets of bounds. They are right within a
factor of two for most of them, which is enough to keep a proof in proportion to a search.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from hikernel.engines.protocol import GridEngine
from hikernel.losses import SquaredError
from hikernel.reduced import ReducedProblem

__all__ = [
    "MAX_EXPLORED",
    "PROOF_WORK",
    "UNLIMITED",
    "ColumnLimits",
    "GridEffort",
    "most_columns",
    "solve_work",
]

_PASS = 10
"""Work in which one number passes through memory, as a factor of an elementwise product."""

PROOF_WORK = 6e11
"""Work of a proof by default: about a minute on two cores."""

MAX_EXPLORED = 10**6
"""Kernels that are scored for a proof by default, at most."""

_CALL = 2e7
"""Work of a call that scores extensions, however few."""
_ITERATION = 4e6
"""Work of an iteration of a reduced solve, however small the problem."""
_PAIR = 1600
"""Work of an iteration for each pair of nodes in the hull."""


_STEP_WORK = 3e9
"""Work of one factorisation of a reduced problem whose nodes are wide, at most."""


class ColumnLimits(NamedTuple):
    """Feature columns of hulls and of refits that fit into the memory that a user allows."""

    hull: float = math.inf
    refit: float = math.inf


UNLIMITED = ColumnLimits()
"""Of memory, nothing limits a model."""


def most_columns(n_rows: int, max_kernels: int) -> int:
    """Return the number R of feature columns up to which a hull is solved.

    It is ``max_kernels``, which hulls of nodes with one column cannot exceed, or, if that is more,
    the largest R for which a factorisation takes at most 3e9 multiplications and additions: R^3 / 3
    for R <= n, else n^2 R + n^3 / 3. A step of a solve then takes a fraction of a second.

    >>> most_columns(10_000, 2000), most_columns(2500, 2000), most_columns(1000, 2000)
    (2080, 2080, 2666)
    """
    most = min(int((3.0 * _STEP_WORK) ** (1.0 / 3.0)), n_rows)
    if most == n_rows:
        most = max(most, int((_STEP_WORK - n_rows**3 / 3.0) / n_rows**2))
    return max(most, max_kernels)


def solve_work(reduced: ReducedProblem, n_iter: int) -> float:
    """Return the work of solving a reduced problem in ``n_iter`` iterations."""
    width, n_rows = float(reduced.n_columns), float(reduced.engine.n_rows)
    outputs = 1 if reduced.y.ndim == 1 else reduced.y.shape[1]
    moments = n_rows * width * min(width, n_rows)
    # The moments are computed once for the squared error. The iterations of other losses are steps
    # of an outer loop, with moments and several inner iterations each.
    if outputs == 1 and isinstance(reduced.loss, SquaredError):
        return moments + n_iter * (_ITERATION + _PAIR * len(reduced.nodes) ** 2)
    inner = 8 * (_ITERATION + _PAIR * len(reduced.nodes) ** 2 / 8)
    return outputs * n_iter * (moments + inner)


@dataclass(frozen=True)
class GridEffort:
    """Work of scores and bounds on a grid.

    Attributes
    ----------
    score_work : float
        Numbers to process for the score of one column.
    bound_work : float
        Numbers to process for a descendant sum: pairs of rows, or rows times draws. For sparse
        columns, what makes the count of ``bounds`` that of a sparse product.
    n_columns : int
        Feature columns of all levels of all variables.
    n_variables : int
        Number of variables.
    n_outputs : int
        Number of outputs.
    n_orders : int
        1, or one more than the largest number of variables that may interact.
    """

    score_work: float
    bound_work: float
    n_columns: int
    n_variables: int
    n_outputs: int
    n_orders: int

    @classmethod
    def of(
        cls, engine: GridEngine, n_variables: int, n_outputs: int, max_order: int | None, draws: int
    ) -> GridEffort:
        """Return the effort over the rows of an engine; ``draws`` is 0 for exact bounds."""
        n = engine.n_rows
        return cls(
            score_work=float(engine.score_work),
            bound_work=float(n * draws if draws else engine.sum_work),
            n_columns=sum(engine.width((pair,)) for pair in engine.level_pairs),
            n_variables=n_variables,
            n_outputs=n_outputs,
            n_orders=1 if max_order is None else max_order + 1,
        )

    def extensions(self, n_prefixes: float) -> float:
        """Return the work of scoring all extensions of some prefixes of one column each."""
        return _CALL + 3.0 * self.score_work * self.n_outputs * n_prefixes * self.n_columns

    def bounds(self, supports: Collection[tuple[int, ...]]) -> float:
        """Return the work of the descendant sums of sets of variables of one size."""
        if not supports:
            return 0.0
        size = len(next(iter(supports)))
        lasts = {support[-1:] for support in supports}
        rests = {support[:-1] for support in supports}
        named = {m for support in supports for m in support}
        per_pair = self.n_columns + _PASS * self.n_orders * (self.n_variables + len(named))
        per_pair += len(rests) * (_PASS * 2 * size * self.n_orders + len(lasts))
        return self.bound_work * per_pair
