"""Functional ANOVA of a model: orthogonal effects of sets of variables and their shares.

The decomposition is exact. It is computed from one-variable moments and the coefficients of the
terms, without sampling and without a product grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray, Node
from hikernel.explain.effects import labelled_frame, require_finite
from hikernel.explain.marginal import Marginal
from hikernel.explain.text_layout import percent, significant, table_lines
from hikernel.graphs import unambiguous
from hikernel.selection import TermModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FunctionalANOVA", "VariableSet", "functional_anova"]

VariableSet = tuple[int, ...]

_CHUNK_NUMBERS = 2**21
"""Numbers held in memory at a time, besides the result (16 MiB)."""

_PRINTED = 12
"""Largest number of effects in the text of a decomposition."""


@dataclass(frozen=True, repr=False)
class FunctionalANOVA:
    """f(x) = mean + sum_u f_u(x_u), u sets of variables, the f_u orthogonal and of mean zero.

    Made by `functional_anova`, or by ``anova`` of a fitted estimator. It prints as a table.

    Attributes
    ----------
    design : ColumnDesign
        Columns and bases of the model.
    sets : list of tuple of int
        The sets u of variables (column positions) with an effect, small sets first. The empty set
        is not listed.
    mean : ndarray of shape () or (k,)
        E f under the product of the marginal distributions.
    variances : ndarray of shape (n_sets,) or (n_sets, k)
        Var f_u.
    parts : list of dict of Node to ndarray of shape (r_1, ..., r_|u|, k)
        The tensors G_v for each set u: f_u(x) = sum over nodes v with the variables u of
        <G_v, psi_v(x)>, where psi_v is the product of the centred levels phi - mu.
    marginals : dict of int to Marginal
        Moments of the levels of each variable in the model.
    outputs : tuple of str or None
        Labels of several outputs; None for 0, 1, ... or a single output.
    """

    design: ColumnDesign
    sets: list[VariableSet]
    mean: FloatArray
    variances: FloatArray
    parts: list[dict[Node, FloatArray]]
    marginals: dict[int, Marginal]
    outputs: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        frame = self.frame()
        mean = ", ".join(significant(float(value), 4) for value in np.atleast_1d(self.mean))
        rows = [
            (name, [str(order), percent(share)])
            for name, order, share in zip(
                frame["effect"][:_PRINTED], frame["order"], frame["share"], strict=False
            )
        ]
        if len(frame) > _PRINTED:
            left = frame["share"][_PRINTED:]
            rows.append((f"and {len(left)} more", ["", percent(float(left.sum()))]))
        count = f"{len(frame)} effect{'' if len(frame) == 1 else 's'}"
        title = f"Functional ANOVA: mean {mean} and {count}"
        return "\n".join([title, *(table_lines("effect", ["order", "share"], rows, "  "))])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.design.names

    def shares(self, output: int | None = None) -> FloatArray:
        """Return Var f_u / Var f, shape (n_sets,); zero where f is constant.

        Parameters
        ----------
        output : int, optional
            Which of several outputs; by default the variances of all outputs are added.
        """
        variances = self._variances(output)
        total = float(np.sum(variances))
        return variances / total if total > 0.0 else variances

    def total_shares(self, output: int | None = None) -> FloatArray:
        """Return for each variable the sum of the shares of all sets with it, shape (p,).

        This is Sobol's total index. The indices sum to more than one if variables interact.
        """
        return self._shares_by_variable(output, only_alone=False)

    def main_shares(self, output: int | None = None) -> FloatArray:
        """Return the share of each variable alone, Sobol's first-order index, shape (p,)."""
        return self._shares_by_variable(output, only_alone=True)

    def frame(self, output: int | None = None) -> pd.DataFrame:
        """Return one row per set: effect, variables (tuple of names), order, variance, share.

        The largest share comes first. "effect" is the name of the set, as in ``effects``.
        """
        import pandas as pd

        frame = pd.DataFrame(
            {
                "effect": self._set_names(self.sets),
                "variables": [tuple(self.names[m] for m in u) for u in self.sets],
                "order": np.array([len(u) for u in self.sets], dtype=np.int64),
                "variance": self._variances(output),
                "share": self.shares(output),
            }
        )
        return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    def variables_frame(self, output: int | None = None) -> pd.DataFrame:
        """Return one row per variable, in column order: variable, main_share, total_share."""
        import pandas as pd

        return pd.DataFrame(
            {
                "variable": list(self.names),
                "main_share": self.main_shares(output),
                "total_share": self.total_shares(output),
            }
        )

    def effects(self, X: Any, sets: Iterable[VariableSet] | None = None) -> pd.DataFrame:
        """Return the mean and f_u(x) for the rows x of X, computed in chunks of rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, p)
            Rows with the columns of the training data.
        sets : iterable of tuple of int, optional
            Sets u to evaluate, each as increasing positions in ``names``; by default all, in the
            order of ``frame()``. A set without an effect gives zeros.

        Returns
        -------
        DataFrame of n rows
            A column "mean" and a column per set, with its name in ``frame()``. The columns sum to
            f(x), up to rounding, if there is one for every set. For several outputs the columns are
            pairs (output, name). If X is a pandas object, the rows have its index.

        Raises
        ------
        ValueError
            If a row is so far from the training data that an effect overflows.
        """
        import pandas as pd

        order = np.argsort(-self.shares(), kind="stable")
        chosen = [self.sets[i] for i in order] if sets is None else [tuple(u) for u in sets]
        values = self._values(self.design.read(X), chosen)
        mean = np.broadcast_to(self.mean, (len(values), 1, *self.mean.shape))
        return labelled_frame(
            np.concatenate([mean, values], axis=1),
            ["mean", *self._set_names(chosen)],
            "effect",
            self.outputs,
            X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None,
        )

    def _values(self, rows: FloatArray, sets: Sequence[VariableSet]) -> FloatArray:
        """Return f_u at the rows of a matrix, shape (n, n_sets) or (n, n_sets, k)."""
        known = dict(zip(self.sets, self.parts, strict=True))
        chosen = [known.get(u, {}) for u in sets]
        variables = sorted({m for part in chosen for node in part for m, _ in node})
        largest = max((tensor.size for part in chosen for tensor in part.values()), default=1)
        per_row = sum(sum(self.design.bases[m].widths) for m in variables) + 2 * largest
        step = max(1, _CHUNK_NUMBERS // per_row)
        by_set = np.zeros((len(chosen), len(rows), self.mean.size))  # sets are contiguous
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(rows), step):
                some = slice(start, start + step)
                centred = self._centred(rows[some], variables)
                for i, part in enumerate(chosen):
                    for node, tensor in part.items():
                        by_set[i, some] += _apply([centred[pair] for pair in node], tensor)
        out = np.swapaxes(by_set, 0, 1)
        require_finite(out)
        return out if self.mean.ndim else out[:, :, 0]

    def _set_names(self, sets: Iterable[VariableSet]) -> list[str]:
        """Return the names of sets: products of the names of their variables."""
        names = unambiguous(self.names, reserved=("intercept", "mean"))
        return [" * ".join(names[m] for m in u) for u in sets]

    def _centred(
        self, X: FloatArray, variables: Iterable[int]
    ) -> dict[tuple[int, int], FloatArray]:
        """Return the centred levels in use at the rows of X, by (variable, level): shape (n, r)."""
        out = {}
        for m in variables:
            levels = self.design.bases[m].transform(np.ascontiguousarray(X[:, m]))
            for level in self.marginals[m].spans:
                out[m, level] = levels[level] - self.marginals[m].mean(level)
        return out

    def _variances(self, output: int | None) -> FloatArray:
        by_output = self.variances.reshape(len(self.sets), self.mean.size)
        return np.asarray(np.sum(by_output, axis=1) if output is None else by_output[:, output])

    def _shares_by_variable(self, output: int | None, only_alone: bool) -> FloatArray:
        out = np.zeros(len(self.design.bases))
        for u, share in zip(self.sets, self.shares(output), strict=True):
            if len(u) == 1 or not only_alone:
                out[list(u)] += share
        return out


