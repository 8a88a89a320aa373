"""A solved path: models for decreasing alpha, which predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import row_offset
from hikernel.graphs import Design
from hikernel.losses import Loss
from hikernel.selection import PathEnd, PathPoint

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Path"]


@dataclass(frozen=True)
class Path:
    """Models for decreasing alpha.

    Attributes
    ----------
    points : list of PathPoint
        One model per alpha, in the order of decreasing alpha.
    reason : PathEnd
        Why the path ended where it did; ``reason.sentence`` is the explanation as text.
    design : Design
        The fitted bases or kernels.
    respond : callable
        Function that turns f(x) into predictions.
    loss : Loss
        The loss.
    """

    points: list[PathPoint]
    reason: PathEnd
    design: Design
    respond: Callable[[FloatArray], NDArray[Any]]
    loss: Loss

    @property
    def alphas(self) -> FloatArray:
        """The values of alpha, largest first."""
        return np.array([point.model.lam for point in self.points])

    def __len__(self) -> int:
        return len(self.points)

    def at(self, alpha: float) -> PathPoint:
        """Return the point of the path at ``alpha``, matched to a relative precision of 1e-6.

        Raises
        ------
        ValueError
            If ``alpha`` is not on the path; the message names the nearest alpha that is.
        """
        alphas = self.alphas
        nearest = int(np.argmin(np.abs(np.log(alphas / alpha))))
        if not np.isclose(alphas[nearest], alpha, rtol=1e-6, atol=0.0):
            raise ValueError(
                f"alpha={alpha!r} is not on the path; the nearest that is, is {alphas[nearest]!r}."
            )
        return self.points[nearest]

    def predict(
        self, X: Any, alpha: float | None = None, offset: Any = None, exposure: Any = None
    ) -> NDArray[Any]:
        """Return predictions: numbers for a regression loss, labels for a classification loss.

        Parameters
        ----------
        X : array-like or data frame of shape (n, p)
            Rows with the columns of the training data.
        alpha : float, optional
            An alpha of the path; by default there are predictions for all of them.
        offset, exposure : array-like of shape (n,), optional
            As for ``predict`` of the estimators.

        Returns
        -------
        ndarray of shape (n,), or (n, n_alphas) without ``alpha``
        """
        if alpha is not None:
            return self.respond(self.decision_function(X, alpha, offset, exposure))
        rows = self.design.read(X)
        values = [self._output(point, rows, offset, exposure) for point in self.points]
        return np.column_stack([self.respond(f) for f in values])

    def decision_function(
        self, X: Any, alpha: float, offset: Any = None, exposure: Any = None
    ) -> FloatArray:
        """Return f(x) at one alpha, shape (n,), or (n, n_classes) for more than two classes."""
        return self._output(self.at(alpha), self.design.read(X), offset, exposure)

    def _output(self, point: PathPoint, rows: Any, offset: Any, exposure: Any) -> FloatArray:
        """Return f(x) of one model, with the offset of the rows."""
        f = point.model.predict(self.design, rows)
        shift = row_offset(offset, exposure, self.loss, f.shape)
        return f if shift is None else f + shift.values

    def hull(self, alpha: float) -> pd.DataFrame:
        """Return the hull at one alpha, one row per node."""
        return self.at(alpha).model.frame(self.design)

    def table(self) -> pd.DataFrame:
        """Return one row per alpha: terms, objective, gap, explained share of the loss, time."""
        import pandas as pd

        certificates = [point.model.certificate for point in self.points]
        return pd.DataFrame(
            {
                "alpha": self.alphas,
                "terms": [point.model.n_terms for point in self.points],
                "kernels": [certificate.n_kernels for certificate in certificates],
                "objective": [certificate.objective for certificate in certificates],
                "relative_gap": [certificate.relative_gap for certificate in certificates],
                "certified": [certificate.certified for certificate in certificates],
                "explained": [point.explained for point in self.points],
                "error": [point.error for point in self.points],
                "seconds": [point.seconds for point in self.points],
            }
        )
