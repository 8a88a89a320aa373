"""The convex problem on a hull that grows and shrinks, for any loss and any lambda.

The primal form needs only moments of the rows. With the squared error the moments do not depend on
the solution and are kept, so only new nodes need a pass over the rows. Other losses are solved as a
sequence of squared-error problems with other weights and targets (``loss_solve``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hikernel.engines.features import Blocks
from hikernel.engines.machine import require_memory
from hikernel.engines.node_kernels import KernelOperator
from hikernel.engines.numerics import lower_gram, matmul, matvec
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs.interface import SupportsAncestors
from hikernel.losses import Loss, SquaredError
from hikernel.reduced.descent import Descent
from hikernel.reduced.forms import DualForm, Form, PrimalForm
from hikernel.reduced.interior import InteriorPoint
from hikernel.reduced.joint_model import dual_model, primal_model
from hikernel.reduced.kernel_form import KernelForm
from hikernel.reduced.outputs import OutputForms
from hikernel.reduced.solution import ReducedSolution, WarmStart
from hikernel.reduced.variational import HullMap
from hikernel.reduced.working_set import solve_form

__all__ = ["FormName", "ReducedProblem"]

FormName = Literal["auto", "primal", "dual"]

_MOST_FEATURES = 10**8
"""Largest number of features that are held at once for a joint loss: 0.8 GB."""

_KEPT_FEATURES = 2**22
"""Largest number of features that are kept for losses that pass over the rows at every step: 32 MB.
With more, a product takes longer than it takes to make its features."""


_PRIMAL_SHARE = 1.5
"""Columns per row up to which the R x R form is the faster one if its Gram matrix is kept: it does
not multiply features again for every zeta. Without that, the n x n form is faster from one on."""

_CONSTANT = 1e-26
"""A feature column counts as constant if its variance is at most this times its squared mean."""


class ReducedProblem:
    """min over the functions of a hull of (1/n) sum loss + (lambda/2) Omega^2, for any lambda.

    Parameters
    ----------
    engine : Engine
        The rows.
    graph : SupportsAncestors
        The graph the nodes come from.
    y : ndarray of shape (n,) or (n, k)
        The target.
    nodes : sequence of nodes
        The hull: a set of nodes that contains all their ancestors.
    loss : Loss, optional
        The loss; the squared error by default.
    form : {"auto", "primal", "dual"}
        The R x R or the n x n form; "auto" takes the faster one. Hulls with a node that is given
        by its Gram matrix always use the n x n form.

    Attributes
    ----------
    nodes : list of nodes
        The hull. All vectors over the nodes have this order.
    blocks : Blocks
        Feature columns of each node.
    means : ndarray of shape (R,)
        Weighted means of the columns.
    constant_columns : ndarray of bool of shape (R,)
        Columns that are constant up to rounding; they add nothing beyond the intercept.
    """

    def __init__(
        self,
        engine: Engine,
        graph: SupportsAncestors,
        y: FloatArray,
        nodes: Sequence[Vertex],
        loss: Loss | None = None,
        *,
        form: FormName = "auto",
    ) -> None:
        self.engine = engine
        self.y = y
        self.loss: Loss = SquaredError() if loss is None else loss
        self._graph = graph
        self._form_name = form
        self.nodes: list[Vertex] = []
        self.blocks = Blocks([])
        self.means = np.empty(0)
        self.constant_columns = np.empty(0, dtype=bool)
        self._hull: HullMap | None = None
        self._kernels: KernelOperator | None = None
        self._gram: FloatArray | None = None
        self._features: FloatArray | None = None
        self._squared_form: Form | None = None
        self.extend(nodes)

    @property
    def hull(self) -> HullMap:
        """Ancestor relations of the nodes."""
        if self._hull is None:
            self._hull = HullMap(self.nodes, self._graph)
        return self._hull

    @property
    def n_columns(self) -> int:
        """R, the number of feature columns."""
        return self.blocks.n_columns

    @property
    def uses_dual_form(self) -> bool:
        """Whether the n x n form is in use."""
        if self._kernels is not None or self._form_name == "dual":
            return True
        return self._form_name == "auto" and self.n_columns > self._most_primal_columns

    @property
    def _most_primal_columns(self) -> int:
        """Number of columns up to which the R x R form is the faster one."""
        kept = isinstance(self.loss, SquaredError) and self.y.ndim == 1
        return int((_PRIMAL_SHARE if kept else 1.0) * self.engine.n_rows)

    def solve(self, lam: float, *, tol: float, warm: WarmStart | None = None) -> ReducedSolution:
        """Solve for one lambda.

        Parameters
        ----------
        lam : float
            lambda.
        tol : float
            Duality gap to reach, relative to the objective.
        warm : WarmStart, optional
            Starting point; it may lack the nodes appended since.

        Returns
        -------
        ReducedSolution
            The solution; its status says whether the solve converged. No exception is raised if
            it did not.
        """
        if warm is not None:
            warm = warm.padded(len(self.nodes), self.n_columns)
        if isinstance(self.loss, SquaredError) and self.y.ndim == 1:
            eta = None if warm is None else warm.eta
            return solve_form(self.squared_form(), self.hull, lam, tol=tol, warm_eta=eta)
        method = Descent if self.loss.smooth else InteriorPoint
        return method(self, lam, tol, warm).run()

    def node_squares(self, columns: FloatArray) -> FloatArray:
        """Return the squared norm of each node's coordinates, summed over outputs, shape (m,)."""
        if self._kernels is not None:
            return self._kernels.squares(columns)
        return self.blocks.squares(columns)

    def rounded_up_squares(self, dual_coef: FloatArray) -> FloatArray:
        """Return |a_w|^2 plus a bound on its rounding error, shape (m,).

        ``dual_coef`` must sum to zero.
        """
        if self._kernels is not None:
            return self._kernels.score_squares(dual_coef, rounded_up=True)
        scores = self.engine.score_bounds(self.nodes, dual_coef)
        # The score of a constant column is zero up to rounding.
        scores[self.constant_columns] = 0.0
        return self.node_squares(scores)

    def extend(self, nodes: Sequence[Vertex]) -> None:
        """Append nodes; their parents must be in the hull or among the new nodes."""
        fresh = list(nodes)
        if len(set(fresh)) != len(fresh) or not set(self.nodes).isdisjoint(fresh):
            raise ValueError("The nodes to append must be distinct and not yet in the hull.")
        widths = [self.engine.width(node) for node in fresh]
        size = self.n_columns + sum(widths)
        require_memory(
            6 * min(size, self._most_primal_columns) ** 2,
            f"A reduced problem of {size} feature columns",
            "Lower max_kernels, or use a basis with fewer columns per level.",
        )
        means = self.engine.means(fresh)
        variances = self.engine.gram_diagonal(fresh, means)
        # A column that is constant up to rounding adds nothing beyond the intercept.
        constant = variances <= _CONSTANT * means**2
        self.constant_columns = np.concatenate([self.constant_columns, constant])
        n_old = len(self.nodes)
        self.nodes = self.nodes + fresh
        self.blocks = Blocks([*self.blocks.widths, *widths])
        self.means = np.concatenate([self.means, means])
        self._hull = None if self._hull is None else self._hull.extended(fresh, self._graph)
        self._kernels = self.engine.kernel_operator(self.nodes)
        self._squared_form = None
        self._gram = self._extended_gram(n_old)
        if self._features is not None:
            few = self.engine.n_rows * self.n_columns <= _KEPT_FEATURES and self._kernels is None
            added = [self._features, self.engine.features(fresh)] if few else []
            self._features = np.asfortranarray(np.hstack(added)) if few else None

    def restrict(self, keep: Sequence[Vertex]) -> ReducedProblem:
        """Return the problem on the smaller hull ``keep``; the order of the nodes is kept."""
        chosen = set(keep)
        index = [i for i, node in enumerate(self.nodes) if node in chosen]
        columns = self.blocks.columns(index)
        out = object.__new__(ReducedProblem)
        out.__dict__.update(self.__dict__)
        out.nodes = [self.nodes[i] for i in index]
        out.blocks = self.blocks.restrict(index)
        out.means = self.means[columns]
        out.constant_columns = self.constant_columns[columns]
        out._hull = None if self._hull is None else self._hull.restrict(np.array(index))
        out._kernels = self.engine.kernel_operator(out.nodes)
        out._squared_form = None
        out._gram = None if self._gram is None else self._gram[np.ix_(columns, columns)]
        if self._features is not None:
            out._features = np.asfortranarray(self._features[:, columns])
        return out

    def apply(self, coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        features = self._kept_features()
        if features is None:
            return self.engine.apply(self.nodes, coef)
        return matvec(features, coef) if coef.ndim == 1 else matmul(features, coef)

    def correlate(self, vector: FloatArray) -> FloatArray:
        """Return Phi' vector, shape (R,) or (R, k)."""
        features = self._kept_features()
        if features is None:
            return self.engine.correlate(self.nodes, vector)
        return matvec(features.T, vector) if vector.ndim == 1 else matmul(features.T, vector)

    def _kept_features(self) -> FloatArray | None:
        """Return Phi, kept from the first call on, or None where there is none or too much."""
        few = self.engine.n_rows * self.n_columns <= _KEPT_FEATURES
        if self._features is None and self._kernels is None and few:
            self._features = self.engine.features(self.nodes)
        return self._features

    def squared_form(self) -> Form:
        """Return the form of the squared error; its moments are reused when the hull changes."""
        if self._squared_form is None:
            weights = self.engine.row_weights
            centred = self.y - float(weights @ self.y)
            if self.uses_dual_form:
                self._gram = None
            elif self._gram is None:
                gram = self.engine.gram(self.nodes, self.nodes, self.means, self.means)
                self._gram = self._without_constants(gram)
            self._squared_form = self._weighted_form(weights, centred, self.means, self._gram)
        return self._squared_form

    def quadratic_form(
        self, targets: FloatArray, curvature: FloatArray
    ) -> tuple[Form, FloatArray, FloatArray]:
        """Return the form of sum_i omega_i W_i (z_i - f_i)^2 / 2, a quadratic model of a loss.

        Parameters
        ----------
        targets, curvature : ndarray of shape (n, k)
            z and W.

        Returns
        -------
        tuple of (Form, ndarray of shape (k,), ndarray of shape (k, R))
            The form, and the weighted means of the targets and of the columns of each output.
        """
        forms: list[Form] = []
        target_means, column_means = [], []
        for z, curve in zip(targets.T, curvature.T, strict=True):
            weights = self.engine.row_weights * curve
            mean = float(weights @ z) / float(np.sum(weights))
            means, gram = self._weighted_moments(weights)
            forms.append(self._weighted_form(weights, z - mean, means, gram))
            target_means.append(mean)
            column_means.append(means)
        form = forms[0] if len(forms) == 1 else OutputForms(forms)
        return form, np.array(target_means), np.array(column_means)

    def _weighted_moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the weighted means of the columns, and for the primal form their Gram matrix."""
        features = self._kept_features()
        if features is None:
            means = self.engine.means(self.nodes, weights)
            if self.uses_dual_form:
                return means, None
            gram = self.engine.gram(self.nodes, self.nodes, means, means, weights)
            return means, self._without_constants(gram)
        means = matvec(features.T, weights / float(np.sum(weights)))
        if self.uses_dual_form:
            return means, None
        centred = features - means
        centred *= np.sqrt(weights)[:, None]
        lower = lower_gram(centred.T)
        return means, self._without_constants(lower + np.tril(lower, -1).T)

    def joint_form(
        self, f: FloatArray, curvature: FloatArray, coef: FloatArray
    ) -> tuple[Form, float] | None:
        """Return the form of the quadratic model of a joint loss, and its value at a point.

        None if nodes are given by Gram matrices, or if there are too many features to hold.

        Parameters
        ----------
        f, curvature : ndarray of shape (n,)
            The prediction at the point, and the curvature there or a larger one.
        coef : ndarray of shape (R,)
            The coefficients at the point.
        """
        if self._kernels is not None or self.engine.n_rows * self.n_columns > _MOST_FEATURES:
            return None
        omega = self.engine.row_weights
        features = self.engine.features(self.nodes)
        features -= (omega * curvature) @ features / float(omega @ curvature)
        features[:, self.constant_columns] = 0.0
        model = dual_model if self.uses_dual_form else primal_model
        return model(self.loss, self.y, f, omega, curvature, features, coef, self.blocks)

    def _weighted_form(
        self, weights: FloatArray, target: FloatArray, means: FloatArray, gram: FloatArray | None
    ) -> Form:
        """Return the form of min sum weights_i (target_i - f_i)^2 / 2 with an intercept.

        ``target`` must have weighted mean zero. ``means`` are the weighted means of the columns.
        ``gram`` is None for the dual form.
        """
        if self._kernels is not None:
            return KernelForm(self._kernels, weights, target)
        if gram is None:
            root = np.sqrt(weights)
            kept = self._features
            features = self.engine.features(self.nodes) if kept is None else kept.copy(order="F")
            features -= means
            features *= root[:, None]
            features[:, self.constant_columns] = 0.0
            return DualForm(features, root * target, self.blocks)
        weighted = weights * target
        # The weighted target sums to zero only up to rounding; the last term corrects for this.
        kept = self._features
        cross = (
            self.engine.correlate(self.nodes, weighted)
            if kept is None
            else matvec(kept.T, weighted)
        )
        cross -= means * float(np.sum(weighted))
        cross[self.constant_columns] = 0.0
        return PrimalForm(gram, cross, float(weighted @ target), self.blocks)

    def _extended_gram(self, n_old: int) -> FloatArray | None:
        """Return the Gram matrix with the nodes from ``n_old`` on added; None if none is kept."""
        if self._gram is None or self.uses_dual_form:
            return None
        size = len(self._gram)
        old, fresh = self.nodes[:n_old], self.nodes[n_old:]
        old_means, fresh_means = self.means[:size], self.means[size:]
        across = self.engine.gram(old, fresh, old_means, fresh_means)
        within = self.engine.gram(fresh, fresh, fresh_means, fresh_means)
        return self._without_constants(np.block([[self._gram, across], [across.T, within]]))

    def _without_constants(self, gram: FloatArray) -> FloatArray:
        gram[self.constant_columns] = gram[:, self.constant_columns] = 0.0
        return gram
