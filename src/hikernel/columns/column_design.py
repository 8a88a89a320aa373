"""The columns of a table with fitted bases: features, predictions and names of their terms."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import FittedBasis
from hikernel.bases.branches import FittedBranches
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.steps import FittedSteps
from hikernel.checks import outside_level
from hikernel.columns.basis_choice import AUTO, WITH_JUMPS, WITH_STEPS, BasisChoice
from hikernel.columns.choices import bases_frame
from hikernel.columns.reading import lies_in_blocks, read_table
from hikernel.columns.table import ColumnTable, TableRows
from hikernel.columns.weights import KnownSizes
from hikernel.engines import choose_engine, engine_for_prediction
from hikernel.engines.features import Blocks, highest_levels
from hikernel.engines.machine import in_threads
from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.graphs import (
    Design,
    Direction,
    Grid,
    RicherDesign,
    node_order,
    term_names,
    unambiguous,
)

if TYPE_CHECKING:
    from hikernel.columns.column_grid import ColumnGrid

__all__ = ["ColumnDesign"]

_CHUNK_NUMBERS = 2**21
"""Number of floats that a thread holds at a time while predicting: 16 MiB. With smaller chunks the
threads spend their time waiting for the interpreter."""

_MORE_LEVELS = 2
"""Increase of the degree in a refit on the selected variables, relative to the search."""


@dataclass(frozen=True)
class ColumnDesign(Design):
    """Fitted bases of all columns, with the encoding of the table and the grid of levels.

    Attributes
    ----------
    table : ColumnTable
        The encoding of tables as matrices.
    bases : tuple of FittedBasis
        One per column of the matrix.
    grid : Grid
        Levels and weights.
    notes : tuple of (str, str)
        For every column, the name of its basis and the reason for the choice.
    owner : str
        Name of the estimator in error messages and warnings.
    engine_name : str
        The engine to compute with, a key of ``ENGINES`` or "auto".
    source : ColumnGrid or None
        The graph source that was fitted; None for a model from a file.
    choices : tuple of BasisChoice
        The bases before they were fitted; empty for a model from a file.
    signs : dict of int to int
        Columns in which f may only rise (1) or only fall (-1), by position; empty for a model from
        a file, whose coefficients are what they are.
    level_sizes : dict
        Sizes of the levels of the training rows (``weights``), which richer designs share.
    """

    table: ColumnTable
    bases: tuple[FittedBasis, ...]
    grid: Grid
    notes: tuple[tuple[str, str], ...]
    owner: str = "ColumnGrid"
    engine_name: str = "auto"
    source: ColumnGrid | None = field(default=None, repr=False, compare=False)
    choices: tuple[BasisChoice, ...] = field(default=(), repr=False, compare=False)
    signs: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)
    level_sizes: KnownSizes = field(default_factory=dict, repr=False, compare=False)

    @property
    def graph(self) -> Grid:
        """Structure and weights of the graph."""
        return self.grid

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return self.table.names

    def training_rows(self, rows: TableRows) -> FloatArray:
        """Return the matrix of the training rows."""
        return rows.matrix

    def read(self, X: Any) -> FloatArray:
        """Return the matrix of new rows; warn if only one of the two tables has column names."""
        if lies_in_blocks(X):
            from hikernel.columns.block_grid import read_blocks  # imported only when needed

            return read_blocks(self, X)  # type: ignore[return-value]
        raw = read_table(X)
        self.check_columns(raw.names, len(raw.columns))
        return self.table.transform(raw)

    def check_columns(self, names: tuple[str, ...] | None, n_columns: int) -> None:
        """Warn if only one table has names, and raise for another number of columns without any.

        With names on both sides nothing is checked here: different names, which ``transform``
        finds, tell the user more than a different number of columns.
        """
        table = self.table
        if (table.feature_names_in is None) != (names is None):
            warnings.warn(
                f"X has feature names, but {self.owner} was fitted without feature names"
                if names is not None
                else f"X does not have valid feature names, but {self.owner} was fitted with "
                "feature names",
                UserWarning,
                stacklevel=outside_level(),
            )
        named = table.feature_names_in is not None and names is not None
        if not named and n_columns != table.n_features_in:
            raise ValueError(
                f"X has {n_columns} features, but {self.owner} is expecting "
                f"{table.n_features_in} features as input."
            )

    def engine(
        self, rows: FloatArray, weights: FloatArray, variables: Iterable[int] | None = None
    ) -> GridEngine:
        """Return an engine over rows.

        Parameters
        ----------
        rows : ndarray of shape (n, p)
            Matrix of training or new rows, with the columns that the bases were fitted to.
        weights : ndarray of shape (n,)
            Positive weights.
        variables : iterable of int, optional
            Variables whose levels are needed, all by default. The others keep level 0 only and must
            not appear in a node. Such an engine is for a prediction or a refit: "auto" is NumPy.
        """
        wanted = set(range(len(self.bases))) if variables is None else set(variables)
        constant = [basis.constant_level for basis in self.bases]
        widths = [
            basis.widths if m in wanted else basis.widths[:1] for m, basis in enumerate(self.bases)
        ]

        def levels() -> Iterable[Sequence[FloatArray]]:
            for m, basis in enumerate(self.bases):
                if m in wanted:
                    yield basis.transform(np.ascontiguousarray(rows[:, m]))
                elif constant[m]:
                    yield []
                else:
                    yield basis.transform(np.ascontiguousarray(rows[:, m]))[:1]

        if variables is None:
            stored = sum(sum(w[1:] if c else w) for w, c in zip(widths, constant, strict=True))
            make = choose_engine(self.engine_name, len(rows) * stored)
        else:
            make = engine_for_prediction(self.engine_name)
        return make(widths, levels(), weights, constant)

    def predict(self, nodes: Sequence[Node], coef: FloatArray, rows: FloatArray) -> FloatArray:
        """Return sum_w <coef_w, Phi_w(x)> for rows, computed in threads over chunks of rows.

        Parameters
        ----------
        nodes : sequence of Node
            The terms.
        coef : ndarray of shape (R,) or (R, k)
            Their coefficients.
        rows : ndarray of shape (n, p)
            Matrix of training or new rows.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Not finite where a row is so far from the training data that a level overflows.
        """
        if lies_in_blocks(rows):
            from hikernel.columns.block_grid import predict_blocks  # imported only when needed

            return predict_blocks(self, nodes, coef, rows)  # type: ignore[arg-type]
        highest = highest_levels(nodes)
        needed = self.up_to(highest)
        per_row = sum(sum(needed.bases[m].widths) for m in highest) + len(coef) + 1
        step = max(1, _CHUNK_NUMBERS // per_row)

        def part(start: int) -> FloatArray:
            some = rows[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                engine = needed.engine(some, np.ones(len(some)), highest)
                return engine.apply(nodes, coef)

        parts = in_threads(part, list(range(0, len(rows), step)))
        return np.concatenate([np.empty((0, *coef.shape[1:])), *parts])

    def effects(
        self, nodes: Sequence[Node], blocks: Sequence[FloatArray], rows: FloatArray
    ) -> list[FloatArray]:
        """Return <coef_w, Phi_w(x)> for each node separately; computed in chunks of rows."""
        highest = highest_levels(nodes)
        layout = Blocks([len(block) for block in blocks])
        per_row = sum(sum(self.bases[m].widths) for m in highest) + 2 * layout.n_columns + 1
        step = max(1, _CHUNK_NUMBERS // per_row)
        out = [np.empty((len(rows), *block.shape[1:])) for block in blocks]
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                engine = self.engine(some, np.ones(len(some)), highest)
                features = layout.split(engine.features(nodes).T)
                for target, part, block in zip(out, features, blocks, strict=True):
                    # A single column only needs scaling, for which a matrix product is slow.
                    single = block.shape == (1,)
                    target[start : start + step] = part[0] * block if single else part.T @ block
        return out

    def features(self, nodes: Sequence[Node], rows: FloatArray) -> dict[Node, FloatArray]:
        """Return the feature columns of each node on rows, shape (n, width of the node)."""
        highest = highest_levels(nodes)
        engine = self.up_to(highest).engine(rows, np.ones(len(rows)), highest)
        parts = Blocks([engine.width(node) for node in nodes]).split(engine.features(nodes).T)
        return {node: part.T for node, part in zip(nodes, parts, strict=True)}

    def terms(self, nodes: Sequence[Node]) -> dict[str, list[Any]]:
        """Return the columns of a frame with one row per term: term, order, degree."""
        return {
            "term": term_names(nodes, self.names, self._level_name),
            "order": [node_order(node) for node in nodes],
            "degree": [sum(self.bases[m].depth(j) for m, j in node) for node in nodes],
        }

    def _level_name(self, m: int, level: int, name: str) -> str:
        branch, own = self.bases[m].branch(level)
        known = self.table.categories[m]
        if known is not None and isinstance(branch, FittedSteps):
            return branch.level_name(own, name, lambda cut: repr(str(known[int(cut)])))
        return self.bases[m].level_name(level, name)

    def one_variable(self, variable: int, n_points: int) -> list[FloatArray] | None:
        """Return the levels of a variable where most of its values lie; None without an order."""
        basis = self.bases[variable]
        if variable in self.table.ordered:
            return basis.transform(np.arange(float(len(self.table.categories[variable] or ()))))
        if isinstance(basis, FittedCategorical):
            return None
        return basis.transform(np.linspace(*basis.bulk, n_points))

    def variables(self, nodes: Sequence[Node]) -> list[tuple[str, ...]]:
        """Return for each term the names of its columns."""
        return [tuple(self.names[m] for m, _ in node) for node in nodes]

    def subset(self, rows: NDArray[np.intp]) -> ColumnDesign:
        """Return the design of a model on some rows, whose levels have other sizes."""
        return replace(self, level_sizes={})

    def richer(
        self, rows: FloatArray, weights: FloatArray, variables: Sequence[int]
    ) -> RicherDesign | None:
        """Return the design with a higher degree for some variables, fitted to the given rows.

        Bases that were given as objects, or whose column has at most two values, keep their
        degree. None for a model from a file.
        """
        if self.source is None:
            return None
        bases = list(self.bases)
        for m in variables:
            basis = self.choices[m].with_more_levels(_MORE_LEVELS)
            bases[m] = basis.fit(np.ascontiguousarray(rows[:, m]), weights)
        grid = self.source.grid(bases, rows, weights, self.grid.restriction, self.level_sizes)
        design = replace(self, bases=tuple(bases), grid=grid)
        engine = design.engine(rows, weights, variables)
        # The first branch is the smooth one; products of many steps would be too many.
        levels = {m: list(range(1, bases[m].branch(1)[0].max_level + 1)) for m in variables}
        return RicherDesign(design, engine, grid, self.source.degree + _MORE_LEVELS, levels)

    def for_any_rows(self, node: Node) -> Node:
        """Return a node with numbers of levels within their branch, negative for steps."""
        out = []
        for m, level in node:
            basis, own = self.bases[m].branch(level)
            out.append((m, -own if isinstance(basis, FittedSteps) else own))
        return tuple(out)

    def effect_name(self, node: Node) -> str:
        """Return the product of the names of the columns of a node, in quotes where needed."""
        return " * ".join(unambiguous(self.names)[m] for m, _ in node)

    def with_steps(self) -> list[ColumnGrid]:
        """Return the columns with steps beside smooth functions, in two forms; none if given."""
        source = self.source
        if source is None or not isinstance(source.basis, str) or source.basis != AUTO:
            return []
        return [replace(source, basis=name) for name in (WITH_JUMPS, WITH_STEPS)]

    @property
    def follows_target(self) -> bool:
        """Whether some columns have steps whose cuts follow y."""
        return any(choice.at_jumps is not None for choice in self.choices)

    def at_jumps(self, rows: FloatArray, weights: FloatArray, residuals: FloatArray) -> Design:
        """Return the design with the cuts of its steps where the residuals jump.

        Columns without a jump have no steps. All weights follow from the rows again.
        """
        if self.source is None:
            return self
        from hikernel.columns.jumps import steps_at_jumps  # imported only when needed

        bases = steps_at_jumps(self.bases, self.choices, self.table, rows, weights, residuals)
        notes = tuple(
            note
            if isinstance(basis, FittedBranches) or choice.at_jumps is None
            else choice.smooth_note
            for note, basis, choice in zip(self.notes, bases, self.choices, strict=True)
        )
        grid = self.source.grid(bases, rows, weights, self.grid.restriction, self.level_sizes)
        return replace(self, bases=bases, grid=grid, notes=notes)

    def linear(self) -> ColumnGrid | None:
        """Return the columns with one level each, linear for numbers; None for a loaded model."""
        kinds = zip(self.names, self.table.kinds, self.choices, strict=False)
        bases = {x: "orthonormal" if k == "number" else choice.basis for x, k, choice in kinds}
        return self.source and replace(self.source, basis=bases, degree=1, monotone=None)

    def main_effects(self) -> list[Node]:
        """Return all levels of the first branch of every column that is not constant."""
        first = [b.branch(1)[0].max_level if b.max_level > 0 else 0 for b in self.bases]
        return [((m, j),) for m, most in enumerate(first) for j in range(1, most + 1)]

    def rows_at(self, values: Mapping[int, FloatArray]) -> Any:
        """Return rows with given values in some columns of the matrix, and the others missing."""
        n_rows = len(next(iter(values.values())))
        rows = np.full((n_rows, len(self.bases)), np.nan)
        for m, column in values.items():
            rows[:, m] = column
        return rows

    def stored_features(self) -> tuple[int, int] | None:
        """Return the number of stored features per row, and of levels."""
        absent = sum(basis.widths[0] for basis in self.bases if basis.constant_level)
        n_features = sum(sum(basis.widths) for basis in self.bases) - absent
        return n_features, sum(len(basis.widths) - 1 for basis in self.bases)

    def n_missing(self, rows: Any) -> tuple[int, ...]:
        """Return the number of missing values in every column of the matrix."""
        return tuple(np.sum(np.isnan(rows), axis=0).tolist())

    def monotone_columns(self) -> tuple[tuple[str, int], ...]:
        """Return name and sign of the columns with a direction."""
        return tuple((self.names[m], sign) for m, sign in self.signs.items())

    def directions(self, nodes: Sequence[Node]) -> list[Direction]:
        """Return the constraints on the coefficients of some nodes."""
        if not self.signs:
            return []
        from hikernel.columns.monotone import node_directions  # imported only when needed

        return node_directions(self.signs, nodes, self.bases, self.table)

    def kinds(self) -> tuple[str, ...]:
        """Return the kind of every column of the matrix."""
        return self.table.kinds

    def kept_bases(self) -> Any:
        """Return the bases in the form that a file keeps."""
        return self.bases

    def up_to(self, levels: Mapping[int, int]) -> ColumnDesign:
        """Return the design without the levels above ``levels[m]``, for each variable m in it."""
        bases = [
            basis.up_to(levels[m]) if m in levels else basis for m, basis in enumerate(self.bases)
        ]
        return replace(self, bases=tuple(bases))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a fitted estimator that describe the columns."""
        found: dict[str, Any] = {
            "columns_": self.table,
            "bases_": bases_frame(self.table, self.bases, self.notes),
            "n_features_in_": self.table.n_features_in,
        }
        if self.table.feature_names_in is not None:
            found["feature_names_in_"] = np.array(self.table.feature_names_in, dtype=object)
        return found
