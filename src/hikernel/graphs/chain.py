"""Chains of kernels from coarse to fine, fitted on the training rows: point clouds and graphs.

A level is selected only with all the coarser ones: the estimator finds how fine one has to look.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hikernel.engines.protocol import FloatArray
from hikernel.graphs.grid import check_weight_base
from hikernel.graphs.items import check_items
from hikernel.graphs.kernel_design import KernelDesign
from hikernel.graphs.kernel_graph import KernelGraph
from hikernel.graphs.pyramid import PyramidMatch
from hikernel.graphs.weisfeiler_lehman import WeisfeilerLehman

__all__ = ["ChainGraph", "pyramid_match", "weisfeiler_lehman"]

Kernel = Callable[[Any, Any], Any]


class ChainGraph:
    """A chain of kernels; :func:`pyramid_match` and :func:`weisfeiler_lehman` make them.

    Parameters
    ----------
    name : str
        How it was made.
    items : str
        What a row is, for messages.
    kernels : callable
        Training rows to a mapping from the nodes, coarse first, to functions k(X, Z).
    weight_base : float
        d of depth l is weight_base^l.
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
        """Return itself: nothing changes it."""
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
    """Return the chain of resolutions of point clouds, "level 0" (one cell) to "level ``depth``".

    K_l(x, z) = sum over cells of min(number of points of x, of z), where level l cuts every side
    of the box of the training points into 2^l parts.

    Parameters
    ----------
    depth : int
        The finest level.
    normalize : bool, default=True
        Whether each kernel is divided by the root of its diagonal, so that clouds of many points
        do not dominate.
    weight_base : float, default=2.0
        d of level l is weight_base^l.

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
    """Return the chain of depths of labelled graphs, "depth 0" (labels) to "depth ``depth``".

    K_h(G, H) = number of pairs of vertices with the same neighbourhood up to distance h.

    Parameters
    ----------
    depth : int
        The largest distance.
    normalize : bool, default=True
        Whether each kernel is divided by the root of its diagonal, so that large graphs do not
        dominate.
    weight_base : float, default=2.0
        d of depth h is weight_base^h.
    label : str, default="label"
        Attribute of the vertices of networkx graphs; other graphs are pairs (labels, edges).
    degree_labels : bool, default=False
        Whether a vertex without a label has its degree for one; without it that is an error.

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
    """Return the kernels of all resolutions of the box of some clouds."""
    fitted = PyramidMatch(depth, normalize=normalize).fit(clouds)
    return {f"level {level}": fitted.kernel(level) for level in range(depth + 1)}


def _depths(patterns: WeisfeilerLehman, graphs: Any) -> dict[str, Kernel]:
    """Return the kernels of all depths, which do not depend on the training graphs."""
    return {f"depth {h}": patterns.kernel(h) for h in range(patterns.depth + 1)}
