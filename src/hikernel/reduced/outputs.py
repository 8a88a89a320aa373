"""Several outputs with shared weights zeta: the sum of their forms.

Each of the k outputs has its own least-squares problem; zeta, and therefore the hull, is shared.
P(zeta) and its curvature are sums over the outputs. Coordinate vectors have length k R instead of
R, one output after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.reduced.forms import Evaluation, Form, IndexArray

__all__ = ["OutputForms"]


class OutputForms:
    """The form of several outputs.

    Parameters
    ----------
    forms : sequence of Form
        One per output, all over the same nodes.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = list(forms)
        self.total = float(sum(form.total for form in forms))
        self.n_columns = sum(form.n_columns for form in forms)

    def evaluate(self, zeta: FloatArray, lam: float) -> Evaluation | None:
        """Solve every output for one zeta."""
        parts = []
        for form in self._forms:
            part = form.evaluate(zeta, lam)
            if part is None:
                return None
            parts.append(part)

        def curvature() -> FloatArray:
            return np.asarray(sum(part.curvature() for part in parts))

        return Evaluation(
            coef=np.concatenate([part.coef for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
            coef_squares=np.asarray(sum(part.coef_squares for part in parts)),
            score_squares=np.asarray(sum(part.score_squares for part in parts)),
            loss=sum(part.loss for part in parts),
            fit=sum(part.fit for part in parts),
            curvature=curvature,
        )

    def scores(self, coef: FloatArray, lam: float) -> FloatArray:
        """Return a for any beta, both of shape (k R,)."""
        parts = self._split(coef)
        return np.concatenate(
            [form.scores(part, lam) for form, part in zip(self._forms, parts, strict=True)]
        )

    def columns(self, nodes: IndexArray) -> IndexArray:
        """Return the positions of the columns of some nodes, in all outputs."""
        offset, out = 0, []
        for form in self._forms:
            out.append(form.columns(nodes) + offset)
            offset += form.n_columns
        return np.concatenate(out)

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's coordinates, summed over the outputs."""
        parts = self._split(x)
        sums = [form.squares(part) for form, part in zip(self._forms, parts, strict=True)]
        return np.asarray(np.sum(sums, axis=0))

    def inner(self, x: FloatArray, z: FloatArray) -> float:
        """Return the inner product, summed over the outputs."""
        parts = zip(self._forms, self._split(x), self._split(z), strict=True)
        return sum(form.inner(a, b) for form, a, b in parts)

    def restrict(self, nodes: IndexArray) -> OutputForms:
        """Return the form restricted to some of the nodes."""
        return OutputForms([form.restrict(nodes) for form in self._forms])

    def _split(self, x: FloatArray) -> list[FloatArray]:
        return list(x.reshape(len(self._forms), -1))
