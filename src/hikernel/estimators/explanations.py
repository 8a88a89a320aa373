"""What a fitted estimator can say about itself: effects, shares, formula, terms; and its file."""

from __future__ import annotations

from copy import copy
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer
from hikernel.estimators.graph_input import refuse_graph
from hikernel.estimators.validation import read_new_rows
from hikernel.explain import Purified, effects_frame, formula, purified, terms_frame
from hikernel.losses import LogLoss, Loss, Multinomial, Poisson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import pandas as pd

    from hikernel.frames import ColumnTable
    from hikernel.selection import FittedDesign, TermModel

__all__ = ["Explanations"]


class Explanations:
    """Methods of fitted estimators that explain the model that predicts."""

    columns_: ColumnTable
    loss_: Loss
    _model: TermModel
    _design: FittedDesign

    @property
    def _names(self) -> Sequence[str]:
        """Names of the columns; none with a graph."""
        return self.columns_.names if hasattr(self, "columns_") else ()

    def _read(self, X: Any) -> Any:
        """Return new rows as the design takes them."""
        return read_new_rows(self, X) if hasattr(self, "columns_") else X

    def _columns_only(self, what: str) -> Design:
        """Return the fitted bases, or say that a graph has none."""
        check_is_fitted(self)
        if not isinstance(self._design, Design):
            refuse_graph(what)
        return self._design

    @property
    def terms_(self) -> pd.DataFrame:
        """The terms with a coefficient, largest share first, a row each."""
        check_is_fitted(self)
        return terms_frame(self._model, self._design, self._names)

    def effects(self, X: Any) -> pd.DataFrame:
        """Return what each term contributes to f(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        pandas.DataFrame of n_samples rows
            A column "intercept" and one per term; they add up to f(x) (the logarithm of the mean
            with the Poisson loss). For more than two classes the columns are (class, term). Names
            of columns that read like a term, such as "b * c", stand in quotes. The rows have the
            index of X where it is a pandas frame.
        """
        import pandas as pd

        check_is_fitted(self)
        rows = self._read(X)
        index = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        return effects_frame(self._model, self._design, rows, self._names, self._outputs(), index)

    def anova(self, X: Any, sample_weight: Any = None) -> Purified:
        """Return the functional ANOVA of f, variables independent, each distributed as in X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that stand for the distribution of the variables: the training data.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        Purified
            ``frame()`` has the share of every set of variables in the variance of f,
            ``variables_frame()`` the total share of every variable, and ``effects(X)`` the
            effects of the sets on the rows of a table.
        """
        design = self._columns_only("anova()")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        read = partial(read_new_rows, copy(self))  # a later fit must not change how it reads
        return purified(self._model, design, read(X), weights, self.columns_.names, read)

    def formula(self, digits: int = 4) -> str:
        """Return f(x) as text.

        Parameters
        ----------
        digits : int, default=4
            Significant digits of the numbers.

        Returns
        -------
        str
            Exact up to rounding for polynomial bases; other functions are named and explained. The
            last line says how predictions follow from f, where they are not f itself.
        """
        design = self._columns_only("formula()")
        check_integer("digits", digits, 1)
        categories = {
            m: {float(code): str(label) for code, label in enumerate(labels)}
            for m, labels in enumerate(self.columns_.categories)
            if labels is not None
        }
        text = formula(
            self._model,
            design,
            self.columns_.names,
            digits,
            outputs=self._outputs(),
            categories=categories,
            missing=self.columns_.indicators,
        )
        link = self._link()
        return f"{text}\n\n{link}" if link else text

    def save(self, path: str | PathLike[str], *, dual_coef: bool = True) -> None:
        """Write the fitted model to one file without pickle; ``hikernel.load`` reads it.

        Parameters
        ----------
        path : str or path-like
            The file, of any name.
        dual_coef : bool, default=True
            Whether to keep ``dual_coef_``, one number a training row, which no prediction needs.

        Notes
        -----
        The file keeps all that predictions and explanations need, but not the ``path_`` of a
        cross-validated model. A ``cv`` or ``scoring`` that is an object is left out with a
        warning and comes back as the default; arrays among the parameters come back as lists.
        """
        # Persistence knows the estimators, so that it cannot be imported from here directly.
        import_module("hikernel.persistence").save(self, path, dual_coef=dual_coef)

    def _outputs(self) -> list[str] | None:
        """Return the names of several outputs: the classes."""
        if self._model.coef.ndim == 1:
            return None
        return [str(label) for label in self.classes_.tolist()]  # type: ignore[attr-defined]

    def _link(self) -> str:
        """Return how predictions follow from f; nothing where they are f."""
        if isinstance(self.loss_, Poisson):
            return "mean of y = exp(f)"
        if not hasattr(self, "classes_"):
            return ""
        if self._model.coef.ndim > 1:
            if isinstance(self.loss_, Multinomial):
                return "P(y = k) is proportional to exp(f[k])"
            return "y = the class k with the largest f[k]"
        no, yes = self.classes_.tolist()
        if isinstance(self.loss_, LogLoss):
            return f"P(y = {yes!r}) = 1 / (1 + exp(-f))"
        return f"y = {yes!r} where f > 0, {no!r} elsewhere"
