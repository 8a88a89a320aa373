"""PrecomputedGrid: Gram matrices per variable and level, whose products are the nodes of a grid.

Products of whole matrices are never stored; they are computed in parts when needed. Invalid input
is found here, before any optimisation starts, and the error names the variable and level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import Blocks
from hikernel.engines.gram_grid_engine import GramGridEngine, product_kernel
from hikernel.engines.machine import require_memory
from hikernel.engines.node_kernels import WORKING_COPIES, DenseGram
from hikernel.engines.protocol import FloatArray, Node
from hikernel.graphs.grid import Grid, node_degree, node_order, term_names
from hikernel.graphs.interface import Design
from hikernel.graphs.items import TrainingRows, check_positions
from hikernel.graphs.kernel_checks import MemoryPlan, as_kernels, kernel_dtype
from hikernel.graphs.weight_base import geometric_weights

__all__ = ["PrecomputedDesign", "PrecomputedGrid"]


class PrecomputedGrid:
    """A grid of products of the user's Gram matrices.

    Variable m has levels 0 .. q_m: level 0 is the constant kernel one ("absent"), and level
    j >= 1 has the Gram matrix K_{m,j} of N items. A node v picks one level per variable, and

        K_v[i, k] = prod_m K_{m, v_m}[i, k],    d_v = prod_m weight_base^{v_m},

    entry by entry. The estimators minimise, over functions f = b + sum_v f_v with f_v in the
    space of K_v,

        (1/n) sum_i loss(y_i, f(x_i)) + (alpha/2) (sum_v d_v (sum_{w in D(v)} |f_w|^2)^1/2)^2,

    where D(v) is the set of nodes whose level is at least that of v in every variable. The grid is
    never enumerated: 20 variables with 4 levels have 5^20 nodes, and the certificate covers all.

    Parameters
    ----------
    levels : sequence of sequence of array of shape (N, N)
        ``levels[m][j - 1]`` is the Gram matrix of level j of variable m: symmetric and positive
        semidefinite. Every variable has at least one level.
    names : sequence of str, optional
        Names of the variables; x0, x1, ... by default.
    weight_base : float, default=2.0
        Factor by which the weights grow from level to level.
    root_weight : float, default=1.0
        Weight of the constant term.
    max_order : int, optional
        Largest number of variables that may interact; no limit by default.
    dtype : {None, "float32", "float64"}, default=None
        Type in which the matrices are kept; as given by default. "float32" halves the memory and
        rounds the kernels to seven digits; all sums and products are in float64 either way.

    Notes
    -----
    ``X`` holds row numbers: ``fit(rows, y)`` and ``predict(rows)`` with rows out of 0 .. N - 1, so
    that splitters and cross-validation work as usual. For items that are not among the N,
    ``predict`` takes cross-Gram matrices of shape (n_new, n_fitted) in the same nesting as
    ``levels``, with None for variables and levels that are not in ``hull_``.

    A level should add what lower levels lack (the levels may be the parts of a decomposition of one
    kernel, or kernels of growing resolution). The entries of the matrices should be of order one,
    since the matrices are not rescaled and the weights compare them as they are. The certificate
    assumes that the matrices are positive semidefinite; negative eigenvalues of magnitude up to
    1e-8 of the trace (1e-5 in float32) are taken for rounding errors.

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
        """Return the grid itself: it is never modified, and its matrices may be large."""
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
        """Return the memory that a fit on ``n_rows`` rows takes; ``kept`` is the given matrices."""
        kept = sum(gram.nbytes for gram in self._grams.values())
        working = 8 * WORKING_COPIES * n_rows**2
        return MemoryPlan(kept=kept, working=working, to_take=working)

    def fit(self, rows: NDArray[np.intp], weights: FloatArray) -> PrecomputedDesign:
        """Restrict the matrices to the training rows, as returned by ``read``."""
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
        """Return the name of a variable and level, for error messages."""
        return f"{self.names[pair[0]]} level {pair[1]}"


