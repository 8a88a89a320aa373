"""The engine over blocks of rows: every result is a sum, or a row, of results over a few rows.

Each block is cut into groups of rows, and each group becomes a ``NumpyEngine`` for as long as it is
needed. Squares are taken after the correlations of all groups are added up, and rounding margins
are those of the sum over all rows, so that bounds hold as they do in memory. Sums are added in the
order of the rows. Vectors over the rows are plain arrays here; nothing else has their length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.extensions import mark_present, sums_of_squares
from hikernel.engines.features import (
    Blocks,
    WeightedRows,
    by_output,
    cut_blocks,
    highest_levels,
    normalised,
    rounding_margin,
)
from hikernel.engines.group_work import (
    Applied,
    Combine,
    Correlations,
    CrossMoments,
    EngineMaker,
    Extensions,
    Features,
    GroupWork,
    LogKernels,
    TailDiagonal,
    TailDraws,
    TermSums,
    Variances,
    add_part,
    column_maxima,
    joined,
    level_squares,
    one_variable_levels,
)
from hikernel.engines.machine import check_time, require_memory
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.row_blocks import RowBlocks, Selection, n_selected, split_rows_of_blocks
from hikernel.engines.sketch import exact_parts

__all__ = ["RowBlockEngine"]

IndexArray = NDArray[np.intp]

_GROUP_NUMBERS = 2**22
"""Numbers of the one-variable levels of a group of rows (32 MiB)."""
_LEAST_GROUP, _MOST_GROUP = 256, 2**15
"""Rows of a group: with fewer, what every call takes would count; with more, what it holds."""

_PREFIX_COLUMNS = 2048
"""Maximum number of prefix columns that are scored in one pass."""

_GATHERED = 2**26
"""Largest number of level features that are brought together for sums over pairs of rows."""


class RowBlockEngine(WeightedRows):
    """Engine of a grid over blocks of rows.

    Parameters
    ----------
    blocks : RowBlocks
        The blocks.
    sizes : sequence of int
        Rows of every block.
    selections : sequence of (ndarray of int or None)
        The rows of every block that belong to the engine.
    make : EngineMaker
        Makes the engine of a group of rows.
    layout : NumpyEngine
        An engine of the same grid over any rows, for its structure.
    row_weights : ndarray of shape (n,)
        Positive weights of the selected rows, of any sum.

    Attributes
    ----------
    passes : dict of str to int
        How often the rows were gone through, by what for.
    """

    has_draws = True
    has_kernels = False
    in_blocks = True

    def __init__(
        self,
        blocks: RowBlocks,
        sizes: Sequence[int],
        selections: Sequence[Selection],
        make: EngineMaker,
        layout: NumpyEngine,
        row_weights: FloatArray,
    ) -> None:
        super().__init__(row_weights)
        self._blocks, self._sizes, self._selections = blocks, sizes, selections
        self._make, self._layout = make, layout
        self._counts = n_selected(sizes, selections)
        self.passes: dict[str, int] = {}

    @property
    def score_work(self) -> int:
        """Numbers to process for the score of one node: one column."""
        return self.n_rows

    @property
    def level_pairs(self) -> list[tuple[int, int]]:
        """All (variable, level) with level >= 1."""
        return self._layout.level_pairs

    def subset(self, rows: IndexArray) -> RowBlockEngine:
        """Return an engine over some of the rows; nothing is copied."""
        chosen = split_rows_of_blocks(self._sizes, self._selections, rows)
        weights = normalised(self._weights[rows])
        return RowBlockEngine(self._blocks, self._sizes, chosen, self._make, self._layout, weights)

    def width(self, node: Node) -> int:
        """Return the number of feature columns of a node."""
        return self._layout.width(node)

    def kernel_operator(self, nodes: Sequence[Node]) -> None:
        """Return None: every node has feature columns."""

    def results(
        self,
        name: str,
        compute: Callable[..., tuple[FloatArray, ...]],
        *vectors: FloatArray,
        combine: Combine = "sum",
        nodes: Sequence[Node] | None = None,
    ) -> tuple[FloatArray, ...]:
        """Go through the rows once, and return what a computation on all of them gives.

        Parameters
        ----------
        name : str
            What it is for, in a word.
        compute : callable
            Takes the engine of a group of rows and the parts of the vectors that belong to them,
            and returns a tuple of arrays. It can be pickled.
        *vectors : ndarray of shape (n,) or (n, k)
            Vectors over the rows.
        combine : {"sum", "largest", "rows"}
            How the results of groups make up the whole.
        nodes : sequence of nodes, optional
            The nodes that the computation needs features of; all by default.
        """
        self.passes[name] = self.passes.get(name, 0) + 1
        highest = None if nodes is None else self._needed(nodes)
        work = GroupWork(self._make, compute, combine, highest, self._group(highest))
        found = self._blocks.map(name, work, self._arguments(vectors))
        parts: list[tuple[FloatArray, ...]] = []
        if combine == "rows":
            return self._filled(part for part in found if part is not None)
        for part in found:
            if part is not None:
                add_part(parts, part, combine)
        return joined(parts, combine)

    def _filled(self, parts: Iterator[tuple[FloatArray, ...]]) -> tuple[FloatArray, ...]:
        """Return the rows of all blocks in arrays that are taken once."""
        out: tuple[FloatArray, ...] = ()
        start = 0
        for part in parts:
            out = out or tuple(np.empty((self.n_rows, *rows.shape[1:])) for rows in part)
            for whole, rows in zip(out, part, strict=True):
                whole[start : start + len(rows)] = rows
            start += len(part[0]) if part else 0
        return out

    def _arguments(self, vectors: Sequence[FloatArray]) -> Iterator[tuple[Any, ...]]:
        start = 0
        for count, selection in zip(self._counts, self._selections, strict=True):
            rows = slice(start, start + count)
            yield (selection, count, *(vector[rows] for vector in vectors))
            start += count

    def _needed(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Return the highest level of every variable on which the nodes depend."""
        everywhere = dict.fromkeys(self._layout.node_features.everywhere, 0)
        return everywhere | highest_levels(nodes)

    def _group(self, highest: Mapping[int, int] | None) -> int:
        """Return how many rows make a group, given the levels that it needs."""
        pairs = self.level_pairs
        if highest is not None:
            pairs = [(m, j) for m, j in pairs if j <= highest.get(m, 0)]
        columns = sum(self._layout.width((pair,)) for pair in pairs)
        return max(_LEAST_GROUP, min(_MOST_GROUP, _GROUP_NUMBERS // max(1, columns)))

    def features(self, nodes: Sequence[Node]) -> FloatArray:
        """Return the (n, R) features of the nodes, brought together."""
        total = sum(self.width(node) for node in nodes)
        require_memory(
            3 * self.n_rows * total,
            f"The features of {len(nodes)} terms for {self.n_rows} rows",
            "Lower max_kernels, or use a basis with fewer columns per level.",
        )
        return self.results("features", Features(nodes), combine="rows", nodes=nodes)[0]

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
        weights = self._weights if weights is None else weights
        compute = CrossMoments(left, right, left_means, right_means)
        return self.results("gram", compute, weights, nodes=[*left, *right])[0]

    def gram_diagonal(self, nodes: Sequence[Node], means: FloatArray) -> FloatArray:
        """Return the weighted variances of the columns."""
        return self.results("variances", Variances(nodes, means), self._weights, nodes=nodes)[0]

    def variances(self, nodes: Sequence[Node], blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the variance of <block_w, Phi_w(x)> over the rows for each node w, in two passes.

        The blocks have shape (width,) or (width, k); variances are added over the k outputs.
        """
        if not nodes:
            return np.zeros(0)
        zero = np.zeros((len(nodes), by_output(blocks[0]).shape[1]))
        sums = TermSums(nodes, blocks, zero, 1)
        means = self.results("terms", sums, self._weights, nodes=nodes)[0]
        squares = TermSums(nodes, blocks, means, 2)
        found = self.results("terms", squares, self._weights, nodes=nodes)[0]
        return np.asarray(np.sum(found, axis=1))

    def correlate(
        self, nodes: Sequence[Node], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``; shape (R,) or (R, k)."""
        if not nodes:
            return np.zeros((0, *vector.shape[1:]))
        compute = Correlations(nodes, not absolute, absolute)
        return self.results("scores", compute, vector, nodes=nodes)[0]

    def score_bounds(self, nodes: Sequence[Node], vector: FloatArray) -> FloatArray:
        """Return upper bounds on |Phi' vector| that hold in spite of rounding errors."""
        if not nodes:
            return np.zeros((0, *vector.shape[1:]))
        scores, sizes = self.results("scores", Correlations(nodes, True, True), vector, nodes=nodes)
        return np.asarray(np.abs(scores) + rounding_margin(self.n_rows) * sizes)

    def score_squares(
        self, nodes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),)."""
        scores = self.score_bounds(nodes, vector) if rounded_up else self.correlate(nodes, vector)
        return Blocks([self.width(node) for node in nodes]).squares(scores)

    def apply(self, nodes: Sequence[Node], coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        if not nodes:
            return np.zeros((self.n_rows, *coef.shape[1:]))
        return self.results("predictions", Applied(nodes, coef), combine="rows", nodes=nodes)[0]

    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for every one-variable level v."""
        if self._layout.node_features.everywhere:
            return np.full(len(self.level_pairs), np.inf)
        return self.results("level sizes", level_squares, vector)[0]

    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return the squared scores of all one-variable extensions of the prefixes."""
        pairs = self.level_pairs
        if self._layout.node_features.everywhere:
            return self._explicit_extensions(prefixes, vector, rounded_up)
        out = np.zeros((len(prefixes), len(pairs)))
        widths = [self.width(prefix) for prefix in prefixes]
        single = self._layout.node_features.single_columns
        for block in cut_blocks(widths, _PREFIX_COLUMNS):
            compute = Extensions(prefixes[block], rounded_up)
            products, sizes = self.results("extensions", compute, vector)
            np.abs(products, out=products)
            if rounded_up:
                margins = rounding_margin(self.n_rows) * sizes
                products += margins[:, :, None] * self._column_maxima
            np.square(products, out=products)
            for squares in products:
                out[block] += sums_of_squares(
                    squares, self._layout.level_starts, widths[block], single
                )
        mark_present(out, prefixes, pairs)
        return out

    def _explicit_extensions(
        self, prefixes: Sequence[Node], vector: FloatArray, rounded_up: bool
    ) -> FloatArray:
        """Return the same where some level 0 is no constant, node by node."""
        pairs = self.level_pairs
        out = np.full((len(prefixes), len(pairs)), np.nan)
        mark = np.zeros(out.shape)
        mark_present(mark, prefixes, pairs)
        where = np.argwhere(~np.isnan(mark))
        nodes = [tuple(sorted((*prefixes[i], pairs[k]))) for i, k in where]
        if nodes:
            out[tuple(where.T)] = self.score_squares(nodes, vector, rounded_up=rounded_up)
        return out

    @cached_property
    def _column_maxima(self) -> FloatArray:
        """The largest magnitude in every column of the levels."""
        return self.results("level sizes", column_maxima, combine="largest")[0]

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return the exact descendant sums of the nodes, over rows that are brought together.

        Sums over pairs of rows are for few rows: ``certify="auto"`` asks for no others.
        """
        return self._gathered.tail_sums(nodes, dual_coef, scales, max_order)

    @cached_property
    def _gathered(self) -> NumpyEngine:
        """All rows as an engine in memory."""
        widths = [self._layout.width((pair,)) for pair in self.level_pairs]
        if self.n_rows * sum(widths) > _GATHERED:
            raise ValueError(
                f'certify="exact" sums over all pairs of {self.n_rows} rows, which lie in blocks; '
                'use certify="statistical", whose work grows with the rows alone, or "auto".'
            )
        parts = iter(self.results("levels", one_variable_levels, combine="rows"))
        features = self._layout.node_features
        levels = [
            [next(parts) if (m, j) in features.stored else np.empty((0, 0)) for j in range(len(w))]
            for m, w in enumerate(features.widths)
        ]
        constant = [m not in features.everywhere for m in range(len(levels))]
        return NumpyEngine(features.widths, levels, self._weights, constant)

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

        The signs of a draw belong to variables and not to rows, so that draws of blocks add up.
        """
        check_time()  # as engines in memory do before long work
        compute = TailDraws(nodes, scales, max_order, n_draws, seed)
        return self.results("tail bounds", compute, dual_coef)[0]

    def tail_diagonal(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return the diagonal part of the descendant sums."""
        compute = TailDiagonal(nodes, scales, max_order)
        return self.results("tail bounds", compute, dual_coef)[0]

    def log_kernels(self, scales: Sequence[FloatArray]) -> FloatArray:
        """Return log prod_m S_{m,0}(x_i, x_i), shape (n,)."""
        return self.results("tail bounds", LogKernels(scales), combine="rows")[0]

    def tail_exact_parts(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return the larger of two exact parts: the diagonal, and that of the heaviest rows."""
        return exact_parts(self, nodes, dual_coef, scales, max_order)
