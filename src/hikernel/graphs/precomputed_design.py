"""A precomputed grid on the rows it was fitted to, and its way to new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.gram_grid_engine import GramGridEngine, product_kernel
from hikernel.engines.kernels import DenseGram
from hikernel.engines.protocol import FloatArray, Node
from hikernel.graphs.grid import Grid
from hikernel.graphs.node import node_degree, node_order, term_names
from hikernel.graphs.rows import TrainingRows

if TYPE_CHECKING:
    from hikernel.graphs.precomputed import PrecomputedGrid

__all__ = ["PrecomputedDesign", "is_nested"]


@dataclass(frozen=True)
class PrecomputedDesign:
    """A :class:`~hikernel.graphs.PrecomputedGrid` on the rows it was fitted to.

    Attributes
    ----------
    source : PrecomputedGrid
        The matrices.
    rows : ndarray of int of shape (n,)
        The training rows, by their number in the matrices.
    store : GramGridEngine
        The rows, of equal weights.
    support : ndarray of int, optional
        The training rows that a model is fitted on; all by default.
    """

    source: PrecomputedGrid
    rows: NDArray[np.intp]
    store: GramGridEngine
    support: NDArray[np.intp] | None = None

    @property
    def graph(self) -> Grid:
        """Structure and weights."""
        return self.source.grid

    def engine(self, weights: FloatArray) -> GramGridEngine:
        """Return the engine over all training rows."""
        return self.store.weighted(weights)

    def subset(self, rows: NDArray[np.intp]) -> PrecomputedDesign:
        """Return the design of a model that is fitted on some of the rows."""
        support = rows if self.support is None else self.support[rows]
        return replace(self, support=support)

    def predict(self, nodes: Sequence[Node], coef: FloatArray, X: Any) -> FloatArray:
        """Return the sum of the nodes' functions on training rows or new ones.

        Parameters
        ----------
        nodes : sequence of Node
            The terms.
        coef : ndarray of shape (R,) or (R, k)
            Their coordinates: one number for the root, n_fitted for every other node.
        X : TrainingRows, row numbers, or nested lists
            The rows: some of the training rows, some of the N items, or cross-Gram matrices of
            shape (n_new, n_fitted) by variable and level.

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, k)
        """
        columns = self.rows if self.support is None else self.rows[self.support]
        wanted = sorted({pair for node in nodes for pair in node})
        if is_nested(X):
            grams, n_new = self._cross_grams(X, wanted, len(columns))
        else:
            rows = self.rows[X.positions] if isinstance(X, TrainingRows) else self.source.read(X)
            grams = {pair: self.source.gram(pair).restricted(rows, columns) for pair in wanted}
            n_new = len(rows)
        out, start = np.zeros((n_new, *coef.shape[1:])), 0
        for node in nodes:
            part = coef[start : start + (len(columns) if node else 1)]
            out += product_kernel([grams[pair] for pair in node], n_new).expand(part)
            start += len(part)
        return out

    def terms(self, nodes: Sequence[Node], names: Sequence[str]) -> dict[str, list[Any]]:
        """Return what can be said of each term, by column of a frame: term, order, degree.

        The names are those of the grid: an estimator on a graph knows of no columns.
        """
        return {
            "term": term_names(nodes, self.source.names),
            "order": [node_order(node) for node in nodes],
            "degree": [node_degree(node) for node in nodes],
        }

    def _cross_grams(
        self, X: Any, wanted: Sequence[tuple[int, int]], n_fitted: int
    ) -> tuple[dict[tuple[int, int], DenseGram], int]:
        """Return the matrices that are needed, and how many rows they have."""
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
        """Return the matrices that are not None, by variable and level."""
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
    """Whether X is a list by variable of lists by level of matrices, and not row numbers.

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
