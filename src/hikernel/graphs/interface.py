"""What a graph is to the rest of the package: its structure, its source, its design.

A *source* is what a user hands over: ``KernelGraph(...)`` and the other graphs of this package, or
the columns of a table with their bases. It reads the rows of a user and fits itself to them. The
result is a *design*: the structure and weights of the graph, an engine over the training rows, and
the way from new rows to predictions. The search asks for nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs.grid import Grid
from hikernel.graphs.items import TrainingRows

__all__ = [
    "Design",
    "ExplicitGraph",
    "Exploration",
    "GraphSource",
    "RicherDesign",
    "SearchGraph",
    "SupportsAncestors",
]


class SupportsAncestors(Protocol):
    """What the problem on a hull needs to know of a graph."""

    def ancestors(self, node: Vertex) -> list[Vertex]:
        """Return A(v), v included."""
        ...

    def weights(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return d_v of the nodes."""
        ...


class SearchGraph(SupportsAncestors, Protocol):
    """What every search needs to know of a graph."""

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
        """Return a key that puts ancestors first and leaves no order to chance."""
        ...

    def strongest(self, engine: Any, dual_coef: FloatArray) -> Vertex | None:
        """Return a node with a large |a_w| over the weight of its ancestors, where searches start.

        None where there is nothing to score.
        """
        ...

    def n_scored(self, engine: Any) -> int:
        """Return how many nodes are scored together, which tells whether threads pay."""
        ...


@dataclass(frozen=True)
class Exploration:
    """Every node w of a graph, by its score |a_w|^2 / d_w^2.

    Attributes
    ----------
    violators : dict of node to float
        The nodes with a score above the threshold asked for. Scores are rounded up, so that they
        may stand in a certificate: none is below its exact value, and a node in doubt is listed.
    rest : float
        No other node of the whole graph, explored or pruned, has a larger score. At most the
        threshold, unless a budget ended the walk.
    n_explored : int
        How many nodes had their score computed.
    """

    violators: dict[Any, float]
    rest: float
    n_explored: int


class ExplicitGraph(SearchGraph, Protocol):
    """A graph all of whose nodes can be scored, one by one or by branch and bound."""

    def explore(
        self, engine: Any, dual_coef: FloatArray, threshold: float, max_nodes: int | None
    ) -> Exploration:
        """Return the nodes with |a_w|^2 / d_w^2 above a threshold, and a bound on all others."""
        ...


class Design(ABC):
    """A graph on its training rows, fitted once and applied to any rows."""

    @property
    @abstractmethod
    def graph(self) -> SearchGraph:
        """Structure and weights."""

    @abstractmethod
    def engine(self, rows: Any, weights: FloatArray) -> Engine:
        """Return an engine over the training rows, with positive weights of any sum.

        Parameters
        ----------
        rows : Any
            What ``training_rows`` returned.
        weights : ndarray of shape (n,)
            Their weights.
        """

    @abstractmethod
    def predict(self, nodes: Sequence[Any], coef: FloatArray, rows: Any) -> FloatArray:
        """Return sum_w <coef_w, Phi_w(x)> for rows, shape (n,) or (n, k).

        ``rows`` are as ``training_rows`` or ``read`` returns them.
        """

    @abstractmethod
    def terms(self, nodes: Sequence[Any]) -> dict[str, list[Any]]:
        """Return what can be said of each node, by column of a frame; "term" is its name."""

    def training_rows(self, rows: Any) -> Any:
        """Return the rows that were fitted as ``engine`` and ``predict`` take them."""
        return TrainingRows(np.arange(len(rows)))

    def read(self, X: Any) -> Any:
        """Return new rows of a user as ``predict`` takes them."""
        return X

    def subset(self, rows: NDArray[np.intp]) -> Design:
        """Return the design of a model that is fitted on some of the rows, by position."""
        return self

    def features(self, nodes: Sequence[Any], rows: Any) -> dict[Any, FloatArray]:
        """Return the feature columns of nodes on rows, where they have any."""
        raise ValueError(
            "The nodes of this graph are known by kernels, which have no columns; use a graph with "
            "features."
        )

    def effects(
        self, nodes: Sequence[Any], blocks: Sequence[FloatArray], rows: Any
    ) -> list[FloatArray]:
        """Return <coef_w, Phi_w(x)> of each node by itself, n rows each."""
        parts = zip(nodes, blocks, strict=True)
        return [self.predict([node], block, rows) for node, block in parts]

    def variables(self, nodes: Sequence[Any]) -> list[tuple[str, ...]] | None:
        """Return the names of the variables of each node; None where nodes have none."""
        return None

    def richer(
        self, rows: Any, weights: FloatArray, variables: Sequence[int]
    ) -> RicherDesign | None:
        """Return the same rows with more levels for some variables; None where nodes have none."""
        return None

    def attributes(self) -> dict[str, Any]:
        """Return what a fitted estimator shows of the design, by attribute."""
        return {}

    def state(self) -> dict[str, Any] | None:
        """Return what a file keeps of the design; None where only pickle can keep it."""
        return None


@dataclass(frozen=True)
class RicherDesign:
    """Some variables with more levels than a search looks at.

    Attributes
    ----------
    design : Design
        The design with these levels.
    engine : Engine
        The training rows; nodes may have the chosen variables only.
    grid : Grid
        Levels and weights.
    degree : int
        Total degree up to which products are worth a look.
    """

    design: Design
    engine: Engine
    grid: Grid
    degree: int


class GraphSource(Protocol):
    """What ``graph=`` takes."""

    def read(self, X: Any) -> Any:
        """Return the training rows of a user as ``fit`` takes them; they have a length.

        Raises
        ------
        ValueError
            For anything that is not such rows, with a sentence that says what to pass.
        """
        ...

    def fit(self, rows: Any, weights: FloatArray) -> Design:
        """Fit the graph to rows of positive weight."""
        ...
