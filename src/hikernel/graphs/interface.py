"""Interfaces of graphs: their structure, their source, and their design.

A *source* is what the user provides: ``KernelGraph(...)`` or another graph of this package, or the
columns of a table with their bases. It reads the user's rows and is fitted to them. The result is
a *design*: the structure and weights of the graph, an engine over the training rows, and the
predictions on new rows. The search needs nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs.grid import Grid
from hikernel.graphs.items import TrainingRows

__all__ = [
    "Design",
    "Direction",
    "ExplicitGraph",
    "Exploration",
    "GraphSource",
    "RicherDesign",
    "SearchGraph",
    "SupportsAncestors",
]


class SupportsAncestors(Protocol):
    """What the problem on a hull and the conditions for its recovery need from a graph."""

    def ancestors(self, node: Vertex) -> list[Vertex]:
        """Return A(v), v included."""
        ...

    def weights(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return d_v of the nodes."""
        ...


class SearchGraph(SupportsAncestors, Protocol):
    """What every search needs from a graph."""

    @property
    def searches(self) -> tuple[str, ...]:
        """Names of the searches that work on this graph, the default first."""
        ...

    @property
    def n_vertices(self) -> int:
        """Number of vertices, a Python int."""
        ...

    def hull(self, nodes: Iterable[Vertex]) -> set[Vertex]:
        """Return the union of the ancestors of the nodes."""
        ...

    def sort_key(self, node: Vertex) -> Any:
        """Return a sort key that puts ancestors first and makes the order reproducible."""
        ...

    def strongest(self, engine: Any, dual_coef: FloatArray) -> Vertex | None:
        """Return a node with a large |a_w| / (sum of d over its ancestors), to start a search.

        None if there is nothing to score.
        """
        ...

    def n_scored(self, engine: Any) -> int:
        """Return how many nodes are scored together, to decide whether threads are worthwhile."""
        ...


@dataclass(frozen=True)
class Exploration:
    """The scores |a_w|^2 / d_w^2 of the nodes w of a graph, compared with a threshold.

    Attributes
    ----------
    violators : dict of node to float
        The nodes with a score above the threshold, and their scores. Scores are rounded up, so
        that a certificate may use them: none is below its exact value, and a node whose exact
        score may be above the threshold is listed.
    rest : float
        Upper bound on the score of every other node of the graph, explored or pruned. It is at
        most the threshold, unless a limit on the number of nodes ended the exploration early.
    n_explored : int
        Number of nodes whose score was computed.
    """

    violators: dict[Vertex, float]
    rest: float
    n_explored: int


class ExplicitGraph(SearchGraph, Protocol):
    """A graph whose nodes can all be scored, one by one or by branch and bound."""

    def explore(
        self, engine: Any, dual_coef: FloatArray, threshold: float, max_nodes: int | None
    ) -> Exploration:
        """Return the nodes with |a_w|^2 / d_w^2 above a threshold, and a bound on all others.

        ``max_nodes`` may end the exploration early; None for no limit.
        """
        ...