def functional_anova(
    model: TermModel,
    design: ColumnDesign,
    rows: FloatArray,
    weights: FloatArray | None = None,
    outputs: Sequence[str] | None = None,
) -> FunctionalANOVA:
    """Decompose f into orthogonal effects of sets of variables (functional ANOVA).

    Parameters
    ----------
    model : TermModel
        The model f.
    design : ColumnDesign
        Its columns and fitted bases.
    rows : ndarray of shape (n, p)
        Rows that define the marginal distributions of the variables.
    weights : ndarray of shape (n,), optional
        Weights of the rows; an integer weight is equivalent to repeating the row.
    outputs : sequence of str, optional
        Labels of several outputs, for the columns of ``effects``.

    Returns
    -------
    FunctionalANOVA
        The effects f_u, which can be evaluated on any rows, with their variances and shares.

    Raises
    ------
    ValueError
        If the weights are invalid, or if level 0 of a basis is not constant but a bump, as for
        ``Gaussian()``. Every term then contains every variable, and f has an effect for each of
        the 2^p sets.

    Notes
    -----
    Expectations are under the *product* of the marginals, as if the variables were
    independent. Shares therefore describe the function f and not how correlated variables
    split the variance on the training rows.

    With mu_mj = E phi_mj(x_m), psi_mj = phi_mj - mu_mj and the coefficients of a term t as a
    tensor B_t with one axis per variable of t, expanding the product of (mu + psi) gives:

        f_u(x) = sum over terms t containing u of
                     < B_t contracted with mu_{m, t_m} for m not in u, prod_{m in u} psi_{m, t_m} >
               = sum over nodes v with variables u of < G_v, psi_v(x) >.

    Each f_u has mean zero in each of its variables, so that different f_u are uncorrelated. With
    triangular factors E psi_m psi_m' = R_m' R_m over all levels of a variable, and R_mj the
    columns of level j,

        Var f_u = | sum_v (R_{m1, v_m1} x ... x R_{mk, v_mk}) G_v |^2,

    a sum of squares. The nodes v are ancestors of terms, with the variables outside u at level 0,
    so that there are never more of them than terms in the hull.

    Means below 1e-12 of the root mean square of their feature are set to zero. With orthonormal
    polynomials all means vanish, and a term contributes only to the set of its own variables.

    Examples
    --------
    >>> from hikernel import HKLRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = X[:, 0] + X[:, 0] * X[:, 1]
    >>> model = HKLRegressor(1e-4, basis="polynomial", degree=2).fit(X, y)
    >>> anova = model.anova(X)
    >>> anova.effects(X).columns.tolist()[:3]
    ['mean', 'x0', 'x0 * x1']
    >>> np.allclose(anova.effects(X).sum(axis=1), model.predict(X))
    True
    """
    weights = _check_weights(weights, len(rows))
    if not all(basis.constant_level for basis in design.bases):
        raise ValueError(
            "A functional ANOVA needs bases with a constant level 0: without one every term "
            "contains every variable, and each of the 2^p sets of variables has an effect. Pass "
            "constant_level=True to the basis, or give it by name."
        )
    kept = model.kept()
    levels: dict[int, set[int]] = {}
    for m, level in (pair for node in kept.nodes for pair in node):
        levels.setdefault(m, set()).add(level)
    marginals = {
        m: Marginal.of(design.bases[m], levels[m], np.ascontiguousarray(rows[:, m]), weights)
        for m in sorted(levels)
    }
    by_node: dict[Node, FloatArray] = {}
    for node, block in zip(kept.nodes, kept.blocks, strict=True):
        shape = [design.bases[m].widths[level] for m, level in node]
        for part, tensor in _expand(node, block.reshape(*shape, -1), marginals):
            by_node[part] = by_node[part] + tensor if part in by_node else tensor
    per_output = model.coef.shape[1:]
    constant = by_node.pop((), np.zeros(per_output)).reshape(per_output)
    by_set: dict[VariableSet, dict[Node, FloatArray]] = {}
    for node in sorted(by_node):
        by_set.setdefault(tuple(m for m, _ in node), {})[node] = by_node[node]
    sets = sorted(by_set, key=lambda u: (len(u), u))
    parts = [by_set[u] for u in sets]
    variances = np.array([_variance(part, marginals) for part in parts])
    return FunctionalANOVA(
        design=design,
        sets=sets,
        mean=np.asarray(model.intercept + constant),
        variances=variances.reshape(len(sets), *per_output),
        parts=parts,
        marginals=marginals,
        outputs=None if outputs is None else tuple(outputs),
    )


