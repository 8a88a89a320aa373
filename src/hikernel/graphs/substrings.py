"""The graph of all substrings up to a length: a parent is contained in its children.

The model is f(x) = b + sum_s beta_s (number of occurrences of s in x). The ancestors of a string of
k letters are all its substrings, about k^2 / 2. The graph has about alphabet^k nodes and is never
enumerated: branch and bound (``substring_index``) prunes nodes that cannot matter, so the
certificate is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hikernel.checks import has_half_character
from hikernel.engines.on_demand_engine import OnDemandEngine
from hikernel.engines.protocol import FloatArray
from hikernel.graphs.interface import Design, Exploration
from hikernel.graphs.items import TrainingRows, check_items
from hikernel.graphs.substring_index import SubstringIndex
from hikernel.graphs.weight_base import check_weight_base, geometric_weights

__all__ = ["FittedSubstrings", "SubstringDesign", "SubstringGraph"]


class SubstringGraph:
    """All substrings up to a length, as a graph to be passed to an estimator as ``graph=``.

    Parameters
    ----------
    max_length : int
        Number of letters of the longest substring.
    binary : bool, default=False
        Whether a feature is 1 if the substring occurs and 0 if not. By default it is the number of
        occurrences, which may overlap.
    weight_base : float, default=2.0
        A substring of l letters has weight d = weight_base^(l - 1). Long substrings are rare and
        their counts vary less, which already penalises them. With values near 1 they are selected
        more easily.

    Examples
    --------
    >>> from hikernel import HKLRegressor
    >>> from hikernel.datasets import make_motifs
    >>> from hikernel.graphs import SubstringGraph
    >>> data = make_motifs(200, 60, {"GATTACA": 1.0}, noise=0.1, seed=0)
    >>> graph = SubstringGraph(8, weight_base=1.0)
    >>> model = HKLRegressor(0.05, graph=graph, refit="ridge").fit(data.X, data.y)
    >>> model.terms_["term"][0], len(model.hull_)
    ('GATTACA', 32)
    >>> model.certificate_.certified, model.certificate_.n_vertices
    (True, 87380)
    """

    def __init__(self, max_length: int, *, binary: bool = False, weight_base: float = 2.0) -> None:
        if isinstance(max_length, bool) or not isinstance(max_length, (int, np.integer)):
            raise ValueError(f"max_length must be a whole number, got {max_length!r}.")
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length!r}.")
        if not isinstance(binary, (bool, np.bool_)):
            raise ValueError(f"binary must be True or False, got {binary!r}.")
        self.max_length = int(max_length)
        self.binary = bool(binary)
        self.weight_base = check_weight_base(weight_base, self.max_length - 1)

    def __sklearn_clone__(self) -> SubstringGraph:
        """Return the graph itself: it is never modified."""
        return self

    def __repr__(self) -> str:
        return (
            f"SubstringGraph({self.max_length}, binary={self.binary}, "
            f"weight_base={self.weight_base:g})"
        )

    def read(self, X: Any) -> list[str]:
        """Return X as a list of strings."""
        rows = check_items(X, "strings")
        for i, row in enumerate(rows):
            if not isinstance(row, str):
                raise ValueError(
                    f"X must be a list of strings, one a row, but row {i} is {row!r} of type "
                    f"{type(row).__name__}."
                )
            if has_half_character(row):
                raise ValueError(
                    f"Row {i} of X holds half a character (a lone surrogate), which no table of "
                    'terms can show; decode the text with errors="replace".'
                )
        return rows

    def fit(self, rows: list[str], weights: FloatArray) -> SubstringDesign:
        """Index the training strings."""
        index = SubstringIndex(rows, self.max_length, self.binary)
        return SubstringDesign(self, FittedSubstrings(index, self.weight_base))


class FittedSubstrings:
    """The graph over the alphabet of the training strings.

    Parameters
    ----------
    index : SubstringIndex
        Index of the substrings of the training strings.
    weight_base : float
        A substring of l letters has weight d = weight_base^(l - 1).
    """

    searches = ("explicit",)

    def __init__(self, index: SubstringIndex, weight_base: float) -> None:
        self.index = index
        self._by_length = geometric_weights([index.max_length - 1], weight_base)[0]

    @property
    def n_vertices(self) -> int:
        """Number of nodes, a Python int."""
        return self.index.n_vertices

    def depth(self, node: str) -> int:
        """Return the number of letters minus one."""
        return len(node) - 1

    def sort_key(self, node: str) -> tuple[int, str]:
        """Return (length, node): shorter strings first, then alphabetical order."""
        return len(node), node

    def weight(self, node: str) -> float:
        """Return d_v."""
        return self._by_length[len(node) - 1]

    def weights(self, nodes: Sequence[str]) -> FloatArray:
        """Return d_v of several nodes."""
        return np.array([self.weight(node) for node in nodes], dtype=np.float64)

    def ancestors(self, node: str) -> list[str]:
        """Return all substrings of a node, itself included."""
        return self.index.ancestors(node)

    def hull(self, nodes: Iterable[str]) -> set[str]:
        """Return the union of the ancestors of the nodes."""
        return {above for node in nodes for above in self.index.ancestors(node)}

    def explore(
        self,
        engine: OnDemandEngine,
        dual_coef: FloatArray,
        threshold: float,
        max_nodes: int | None = None,
    ) -> Exploration:
        """Return the nodes with |a_w|^2 / d_w^2 above a threshold, and a bound on all others.

        By branch and bound, see ``SubstringIndex.explore``.
        """
        every = np.zeros((self.index.n_rows, *dual_coef.shape[1:]))
        every[engine.rows] = dual_coef
        return self.index.explore(every, threshold, self._by_length, max_nodes=max_nodes)

    def strongest(self, engine: OnDemandEngine, dual_coef: FloatArray) -> str:
        """Return a node with a large |a_w| / (sum of d over its ancestors), to start a search.

        It is the best of the nodes whose score |a_w|^2 / d_w^2 is above 1/100 of that of the best
        letter. It need not be the best of all nodes.
        """
        letters = list(self.index.alphabet)
        best = float(np.max(engine.score_squares(letters, dual_coef) / self.weights(letters) ** 2))
        found = self.explore(engine, dual_coef, 0.01 * best).violators or dict.fromkeys(
            letters, 0.0
        )

        def strength(node: str) -> float:
            own = found[node] * self.weight(node) ** 2
            return own / float(np.sum(self.weights(self.ancestors(node)))) ** 2

        nodes: list[str] = sorted(found)
        return max(nodes, key=strength)

    def n_scored(self, engine: OnDemandEngine) -> int:
        """Return the number of nodes, an upper bound on how many are scored together."""
        return self.n_vertices


@dataclass(frozen=True)
class SubstringDesign(Design):
    """A :class:`~hikernel.graphs.SubstringGraph` that is fitted to training strings.

    Attributes
    ----------
    source : SubstringGraph
        The graph that the user gave.
    substrings : FittedSubstrings
        The graph over the alphabet of the training strings.
    """

    source: SubstringGraph
    substrings: FittedSubstrings

    @property
    def graph(self) -> FittedSubstrings:
        """Structure and weights."""
        return self.substrings

    def engine(self, rows: Any, weights: FloatArray) -> OnDemandEngine:
        """Return the engine over all training strings."""
        return OnDemandEngine(self.graph.index.column, np.arange(len(weights)), weights)

    def read(self, X: Any) -> list[str]:
        """Return new rows as a list of strings."""
        return self.source.read(X)

    def predict(self, nodes: Sequence[str], coef: FloatArray, rows: Any) -> FloatArray:
        """Return sum_s coef_s (occurrences of s) on training rows or new strings."""
        index = self.graph.index
        out = np.zeros((len(rows), *coef.shape[1:]))
        for node, part in zip(nodes, coef, strict=True):
            if isinstance(rows, TrainingRows):
                column = index.column(node)[rows.positions]
            else:
                column = index.count(node, rows)
            out += np.multiply.outer(column, part)
        return out

    def terms(self, nodes: Sequence[str]) -> dict[str, list[Any]]:
        """Return the substrings and their depths, by column of a table."""
        # effects() has a column "intercept" of its own.
        words = [repr(node) if node == "intercept" else node for node in nodes]
        return {"term": words, "depth": [self.graph.depth(node) for node in nodes]}
