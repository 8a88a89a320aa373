"""A fitted model at one alpha: terms, coefficients, certificate, in the units of y."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hikernel.bases.design import Design
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.threads import n_threads, one_blas_thread
from hikernel.graphs import node_degree, node_order, term_names
from hikernel.reduced import Status
from hikernel.search import Certificate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TermModel"]

_PREDICT_NUMBERS = 2**21
"""Numbers that a thread holds at a time while predicting: 16 MiB. With smaller chunks the threads
spend their time waiting for the interpreter."""


@dataclass(frozen=True)
class TermModel:
    """f(x) = intercept + sum_w <coef_w, Phi_w(x)>.

    Attributes
    ----------
    alpha : float
        Regularisation strength.
    nodes : list of Node
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
    nodes: list[Node]
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

    def frame(self, names: Sequence[str]) -> pd.DataFrame:
        """Return a data frame with a row per term."""
        import pandas as pd

        return pd.DataFrame(
            {
                "term": term_names(self.nodes, names),
                "order": [node_order(node) for node in self.nodes],
                "degree": [node_degree(node) for node in self.nodes],
                "width": self.widths,
                "eta": self.eta,
                "zeta": self.zeta,
                "norm": self.norms,
                "share": self.shares,
            }
        )

    def predict(self, design: Design, X: FloatArray) -> FloatArray:
        """Return f(x) for the rows of X, shape (n, p), in threads over chunks: (n,) or (n, k).

        Raises
        ------
        ValueError
            Where a row is so far from the training data that f overflows.
        """
        kept = self.norms > 0.0
        active = [node for node, keep in zip(self.nodes, kept, strict=True) if keep]
        coef = self.coef[np.repeat(kept, self.widths)]
        highest: dict[int, int] = {}
        for node in active:
            for m, level in node:
                highest[m] = max(highest.get(m, 0), level)
        needed = design.up_to(highest)
        per_row = sum(sum(needed.bases[m].widths) for m in highest) + len(coef) + 1
        step = max(1, _PREDICT_NUMBERS // per_row)
        out = np.empty((len(X), *coef.shape[1:]))

        def fill(start: int) -> None:
            rows = X[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                engine = needed.engine(rows, np.ones(len(rows)), highest)
                out[start : start + step] = engine.apply(active, coef) + self.intercept

        starts = range(0, len(X), step)
        threads = min(n_threads(), len(starts))
        if threads > 1:
            with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
                deque(pool.map(fill, starts), maxlen=0)
        else:
            for start in starts:
                fill(start)
        if not np.all(np.isfinite(out)):
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return out
