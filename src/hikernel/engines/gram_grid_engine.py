"""Engine of a grid whose levels are Gram matrices; the kernel of a node is their product.

Only the matrices of the levels are kept, as they were given. A subset of the rows keeps a list of
positions, unless its matrices are small enough to be copied. Products are computed for one chunk or
tile at a time (see ``node_kernels`` and ``gram_tails``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import WeightedRows, normalised
from hikernel.engines.gram_tails import GramTailSummer, extension_sums
from hikernel.engines.node_kernels import (
    BlockKernel,
    DenseGram,
    GramKernel,
    KernelOperator,
    NodeKernel,
    restrict_all,
)
from hikernel.engines.protocol import FloatArray, Node

__all__ = ["GramGridEngine", "ProductGram", "product_kernel"]


class ProductGram(GramKernel):
    """K[i, k] = prod_f K_f[i, k], computed one chunk of rows at a time.

    Parameters
    ----------
    factors : sequence of DenseGram
        At least one, all over the same rows and columns.
    """

    def __init__(self, factors: Sequence[DenseGram]) -> None:
        self._factors = list(factors)
        self.n_rows = self._factors[0].n_rows
        self.width = self._factors[0].width

    def chunk(self, rows: slice) -> FloatArray:
        """Return some rows as float64."""
        first, *rest = self._factors
        out = first.chunk(rows)
        for i, factor in enumerate(rest):
            # The first product needs a new array: the first chunk may be the user's own matrix.
            out = np.multiply(out, factor.chunk(rows), out=out if i > 0 else None)
        return out

    def diagonal(self) -> FloatArray:
        """Return the product of the diagonals."""
        return np.asarray(np.prod([factor.diagonal() for factor in self._factors], axis=0))


def product_kernel(factors: Sequence[DenseGram], n_rows: int) -> NodeKernel:
    """Return the kernel of a node, the product of its factors; without factors it is one.

    The constant kernel is represented by one feature column of ones, which makes it cheap.
    """
    if not factors:
        return BlockKernel(np.ones((n_rows, 1)))
    return factors[0] if len(factors) == 1 else ProductGram(factors)


class GramGridEngine(WeightedRows):
    """Engine with one Gram matrix per variable and level; level 0 is the constant kernel one.

    Parameters
    ----------
    levels : sequence of sequence of DenseGram
        ``levels[m][j - 1]`` is the (n, n) matrix of level j >= 1 of variable m, at least one.
    row_weights : ndarray of shape (n,)
        Positive weights; they are normalised to sum to one.
    """

    has_draws = False

    def __init__(self, levels: Sequence[Sequence[DenseGram]], row_weights: FloatArray) -> None:
        super().__init__(row_weights)
        self._grams = {
            (m, j): gram
            for m, variable in enumerate(levels)
            for j, gram in enumerate(variable, start=1)
        }

    @property
    def score_work(self) -> int:
        """Numbers to process for the score of one node: half a matrix and its diagonal."""
        return self.n_rows * (self.n_rows + 1) // 2

    def subset(self, rows: NDArray[np.intp]) -> GramGridEngine:
        """Return an engine over some of the rows; small matrices are copied."""
        out = object.__new__(GramGridEngine)
        out._weights = normalised(self._weights[rows])
        out._grams = restrict_all(self._grams, rows)
        return out

    def width(self, node: Node) -> int:
        """Return the number of coordinates of a node: n, or one for the constant root."""
        return self.n_rows if node else 1

    @property
    def has_kernels(self) -> bool:
        """True: every node except the root has a Gram matrix."""
        return True

    def kernel_operator(self, nodes: Sequence[Node]) -> KernelOperator:
        """Return the nodes as kernels, with the root replaced by the zero kernel.

        In a problem with an intercept the constant is redundant: its score is zero up to rounding.
        The zero kernel makes the score exactly zero, so that the root never counts as a term.
        """
        idle = BlockKernel(np.zeros((self.n_rows, 1)))
        return KernelOperator([self._kernel(v) if v else idle for v in nodes], self.n_rows)

    def features(self, nodes: Sequence[Node]) -> NoReturn:
        """Raise NotImplementedError: there are no feature columns."""
        _refuse("features")

    def gram(
        self,
        left: Sequence[Node],
        right: Sequence[Node],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> NoReturn:
        """Raise NotImplementedError: moments need feature columns."""
        _refuse("gram")

    def means(self, nodes: Sequence[Node], weights: FloatArray | None = None) -> FloatArray:
        """Return the weighted mean of each coordinate over the rows, shape (R,)."""
        omega = self._weights if weights is None else normalised(weights)
        parts = [self._kernel(node).apply(omega) if node else np.ones(1) for node in nodes]
        return np.concatenate([np.empty(0), *parts])

    def gram_diagonal(self, nodes: Sequence[Node], means: FloatArray) -> FloatArray:
        """Return zero for the root, and infinity for Gram matrices, which have no features."""
        parts = [np.full(self.n_rows, np.inf) if node else np.zeros(1) for node in nodes]
        return np.concatenate([np.empty(0), *parts])

    def correlate(
        self, nodes: Sequence[Node], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return the coordinates of K_w vector: ``vector`` itself, or its sum for the root."""
        if absolute:
            _refuse("correlate of magnitudes")
        parts = [self._kernel(node).coordinates(vector) for node in nodes]
        return np.concatenate([np.empty((0, *vector.shape[1:])), *parts])

    def apply(self, nodes: Sequence[Node], coef: FloatArray) -> FloatArray:
        """Return the sum of the nodes' functions on the rows, shape (n,) or (n, k)."""
        out, start = np.zeros((self.n_rows, *coef.shape[1:])), 0
        for node in nodes:
            part = coef[start : start + self.width(node)]
            if np.any(part):
                out += self._kernel(node).expand(part)
            start += len(part)
        return out

    def score_squares(
        self, nodes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return vector' K_w vector for each node w, added over outputs, shape (len(nodes),).

        With ``rounded_up`` no entry is below its exact value.
        """
        operator = KernelOperator([self._kernel(node) for node in nodes], self.n_rows)
        return operator.score_squares(vector, rounded_up=rounded_up)

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1."""
        return list(self._grams)

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return vector' (K_prefix * K_{m,j}) vector for all one-variable extensions."""
        out = extension_sums(self._grams, prefixes, vector, rounded_up=rounded_up)
        columns: dict[int, list[int]] = {}
        for i, (m, _) in enumerate(self._grams):
            columns.setdefault(m, []).append(i)
        for target, prefix in zip(out, prefixes, strict=True):
            target[[i for m, _ in prefix for i in columns[m]]] = np.nan
        return out

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 K_{m,j}[i, i] for all levels, shape (len(level_pairs),).

        These sums bound the scores of products of two levels, as they do for feature columns. Some
        Phi satisfies K = Phi Phi', and the bound needs only |Phi(x_i)|^2 = K[i, i]. Level 0 of all
        other variables is one. For any u > 0,

            |sum_i vector_i Phi_v(x_i) x Phi_w(x_i)| <= sum_i |vector_i / u_i| |Phi_v(x_i)|
                                                             u_i |Phi_w(x_i)|,

        and the Cauchy-Schwarz inequality over i gives the bound.
        """
        squares = vector**2
        return np.array([squares @ np.maximum(g.diagonal(), 0.0) for g in self._grams.values()])

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return the exact descendant sums U(t) of the nodes, computed in tiles of row pairs."""
        return GramTailSummer(self._grams, scales, max_order).sums(nodes, dual_coef)

    def tail_draws(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
        n_draws: int,
        seed: int,
    ) -> NoReturn:
        """Raise NotImplementedError: random signs need feature columns."""
        _refuse("tail_draws")

    def tail_exact_parts(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> NoReturn:
        """Raise NotImplementedError: only the bounds from random signs use it."""
        _refuse("tail_exact_parts")

    def _kernel(self, node: Node) -> NodeKernel:
        return product_kernel([self._grams[pair] for pair in node], self.n_rows)


def _refuse(verb: str) -> NoReturn:
    raise NotImplementedError(
        f"{verb} needs feature columns, and a grid of Gram matrices has none; this is an error in "
        "hikernel: please report it."
    )
