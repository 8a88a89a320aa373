"""Interfaces of the engines, and the types of nodes; there is no computation here."""

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
"""A node of a grid: ((variable, level), ...), variables ascending, levels >= 1; () is the root."""

Vertex = Any
"""A node of any graph: a :data:`Node` of a grid, or the hashable name that the user gave it."""


class Engine(Protocol):
    """Weighted rows and the features of the nodes on these rows.

    Phi_v is the (n, r_v) feature matrix of node v. For several nodes, Phi is the concatenation of
    their blocks in the order of the nodes, with R columns in all. Row i has weight omega_i; the
    weights sum to one.

    Some nodes may have only a Gram matrix K. Such a node has n coordinates: coefficients c give the
    function K c of squared norm c' K c, and u itself takes the place of Phi' u (see
    ``node_kernels``). ``kernel_operator`` computes these norms. ``features`` and ``gram`` are not
    available for such nodes.

    Vectors over the rows have shape (n,), or (n, k) for k outputs. With k outputs, squares and
    descendant sums are added over the outputs.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        ...

    @property
    def row_weights(self) -> FloatArray:
        """omega, shape (n,): positive weights that sum to one."""
        ...

    def subset(self, rows: NDArray[np.intp]) -> Engine:
        """Return an engine over some of the rows, with the same features."""
        ...

    def width(self, node: Vertex) -> int:
        """Return r_v, the number of feature columns of a node (n if it has only a Gram matrix)."""
        ...

    @property
    def has_kernels(self) -> bool:
        """Whether some node has only a Gram matrix."""
        ...

    @property
    def in_blocks(self) -> bool:
        """Whether the rows lie in blocks: whatever takes features of all rows at once is out."""
        ...

    def kernel_operator(self, nodes: Sequence[Vertex]) -> KernelOperator | None:
        """Return the nodes as kernels if one of them has only a Gram matrix, else None."""
        ...

    def features(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return Phi, shape (n, R). It allocates n R numbers: only the dual form should use it."""
        ...

    def means(self, nodes: Sequence[Vertex], weights: FloatArray | None = None) -> FloatArray:
        """Return the weighted column means Phi' omega, shape (R,).

        ``weights``, shape (n,), nonnegative and of any sum, replace omega if given. The means are
        then Phi' weights / sum(weights).
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

        ``weights``, shape (n,) and nonnegative, replace omega if given; they are not normalised.
        """
        ...

    def gram_diagonal(self, nodes: Sequence[Vertex], means: FloatArray) -> FloatArray:
        """Return the diagonal of ``gram(nodes, nodes, means, means)``, shape (R,)."""
        ...

    def correlate(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``, which bounds rounding errors.

        The shape is (R,) for a vector of shape (n,), and (R, k) for one of shape (n, k).
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
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),), added over outputs.

        With ``rounded_up`` no entry is below its exact value.
        """
        ...

    def apply(self, nodes: Sequence[Vertex], coef: FloatArray) -> FloatArray:
        """Return Phi coef: shape (n,) for coef of shape (R,), and (n, k) for (R, k)."""
        ...

    def variances(self, nodes: Sequence[Vertex], blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the variance of <block_w, Phi_w(x)> over the rows for each node w.

        Blocks have shape (r_w,), or (r_w, k) for k outputs, whose variances are added.
        """
        ...


class GridEngine(Engine, Protocol):
    """Engine of a grid: Phi_v is the row-wise Kronecker product of one-variable levels."""

    @property
    def has_draws(self) -> bool:
        """Whether there are ``tail_draws`` and ``tail_exact_parts``; they need feature columns."""
        ...

    @property
    def score_work(self) -> int:
        """Numbers to process for the score of one node: n, or n (n + 1) / 2 with a Gram matrix."""
        ...

    @property
    def sum_work(self) -> int:
        """Numbers to process for an exact descendant sum: pairs of rows, n (n + 1) / 2."""
        ...

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1, in the order of ``extension_squares``."""
        ...

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for every w = prefix + (variable, level).

        The shape is (len(prefixes), len(level_pairs)). Entries are NaN where the prefix already
        contains the variable. For a vector of shape (n, k) the squares are added over the k
        columns. With ``rounded_up`` no entry is below its exact value.
        """
        ...

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for every v = ((variable, level),).

        The shape is (len(level_pairs),); ``vector`` has shape (n,). These sums bound the score of
        the product vw of two levels v and w: |Phi_vw' vector|^2 <= level_squares(vector / u)_v
        level_squares(u)_w for any positive u. All entries are infinity if some variable has no
        constant level 0, since features are then not products of two levels.
        """
        ...

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return U(t), the scaled sum of |a_w|^2 over all descendants w of t, for each node t.

        U(t) = sum_ik alpha_i alpha_k prod_m S_{m,t_m}(x_i, x_k), where S_{m,j} = sum over l of
        scales[m][j, l] k_{m,l}; t_m may be any row of scales[m]. For ``dual_coef`` of shape (n, k)
        the result is the sum of the U(t) of the columns, at the cost of one. No sampling is
        involved. A bound on the rounding error is added, and a sum that overflows is returned as
        infinity. With ``max_order`` only descendants of at most that many variables are included.
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

        The cost is linear in the number of rows; that of the exact sums is quadratic. For
        ``dual_coef`` of shape (n, k) every draw adds up the columns with its own random signs.
        """
        ...

    def tail_exact_parts(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return the larger of two parts of U(t) that the draws may miss, summed exactly.

        One is the diagonal, sum_i |alpha_i|^2 K_ii with K_ii = prod_m S_{m,t_m}(x_i, x_i), the
        other what the rows of the largest |alpha_i|^2 K_ii make among themselves.
        """
        ...


class GridEngineType(Protocol):
    """Constructor of an engine for a grid of columns: the type of the values of ``ENGINES``."""

    __name__: str

    def __call__(
        self,
        widths: Sequence[tuple[int, ...]],
        levels: Iterable[Sequence[FloatArray]],
        row_weights: FloatArray,
        constant_levels: Sequence[bool],
    ) -> GridEngine:
        """Create an engine over some rows.

        Parameters
        ----------
        widths : sequence of tuple of int
            ``widths[m][j]`` is the number of columns of level j of variable m.
        levels : iterable of sequence of ndarray of shape (n, width)
            One entry per variable: its levels, starting with level 0. It is read once, one
            variable at a time.
        row_weights : ndarray of shape (n,)
            Positive weights of any sum.
        constant_levels : sequence of bool
            Whether level 0 of variable m is identically one.
        """
        ...
