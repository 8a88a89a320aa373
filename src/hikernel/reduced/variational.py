"""The variational form of the norm on a hull J: eta, zeta, and bounds on the dual norm.

With H = {eta >= 0, sum_v d_v^2 eta_v <= 1} and 1/zeta_w = sum_{v in A(w)} 1/eta_v,

    Omega(beta)^2   = min_{eta in H} sum_w |beta_w|^2 / zeta_w(eta),
    Omega*(alpha)^2 = max_{eta in H} sum_w zeta_w(eta) |a_w|^2
                    = min_kappa max_v d_v^-2 sum_{w in D(v)} kappa_vw^2 |a_w|^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.engines.numerics import matmul, matvec
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs.interface import SupportsAncestors

__all__ = ["THETA_FLOOR", "DualNormBound", "HullMap"]

_DENSE_ABOVE = 0.1
"""Density of the ancestor relation above which dense (BLAS) products beat sparse ones."""
_DENSE_BELOW = 200
"""Hull size up to which dense products win at any density: a sparse call costs 10 us."""

THETA_FLOOR = 1e-100
"""Least d_v^2 eta_v: zero for all purposes, but its inverse and square do not over- or underflow.
"""


@dataclass(frozen=True)
class DualNormBound:
    """A proven upper bound on Omega*(alpha)^2 and the eta whose kappa = zeta/eta proves it."""

    value: float
    eta: FloatArray


class HullMap:
    """Ancestor relations and weights of an ancestor-closed list of m nodes.

    Parameters
    ----------
    nodes : sequence of nodes
        The hull. All vectors of length m below have this order.
    graph : SupportsAncestors
        The graph that the nodes belong to.
    """

    def __init__(self, nodes: Sequence[Vertex], graph: SupportsAncestors) -> None:
        self.nodes: list[Vertex] = []
        self._set(list(nodes), sparse.csr_array((0, 0)), graph, np.empty(0))

    def extended(self, nodes: Sequence[Vertex], graph: SupportsAncestors) -> HullMap:
        """Return the map with further nodes at the end; only their ancestors are looked up."""
        out = object.__new__(HullMap)
        out.nodes = list(self.nodes)
        known = self._down if sparse.issparse(self._down) else sparse.csr_array(self._down)
        out._set(list(nodes), known, graph, self.weights)
        return out

    def restrict(self, index: NDArray[np.intp]) -> HullMap:
        """Return the map of some nodes, given by position; they must be ancestor-closed."""
        out = object.__new__(HullMap)
        out.nodes = [self.nodes[i] for i in index]
        out.weights = self.weights[index]
        out._down = _submatrix(self._down, index)
        out._up = _submatrix(self._up, index)
        return out

    def _set(
        self,
        fresh: list[Vertex],
        known: sparse.csr_array,
        graph: SupportsAncestors,
        weights: FloatArray,
    ) -> None:
        """Append nodes to those whose relation and weights are known."""
        self.nodes += fresh
        index = {node: i for i, node in enumerate(self.nodes)}
        before, m = known.shape[0], len(self.nodes)
        rows: list[int] = []
        cols: list[int] = []
        for w, node in enumerate(fresh, start=before):
            try:
                found = [index[ancestor] for ancestor in graph.ancestors(node)]
            except KeyError as missing:
                raise ValueError(
                    f"{node} is in the hull but its ancestor {missing.args[0]} is not."
                ) from None
            rows += found
            cols += [w] * len(found)
        if before:
            old = known.tocoo()
            rows, cols = [*old.row.tolist(), *rows], [*old.col.tolist(), *cols]
        relation = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=(m, m))
        dense = m <= _DENSE_BELOW or relation.nnz > _DENSE_ABOVE * m * m
        # _down[v, w] = 1 for w in D(v); _up is its transpose.
        self._down = relation.toarray() if dense else relation
        self._up = relation.T.toarray() if dense else relation.T.tocsr()
        self.weights = np.concatenate([weights, graph.weights(fresh)])

    def closure(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the chosen nodes and all their ancestors, shape (m,)."""
        return self.descendant_sums(chosen.astype(np.float64)) > 0.0

    @property
    def size(self) -> int:
        """Number of nodes m."""
        return len(self.nodes)

    def eta(self, theta: FloatArray) -> FloatArray:
        """Return eta_v = theta_v / d_v^2 for theta on the unit simplex."""
        return np.asarray(theta / self.weights**2)

    def zeta(self, eta: FloatArray) -> FloatArray:
        """Return zeta_w = 1 / sum_{v in A(w)} 1/eta_v for eta > 0."""
        return 1.0 / _product(self._up, 1.0 / eta)

    def descendant_sums(self, x: FloatArray) -> FloatArray:
        """Return sum_{w in D(v)} x_w for every v."""
        return _product(self._down, x)

    def descendant_norms(self, squares: FloatArray) -> FloatArray:
        """Return |beta_D(v)| for every v from |beta_w|^2."""
        return np.sqrt(self.descendant_sums(squares))

    def norm(self, squares: FloatArray) -> float:
        """Return Omega(beta) from |beta_w|^2."""
        return float(self.weights @ self.descendant_norms(squares))

    def sandwich(self, middle: FloatArray, eta: FloatArray, zeta: FloatArray) -> FloatArray:
        """Return kappa M kappa' for a symmetric (m, m) M, with kappa_vw = zeta_w / eta_v."""
        half = _product(self._down, middle * zeta[:, None] * zeta)
        return _product(self._down, half.T) / (eta[:, None] * eta)

    def refine_dual_norm(
        self,
        score_squares: FloatArray,
        eta: FloatArray,
        *,
        rounds: int = 20,
        enough: float = -np.inf,
    ) -> DualNormBound:
        """Bound Omega*(alpha)^2 by max_v d_v^-2 sum_{D(v)} kappa_vw^2 |a_w|^2, kappa = zeta/eta.

        One round replaces eta_v by eta_v rho_v (normalised), where rho_v^2 is the v-th term of
        the maximum. At the fixed point all rho_v <= Omega*. Every eta > 0 gives a valid bound, so
        the best bound found is returned. A round costs two products with the ancestor relation,
        which is negligible beside a factorisation. It saves the Newton method its last, slow steps
        towards the central path.

        Parameters
        ----------
        score_squares : ndarray of shape (m,)
            |a_w|^2.
        eta : ndarray of shape (m,)
            Starting point; positive.
        rounds : int
            Largest number of rounds.
        enough : float
            Stop as soon as the bound is at or below this value.
        """
        best_value, best_eta = np.inf, eta
        for _ in range(rounds + 1):
            ratios = self.dual_norm_ratios(score_squares, eta)
            value = float(np.max(ratios) ** 2)
            if value < best_value:
                best_value, best_eta = value, eta
            if best_value <= enough or value == 0.0:
                break
            eta = np.maximum(eta * ratios / np.sqrt(value), THETA_FLOOR / self.weights**2)
            eta /= self.weights**2 @ eta
        return DualNormBound(best_value, best_eta)

    def dual_norm_ratios(self, score_squares: FloatArray, eta: FloatArray) -> FloatArray:
        """Return rho_v = |beta_D(v)| / (d_v eta_v) for beta_w = zeta_w a_w."""
        zeta = self.zeta(eta)
        return self.descendant_norms(zeta**2 * score_squares) / (self.weights * eta)


def _product(relation: FloatArray | sparse.csr_array, x: FloatArray) -> FloatArray:
    """Return relation @ x for a vector or matrix x."""
    if isinstance(relation, np.ndarray):
        return matvec(relation, x) if x.ndim == 1 else matmul(relation, x)
    return np.asarray(relation @ x)


def _submatrix(
    relation: FloatArray | sparse.csr_array, index: NDArray[np.intp]
) -> FloatArray | sparse.csr_array:
    """Return some rows and the same columns, as a dense array where that is faster."""
    part = relation[index][:, index]
    if not isinstance(part, np.ndarray) and len(index) <= _DENSE_BELOW:
        return np.asarray(part.toarray())
    return part