@dataclass(frozen=True)
class PrecomputedDesign(Design):
    """A :class:`~hikernel.graphs.PrecomputedGrid` that is fitted to training rows.

    Attributes
    ----------
    source : PrecomputedGrid
        The matrices.
    rows : ndarray of int of shape (n,)
        The training rows, as row numbers of the matrices.
    store : GramGridEngine
        Engine over the training rows, with equal weights.
    support : ndarray of int, optional
        Positions of the training rows that a model is fitted on; all by default.
    """

    source: PrecomputedGrid
    rows: NDArray[np.intp]
    store: GramGridEngine
    support: NDArray[np.intp] | None = None

    @property
    def graph(self) -> Grid:
        """Structure and weights."""
        return self.source.grid

    def engine(self, rows: Any, weights: FloatArray) -> GramGridEngine:
        """Return the engine over all training rows."""
        return self.store.weighted(weights)

    def read(self, X: Any) -> Any:
        """Return new rows as row numbers, or as nested lists of cross-Gram matrices."""
        return X if is_nested(X) else self.source.read(X)

    def subset(self, rows: NDArray[np.intp]) -> PrecomputedDesign:
        """Return the design of a model that is fitted on some of the rows."""
        support = rows if self.support is None else self.support[rows]
        return replace(self, support=support)

    def predict(self, nodes: Sequence[Node], coef: FloatArray, rows: Any) -> FloatArray:
        """Return the sum of the functions of the nodes on training rows or new rows.

        Parameters
        ----------
        nodes : sequence of Node
            The terms.
        coef : ndarray of shape (R,) or (R, k)
            Their coordinates: one number for the root, n_fitted for every other node.
        rows : TrainingRows, row numbers, or nested lists
            The rows: some of the training rows, some of the N items, or cross-Gram matrices of
            shape (n_new, n_fitted) by variable and level.

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, k)
        """
        columns = self.rows if self.support is None else self.rows[self.support]
        wanted = sorted({pair for node in nodes for pair in node})
        if is_nested(rows):
            grams, n_new = self._cross_grams(rows, wanted, len(columns))
        else:
            items = self.rows[rows.positions] if isinstance(rows, TrainingRows) else rows
            grams = {pair: self.source.gram(pair).restricted(items, columns) for pair in wanted}
            n_new = len(items)
        out = np.zeros((n_new, *coef.shape[1:]))
        blocks = Blocks([len(columns) if node else 1 for node in nodes])
        for node, part in zip(nodes, blocks.split(coef), strict=True):
            out += product_kernel([grams[pair] for pair in node], n_new).expand(part)
        return out

    def terms(self, nodes: Sequence[Node]) -> dict[str, list[Any]]:
        """Return the names, orders and degrees of the terms, by column of a table."""
        return {
            "term": term_names(nodes, self.source.names),
            "order": [node_order(node) for node in nodes],
            "degree": [node_degree(node) for node in nodes],
        }

    def _cross_grams(
        self, X: Any, wanted: Sequence[tuple[int, int]], n_fitted: int
    ) -> tuple[dict[tuple[int, int], DenseGram], int]:
        """Return the matrices that are needed, by (variable, level), and their number of rows."""
        given = self._by_pair(X)
        if not given:
            raise ValueError("X has no matrices; give those of the variables and levels in hull_.")
        n_new = given[next(iter(given))].shape[0]
        for pair, cross in given.items():
            if cross.shape != (n_new, n_fitted):
                raise ValueError(
                    f"The matrix of {self.source.level_name(pair)!r} in X has shape {cross.shape}; "
                    f"between new rows and the {n_fitted} rows of the fit it must be "
                    f"({n_new}, {n_fitted}), as those of all levels."
                )
        for pair in wanted:
            name = self.source.level_name(pair)
            if pair not in given:
                raise ValueError(
                    f"X has no matrix for {name!r}; predictions need those of all variables and "
                    "levels in hull_ with a norm above zero."
                )
            if not np.all(np.isfinite(given[pair])):
                raise ValueError(f"The matrix of {name!r} in X has entries that are not finite.")
        return {pair: DenseGram(given[pair]) for pair in wanted}, n_new

    def _by_pair(self, X: Any) -> dict[tuple[int, int], NDArray[Any]]:
        """Return the matrices that are not None, by (variable, level)."""
        names = self.source.names
        if len(X) != len(names):
            raise ValueError(
                f"X has matrices for {len(X)} variables and the grid has {len(names)}; give None "
                "for those that are not needed."
            )
        out = {}
        for m, levels in enumerate(X):
            if levels is None:
                continue
            if len(levels) != self.graph.max_level(m):
                raise ValueError(
                    f"X has {len(levels)} matrices for {names[m]!r}, which has "
                    f"{self.graph.max_level(m)} levels; give None for those that are not needed."
                )
            for j, cross in enumerate(levels, start=1):
                if cross is not None:
                    out[m, j] = _numbers(self.source.level_name((m, j)), cross)
        return out


def is_nested(X: Any) -> bool:
    """Return whether X is a nested list of matrices (variables, then levels), not row numbers.

    >>> is_nested([[np.ones((2, 3)), None], None]), is_nested([[0], [1]]), is_nested([4, 2])
    (True, False, False)
    """
    if not isinstance(X, (list, tuple)) or not X:
        return False
    kinds = (list, tuple, np.ndarray)
    levels = [level for item in X if isinstance(item, kinds) for level in item]
    listed = all(item is None or isinstance(item, kinds) for item in X)
    return listed and all(level is None or np.ndim(level) > 0 for level in levels)


def _numbers(name: str, cross: Any) -> NDArray[Any]:
    """Return a matrix of floating point numbers."""
    try:
        found = np.asarray(cross)
        return found if found.dtype == np.float32 else found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The matrix of {name!r} in X must be numbers: {error}") from None


def _listed(levels: Any) -> list[list[Any]]:
    """Return the levels as nested lists; raise if they are nested in another way."""
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
    found = tuple(names) if isinstance(names, Iterable) else (None,)
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
