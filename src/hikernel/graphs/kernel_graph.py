"""KernelGraph: any finite DAG with a kernel per node, to be passed to an estimator as ``graph=``.

The kernel of a node is a function k(X, Z), a feature map, or a precomputed matrix. Invalid input is
found here, before any optimisation starts, and the error names the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.block_engine import BlockEngine
from hikernel.engines.machine import require_memory
from hikernel.engines.node_kernels import WORKING_COPIES, DenseGram
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs.dag import Dag, parents_of
from hikernel.graphs.items import check_positions, check_rows
from hikernel.graphs.kernel_checks import (
    MemoryPlan,
    as_kernels,
    as_numbers,
    check_block,
    kernel_dtype,
)
from hikernel.graphs.kernel_design import KernelDesign

__all__ = ["KernelGraph"]


class KernelGraph:
    """A directed acyclic graph of kernels.

    The estimators minimise, over functions f = b + sum_v f_v with f_v in the space of kernel K_v,

        (1/n) sum_i loss(y_i, f(x_i)) + (alpha/2) (sum_v d_v (sum_{w in D(v)} |f_w|^2)^1/2)^2.

    A node is selected only together with all its ancestors. Without edges this is multiple kernel
    learning. Without edges and with one feature column per node it is the (squared) lasso.

    Parameters
    ----------
    edges : mapping, iterable of pairs, or networkx.DiGraph, default=()
        A mapping from node to its list of parents, (parent, child) pairs, or a graph with edges
        from parent to child. Nodes that do not appear in it have neither parents nor children.
    kernels : mapping of node to callable, optional
        k(X, Z) -> array of shape (len(X), len(Z)), symmetric and positive semidefinite.
    features : mapping of node to callable, list of columns, or array, optional
        phi(X) -> array of shape (len(X), r) or (len(X),); a list of names or positions of columns
        of X; or the features of N items as an array of shape (N, r) or (N,). The kernel is the
        inner product of the features as they are, neither centred nor scaled.
    grams : mapping of node to array of shape (N, N), optional
        Gram matrices of N items.
    weights : mapping of node to float, optional
        d_v > 0; ``weight_base`` to the power of the depth by default.
    weight_base : float, default=2.0
        Factor by which weights grow with depth.
    dtype : {None, "float32", "float64"}, default=None
        Type in which Gram matrices are kept. By default ``grams`` keep their type, and matrices
        computed by ``kernels`` are float64. "float32" halves the memory and rounds the kernels to
        seven digits; all sums and products are in float64 either way. A small constant is added to
        the diagonal to make up for the effect of rounding on the smallest eigenvalue, so that
        certificates are about positive semidefinite kernels.

    Notes
    -----
    Every node has exactly one of kernel, features and Gram matrix.

    If a node is given by an array (a Gram matrix or the features of N items), ``X`` holds row
    numbers: ``fit(rows, y)`` and ``predict(rows)`` with rows out of 0 .. N - 1, so that splitters
    and cross-validation work as usual. For items that are not among the N, ``predict`` takes a
    mapping from the nodes of ``hull_`` to cross-Gram matrices of shape (n_new, n_fitted) or
    features of shape (n_new, r).

    Otherwise ``X`` is whatever the functions take: an array, a data frame, a list of anything.

    Examples
    --------
    Two groups of columns and their interaction, which is selected only with both groups:

    >>> import numpy as np
    >>> from hikernel import HKLRegressor
    >>> from hikernel.graphs import KernelGraph
    >>> graph = KernelGraph(
    ...     {"left": [], "right": [], "both": ["left", "right"]},
    ...     features={
    ...         "left": [0, 1],
    ...         "right": [2, 3],
    ...         "both": lambda X: np.einsum("ni,nj->nij", X[:, :2], X[:, 2:]).reshape(len(X), -1),
    ...     },
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> model = HKLRegressor(alpha=0.01, graph=graph).fit(X, y)
    >>> sorted(model.hull_["term"]), model.certificate_.certified
    (['both', 'left', 'right'], True)
    """

    def __init__(
        self,
        edges: Any = (),
        *,
        kernels: Mapping[Any, Callable[[Any, Any], Any]] | None = None,
        features: Mapping[Any, Any] | None = None,
        grams: Mapping[Any, Any] | None = None,
        weights: Mapping[Any, float] | None = None,
        weight_base: float = 2.0,
        dtype: str | None = None,
    ) -> None:
        self._dtype = dtype
        self._itemsize = (kernel_dtype(dtype) or np.dtype(np.float64)).itemsize
        for name, given in (("kernels", kernels), ("features", features), ("grams", grams)):
            if not isinstance(given, Mapping | None):
                raise ValueError(
                    f"{name} must be a mapping from nodes, got {type(given).__name__}."
                )
        self._kernels = dict(kernels or {})
        self._features = {v: _as_features(v, spec) for v, spec in (features or {}).items()}
        self._grams = as_kernels(grams or {}, None, dtype)
        nodes = [*self._kernels, *self._features, *self._grams]
        if not nodes:
            raise ValueError("The graph has no kernels; give its nodes kernels, features or grams.")
        self.dag = Dag(self._parents(edges, nodes), weights, weight_base=weight_base)
        self._check_functions()
        self._items = self._n_items()

    def __sklearn_clone__(self) -> KernelGraph:
        """Return the graph itself: it is never modified, and its matrices may be large."""
        return self

    def __repr__(self) -> str:
        kinds = [("kernels", self._kernels), ("features", self._features), ("grams", self._grams)]
        counts = ", ".join(f"{len(nodes)} {name}" for name, nodes in kinds if nodes)
        return f"KernelGraph({self.dag.n_vertices} nodes: {counts})"

    def read(self, X: Any) -> Any:
        """Check and return X: rows for the functions of the graph, or an array of row numbers."""
        if self._items is None:
            return check_rows(X)
        return check_positions(X, self._items, "the matrices of the graph")

    def plan(self, n_rows: int) -> MemoryPlan:
        """Return the memory that a fit on ``n_rows`` rows takes, without computing anything.

        Features are counted only if they are given as arrays: the number of columns of a feature
        function is not known before it is called.

        Examples
        --------
        >>> kernels = {k: lambda X, Z: X @ Z.T for k in range(200)}
        >>> plan = KernelGraph(kernels=kernels, dtype="float32").plan(4096)
        >>> f"{plan.kept / 2**30:.2f} GiB", f"{plan.working / 2**30:.2f} GiB"
        ('12.50 GiB', '0.50 GiB')
        """
        computed = len(self._kernels) * n_rows**2 * self._itemsize
        arrays = [spec for spec in self._features.values() if isinstance(spec, np.ndarray)]
        columns = 8 * n_rows * sum(spec.shape[1] for spec in arrays)
        given = sum(gram.nbytes for gram in self._grams.values())
        given += sum(spec.nbytes for spec in arrays)
        wide = bool(self._kernels) or bool(self._grams)
        working = 8 * WORKING_COPIES * n_rows**2 if wide else 0
        fresh = computed + columns
        return MemoryPlan(kept=fresh + given, working=working, to_take=fresh + working)

    def fit(self, rows: Any, weights: FloatArray) -> KernelDesign:
        """Compute the Gram matrices and features of the nodes on training rows from ``read``.

        Kernels and features do not depend on the weights of the rows.
        """
        n = len(rows)
        require_memory(
            -(-self.plan(n).to_take // 8),
            f"The Gram matrices of {len(self._kernels)} kernel functions, and the arrays of "
            f"features, on {n} rows, with room to work,",
            'Use fewer rows or kernels, or dtype="float32"; plan(n_rows) tells what it takes.',
        )
        grams: dict[Vertex, DenseGram] = {}
        for node, kernel in self._kernels.items():
            computed = _called(node, kernel, rows, rows)
            grams |= as_kernels({node: computed}, n, self._dtype or "float64")
        whole = self._items is not None and np.array_equal(rows, np.arange(self._items))
        for node, gram in self._grams.items():
            grams[node] = gram if whole else gram.restricted(rows)
        blocks = {node: self._block(node, rows, whole=whole) for node in self._features}
        return KernelDesign(self, rows, BlockEngine(blocks, grams, np.ones(n)))

    def block(self, node: Vertex, X: Any) -> NDArray[np.float64]:
        """Return the features of a node on new rows."""
        if isinstance(X, Mapping):
            return check_block(node, X[node], None)
        return self._block(node, X)

    def cross_gram(self, node: Vertex, X: Any, training: Any) -> NDArray[np.float64]:
        """Return the kernel of a node between new rows and training rows."""
        if isinstance(X, Mapping):
            cross = as_numbers(repr(node), X[node])
            rows = len(cross) if cross.ndim else "n_new"
        elif node in self._grams:
            return self._grams[node].restricted(X, training).chunk(slice(0, len(X)))
        else:
            cross = as_numbers(repr(node), _called(node, self._kernels[node], X, training))
            rows = len(X)
        if cross.shape != (rows, len(training)):
            raise ValueError(
                f"The kernel of {node!r} between new rows and the {len(training)} training rows "
                f"must have shape ({rows}, {len(training)}), got {cross.shape}."
            )
        if not np.all(np.isfinite(cross)):
            raise ValueError(f"The kernel of {node!r} on new rows has entries that are not finite.")
        return np.asarray(cross, dtype=np.float64)

    def _parents(self, edges: Any, nodes: list[Any]) -> dict[Any, list[Any]]:
        seen: set[Any] = set()
        for node in nodes:
            if node in seen:
                raise ValueError(
                    f"{node!r} has more than one kernel; give it one of kernels, features, grams."
                )
            seen.add(node)
        parents = parents_of(edges, nodes)
        for node, above in parents.items():
            for v in (node, *above):
                if v not in seen:
                    what = f"a parent of {node!r}" if v != node else "in the graph"
                    raise ValueError(
                        f"{v!r} is {what} but has no kernel; give it one in kernels, features or "
                        "grams (a node that only groups others: a feature map of ones)."
                    )
        return parents

    def _check_functions(self) -> None:
        for node, kernel in self._kernels.items():
            if not callable(kernel):
                raise ValueError(
                    f"kernels[{node!r}] must be a function k(X, Z), got {type(kernel).__name__}; "
                    "matrices go into grams, features into features."
                )

    def _n_items(self) -> int | None:
        """Return the number of items N of the given arrays; None if no array is given."""
        sizes = {node: gram.n_rows for node, gram in self._grams.items()}
        for node, spec in self._features.items():
            if isinstance(spec, np.ndarray):
                sizes[node] = len(spec)
        if not sizes:
            return None
        first, n = next(iter(sizes.items()))
        for node, size in sizes.items():
            if size != n:
                raise ValueError(
                    f"The matrix of {node!r} has {size} rows and that of {first!r} {n}; all must "
                    "be of the same items."
                )
        return n

    def _block(self, node: Vertex, rows: Any, *, whole: bool = False) -> NDArray[np.float64]:
        spec = self._features[node]
        if callable(spec):
            found = _called(node, spec, rows)
        elif isinstance(spec, np.ndarray):
            return spec if whole else spec[rows]
        else:
            found = _columns(node, spec, rows)
        return check_block(node, found, len(rows))


def _as_features(node: Vertex, spec: Any) -> Any:
    """Return a feature map, a list of columns, or the features of all items as an array."""
    if callable(spec):
        return spec
    if isinstance(spec, (str, int, np.integer)):
        return [spec]
    try:
        found = np.asarray(spec)
    except ValueError:  # rows of different lengths
        found = np.empty(())
    is_array = isinstance(spec, np.ndarray) or np.issubdtype(found.dtype, np.floating)
    if found.ndim == 2 or (found.ndim == 1 and found.size and is_array):
        return check_block(node, found, None)
    if found.size and found.ndim == 1:
        return list(spec)
    raise ValueError(
        f"features[{node!r}] must be a function of X, a list of columns of X, or an array of shape "
        f"(N, r), got {type(spec).__name__}."
    )


def _called(node: Vertex, function: Callable[..., Any], *rows: Any) -> Any:
    """Call a function of the user; a note with the node is added to any exception it raises."""
    try:
        return function(*rows)
    except Exception as error:
        error.add_note(f"The function of node {node!r} raised this.")
        raise


def _columns(node: Vertex, listed: list[Any], X: Any) -> NDArray[Any]:
    """Return some columns of a table."""
    try:
        # In a data frame these are names if all of them are columns, and positions otherwise.
        if hasattr(X, "columns") and set(listed) <= set(X.columns):
            return np.asarray(X[listed])
        return np.asarray(X)[:, listed]
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(
            f"The columns {listed!r} of node {node!r} are not in X, which has shape {np.shape(X)}."
        ) from None