def _expand(
    node: Node, tensor: FloatArray, marginals: Mapping[int, Marginal]
) -> list[tuple[Node, FloatArray]]:
    """Expand the product of (mu + psi) over the variables of a term.

    Returns one pair (node, tensor) for every subset of the variables with a nonzero part. The node
    has the variables of the subset; the other axes of the tensor are contracted with means.
    """
    parts: list[tuple[Node, FloatArray]] = [((), tensor)]
    for m, level in node:
        mean = marginals[m].mean(level)
        dropped = []
        if np.any(mean):
            dropped = [(left, np.tensordot(mean, rest, (0, len(left)))) for left, rest in parts]
        parts = [((*left, (m, level)), rest) for left, rest in parts] + dropped
    return parts


def _variance(part: Mapping[Node, FloatArray], marginals: Mapping[int, Marginal]) -> FloatArray:
    """Return Var f_u for every output, shape (k,)."""
    variables = [m for m, _ in next(iter(part))]
    roots = [
        marginals[m].roots({node[axis][1] for node in part}) for axis, m in enumerate(variables)
    ]
    total: FloatArray | float = 0.0
    for node, tensor in part.items():
        for axis, (_, level) in enumerate(node):
            tensor = np.moveaxis(np.tensordot(roots[axis][level], tensor, (1, axis)), 0, axis)
        total = total + tensor
    return np.asarray(np.sum(np.square(total), axis=tuple(range(len(variables)))))


def _apply(features: Sequence[FloatArray], tensor: FloatArray) -> FloatArray:
    """Return <tensor, outer product of the features of a row> for every row, shape (n, k)."""
    first, *others = features
    out = first @ tensor.reshape(len(tensor), -1)
    for block in others:
        out = np.einsum("na,nab->nb", block, out.reshape(*block.shape, -1))
    return out


def _check_weights(weights: FloatArray | None, n_rows: int) -> FloatArray:
    if weights is None:
        return np.ones(n_rows)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"weights must have shape ({n_rows},), got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0.0) or not np.any(weights):
        raise ValueError("weights must be finite, zero or positive, and not all zero.")
    return weights
