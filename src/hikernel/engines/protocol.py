"""What an engine can be asked, and the types of nodes.

Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hikernel.engines.node_kernels import KernelOperator

__all__ = ["Engine", "FloatArray", "GridEngine", "GridEngineType", "Node", "Vertex"]

FloatArray = NDArray[np.float64]

Node = tuple[tuple[int, int], ...]
"""A vertex of a grid: ((variable, level), ...), variables ascending, levels from 1; () is the root.
"""

Vertex = Any
"""A vertex of any graph: a :data:`Node` of a grid, or whatever hashable name a user gave it."""


class Engine(Protocol):
    """Rows, seen through node features.

    Phi_v is the (n, r_v) feature matrix of node v. For several nodes the blocks stand side by
    side, R columns in all, in the order of the nodes. Row i has weight omega_i, with sum 1.

    A node may also be known by its Gram matrix K alone. Its columns are then those of K, n of them:
    coefficients c give the function K c of squared norm c' K c, and Phi' u is u itself
    (``kernels``). ``kernel_operator`` knows these norms; ``features`` and ``gram`` do not apply.

    Vectors over the rows have shape (n,), or (n, k) for k outputs; squares and descendant sums
    are then added over the outputs.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        ...

    @property
    def row_weights(self) -> FloatArray:
        """omega, shape (n,): positive and of sum one."""
        ...

    def subset(self, rows: NDArray[np.intp]) -> Engine:
        """Return an engine over some of the rows, with the same features."""
        ...

    def width(self, node: Vertex) -> int:
        """Return r_v, the number of feature columns of a node."""
        ...

    @property
    def has_kernels(self) -> bool:
        """Whether some node is known by its Gram matrix."""
        ...

    def kernel_operator(self, nodes: Sequence[Vertex]) -> KernelOperator | None:
        """Return the nodes as kernels where one of them is known by its Gram matrix, else None."""
        ...

    def features(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return Phi, shape (n, R). Takes n R numbers of memory: for the dual form only."""
        ...

    def means(self, nodes: Sequence[Vertex], weights: FloatArray | None = None) -> FloatArray:
        """Return the weighted column means Phi' omega, shape (R,).

        ``weights``, shape (n,), nonnegative and of any sum, stand in for omega: the means are
        Phi' weights / sum(weights).
        """
        ...

    def gram(
        self,
        left: Sequence[Vertex],
        right: Sequence[Vertex],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return (Phi_left - mean)' diag(omega) (Phi_right - mean), shape (R_left, R_right).

        ``weights``, shape (n,) and nonnegative, stand in for omega; they are not normalised.
        """
        ...

    def gram_diagonal(self, nodes: Sequence[Vertex], means: FloatArray) -> FloatArray:
        """Return the diagonal of ``gram(nodes, nodes, means, means)``, shape (R,)."""
        ...

    def correlate(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector|, which bounds its rounding error.

        Shape (R,) for a vector of shape (n,), (R, k) for (n, k).
        """
        ...

    def score_bounds(self, nodes: Sequence[Vertex], vector: FloatArray) -> FloatArray:
        """Return |Phi' vector| plus a bound on its rounding error, in the shape of ``correlate``.

        No entry is below its exact value.
        """
        ...

    def score_squares(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 of the nodes, shape (len(nodes),), added over outputs.

        With ``rounded_up`` no entry is below its exact value.
        """
        ...

    def apply(self, nodes: Sequence[Vertex], coef: FloatArray) -> FloatArray:
        """Return Phi coef: shape (n,) for coef of shape (R,), (n, k) for (R, k)."""
        ...


class GridEngine(Engine, Protocol):
    """Rows of a grid, where Phi_v is the row-wise Kronecker product of one-variable levels."""

    @property
    def has_draws(self) -> bool:
        """Whether ``tail_draws`` and ``tail_diagonal`` apply, which need feature columns."""
        ...

    @property
    def score_work(self) -> int:
        """Numbers that the score of one node takes: n, or n (n + 1) / 2 from a Gram matrix."""
        ...

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1, in the order of ``extension_squares``."""
        ...

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for w = prefix + (variable, level), all of them at once.

        Shape (len(prefixes), len(level_pairs)), NaN where the prefix has the variable already.
        For a vector of shape (n, k) the squares are added over the k columns. With
        ``rounded_up`` no entry is below its exact value.
        """
        ...

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for v = ((variable, level),), all of them.

        Shape (len(level_pairs),). With |Phi_w' vector|^2 <= level_squares(vector / u)_v
        level_squares(u)_w for the product of two levels v and w, and any positive u. Infinity
        where products do not factor, because a variable has no constant level 0.
        """
        ...

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return U(t), the scaled sum of |a_w|^2 over all descendants w of each node t.

        U(t) = sum_ik alpha_i alpha_k prod_m S_{m,t_m}(x_i, x_k), where S_{m,j} = sum over l >= j
        of scales[m][j, l] k_{m,l}. For ``dual_coef`` of shape (n, k) it is the sum of the U(t) of
        the k columns, at the cost of one. Nothing is sampled. A bound on the rounding error is
        added, and a sum that overflows is reported as infinity. With ``max_order`` only
        descendants of at most that many variables count.
        """
        ...

    def tail_draws(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
        n_draws: int,
        seed: int,
    ) -> FloatArray:
        """Return independent random y_t with E y_t^2 = U(t), shape (n_draws, len(nodes)).

        Linear in the number of rows, where the exact sums are quadratic. For ``dual_coef`` of
        shape (n, k) every draw adds up the columns with random signs of its own.
        """
        ...

    def tail_diagonal(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return sum_i |alpha_i|^2 prod_m S_{m,t_m}(x_i, x_i), the diagonal part of U(t)."""
        ...


class GridEngineType(Protocol):
    """How an engine of a grid of columns is made: what ``ENGINES`` holds."""

    __name__: str

    def __call__(
        self,
        widths: Sequence[tuple[int, ...]],
        levels: Iterable[Sequence[FloatArray]],
        row_weights: FloatArray,
        constant_levels: Sequence[bool],
    ) -> GridEngine:
        """Lay out rows.

        Parameters
        ----------
        widths : sequence of tuple of int
            ``widths[m][j]`` is the number of columns of level j of variable m.
        levels : iterable of sequence of ndarray of shape (n, width)
            One entry per variable: its levels, level 0 first. Read once, one variable at a time.
        row_weights : ndarray of shape (n,)
            Positive, of any sum.
        constant_levels : sequence of bool
            Whether level 0 of variable m is identically one.
        """
        ...
