"""PrecomputedGrid: Gram matrices per variable and level, whose products are the nodes of a grid.

The matrices are read where they lie and never multiplied as a whole. What the user gets wrong is
found here, before work starts, and named by its variable and level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.gram_grid_engine import GramGridEngine
from hikernel.engines.kernels import WORKING_COPIES, DenseGram
from hikernel.engines.memory import MemoryPlan, require_memory
from hikernel.graphs.checks import as_kernels, kernel_dtype
from hikernel.graphs.grid import Grid, geometric_weights
from hikernel.graphs.precomputed_design import PrecomputedDesign
from hikernel.graphs.rows import check_positions

__all__ = ["PrecomputedGrid"]


class PrecomputedGrid:
    """A grid of products of user Gram matrices.

    Variable m has levels 0 .. q_m: level 0 is the constant kernel one ("absent"), and level
    j >= 1 has the Gram matrix K_{m,j} of N items. A node v picks one level per variable, and

        K_v[i, k] = prod_m K_{m, v_m}[i, k],    d_v = prod_m weight_base^{v_m},

    entry by entry. The estimators minimise, over functions f = b + sum_v f_v with f_v in the
    space of K_v,

        (1/n) sum_i loss(y_i, f(x_i)) + (alpha/2) (sum_v d_v (sum_{w in D(v)} |f_w|^2)^1/2)^2,

    where D(v) are the nodes that are at least as high as v in every variable. The grid is never
    enumerated: 20 variables with 4 levels are 5^20 nodes, and the certificate speaks of all.

    Parameters
    ----------
    levels : sequence of sequence of array of shape (N, N)
        ``levels[m][j - 1]`` is the Gram matrix of level j of variable m: symmetric and positive
        semidefinite. A variable has one level at least.
    names : sequence of str, optional
        Names of the variables; x0, x1, ... by default.
    weight_base : float, default=2.0
        Factor by which the weights grow from level to level.
    root_weight : float, default=1.0
        Weight of the constant term.
    max_order : int, optional
        How many variables may interact; any number by default.
    dtype : {None, "float32", "float64"}, default=None
        How the matrices are kept: as given by default. "float32" halves the memory and rounds the
        kernels to seven digits; all sums and products are in float64 either way.

    Notes
    -----
    ``X`` is row numbers: ``fit(rows, y)`` and ``predict(rows)`` with rows out of 0 .. N - 1, so
    that splitters and cross-validation work as ever. For items that are not among the N,
    ``predict`` takes cross-Gram matrices of shape (n_new, n_fitted) in the same nesting as
    ``levels``, with None for variables and levels that are not in ``hull_``.

    Levels should add what lower levels lack (the parts of a decomposition of one kernel, or
    kernels of growing resolution), and their entries should be of order one: the weights compare
    them. The certificate takes the matrices for kernels; eigenvalues that are negative by less than
    1e-8 of the trace (1e-5 in float32) pass for rounding.

    Examples
    --------
    Two sets of descriptors of the same items, coarse and fine, and their interaction:

    >>> import numpy as np
    >>> from hikernel import HKLRegressor
    >>> from hikernel.graphs import PrecomputedGrid
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 100, 3))
    >>> def gaussian(Z, width):
    ...     return np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2) / (2 * width**2))
    >>> graph = PrecomputedGrid(
    ...     [[A @ A.T, gaussian(A, 1.0)], [B @ B.T, gaussian(B, 1.0)]], names=["a", "b"]
    ... )
    >>> graph
    PrecomputedGrid(2 variables, 4 matrices of 100 items, 9 nodes)
    >>> y = A[:, 0] + A[:, 1] * B[:, 0]
    >>> rows = np.arange(100)
    >>> model = HKLRegressor(alpha=0.01, graph=graph).fit(rows[:80], y[:80])
    >>> "a * b" in set(model.hull_["term"]), model.certificate_.certified
    (True, True)
    >>> new = [[K[80:, :80] for K in (A @ A.T, gaussian(A, 1.0))]]
    >>> new += [[K[80:, :80] for K in (B @ B.T, gaussian(B, 1.0))]]
    >>> np.allclose(model.predict(rows[80:]), model.predict(new))
    True
    """

    def __init__(
        self,
        levels: Sequence[Sequence[Any]],
        names: Sequence[str] | None = None,
        weight_base: float = 2.0,
        root_weight: float = 1.0,
        max_order: int | None = None,
        dtype: str | None = None,
    ) -> None:
        kernel_dtype(dtype)
        _check_numbers(weight_base, root_weight, max_order)
        listed = _listed(levels)
        self.names = _names(names, len(listed))
        found: dict[tuple[int, int], Any] = {}
        for m, variable in enumerate(listed):
            if not variable:
                raise ValueError(f"{self.names[m]!r} has no levels; give it a Gram matrix or more.")
            for j, gram in enumerate(variable, start=1):
                found[m, j] = gram
        self._grams = as_kernels(found, None, dtype, name=lambda pair: repr(self.level_name(pair)))
        self._items = self._grams[0, 1].n_rows
        if self._items == 0:
            raise ValueError("The Gram matrices have no rows.")
        self.grid = Grid(
            geometric_weights([len(variable) for variable in listed], weight_base),
            float(root_weight),
            None if max_order is None else int(max_order),
        )

    def __sklearn_clone__(self) -> PrecomputedGrid:
        """Return itself: nothing changes it, and its matrices may be large."""
        return self

    def __repr__(self) -> str:
        return (
            f"PrecomputedGrid({len(self.names)} variables, {len(self._grams)} matrices of "
            f"{self._items} items, {self.grid.n_vertices} nodes)"
        )

    def read(self, X: Any) -> NDArray[np.intp]:
        """Return row numbers as an array of shape (n,)."""
        return check_positions(X, self._items, "the matrices of the grid")

    def plan(self, n_rows: int) -> MemoryPlan:
        """Return what a fit on some rows takes besides the matrices that were given."""
        kept = sum(gram.nbytes for gram in self._grams.values())
        working = 8 * WORKING_COPIES * n_rows**2
        return MemoryPlan(kept=kept, working=working, to_take=working)

    def fit(self, rows: NDArray[np.intp]) -> PrecomputedDesign:
        """Lay out training rows (as ``read`` returns them)."""
        n = len(rows)
        require_memory(
            self.plan(n).to_take // 8,
            f"Solving on {n} rows of Gram matrices",
            "Use fewer rows.",
        )
        whole = np.array_equal(rows, np.arange(self._items))
        levels: list[list[DenseGram]] = [[] for _ in self.names]
        for (m, _), gram in self._grams.items():
            levels[m].append(gram if whole else gram.restricted(rows))
        return PrecomputedDesign(self, rows, GramGridEngine(levels, np.ones(n)))

    def gram(self, pair: tuple[int, int]) -> DenseGram:
        """Return the (N, N) matrix of a variable and level."""
        return self._grams[pair]

    def level_name(self, pair: tuple[int, int]) -> str:
        """Return a variable and level in words, for messages."""
        return f"{self.names[pair[0]]} level {pair[1]}"


def _listed(levels: Any) -> list[list[Any]]:
    """Return the levels as lists, or say how they are to be nested."""
    nested = isinstance(levels, Iterable) and not isinstance(levels, (str, bytes, dict))
    listed = list(levels) if nested else []
    if not listed:
        raise ValueError(
            "levels must be a list with a list of Gram matrices for every variable, one variable "
            f"at least, got {'nothing' if nested else type(levels).__name__}."
        )
    for m, variable in enumerate(listed):
        deep = not isinstance(variable, np.ndarray) or variable.ndim == 3
        if not deep or not isinstance(variable, Iterable) or isinstance(variable, (str, dict)):
            got = np.shape(variable) if isinstance(variable, np.ndarray) else type(variable)
            raise ValueError(
                f"levels[{m}] must be a list of Gram matrices, level 1 first, got {got}; a "
                "variable with one level is a list of one matrix."
            )
    return [list(variable) for variable in listed]


def _names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{m}" for m in range(n))
    found = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"names must be a list of strings, got {names!r}.")
    if len(found) != n or len(set(found)) != n:
        raise ValueError(
            f"names must be {n} different ones, a variable each, got {len(found)}: {list(found)!r}."
        )
    return found


def _check_numbers(weight_base: Any, root_weight: Any, max_order: Any) -> None:
    for name, value in (("weight_base", weight_base), ("root_weight", root_weight)):
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not (number and 0.0 < float(value) < np.inf):
            raise ValueError(f"{name} must be a number above 0, got {value!r}.")
    whole = isinstance(max_order, Integral) and not isinstance(max_order, bool)
    if max_order is not None and not (whole and max_order >= 1):
        raise ValueError(f"max_order must be an integer from 1 on or None, got {max_order!r}.")
