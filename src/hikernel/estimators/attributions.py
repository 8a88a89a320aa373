"""What scikit-learn's tools and SHAP ask of a model: importances, effects, attributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.explanations import Explanations
from hikernel.estimators.typed_bases import TransformerMixin
from hikernel.explain.effects import effect_groups, effect_values

__all__ = ["Attributions"]


class Attributions(TransformerMixin, Explanations):
    """Mixin of what the columns of X contribute, in the words of scikit-learn and SHAP."""

    graph: Any

    def __sklearn_tags__(self) -> Any:
        """Return the tags that tell scikit-learn which kinds of X are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = self.graph is None
        return tags

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of every column of X, shape (n_features_in_,), of sum one; zeros without effects.

        The share of an effect (``effects_``) is split evenly over its columns. A column's indicator
        of missing values counts for the column. Models on a graph have no columns, and no
        importances. For ``SelectFromModel`` and ``RFE`` pass
        ``importance_getter="feature_importances_"``: they would look at ``coef_`` first, which has
        the coefficients of the terms.
        """
        from hikernel.explain.shapley import column_shares  # imported only when needed

        check_is_fitted(self)
        design = self._columns
        if design is None:
            raise AttributeError(
                "feature_importances_ needs columns, and this model was fitted on a graph of "
                "kernels; terms_ has the shares of its nodes."
            )
        return column_shares(self._model, design)

    def shap_values(self, X: Any, background: Any = None) -> FloatArray:
        """Return the Shapley values of f(x): what every column of X contributes, exactly.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        background : array-like or data frame, optional
            Rows from which the values of absent columns are drawn, as the background data of the
            package shap. By default an absent column contributes nothing to f, as a missing value
            does. An effect is then split evenly over its columns. With the default bases, whose
            functions have mean zero over the training rows, this is the mean over independent
            columns.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples, n_features, n_classes)
            The values of a row sum to f(x) minus ``intercept_``, or minus the mean of f over the
            background rows. f is what ``decision_function`` returns for classes, and the logarithm
            of the prediction for losses with a logarithmic link. For more than two classes there
            are values for the f of each.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from hikernel import HKLRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = HKLRegressor(0.1).fit(X, y)
        >>> values = model.shap_values(X)
        >>> bool(np.allclose(values.sum(axis=1) + model.intercept_, model.predict(X)))
        True
        """
        from hikernel.explain.shapley import shapley_values  # imported only when needed

        design = self._column_design("shap_values()")
        others = None if background is None else design.read(background)
        return shapley_values(self._model, design, design.read(X), others)

    def transform(self, X: Any) -> Any:
        """Return the effects as columns: what each adds to f(x), without the intercept.

        So a model can be a step of a pipeline: the next step sees the nonlinear functions that were
        found. ``set_output(transform="pandas")`` gives a data frame; ``effects(X)`` is always one,
        and has the intercept too.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_effects), or (n_samples, n_classes * n_effects)
            The columns have the names of ``get_feature_names_out``.
        """
        check_is_fitted(self)
        _, effects = effect_values(self._model, self._design, self._design.read(X))
        return np.swapaxes(effects, 1, -1).reshape(len(effects), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of ``transform``: those of the effects.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X, for scikit-learn. They must be those seen in ``fit``, and
            change nothing.

        Returns
        -------
        ndarray of str
            As in ``effects_``; with more than two classes "class: effect", class by class.
        """
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        if self._columns is not None:
            _check_feature_names_in(self, input_features)
        names = [group.name for group in effect_groups(self._model, self._design)]
        outputs = self._outputs()
        if outputs is not None:
            names = [f"{output}: {name}" for output in outputs for name in names]
        return np.array(names, dtype=object)
