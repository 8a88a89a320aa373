"""Explanations of a fitted estimator: terms, effects, functional ANOVA, formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hikernel.checks import check_integer
from hikernel.columns import ColumnDesign, ColumnTable
from hikernel.explain import (
    FunctionalANOVA,
    effects_frame,
    effects_summary,
    formula,
    functional_anova,
    terms_frame,
)
from hikernel.graphs import Design
from hikernel.losses import LogLoss, Loss, Multinomial, Poisson
from hikernel.selection import TermModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanations"]


class Explanations:
    """Mixin of methods that explain the model that predicts (after a refit, the refitted model)."""

    loss_: Loss
    columns_: ColumnTable
    bases_: pd.DataFrame
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _model: TermModel
    _design: Design

    def _column_design(self, what: str) -> ColumnDesign:
        """Return the columns and bases of the model; raise if it was fitted on a graph."""
        check_is_fitted(self)
        columns = self._columns
        if columns is None:
            raise ValueError(
                f"{what} needs columns, and this model was fitted on a graph of kernels, which has "
                "none; hull_, terms_ and effects(X) describe it by its nodes."
            )
        return columns

    @property
    def _columns(self) -> ColumnDesign | None:
        """The columns and bases of the model; None if it was fitted on a graph."""
        return self._design if isinstance(self._design, ColumnDesign) else None

    @property
    def terms_(self) -> pd.DataFrame:
        """Terms of the model that predicts, one row per term, the largest share first."""
        check_is_fitted(self)
        return terms_frame(self._model, self._design)

    @property
    def effects_(self) -> pd.DataFrame:
        """Effects of the model that predicts, the largest share first.

        An effect is the sum of all terms of one set of variables. The columns are effect (its
        name), variables, order, n_terms, share (of the variance of all terms) and shape, which is
        "increasing", "decreasing", "peak", "valley", "waves" or "by category" for one variable,
        and "product" or "surface" for several ("by class" if the classes differ).
        """
        check_is_fitted(self)
        return effects_summary(self._model, self._design)

    def summary(self) -> dict[str, Any]:
        """Return the fitted model as one dict of plain data, ready for JSON.

        Returns
        -------
        dict
            What was fitted to which data with which settings, how good it is, effects with shares,
            shapes and values on a grid, terms, hull, path, search, certificate, and f itself
            (``docs/summary.md``). Plots and reports draw nothing else.
        """
        from hikernel.estimators.summary import summarize  # imported only when needed

        check_is_fitted(self)
        return summarize(self)

    def effects(self, X: Any) -> pd.DataFrame:
        """Return what each term contributes to f(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        pandas.DataFrame of n_samples rows
            One column "intercept" and one column per term; each row sums to f(x) (with the
            Poisson loss, the logarithm of the mean). For more than two classes the columns are
            pairs (class, term), and the columns of a class sum to its f(x). A variable whose name
            could be read as a term, such as "b * c", is written in quotes. If X is a pandas
            object, the rows have its index.
        """
        import pandas as pd

        check_is_fitted(self)
        rows = self._design.read(X)
        index = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        return effects_frame(self._model, self._design, rows, self._outputs(), index)

    def anova(self, X: Any, sample_weight: Any = None) -> FunctionalANOVA:
        """Return the functional ANOVA of f, for independent variables with the marginals of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that define the distribution of each variable, usually the training data.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        FunctionalANOVA
            ``frame()`` has the share of every set of variables in the variance of f,
            ``variables_frame()`` the total share of every variable, and ``effects(X)`` the
            effects of the sets on the rows of X.
        """
        design = self._column_design("anova()")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return functional_anova(self._model, design, design.read(X), weights)

    def formula(self, digits: int = 4) -> str:
        """Return f(x) as text.

        Parameters
        ----------
        digits : int, default=4
            Significant digits of the numbers.

        Returns
        -------
        str
            Polynomial bases are written out, exact up to rounding; other functions are named and
            explained in a legend. If predictions are not f itself, the last line says how they
            follow from f.
        """
        design = self._column_design("formula()")
        check_integer("digits", digits, 1)
        text = formula(self._model, design, digits, self._outputs())
        link = self._link()
        return f"{text}\n\n{link}" if link else text

    def _outputs(self) -> list[str] | None:
        """Return the names of the outputs (the classes), or None for a single output."""
        if self._model.coef.ndim == 1:
            return None
        return [str(label) for label in self.classes_.tolist()]  # type: ignore[attr-defined]

    def _link(self) -> str:
        """Return a line on how predictions follow from f; empty if they are f itself."""
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
