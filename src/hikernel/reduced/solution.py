"""The result of a reduced solve, its status, and warm starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.errors import Reason
from hikernel.reduced.variational import DualNormBound

__all__ = ["ReducedSolution", "Status", "WarmStart"]


@dataclass(frozen=True)
class WarmStart:
    """The solution of a neighbouring problem, to start from.

    Attributes
    ----------
    eta : ndarray of shape (m,)
        Variational weights of the nodes.
    coef : ndarray of shape (R,) or (R, k)
        beta.
    """

    eta: FloatArray
    coef: FloatArray

    def padded(self, size: int, n_columns: int) -> WarmStart:
        """Return the warm start with zeros for the nodes that were appended since."""
        eta = np.zeros(size)
        eta[: len(self.eta)] = self.eta
        coef = np.zeros((n_columns, *self.coef.shape[1:]))
        coef[: len(self.coef)] = self.coef
        return WarmStart(eta, coef)


class Status(Reason):
    """How a reduced solve ended; the value is a sentence, with a remedy where one is needed."""

    CONVERGED = "The reduced problem is solved to the tolerance."
    ITERATIONS = (
        "The reduced problem was not solved to the tolerance within its iterations; raise tol, "
        "or alpha if the terms are nearly collinear."
    )
    STALLED = (
        "Rounding errors stopped the reduced problem short of its tolerance; raise tol or alpha, "
        "or use terms that are better conditioned (the orthonormal basis, kernels of similar size)."
    )
    OFF_CENTRE = (
        "The interior-point method for a loss with kinks did not reach the tolerance; raise tol or "
        'alpha, or use a smooth loss ("squared_hinge" or "log_loss" for classes, "huber" for '
        "numbers)."
    )
    SINGULAR = (
        "The linear system of the reduced problem is singular to machine precision; raise alpha "
        "or use terms that are better conditioned (the orthonormal basis, kernels of similar size)."
    )

    @property
    def ok(self) -> bool:
        """Whether the tolerance was met."""
        return self is Status.CONVERGED


@dataclass(frozen=True)
class ReducedSolution:
    """The solution on a hull of m nodes and R feature columns.

    Attributes
    ----------
    eta, zeta : ndarray of shape (m,)
        Variational weights, sum d_v^2 eta_v = 1.
    coef, scores : ndarray of shape (R,) or (R, k)
        beta and a = Phi' alpha.
    objective : float
        loss + (lambda/2) Omega(beta)^2.
    dual_bound : float
        Proven lower bound on the objective of the reduced problem.
    dual_norm : DualNormBound
        Bound on Omega*(alpha)^2 over the hull, with the eta that proves it.
    n_iter : int
        Newton steps taken.
    status : Status
        How the solve ended.
    residuals : ndarray of shape (n,) or (n, k), optional
        r of the dual point that proves the bound. None for the squared error with one output,
        where r = y - f.
    """

    eta: FloatArray
    zeta: FloatArray
    coef: FloatArray
    scores: FloatArray
    objective: float
    dual_bound: float
    dual_norm: DualNormBound
    n_iter: int
    status: Status
    residuals: FloatArray | None = None

    @property
    def warm_start(self) -> WarmStart:
        """The warm start for a neighbouring problem."""
        return WarmStart(self.eta, self.coef)

    @property
    def gap(self) -> float:
        """Bound on the suboptimality within the hull."""
        return max(0.0, self.objective - self.dual_bound)
