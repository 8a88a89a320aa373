"""The columns of a table as a graph: all products of the levels of their bases.

``ColumnGrid`` is a graph source like the others: it reads the table of a user and fits a basis to
every column. The result is a ``ColumnDesign``, which works on training rows and new rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from hikernel.bases import FittedBasis
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.steps import FittedSteps
from hikernel.checks import check_integer, check_number, check_optional_integer, outside_level
from hikernel.columns.choices import (
    AUTO,
    WITH_STEPS,
    BasisChoice,
    bases_frame,
    choose_bases,
    warn_of_lost_columns,
)
from hikernel.columns.reading import read_table
from hikernel.columns.table import ColumnTable, TableRows
from hikernel.columns.weights import level_weights
from hikernel.engines import choose_engine
from hikernel.engines.features import Blocks, highest_levels
from hikernel.engines.machine import in_threads, one_blas_thread
from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.graphs import (
    Design,
    Grid,
    RicherDesign,
    node_order,
    term_names,
    unambiguous,
)

__all__ = ["ColumnDesign", "ColumnGrid"]

_CHUNK_NUMBERS = 2**21
"""Number of floats that a thread holds at a time while predicting: 16 MiB. With smaller chunks the
threads spend their time waiting for the interpreter."""

_MORE_LEVELS = 2
"""Increase of the degree in a refit on the selected variables, relative to the search."""


@dataclass(frozen=True)
class ColumnGrid:
    """The graph of all products of one-variable functions of the columns of a table.

    Attributes
    ----------
    basis, degree, categorical, ordered, max_order, weight_base, root_weight, engine
        As for :class:`~hikernel.HKLRegressor`.
    owner : str
        Name of the estimator in error messages and warnings.
    """

    basis: Any = "auto"
    degree: int = 4
    categorical: Any = None
    ordered: Any = None
    max_order: int | None = None
    weight_base: float | Literal["auto"] = "auto"
    root_weight: float = 1.0
    engine: str = "auto"
    owner: str = "ColumnGrid"

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)
        check_optional_integer("max_order", self.max_order, 1, "any number of variables")
        if not (isinstance(self.weight_base, str) and self.weight_base == "auto"):
            check_number(
                "weight_base", self.weight_base, above=0.0, remedy='Or use weight_base="auto".'
            )
        check_number("root_weight", self.root_weight, above=0.0)
        choose_engine(self.engine)

    def read(self, X: Any) -> TableRows:
        """Read and encode the training table.

        Raises
        ------
        TypeError
            For sparse matrices, lazy frames and objects that are neither text nor numbers.
        ValueError
            For infinity, dates, wrong shapes, and fewer than two rows.
        """
        raw = read_table(X)
        if raw.n_rows < 2:
            raise ValueError(
                f"Found array with {raw.n_rows} sample(s) while a minimum of 2 is required by "
                f"{self.owner}."
            )
        return TableRows.read(raw, self.categorical, self.ordered)

    def fit(self, rows: TableRows, weights: FloatArray) -> ColumnDesign:
        """Choose a basis for every column, fit it, and return the design.

        Raises
        ------
        ValueError
            For unknown bases and columns, and for a basis that does not suit its column.
        """
        table, matrix = rows.table, rows.matrix
        choices = choose_bases(self.basis, self.degree, table, matrix, weights, rows.labels)
        # Rows that were read but not selected take part with weight zero: the parameter
        # ``first_pivot`` of a basis counts the rows of the table as the user gave it.
        every = rows.weights(weights)
        # Fitting consists of short vector products, which BLAS threads only slow down.
        with one_blas_thread():
            bases = tuple(
                choice.basis.fit(rows.column(m), every) for m, choice in enumerate(choices)
            )
        if self.max_order is not None and not all(basis.constant_level for basis in bases):
            raise ValueError(
                "max_order needs bases with a constant level 0: without one every term contains "
                "every variable. Pass constant_level=True to the basis, or give it by name."
            )
        warn_of_lost_columns(matrix, bases, table)
        notes = tuple((choice.name, choice.why) for choice in choices)
        grid = self._grid(bases, matrix, weights)
        return ColumnDesign(
            table, bases, grid, notes, self.owner, self.engine, self, tuple(choices)
        )

    def _grid(self, bases: Sequence[FittedBasis], matrix: FloatArray, weights: FloatArray) -> Grid:
        """Return the grid of the levels, with weights from the rows unless a base is given."""
        base = None if isinstance(self.weight_base, str) else self.weight_base
        found = level_weights(bases, matrix, weights, base, self.max_order)
        parents = tuple(basis.parents for basis in bases)
        return Grid(found, self.root_weight, self.max_order, parents)


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
    """

    table: ColumnTable
    bases: tuple[FittedBasis, ...]
    grid: Grid
    notes: tuple[tuple[str, str], ...]
    owner: str = "ColumnGrid"
    engine_name: str = "auto"
    source: ColumnGrid | None = field(default=None, repr=False, compare=False)
    choices: tuple[BasisChoice, ...] = field(default=(), repr=False, compare=False)

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
        raw, table = read_table(X), self.table
        if (table.feature_names_in is None) != (raw.names is None):
            warnings.warn(
                f"X has feature names, but {self.owner} was fitted without feature names"
                if raw.names is not None
                else f"X does not have valid feature names, but {self.owner} was fitted with "
                "feature names",
                UserWarning,
                stacklevel=outside_level(),
            )
        named = table.feature_names_in is not None and raw.names is not None
        # With names on both sides, transform checks them first: different names tell the user more
        # than a different number of columns.
        if not named and len(raw.columns) != table.n_features_in:
            raise ValueError(
                f"X has {len(raw.columns)} features, but {self.owner} is expecting "
                f"{table.n_features_in} features as input."
            )
        return table.transform(raw)

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
            not appear in a node.
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

        make = choose_engine(self.engine_name)
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
        grid = self.source._grid(bases, rows, weights)
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

    def with_steps(self) -> ColumnGrid | None:
        """Return the columns with steps beside their smooth functions; None if bases are given."""
        source = self.source
        plain = source is not None and isinstance(source.basis, str) and source.basis == AUTO
        return replace(source, basis=WITH_STEPS) if source is not None and plain else None

    def linear(self) -> ColumnGrid | None:
        """Return the columns with one level each, linear for numbers; None for a loaded model."""
        kinds = zip(self.names, self.table.kinds, self.choices, strict=False)
        bases = {x: "orthonormal" if k == "number" else choice.basis for x, k, choice in kinds}
        return self.source and replace(self.source, basis=bases, degree=1)

    def main_effects(self) -> list[Node]:
        """Return all levels of the first branch of every column that is not constant."""
        first = [b.branch(1)[0].max_level if b.max_level > 0 else 0 for b in self.bases]
        return [((m, j),) for m, most in enumerate(first) for j in range(1, most + 1)]

    def kinds(self) -> tuple[str, ...]:
        """Return the kind of every column of the matrix."""
        return self.table.kinds

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