class Design(ABC):
    """A graph that is fitted to training rows and can be applied to any rows."""

    @property
    @abstractmethod
    def graph(self) -> SearchGraph:
        """Structure and weights."""

    @abstractmethod
    def engine(self, rows: Any, weights: FloatArray) -> Engine:
        """Return an engine over the training rows.

        Parameters
        ----------
        rows : Any
            What ``training_rows`` returned.
        weights : ndarray of shape (n,)
            Weights of the rows: positive, of any sum.
        """

    @abstractmethod
    def predict(self, nodes: Sequence[Vertex], coef: FloatArray, rows: Any) -> FloatArray:
        """Return sum_w <coef_w, Phi_w(x)> for rows, shape (n,) or (n, k).

        ``rows`` is what ``training_rows`` or ``read`` returned.
        """

    @abstractmethod
    def terms(self, nodes: Sequence[Vertex]) -> dict[str, list[Any]]:
        """Return a table that describes the nodes, by column; "term" holds their names."""

    def training_rows(self, rows: Any) -> Any:
        """Return the training rows in the form that ``engine`` and ``predict`` take."""
        return TrainingRows(np.arange(len(rows)))

    def read(self, X: Any) -> Any:
        """Return a user's new rows in the form that ``predict`` takes."""
        return X

    def subset(self, rows: NDArray[np.intp]) -> Design:
        """Return the design of a model that is fitted only on the rows at some positions."""
        return self

    @property
    def follows_target(self) -> bool:
        """Whether some levels depend on y (``at_jumps``), so that every fold has its own."""
        return False

    def at_jumps(self, rows: Any, weights: FloatArray, residuals: FloatArray) -> Design:
        """Return the design with those levels fitted to the residuals of a constant.

        Parameters
        ----------
        rows : Any
            What ``training_rows`` returned.
        weights : ndarray of shape (n,)
            Positive weights of the rows.
        residuals : ndarray of shape (n,) or (n, k)
            Minus the gradient of the loss at the best constant.
        """
        return self

    def features(self, nodes: Sequence[Vertex], rows: Any) -> dict[Vertex, FloatArray]:
        """Return the feature columns of each node on rows; raise if nodes have none."""
        raise ValueError(
            "The nodes of this graph are known by kernels, which have no columns; use a graph with "
            "features."
        )

    def effects(
        self, nodes: Sequence[Vertex], blocks: Sequence[FloatArray], rows: Any
    ) -> list[FloatArray]:
        """Return <coef_w, Phi_w(x)> for each node separately: one array of n rows per node."""
        parts = zip(nodes, blocks, strict=True)
        return [self.predict([node], block, rows) for node, block in parts]

    def one_variable(self, variable: int, n_points: int) -> list[FloatArray] | None:
        """Return the levels of a variable at evenly spaced values of its bulk, smallest first.

        One array of shape (n_points, width) per level; None if its values have no order.
        """
        return None

    def variables(self, nodes: Sequence[Vertex]) -> list[tuple[str, ...]] | None:
        """Return the names of the variables of each node; None if nodes have no variables."""
        return None

    def richer(
        self, rows: Any, weights: FloatArray, variables: Sequence[int]
    ) -> RicherDesign | None:
        """Return a design with more levels for some variables; None if there is no such design."""
        return None

    def effect_name(self, node: Vertex) -> str:
        """Return the name of the product of the variables of a node of a grid."""
        return str(self.terms([tuple((m, 1) for m, _ in node)])["term"][0])

    def for_any_rows(self, node: Vertex) -> Vertex:
        """Return a node in a form that means the same in designs fitted to other rows."""
        return node

    def with_steps(self) -> Sequence[GraphSource]:
        """Return sources of the graph with steps beside its smooth functions, if it has any."""
        return ()

    def linear(self) -> GraphSource | None:
        """Return the source with one level per column, linear for numbers; None without columns."""
        return None

    def main_effects(self) -> list[Vertex]:
        """Return the levels of every column, without branches of steps; none without columns."""
        return []

    def kinds(self) -> tuple[str, ...] | None:
        """Return "number", "boolean" or "category" for every column of the rows; None if none."""
        return None

    def stored_features(self) -> tuple[int, int] | None:
        """Return how many features an engine stores per row, and of how many levels.

        None if that is not known from the design: the engine then plans its memory itself.
        """
        return None

    def n_missing(self, rows: Any) -> tuple[int, ...]:
        """Return the number of missing values in every column of the rows; empty if none."""
        return ()

    def monotone_columns(self) -> tuple[tuple[str, int], ...]:
        """Return the columns in which f may only rise (1) or only fall (-1), if there are any."""
        return ()

    def directions(self, nodes: Sequence[Vertex]) -> list[Direction]:
        """Return the constraints under which f rises or falls in these columns, everywhere."""
        return []

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that a fitted estimator takes from the design, by name."""
        return {}


class Direction(NamedTuple):
    """Constraints rows @ coef[columns] >= 0 on the coefficients of one effect.

    Attributes
    ----------
    columns : ndarray of int, shape (c,)
        Positions among the coefficients of the nodes.
    rows : ndarray of shape (k, c)
    """

    columns: NDArray[np.intp]
    rows: FloatArray


@dataclass(frozen=True)
class RicherDesign:
    """A design in which some variables have more levels than in the search.

    Attributes
    ----------
    design : Design
        The design with these levels.
    engine : Engine
        Engine over the training rows, for nodes of these variables only.
    grid : Grid
        Levels and weights.
    degree : int
        Largest total degree of the products to consider.
    levels : dict of int to list of int
        For each of these variables, the levels of the products.
    """

    design: Design
    engine: Engine
    grid: Grid
    degree: int
    levels: dict[int, list[int]]


class GraphSource(Protocol):
    """A graph before it has seen data: reads a user's rows, and becomes a design on them.

    The parameter ``graph`` of an estimator takes one. Without it the estimator builds a
    ``ColumnGrid`` from its other parameters, which is one too.
    """

    def read(self, X: Any) -> Any:
        """Return a user's training rows in the form that ``fit`` takes; the result has a length.

        Raises
        ------
        ValueError
            If X does not hold such rows. The message says what to pass.
        """
        ...

    def fit(self, rows: Any, weights: FloatArray) -> Design:
        """Fit the graph to rows with positive weights and return the design."""
        ...
