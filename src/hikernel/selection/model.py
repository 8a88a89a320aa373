"""A fitted model at one alpha: terms, coefficients, certificate, in the units of y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.reduced import Status
from hikernel.search import Certificate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FittedDesign", "TermModel"]


class FittedDesign(Protocol):
    """What turns rows into the features of nodes, fitted once and applied to any rows.

    :class:`~hikernel.bases.design.Design` for a grid of bases, and what the graphs of
    :mod:`hikernel.graphs` make of their kernels.
    """

    def predict(self, nodes: Sequence[Any], coef: FloatArray, X: Any) -> FloatArray:
        """Return sum_w <coef_w, Phi_w(x)> for rows, shape (n,) or (n, k)."""
        ...

    def subset(self, rows: Any) -> FittedDesign:
        """Return the design of a problem over some of the rows."""
        ...

    def terms(self, nodes: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
        """Return what can be said of each node, by column of a frame."""
        ...


@dataclass(frozen=True)
class TermModel:
    """f(x) = intercept + sum_w <coef_w, Phi_w(x)>.

    Attributes
    ----------
    alpha : float
        Regularisation strength.
    nodes : list of nodes
        The selected hull.
    widths : ndarray of shape (m,)
        Feature columns of each node.
    coef : ndarray of shape (R,) or (R, k)
        Coefficients, blocks in the order of the nodes.
    intercept : ndarray of shape () or (k,)
        b.
    dual_coef : ndarray of shape (n,) or (n, k)
        Dual variables of the training rows.
    eta, zeta, norms, shares : ndarray of shape (m,)
        Variational weights, norm of the coefficients, share of the explained variance.
    certificate : Certificate
        What is proven.
    history : list of Certificate
        The certificate of every step of the search.
    status : Status
        How the last reduced solve ended.
    """

    alpha: float
    nodes: list[Vertex]
    widths: np.ndarray
    coef: FloatArray
    intercept: FloatArray
    dual_coef: FloatArray
    eta: FloatArray
    zeta: FloatArray
    norms: FloatArray
    shares: FloatArray
    certificate: Certificate
    history: list[Certificate]
    status: Status

    @property
    def n_terms(self) -> int:
        """Number of terms with a coefficient."""
        return int(np.count_nonzero(self.norms > 0.0))

    def frame(self, design: FittedDesign, names: Sequence[str]) -> pd.DataFrame:
        """Return a data frame with a row per term."""
        import pandas as pd

        return pd.DataFrame(
            design.terms(self.nodes, names)
            | {
                "width": self.widths,
                "eta": self.eta,
                "zeta": self.zeta,
                "norm": self.norms,
                "share": self.shares,
            }
        )

    def predict(self, design: FittedDesign, X: Any) -> FloatArray:
        """Return f(x) for the rows of X, as the design takes them: (n,) or (n, k).

        Raises
        ------
        ValueError
            Where a row is so far from the training data that f overflows.
        """
        kept = self.norms > 0.0
        active = [node for node, keep in zip(self.nodes, kept, strict=True) if keep]
        coef = self.coef[np.repeat(kept, self.widths)]
        with np.errstate(over="ignore", invalid="ignore"):
            out = design.predict(active, coef, X) + self.intercept
        if not np.all(np.isfinite(out)):
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return out
