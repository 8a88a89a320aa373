"""Engine of sparse columns: every level is a constant plus a sparse column.

The feature of level c is phi_c = z_c + G_c, where z_c = phi_c(0) is its value at zero, and G_c is
zero where the column is. With the matrix G of all levels, for any vector u over the rows,

    Phi' u = G' u + z (1' u),
    (phi_c phi_w)' u = (G' diag(u) G)_cw + z_c (G' u)_w + z_w (phi_c' u),

so that scores of all levels cost as many operations as G has entries, and scores of all products of
two levels as many as there are pairs of entries in one row. Only the features of the few nodes of a
hull are dense, one column each, and they are made in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.engines.features import WeightedRows, by_output, normalised, rounding_margin
from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sparse_sums import PairSums, Summary

__all__ = ["SparseEngine"]

IndexArray = NDArray[np.intp]

_BLOCK_NUMBERS = 2**22
"""Numbers in one block of node features or scores (32 MiB)."""

_PASSES = 500
"""Work of one score in dense passes over scores, relative to a multiplication in a matrix product:
five passes of a nanosecond each."""

_SPARSE = 50
"""Work of one multiplication in a sparse product, relative to one in a dense product."""

_PER_COLUMN = 60
"""What ``GridEffort.bounds`` counts per variable, by which ``sum_work`` is divided: a descendant
sum over sparse columns takes one sparse product, whatever the number of variables."""


class SparseEngine(WeightedRows):
    """Engine over rows of sparse columns; every level has one column, and level 0 is constant.

    Parameters
    ----------
    columns : csc_array of shape (n, C)
        G, the levels of all variables minus their values at zero; variable by variable, and level
        by level from 1 on.
    zeros : ndarray of shape (C,)
        z, the levels at zero.
    pairs : sequence of (variable, level)
        Variable and level of each column, in increasing order.
    row_weights : ndarray of shape (n,)
        Positive weights; they are normalised to sum to one.
    """

    def __init__(
        self,
        columns: sparse.csc_array,
        zeros: FloatArray,
        pairs: Sequence[tuple[int, int]],
        row_weights: FloatArray,
    ) -> None:
        super().__init__(row_weights)
        self._columns = columns
        self._rows = columns.tocsr()
        self._zeros = zeros
        self._pairs = list(pairs)
        self._place = {pair: c for c, pair in enumerate(self._pairs)}
        self._variables = np.array([m for m, _ in self._pairs], dtype=np.intp)

    has_draws = False

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1."""
        return self._pairs

    @cached_property
    def _meetings(self) -> int:
        """Number of pairs of entries in one row: multiplications of G' diag(u) G."""
        counts = np.diff(self._rows.indptr).astype(np.float64)
        return int(counts @ counts)

    @property
    def score_work(self) -> int:
        """Numbers to process for the score of one pair of levels."""
        n_pairs = max(1, len(self._pairs)) ** 2
        return _PASSES + _SPARSE * self._meetings // n_pairs

    @property
    def sum_work(self) -> int:
        """Numbers to process for a descendant sum, per variable as ``GridEffort`` counts it."""
        return 1 + 2 * _SPARSE * self._meetings // (_PER_COLUMN * max(1, len(self._pairs)))

    def subset(self, rows: IndexArray) -> SparseEngine:
        """Return an engine over some of the rows; their entries are copied."""
        some = self._rows[rows].tocsc()
        return SparseEngine(some, self._zeros, self._pairs, self._weights[rows])

    def width(self, node: Node) -> int:
        """Return 1, the number of feature columns of any node."""
        return 1

    @property
    def has_kernels(self) -> bool:
        """False: every node has a feature column."""
        return False

    def kernel_operator(self, nodes: Sequence[Node]) -> None:
        """Return None: every node has a feature column."""

    def features(self, nodes: Sequence[Node]) -> FloatArray:
        """Return the (n, R) features of the nodes."""
        require_memory(
            3 * self.n_rows * len(nodes),  # as they are, centred, and scaled by zeta
            f"The features of {len(nodes)} terms for {self.n_rows} rows",
            "Lower max_kernels, or use fewer rows.",
        )
        out = np.empty((len(nodes), self.n_rows))
        for target, node in zip(out, nodes, strict=True):
            target[...] = 1.0
            for pair in node:
                self._multiply(target, self._place[pair])
        return out.T

    def means(self, nodes: Sequence[Node], weights: FloatArray | None = None) -> FloatArray:
        """Return the means of the columns, weighted by omega or by ``weights`` if given."""
        return self.correlate(nodes, self._weights if weights is None else normalised(weights))

    def gram(
        self,
        left: Sequence[Node],
        right: Sequence[Node],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return the centred cross moments of two lists of nodes."""
        root = np.sqrt(self._weights if weights is None else weights)[:, None]
        same = list(left) == list(right) and np.array_equal(left_means, right_means)
        out = np.empty((len(left), len(right)))
        for some in self._blocks(len(left)):
            a = (self.features(left[some]) - left_means[some]) * root
            if same and len(out) == some.stop - some.start:
                return np.asarray(a.T @ a)
            for others in self._blocks(len(right)):
                b = (self.features(right[others]) - right_means[others]) * root
                out[some, others] = a.T @ b
        return out

    def gram_diagonal(self, nodes: Sequence[Node], means: FloatArray) -> FloatArray:
        """Return the weighted variances of the columns."""
        out = np.empty(len(nodes))
        for some in self._blocks(len(nodes)):
            out[some] = self._weights @ (self.features(nodes[some]) - means[some]) ** 2
        return out

    def correlate(
        self, nodes: Sequence[Node], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``; shape (R,) or (R, k)."""
        out = np.empty((len(nodes), *vector.shape[1:]))
        for some in self._blocks(len(nodes)):
            features = self.features(nodes[some])
            if absolute:
                out[some] = np.abs(features).T @ np.abs(vector)
            else:
                out[some] = features.T @ vector
        return out

    def score_squares(
        self, nodes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),).

        With ``rounded_up`` no entry is below its exact value.
        """
        scores = self.score_bounds(nodes, vector) if rounded_up else self.correlate(nodes, vector)
        return np.asarray(np.sum(by_output(scores) ** 2, axis=1))

    def apply(self, nodes: Sequence[Node], coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        out = np.zeros((self.n_rows, *coef.shape[1:]))
        for some in self._blocks(len(nodes)):
            out += self.features(nodes[some]) @ coef[some]
        return out

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return the squared scores of all one-variable extensions of the prefixes.

        With ``rounded_up`` every score gets a margin. The magnitudes of its summands add up to at
        most sum_i |u_i| |prefix_i| (|z_w| + |G_iw|), which the Cauchy-Schwarz inequality bounds by
        the root of a product of two sums, one of the prefix and one of the level.
        """
        out = np.zeros((len(prefixes), len(self._pairs)))
        for u in by_output(vector).T:
            summary = Summary.of(self._columns, self._zeros, u)
            single = [i for i, prefix in enumerate(prefixes) if len(prefix) == 1]
            others = [i for i, prefix in enumerate(prefixes) if len(prefix) != 1]
            index = np.array([self._place[prefixes[i][0]] for i in single], dtype=np.intp)
            for some in self._blocks(len(single), len(self._pairs)):
                scores = self._pair_scores(index[some], u, summary)
                if rounded_up:
                    self._round_up(scores, summary.sizes[index[some]], summary.sizes)
                out[single[some]] += scores**2
            for some in self._blocks(len(others), len(self._pairs)):
                features = self.features([prefixes[i] for i in others[some]])
                weighted = features * u[:, None]
                scores = (self._rows.T @ weighted).T
                scores += np.outer(np.sum(weighted, axis=0), self._zeros)
                if rounded_up:
                    sizes = np.sum(np.abs(weighted) * np.abs(features), axis=0)
                    self._round_up(scores, sizes, summary.sizes)
                out[others[some]] += scores**2
        for i, prefix in enumerate(prefixes):
            for m, _ in prefix:
                out[i, slice(*np.searchsorted(self._variables, [m, m + 1]))] = np.nan
        return out

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for every one-variable level v."""
        weights = vector**2
        # (z + G)^2 = z^2 + G (G + 2 z), and the second part is sparse.
        excess = self._with_data(lambda data, zeros: data * (data + 2.0 * zeros))
        squares = excess.T @ weights + self._zeros**2 * np.sum(weights)
        return np.maximum(np.asarray(squares), 0.0)

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return the exact descendant sums U(t) of the nodes, for ``max_order`` 1 or 2.

        See ``sparse_sums``: the sums over all pairs take one sparse product, and no pair of rows.
        """
        if max_order not in (1, 2):
            raise ValueError(f"Sparse columns need max_order 1 or 2, got {max_order!r}.")
        sums = PairSums(self._columns, self._rows, self._zeros, self._variables)
        scale_of = np.array([scales[m][0, j] for m, j in self._pairs])
        found = sums.of(by_output(dual_coef), scale_of, pairs=max_order == 2)
        out = np.zeros(len(nodes))
        two: list[int] = []
        for i, node in enumerate(nodes):
            if not node:
                out[i] = found.root
            elif len(node) == 1:
                ((m, row),) = node
                here = slice(*np.searchsorted(self._variables, [m, m + 1]))
                out[i] = scales[m][row, 1:] @ found.levels[here]
            elif len(node) <= max_order:
                two.append(i)
        if two:
            out[two] = self._two_variables([nodes[i] for i in two], dual_coef, scales)
        out[~np.isfinite(out)] = np.inf
        return out

    def tail_draws(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
        n_draws: int,
        seed: int,
    ) -> FloatArray:
        """Raise: the sums of sparse columns are exact."""
        raise NotImplementedError("Descendant sums of sparse columns are exact, not drawn.")

    def tail_exact_parts(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Raise: the sums of sparse columns are exact."""
        raise NotImplementedError("Descendant sums of sparse columns are exact, not drawn.")

    def _two_variables(
        self, nodes: list[Node], dual_coef: FloatArray, scales: Sequence[FloatArray]
    ) -> FloatArray:
        """Return U(t) for nodes of two variables: sums over their levels, of rounded-up scores."""
        by_first: dict[int, list[int]] = {}
        for i, node in enumerate(nodes):
            by_first.setdefault(node[0][0], []).append(i)
        out = np.empty(len(nodes))
        for m, index in by_first.items():
            first = slice(*np.searchsorted(self._variables, [m, m + 1]))
            prefixes = [(pair,) for pair in self._pairs[first]]
            squares = self.extension_squares(prefixes, dual_coef, rounded_up=True)
            for i in index:
                (_, row), (other, other_row) = nodes[i]
                second = slice(*np.searchsorted(self._variables, [other, other + 1]))
                left, right = scales[m][row, 1:], scales[other][other_row, 1:]
                out[i] = left @ squares[:, second] @ right
        return out

    def _pair_scores(self, index: IndexArray, u: FloatArray, summary: Summary) -> FloatArray:
        """Return (phi_c phi_w)' u for some levels c and all levels w."""
        left = self._columns[:, index].multiply(u[:, None]).T.tocsr()
        met = (left @ self._rows).tocoo()
        scores = np.outer(self._zeros[index], summary.products)
        scores += np.outer(summary.scores[index], self._zeros)
        scores[met.row, met.col] += met.data
        return scores

    def _round_up(self, scores: FloatArray, left: FloatArray, right: FloatArray) -> None:
        """Replace scores by upper bounds on their magnitudes."""
        np.abs(scores, out=scores)
        scores += rounding_margin(self.n_rows) * np.sqrt(np.outer(left, right))

    def _multiply(self, target: FloatArray, c: int) -> None:
        """Multiply a vector over the rows by level c."""
        start, stop = self._columns.indptr[c : c + 2]
        rows, values = self._columns.indices[start:stop], self._columns.data[start:stop]
        present = target[rows] * (self._zeros[c] + values)
        target *= self._zeros[c]
        target[rows] = present

    def _with_data(
        self, change: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> sparse.csc_array:
        """Return a matrix with the entries of G changed, from each entry and its z."""
        counts = np.diff(self._columns.indptr)
        data = change(self._columns.data, np.repeat(self._zeros, counts))
        parts = (data, self._columns.indices, self._columns.indptr)
        return sparse.csc_array(parts, shape=self._columns.shape)

    def _blocks(self, n_columns: int, n_rows: int | None = None) -> Iterator[slice]:
        """Yield slices of columns of ``n_rows`` numbers each, so that a block stays small."""
        step = max(1, _BLOCK_NUMBERS // max(1, self.n_rows if n_rows is None else n_rows))
        for start in range(0, n_columns, step):
            yield slice(start, min(start + step, n_columns))
