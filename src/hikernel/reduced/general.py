"""The problem of any loss on a hull."""

from __future__ import annotations

from hikernel.reduced.descent import Descent
from hikernel.reduced.interior import InteriorPoint
from hikernel.reduced.loss_problem import ModelProblem
from hikernel.reduced.result import ReducedSolution, WarmStart

__all__ = ["LossProblem"]


class LossProblem(ModelProblem):
    """A hull and a loss, for any lambda; parameters are those of ``ModelProblem``."""

    def solve(self, alpha: float, *, tol: float, warm: WarmStart | None = None) -> ReducedSolution:
        """Solve for one lambda."""
        if warm is not None:
            warm = warm.padded(len(self.nodes), self.n_columns)
        method = Descent if self.loss.smooth else InteriorPoint
        return method(self, alpha, tol, warm).run()
