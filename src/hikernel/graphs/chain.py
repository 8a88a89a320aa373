"""Chains of kernels from coarse to fine, for point clouds and labelled graphs.

The kernels are fitted on the training rows. A level is selected only together with all coarser
levels, so the estimator selects how fine the resolution has to be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hikernel.engines.protocol import FloatArray
from hikernel.graphs.items import check_items
from hikernel.graphs.kernel_design import KernelDesign
from hikernel.graphs.kernel_graph import KernelGraph
from hikernel.graphs.pyramid import PyramidMatch
from hikernel.graphs.weight_base import check_weight_base
from hikernel.graphs.weisfeiler_lehman import WeisfeilerLehman

__all__ = ["ChainGraph", "pyramid_match", "weisfeiler_lehman"]

Kernel = Callable[[Any, Any], Any]


class ChainGraph:
    """A chain of kernels, made by :func:`pyramid_match` or :func:`weisfeiler_lehman`.

    Parameters
    ----------
    name : str
        The ``repr`` of the graph.
    items : str
        What the rows are, for error messages, such as "point clouds".
    kernels : callable
        Takes the training rows and returns a mapping from node to kernel function k(X, Z). The
        coarsest node comes first.
    weight_base : float
        The node at depth l has weight d = weight_base^l.
    """

    def __init__(
        self,
        name: str,
        items: str,
        kernels: Callable[[Any], Mapping[str, Kernel]],
        weight_base: float,
    ) -> None:
        self._items = items
        self._name = name
        self._kernels = kernels
        self._weight_base = weight_base

    def __sklearn_clone__(self) -> ChainGraph:
        """Return the graph itself: it is never modified."""
        return self

    def __repr__(self) -> str:
        return self._name

    def read(self, X: Any) -> Any:
        """Return X as a list of rows."""
        return check_items(X, self._items)

    def fit(self, rows: Any, weights: FloatArray) -> KernelDesign:
        """Fit the kernels and compute their Gram matrices."""
        kernels = self._kernels(rows)
        nodes = list(kernels)
        graph = KernelGraph(
            list(itertools.pairwise(nodes)),
            kernels=kernels,
            weight_base=self._weight_base,
        )
        return replace(graph.fit(rows, weights), reader=self.read)


def pyramid_match(depth: int, *, normalize: bool = True, weight_base: float = 2.0) -> ChainGraph:
    """Return the chain of pyramid match kernels, "level 0" (one cell) to "level ``depth``".

    Every row is a point cloud. Level l cuts every side of the box of the training points into 2^l
    parts, and

        K_l(x, z) = sum over cells of min(number of points of x, number of points of z).

    Parameters
    ----------
    depth : int
        The finest level.
    normalize : bool, default=True
        Whether to divide K_l(x, z) by sqrt(K_l(x, x) K_l(z, z)), so that clouds of many points do
        not dominate.
    weight_base : float, default=2.0
        Level l has weight d = weight_base^l.

    Examples
    --------
    >>> from hikernel import HKLRegressor
    >>> from hikernel.datasets import make_clouds
    >>> from hikernel.graphs import pyramid_match
    >>> data = make_clouds(100, 1, seed=0)
    >>> model = HKLRegressor(0.001, graph=pyramid_match(3)).fit(data.X, data.y)
    >>> list(model.hull_["term"])
    ['level 0', 'level 1']
    """
    match = PyramidMatch(depth, normalize=normalize)
    base = check_weight_base(weight_base, match.depth)
    name = f"pyramid_match({depth}, normalize={normalize}, weight_base={base:g})"
    return ChainGraph(name, "point clouds", partial(_levels, match.depth, normalize), base)


def weisfeiler_lehman(
    depth: int,
    *,
    normalize: bool = True,
    weight_base: float = 2.0,
    label: str = "label",
    degree_labels: bool = False,
) -> ChainGraph:
    """Return the chain of Weisfeiler-Lehman kernels, "depth 0" (labels) to "depth ``depth``".

    Every row is a labelled graph. K_h(G, H) = number of pairs of vertices, one of each graph, with
    the same neighbourhood up to distance h.

    Parameters
    ----------
    depth : int
        The largest distance.
    normalize : bool, default=True
        Whether to divide K_h(G, H) by sqrt(K_h(G, G) K_h(H, H)), so that large graphs do not
        dominate.
    weight_base : float, default=2.0
        Depth h has weight d = weight_base^h.
    label : str, default="label"
        Vertex attribute that holds the label, for networkx graphs. Other graphs are pairs (labels,
        edges).
    degree_labels : bool, default=False
        Whether a vertex without a label gets its degree as label. If False, it is an error.

    Examples
    --------
    >>> from hikernel import HKLRegressor
    >>> from hikernel.datasets import make_molecules
    >>> from hikernel.graphs import weisfeiler_lehman
    >>> data = make_molecules(100, seed=0)
    >>> model = HKLRegressor(0.001, graph=weisfeiler_lehman(3)).fit(data.X, data.y)
    >>> list(model.hull_["term"])
    ['depth 0', 'depth 1', 'depth 2']
    """
    patterns = WeisfeilerLehman(
        depth, normalize=normalize, label=label, degree_labels=degree_labels
    )
    base = check_weight_base(weight_base, patterns.depth)
    name = f"weisfeiler_lehman({depth}, normalize={normalize}, weight_base={base:g})"
    return ChainGraph(name, "graphs", partial(_depths, patterns), base)


def _levels(depth: int, normalize: bool, clouds: Any) -> dict[str, Kernel]:
    """Return the kernels of all levels, with the box fitted to ``clouds``."""
    fitted = PyramidMatch(depth, normalize=normalize).fit(clouds)
    return {f"level {level}": fitted.kernel(level) for level in range(depth + 1)}


def _depths(patterns: WeisfeilerLehman, graphs: Any) -> dict[str, Kernel]:
    """Return the kernels of all depths, which do not depend on the training graphs."""
    return {f"depth {h}": patterns.kernel(h) for h in range(patterns.depth + 1)}
