"""The NumPy engine: level features are stored, node features are computed in chunks of rows.

Only the features of the one-variable levels are stored (n times the sum of their widths). Node
features are computed for one chunk of rows at a time. No method except ``features`` needs memory
for n R numbers, and no method needs memory for n^2 numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.bumps import BumpExtensions
from hikernel.engines.extensions import mark_present, sums_of_squares
from hikernel.engines.features import (
    Blocks,
    NodeFeatures,
    WeightedRows,
    by_output,
    cut_blocks,
    level_spans,
    normalised,
    rounding_margin,
)
from hikernel.engines.limited_tails import LimitedTailSummer
from hikernel.engines.machine import check_time, require_memory
from hikernel.engines.numerics import product_in_parts
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.tail_verbs import TailVerbs
from hikernel.engines.tails import TailSummer

__all__ = ["NumpyEngine"]

_CHUNK_NUMBERS = 2**21
"""Numbers in one chunk of node features (16 MiB): enough for BLAS, small next to the levels."""

_BLOCK_COLUMNS = 512
"""Maximum number of prefix columns that are scored together."""


class NumpyEngine(WeightedRows, TailVerbs):
    """Engine that keeps its rows in NumPy arrays.

    Parameters
    ----------
    widths : sequence of tuple of int
        ``widths[m][j]`` is the number of columns of level j of variable m.
    levels : iterable of sequence of ndarray of shape (n_rows, width)
        One entry per variable: its levels, starting with level 0. It is consumed one variable at
        a time, so a generator avoids a second copy of all levels in memory.
    row_weights : ndarray of shape (n_rows,)
        Positive weights; they are normalised to sum to one.
    constant_levels : sequence of bool
        Whether level 0 of variable m is identically one. It is then neither stored nor
        multiplied.
    """

    def __init__(
        self,
        widths: Sequence[tuple[int, ...]],
        levels: Iterable[Sequence[FloatArray]],
        row_weights: FloatArray,
        constant_levels: Sequence[bool],
    ) -> None:
        n_rows = len(row_weights)
        super().__init__(row_weights)
        self._widths = [tuple(w) for w in widths]
        self._spans, n_columns = level_spans(self._widths, constant_levels)
        require_memory(
            n_rows * n_columns,
            f"Storing {n_columns} one-variable features for {n_rows} rows",
            "Use fewer rows, a lower degree or a basis with fewer columns per level.",
        )
        self._columns = np.empty((n_rows, n_columns), order="F")
        for m, variable_levels in enumerate(levels):
            for j, block in enumerate(variable_levels):
                if (m, j) in self._spans:
                    self._columns[:, self._spans[m, j]] = block
        self._features = NodeFeatures(self._columns, self._spans, self._widths)

    has_draws = True

    @property
    def node_features(self) -> NodeFeatures:
        """The features of the nodes over these rows."""
        return self._features

    @property
    def score_work(self) -> int:
        """Numbers to process for the score of one node: one column."""
        return self.n_rows

    def subset(self, rows: NDArray[np.intp]) -> NumpyEngine:
        """Return an engine over some of the rows; their features are copied."""
        require_memory(
            len(rows) * self._columns.shape[1],
            f"A copy of the features of {len(rows)} rows",
            "Use fewer rows, a lower degree or a basis with fewer columns per level.",
        )
        out = object.__new__(type(self))
        out._weights = normalised(self._weights[rows])
        out._widths = self._widths
        out._spans = self._spans
        out._columns = np.asfortranarray(self._columns[rows])
        out._features = NodeFeatures(out._columns, out._spans, out._widths)
        return out

    def width(self, node: Node) -> int:
        """Return the number of feature columns of a node."""
        return self._features.width(node)

    @property
    def has_kernels(self) -> bool:
        """False: every node has feature columns."""
        return False

    def kernel_operator(self, nodes: Sequence[Node]) -> None:
        """Return None: every node has feature columns."""

    def features(self, nodes: Sequence[Node]) -> FloatArray:
        """Return the (n, R) features of the nodes."""
        total = sum(self.width(node) for node in nodes)
        require_memory(
            3 * self.n_rows * total,  # as they are, centred, and scaled by zeta
            f"The features of {len(nodes)} terms for {self.n_rows} rows",
            "Lower max_kernels, or use a basis with fewer columns per level.",
        )
        return self._features.builder(nodes)(slice(0, self.n_rows))

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
        """Return the centred cross moments of two lists of nodes.

        The weights of the rows are omega, or ``weights`` if given.
        """
        if weights is None:
            weights = self._weights
        if (repeated := self._features.repeated) is not None:
            return repeated.gram(left, right, left_means, right_means, weights)
        total = np.zeros((len(left_means), len(right_means)))
        same = list(left) == list(right) and np.array_equal(left_means, right_means)
        left_features, right_features = self._features.builder(left), self._features.builder(right)
        for rows in self._chunks(len(left_means) + len(right_means)):
            check_time()
            root_weights = np.sqrt(weights[rows])[:, None]
            a = (left_features(rows) - left_means) * root_weights
            b = a if same else (right_features(rows) - right_means) * root_weights
            total += a.T @ b
        return total

    def gram_diagonal(
        self, nodes: Sequence[Node], means: FloatArray, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return the weighted variances of the columns."""
        weights = self._weights if weights is None else weights
        total = np.zeros(len(means))
        features = self._features.builder(nodes)
        for rows in self._chunks(len(means)):
            centred = features(rows)
            centred -= means
            np.square(centred, out=centred)
            total += centred.T @ weights[rows]
        return total

    def correlate(
        self, nodes: Sequence[Node], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``; shape (R,) or (R, k)."""
        if absolute:
            vector = np.abs(vector)
        widths = [self.width(node) for node in nodes]
        total = np.zeros((sum(widths), *vector.shape[1:]))
        start = 0
        for block in cut_blocks(widths, _CHUNK_NUMBERS // 64):
            part = total[start : start + sum(widths[block])]
            build = self._features.builder(nodes[block])
            for rows in self._chunks(len(part)):
                features = build(rows)
                if absolute:
                    np.abs(features, out=features)
                part += features.T @ vector[rows]
            start += len(part)
        return total

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1."""
        return [(m, j) for m, widths in enumerate(self._widths) for j in range(1, len(widths))]

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return the squared scores of all one-variable extensions of the prefixes.

        Each output takes one matrix product: (features of the prefixes)' times (all levels times
        the vector). With ``rounded_up`` each score gets the margin (n + 64) eps sum |prefix|
        |vector| times the largest magnitude of the level. Half of this margin bounds the rounding
        error of the score; the other half covers the sum of the squares.
        """
        pairs = self.level_pairs
        out = np.zeros((len(prefixes), len(pairs)))
        if self._features.everywhere:
            # Absent variables contribute features too, so a prefix is not a common factor.
            single = all(self._widths[m][0] == 1 for m in self._features.everywhere)
            extend = self._bump_extensions if single else self._explicit_extensions
            return extend(prefixes, vector, rounded_up)
        widths = [self.width(prefix) for prefix in prefixes]
        for output in np.atleast_2d(np.ascontiguousarray(vector.T)):
            # Multiply the levels by the vector once, not the features of every prefix.
            weighted = self._columns * output[:, None]
            for block in cut_blocks(widths, _BLOCK_COLUMNS):
                products = self._products(prefixes[block], weighted)
                if rounded_up:
                    sizes = self.correlate(prefixes[block], output, absolute=True)
                    np.abs(products, out=products)
                    products += rounding_margin(self.n_rows) * np.outer(sizes, self.column_maxima())
                np.square(products, out=products)
                single = self._features.single_columns
                out[block] += sums_of_squares(products, self.level_starts, widths[block], single)
        mark_present(out, prefixes, pairs)
        return out

    def extension_products(self, prefixes: Sequence[Node], output: FloatArray) -> FloatArray:
        """Return sum_i output_i Phi_prefixes(x_i) times all stored columns at x_i.

        ``output`` has shape (n,); the result (columns of the prefixes, stored columns).
        """
        return self._products(prefixes, self._columns * output[:, None])

    def _products(self, prefixes: Sequence[Node], weighted: FloatArray) -> FloatArray:
        """Return Phi_prefixes' weighted, shape (columns of the prefixes, stored columns)."""
        n_columns = sum(self.width(prefix) for prefix in prefixes)
        features, repeated = self._features.builder(prefixes), self._features.repeated
        total: FloatArray | None = None
        for rows in self._chunks(n_columns):
            if total is not None:
                check_time()
            if repeated is None:
                part = product_in_parts(features(rows).T, weighted[rows])
            else:
                part = repeated.product(prefixes, rows, weighted[rows])
            total = part if total is None else np.add(total, part, out=total)
        return np.zeros((n_columns, weighted.shape[1])) if total is None else total

    @property
    def level_starts(self) -> list[int]:
        """The first stored column of every (variable, level) pair with level >= 1."""
        return [self._spans[pair].start for pair in self.level_pairs]

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for every one-variable level v."""
        pairs = self.level_pairs
        if self._features.everywhere:
            return np.full(len(pairs), np.inf)
        squares = np.zeros(self._columns.shape[1])
        weights = vector**2
        for rows in self._chunks(len(squares)):
            squares += (self._columns[rows] ** 2).T @ weights[rows]
        starts = np.array(self.level_starts, dtype=np.intp)
        return np.add.reduceat(squares, starts) if pairs else squares

    def column_maxima(self) -> FloatArray:
        """Return the largest magnitude in every stored column."""
        return np.asarray(np.maximum(self._columns.max(axis=0), -self._columns.min(axis=0)))

    def _bump_extensions(
        self, prefixes: Sequence[Node], vector: FloatArray, rounded_up: bool
    ) -> FloatArray:
        """Return the squared scores of extensions if no level 0 has more than one column."""
        bumps = BumpExtensions(self._columns, self._spans, self.level_pairs, self._features)
        margin = rounding_margin(self.n_rows)
        out = np.empty((len(prefixes), len(self.level_pairs)))
        weighted = by_output(vector)
        for target, prefix in zip(out, prefixes, strict=True):
            scores = sizes = np.zeros(())
            for rows in self._chunks(4 * self._columns.shape[1]):
                scores = scores + bumps.products(prefix, weighted[rows], rows, absolute=False)
                if rounded_up:
                    sizes = sizes + bumps.products(prefix, weighted[rows], rows, absolute=True)
            target[...] = bumps.squares(np.abs(scores) + margin * sizes, prefix)
        return out

    def _explicit_extensions(
        self, prefixes: Sequence[Node], vector: FloatArray, rounded_up: bool
    ) -> FloatArray:
        """Return the same from explicit node features, if some level 0 has several columns."""
        pairs = self.level_pairs
        out = np.full((len(prefixes), len(pairs)), np.nan)
        for target, prefix in zip(out, prefixes, strict=True):
            present = {m for m, _ in prefix}
            wanted = [i for i, (m, _) in enumerate(pairs) if m not in present]
            nodes = [tuple(sorted((*prefix, pairs[i]))) for i in wanted]
            if not nodes:
                continue
            target[wanted] = self._column_squares(nodes, vector, rounded_up)
        return out

    def _column_squares(
        self, nodes: Sequence[Node], vector: FloatArray, rounded_up: bool
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, computed from its feature columns."""
        scores = self.score_bounds(nodes, vector) if rounded_up else self.correlate(nodes, vector)
        return Blocks([self.width(node) for node in nodes]).squares(scores)

    def score_squares(
        self, nodes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),).

        With ``rounded_up`` no entry is below its exact value. A node with more columns than rows
        is scored through its kernel, in tiles, because products of wide levels can have millions
        of columns. The score of such a node is always rounded up.
        """
        widths = np.array([self.width(node) for node in nodes], dtype=np.intp)
        wide = widths > self.n_rows
        out = np.empty(len(nodes))
        narrow = [node for node, is_wide in zip(nodes, wide, strict=True) if not is_wide]
        if narrow:
            out[~wide] = self._column_squares(narrow, vector, rounded_up)
        if np.any(wide):
            rest = [node for node, is_wide in zip(nodes, wide, strict=True) if is_wide]
            out[wide] = self.tail_sums(rest, vector, [np.eye(len(w)) for w in self._widths])
        return out

    def apply(self, nodes: Sequence[Node], coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        out = np.empty((self.n_rows, *coef.shape[1:]))
        features = self._features.builder(nodes)
        for rows in self._chunks(len(coef)):
            out[rows] = features(rows) @ coef
        return out

    def _row_squares(self, variable: int, level: int) -> FloatArray | float:
        """Return |phi_ml(x_i)|^2, shape (n,), or one for a constant level."""
        if (variable, level) not in self._spans:
            return 1.0
        columns = self._columns[:, self._spans[variable, level]]
        return np.asarray(np.einsum("ij,ij->i", columns, columns))

    def _summer(
        self, scales: Sequence[FloatArray], max_order: int | None
    ) -> TailSummer | LimitedTailSummer:
        variables = [
            [
                self._columns[:, self._spans[m, j]] if (m, j) in self._spans else None
                for j in range(len(self._widths[m]))
            ]
            for m in range(len(self._widths))
        ]
        if max_order is None or max_order >= len(variables):
            return TailSummer(variables, scales)
        return LimitedTailSummer(variables, scales, max_order)

    def _chunks(self, n_columns: int) -> Iterator[slice]:
        """Yield slices of rows so that a chunk of ``n_columns`` features stays small."""
        step = max(1, _CHUNK_NUMBERS // max(1, n_columns))
        for start in range(0, self.n_rows, step):
            yield slice(start, min(start + step, self.n_rows))
