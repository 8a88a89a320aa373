"""What each term of a model adds to the prediction of a row, and the terms as a frame.

Terms are those the model has, as they are: a term may have a mean, and two terms may share
variables. `hikernel.explain.anova` regroups them into orthogonal parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.bases.design import Design
from hikernel.engines.protocol import FloatArray, Node
from hikernel.selection import FittedDesign, TermModel

if TYPE_CHECKING:
    import pandas as pd

    from hikernel.explain.anova import Purified

__all__ = [
    "KeptTerms",
    "effects_frame",
    "kept_terms",
    "require_finite",
    "term_effects",
    "terms_frame",
]

_CHUNK_NUMBERS = 2**21
"""Numbers held at a time besides the result (16 MiB)."""


@dataclass(frozen=True)
class KeptTerms:
    """The terms of a model that have a coefficient, those that predictions are made of.

    Attributes
    ----------
    nodes : list of Node
        In the order of the model's hull.
    blocks : list of ndarray of shape (r_t,) or (r_t, k)
        Their coefficients.
    positions : ndarray of shape (m,)
        Where they stand in the hull.
    """

    nodes: list[Node]
    blocks: list[FloatArray]
    positions: np.ndarray

    @property
    def variables(self) -> list[int]:
        """Variables that appear in a term, in increasing order."""
        return sorted({m for node in self.nodes for m, _ in node})


def kept_terms(model: TermModel) -> KeptTerms:
    """Return the terms of a model that have a coefficient."""
    blocks = np.split(model.coef, np.cumsum(model.widths)[:-1])
    positions = np.flatnonzero(model.norms > 0.0)
    return KeptTerms([model.nodes[i] for i in positions], [blocks[i] for i in positions], positions)


def term_effects(model: TermModel, design: FittedDesign, X: Any) -> FloatArray:
    """Return <coef_t, Phi_t(x)> for the rows x of X and every kept term t.

    Parameters
    ----------
    model : TermModel
        The model.
    design : FittedDesign
        Its fitted bases, or the kernels of its graph.
    X : ndarray of shape (n, p), or rows of the graph
        Rows, as for ``model.predict``.

    Returns
    -------
    ndarray of shape (n, m), or (n, m, k) for several outputs
        In the order of ``kept_terms(model).nodes``. With the intercept they add up to
        ``model.predict(design, X)``: the same products, added in another order than the matrix
        product of ``predict`` does, so that the sums agree within a few units in the last place
        of the largest partial sum and not always to the last bit.

    Raises
    ------
    ValueError
        Where a row is so far from the training data that a term overflows.
    """
    kept = kept_terms(model)
    outputs = model.coef.shape[1:]
    if not isinstance(design, Design):
        parts = zip(kept.nodes, kept.blocks, strict=True)
        none = design.predict([], model.coef[:0], X)[:, None]
        values = [design.predict([node], block, X)[:, None] for node, block in parts]
        return np.concatenate([none[:, :0], *values], axis=1)
    per_row = sum(sum(design.bases[m].widths) for m in kept.variables) + 1
    per_row += 2 * sum(len(block) for block in kept.blocks)
    step = max(1, _CHUNK_NUMBERS // per_row)
    by_term = np.empty((len(kept.nodes), len(X), *outputs))  # contiguous where it is written
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            engine = design.engine(rows, np.ones(len(rows)), kept.variables)
            features = engine.features(kept.nodes)
            column = 0
            for t, block in enumerate(kept.blocks):
                part = features[:, column : column + len(block)]
                # One column is only scaled, which a matrix product does slowly.
                single = block.shape == (1,)
                by_term[t, start : start + step] = part[:, 0] * block if single else part @ block
                column += len(block)
    out = np.swapaxes(by_term, 0, 1)
    require_finite(out)
    return out


def effects_frame(
    model: TermModel,
    design: FittedDesign,
    X: Any,
    names: Sequence[str],
    outputs: Sequence[object] | None = None,
    index: pd.Index[Any] | None = None,
) -> pd.DataFrame:
    """Return the intercept and the effect of every kept term on the rows of X.

    Parameters
    ----------
    model, design, X
        As for `term_effects`.
    names : sequence of str
        Names of the variables.
    outputs : sequence, optional
        Labels of the k outputs of a model with several; 0 to k - 1 by default.
    index : pandas.Index, optional
        Of the rows of X.

    Returns
    -------
    DataFrame
        A row per row of X. Columns "intercept" and the names of the terms; for several outputs
        the pairs (output, "intercept"), (output, term). Rows (of an output) sum to f(x). Names of
        columns that read like a term, such as "b * c", stand in quotes.
    """
    import pandas as pd

    effects = term_effects(model, design, X)
    terms = ["intercept", *design.terms(kept_terms(model).nodes, names)["term"]]
    values = np.empty((len(effects), len(terms), *effects.shape[2:]))
    values[:, 0] = model.intercept
    values[:, 1:] = effects
    if values.ndim == 2:
        return pd.DataFrame(values, index=index, columns=pd.Index(terms, name="term"))
    labels = range(values.shape[2]) if outputs is None else outputs
    columns = pd.MultiIndex.from_tuples(
        [(label, term) for label in labels for term in terms], names=["output", "term"]
    )
    flat = np.swapaxes(values, 1, 2).reshape(len(effects), len(columns))
    return pd.DataFrame(flat, index=index, columns=columns)


def terms_frame(
    model: TermModel, design: FittedDesign, names: Sequence[str], anova: Purified | None = None
) -> pd.DataFrame:
    """Return the kept terms, the largest share first.

    Parameters
    ----------
    model : TermModel
        The model.
    design : FittedDesign
        Its fitted bases, or the kernels of its graph.
    names : sequence of str
        Names of the variables.
    anova : Purified, optional
        Of the same model; adds the column "set_share".

    Returns
    -------
    DataFrame
        Columns term, variables (tuple of names), order, degree (depth in place of these three for
        a graph), width, norm, share (variance of
        the term on the training rows over the sum of these) and, on request, set_share: the
        share of the purified effect of exactly these variables, to which all terms that contain
        them contribute.
    """
    import pandas as pd

    kept = kept_terms(model)
    frame = pd.DataFrame(
        design.terms(kept.nodes, names)
        | {
            "width": model.widths[kept.positions],
            "norm": model.norms[kept.positions],
            "share": model.shares[kept.positions],
        }
    )
    if isinstance(design, Design):
        variables = [tuple(names[m] for m, _ in node) for node in kept.nodes]
        frame.insert(1, "variables", variables)
    if anova is not None:
        shares = dict(zip(anova.sets, anova.shares(), strict=True))
        frame["set_share"] = [shares.get(tuple(m for m, _ in node), 0.0) for node in kept.nodes]
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def require_finite(values: FloatArray) -> None:
    """Raise where a row (first axis) of ``values`` is not finite, and say which."""
    if not np.all(np.isfinite(values)):
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ValueError(
            f"Row {row} of X lies so far outside the training data that an effect overflows; "
            "check its units, or clip X to the range of the training data."
        )
