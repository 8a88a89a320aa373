"""What each term of a model adds to the prediction of a row, and the terms as a frame.

Terms are those the model has, as they are: a term may have a mean, and two terms may share
variables. `hikernel.explain.decomposition` regroups them into orthogonal parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.graphs import Design
from hikernel.selection import TermModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["effects_frame", "require_finite", "term_effects", "terms_frame"]


def term_effects(model: TermModel, design: Design, rows: Any) -> FloatArray:
    """Return <coef_t, Phi_t(x)> for rows x and every term t with a coefficient.

    Parameters
    ----------
    model : TermModel
        The model.
    design : Design
        Its fitted bases, or the kernels of its graph.
    rows : ndarray of shape (n, p), or rows of the graph
        Rows, as for ``model.predict``.

    Returns
    -------
    ndarray of shape (n, m), or (n, m, k) for several outputs
        In the order of ``model.kept().nodes``. With the intercept they add up to
        ``model.predict(design, rows)``: the same products, added in another order than the matrix
        product of ``predict`` does, so that the sums agree within a few units in the last place
        of the largest partial sum and not always to the last bit.

    Raises
    ------
    ValueError
        Where a row is so far from the training data that a term overflows.
    """
    kept = model.kept()
    nothing = design.predict([], model.coef[:0], rows)[:, None][:, :0]
    values = design.effects(kept.nodes, kept.blocks, rows)
    out = np.concatenate([nothing, *(value[:, None] for value in values)], axis=1)
    require_finite(out)
    return out


def effects_frame(
    model: TermModel,
    design: Design,
    rows: Any,
    outputs: Sequence[object] | None = None,
    index: pd.Index[Any] | None = None,
) -> pd.DataFrame:
    """Return the intercept and the effect of every term on some rows.

    Parameters
    ----------
    model, design, rows
        As for `term_effects`.
    outputs : sequence, optional
        Labels of the k outputs of a model with several; 0 to k - 1 by default.
    index : pandas.Index, optional
        Of the rows.

    Returns
    -------
    DataFrame
        A row per row. Columns "intercept" and the names of the terms; for several outputs
        the pairs (output, "intercept"), (output, term). Rows (of an output) sum to f(x). Names of
        columns that read like a term, such as "b * c", stand in quotes.
    """
    import pandas as pd

    effects = term_effects(model, design, rows)
    terms = ["intercept", *design.terms(model.kept().nodes)["term"]]
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


def terms_frame(model: TermModel, design: Design) -> pd.DataFrame:
    """Return the terms that predictions are made of, the largest share first.

    Returns
    -------
    DataFrame
        Columns term, variables (tuple of names), order, degree (depth in place of these three for
        a graph without variables), width, norm, and share: the variance of the term on the
        training rows over the sum of these.
    """
    import pandas as pd

    kept = model.kept()
    frame = pd.DataFrame(
        design.terms(kept.nodes)
        | {
            "width": model.widths[kept.positions],
            "norm": model.norms[kept.positions],
            "share": model.shares[kept.positions],
        }
    )
    variables = design.variables(kept.nodes)
    if variables is not None:
        frame.insert(1, "variables", variables)
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def require_finite(values: FloatArray) -> None:
    """Raise where a row (first axis) of ``values`` is not finite, and say which."""
    if not np.all(np.isfinite(values)):
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ValueError(
            f"Row {row} of X lies so far outside the training data that an effect overflows; "
            "check its units, or clip X to the range of the training data."
        )
