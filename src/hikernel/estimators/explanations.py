"""Explanations of a fitted estimator: text, terms, effects, functional ANOVA, formula, reasons."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from hikernel.checks import check_integer
from hikernel.columns import ColumnDesign, ColumnTable
from hikernel.columns.reading import read_table
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.exporting import Exporting
from hikernel.estimators.offsets import without_offset
from hikernel.estimators.quality import quality
from hikernel.explain import (
    Explanation,
    FunctionalANOVA,
    effects_frame,
    effects_summary,
    formula,
    functional_anova,
    terms_frame,
)
from hikernel.explain.model_text import ModelText, certificate_words, title_words
from hikernel.explain.reasons import reasons, values_of_row
from hikernel.graphs import Design
from hikernel.losses import Cox, LogLoss, Loss, Multinomial
from hikernel.search import Certificate
from hikernel.selection import FitRecord, TermModel

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Explanations"]

_ONE_ROW = (
    "explain() takes exactly one row, as a table such as X.iloc[[0]] or X[:1], and X has {}; "
    "effects(X) has the contributions for many rows."
)


class Explanations(Exporting):
    """Mixin of methods that explain the model that predicts (after a refit, the refitted model)."""

    _quantity: str | None = None
    """What f is, if it is not a prediction of the target itself."""

    loss_: Loss
    alpha_: float
    refit_: str | None
    certificate_: Certificate
    dual_coef_: FloatArray
    columns_: ColumnTable
    bases_: pd.DataFrame
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _model: TermModel
    _design: Design
    _record: FitRecord
    """The data in numbers, the path, and what simpler models score."""

    def __str__(self) -> str:
        """Return a fitted model in about ten lines; before ``fit``, scikit-learn's text."""
        return self._model_text().text() if self._is_fitted() else repr(self)

    @property
    def _task(self) -> str:
        """What the model is for, in a word."""
        return "classification" if hasattr(self, "classes_") else "regression"

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Function that returns the HTML for notebooks; none if scikit-learn shows text there."""
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is not defined where scikit-learn displays text.")
        return lambda: self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show: a fitted model in about ten lines."""
        if not self._is_fitted():
            return super()._repr_mimebundle_(**kwargs)
        text = self._model_text()
        shown = {"text/plain": text.text()}
        if get_config()["display"] == "diagram":
            shown["text/html"] = text.html()
        return shown

    def _is_fitted(self) -> bool:
        return hasattr(self, "_model")

    def _model_text(self) -> ModelText:
        """Return what is said of a fitted model."""
        effects, owner, words = self.effects_, type(self).__name__, quality(self)["words"]
        shapes = effects["shape"] if "shape" in effects else [""] * len(effects)
        classes = getattr(self, "classes_", None)
        columns = getattr(self, "n_features_in_", None)
        return ModelText(
            estimator=owner,
            title=title_words(
                self._task,
                self._record.target,
                None if classes is None else classes.tolist(),
                self._record.n_rows,
                columns,
                self.certificate_.n_vertices,
            ),
            score=words[0].lower() + words[1:],
            effects=list(zip(effects["effect"], effects["share"], shapes, strict=True)),
            n_terms=self._model.n_terms,
            certificate=certificate_words(self.certificate_),
        )

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

    def plot(self) -> Figure:
        """Draw the model at one look: how good it is, what matters, the largest effects, the path.

        Returns
        -------
        matplotlib.figure.Figure
            ``savefig("model.png")`` writes it. ``hikernel.plots`` has a function for every
            picture. Needs matplotlib: ``pip install 'hikernel[plot]'``.
        """
        from hikernel.plots import overview

        check_is_fitted(self)
        return overview(self)

    def report(self, path: str | PathLike[str]) -> None:
        """Write a page about the model: one HTML file that needs no network.

        The page has the quality of the model, its certificate in plain words, all effects as
        pictures, the hull, the path, and inputs to play with, whose prediction it computes itself.
        It holds no row of the data. Needs bokeh: ``pip install 'hikernel[report]'``.

        Parameters
        ----------
        path : str or path-like
            File to write, usually with the extension ".html". An existing file is replaced.
        """
        from hikernel.report import write_report

        check_is_fitted(self)
        write_report(self.summary(), path)

    def effects(self, X: Any, by: str = "effect") -> pd.DataFrame:
        """Return what each effect, or each term, contributes to f(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.
        by : {"effect", "term"}, default="effect"
            Whether there is a column per effect, in the order of ``effects_``, or per term, in the
            order of ``terms_``.

        Returns
        -------
        pandas.DataFrame of n_samples rows
            One column "intercept" and one column per effect; each row sums to f(x) (with a
            logarithmic link, the logarithm of the mean). For more than two classes the columns are
            pairs (class, effect), and the columns of a class sum to its f(x). A variable whose
            name could be read as a term, such as "b * c", is written in quotes. If X is a pandas
            object, the rows have its index.
        """
        import pandas as pd

        check_is_fitted(self)
        rows = self._design.read(X)
        index = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        return effects_frame(self._model, self._design, rows, self._outputs(), index, by)

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
            ``variables_frame()`` the total share of every variable, and ``effects(X)`` the mean
            and the effects of the sets on the rows of X, a column each. It prints as a table.
        """
        design = self._column_design("anova()")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return functional_anova(self._model, design, design.read(X), weights, self._outputs())

    def formula(self, digits: int = 4, max_terms: int | None = None) -> str:
        """Return f(x) as text: one summand per effect, the largest share first.

        Parameters
        ----------
        digits : int, default=4
            Significant digits of the numbers.
        max_terms : int, optional
            Largest number of effects to write; the text says how many are left out.

        Returns
        -------
        str
            Polynomial bases are written out, and functions of categories, booleans and steps are
            tables of values in the units of f; both are exact up to rounding. Other functions are
            named and explained in a legend. For more than two classes there is a table with a
            column per class. If predictions are not f itself, the last line says how they follow
            from f.
        """
        design = self._column_design("formula()")
        check_integer("digits", digits, 1)
        labels = None if self._outputs() is None else self.classes_.tolist()  # type: ignore[attr-defined]
        text = formula(self._model, design, digits, labels, max_terms)
        link = self._link()
        return f"{text}\n\n{link}" if link else text

    def explain(self, X: Any, classes: Any = None) -> Explanation:
        """Return the reasons for one prediction: what every effect contributes to it.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            One row with the columns of the training data, such as ``X.iloc[[0]]``.
        classes : label or list of labels, optional
            With more than two classes there is an f for each. By default that of the predicted
            class is explained; ``classes=model.classes_`` explains all.

        Returns
        -------
        Explanation
            The prediction, its probability, the intercept, and one reason per effect, the largest
            contribution first; together they sum to f(x). ``print`` shows it, ``frame()`` and
            ``to_dict()`` return it as data. On a graph the reasons are its nodes. The offset of
            the row is taken as zero, its exposure as one.

        Raises
        ------
        ValueError
            If X does not have exactly one row, or for a class that the model does not have.
        """
        check_is_fitted(self)
        rows, values = self._one_row(X)
        f = self._model.predict(self._design, rows)
        known = None if f.ndim == 1 else self.classes_.tolist()  # type: ignore[attr-defined]
        labels = getattr(self, "_labels", None)
        prediction = (self.loss_.predict_mean(f) if labels is None else labels.choose(f)).tolist()[
            0
        ]
        outputs = _chosen_classes(classes, known, prediction)
        chances = None
        if isinstance(self.loss_, (LogLoss, Multinomial)) and labels is not None:
            found = labels.probabilities(f)[0].tolist()
            chances = dict(zip(labels.classes.tolist(), found, strict=True))
        intercept, parts = reasons(self._model, self._design, rows, values, outputs)
        return Explanation(
            prediction=prediction,
            probabilities=chances,
            classes=None if known is None else tuple(known[k] for k in outputs),
            f=tuple(np.ravel(f[0])[outputs].tolist()),
            intercept=intercept,
            reasons=parts,
            link=self._link() + without_offset(self._record),
            target=self._quantity or self._record.target,
            is_label=labels is not None,
        )

    def _one_row(self, X: Any) -> tuple[Any, list[str] | None]:
        """Return the only row of X as the design reads it, and the values of its columns as text.

        The values are None for a graph, which has no columns.
        """
        table = self._columns is not None
        if table and np.ndim(X) == 1:
            raise ValueError(_ONE_ROW.format("one dimension"))
        rows = self._design.read(X)
        n_rows = len(self._design.predict([], self._model.coef[:0], rows))
        if n_rows != 1:
            raise ValueError(_ONE_ROW.format(f"{n_rows} rows"))
        if not table:
            return rows, None
        read = partial(read_table, X)
        return rows, values_of_row(self._column_design("explain()"), read, rows)

    def _outputs(self) -> list[str] | None:
        """Return the names of the outputs (the classes), or None for a single output."""
        if self._model.coef.ndim == 1:
            return None
        return [str(label) for label in self.classes_.tolist()]  # type: ignore[attr-defined]

    def _link(self) -> str:
        """Return a line on how predictions follow from f; empty if they are f itself."""
        if isinstance(self.loss_, Cox):
            return "hazard = exp(f) times the baseline hazard"
        record = getattr(self, "_record", None)  # a scorer may ask before there is one
        offset, exposure = getattr(record, "offset", None), getattr(record, "exposure", None)
        if self.loss_.link == "log":
            inside = "f" if offset is None else f"f + {offset}"
            return f"mean of y = exp({inside})" + (f" * {exposure}" if exposure else "")
        if not hasattr(self, "classes_"):
            return "" if offset is None else f"prediction = f + {offset}"
        link = self._class_link()
        return link if offset is None else f"{link}, where {offset} is added to f"

    def _class_link(self) -> str:
        """Return a line on how labels or probabilities follow from f."""
        if self._model.coef.ndim > 1:
            if isinstance(self.loss_, Multinomial):
                return "P(y = k) is proportional to exp(f[k])"
            return "y = the class k with the largest f[k]"
        no, yes = self.classes_.tolist()  # type: ignore[attr-defined]
        if isinstance(self.loss_, LogLoss):
            return f"P(y = {yes!r}) = 1 / (1 + exp(-f))"
        return f"y = {yes!r} where f > 0, {no!r} elsewhere"


def _chosen_classes(classes: Any, known: list[Any] | None, predicted: Any) -> list[int]:
    """Return the positions of the outputs to explain.

    ``known`` has the classes that have an f of their own; None if there is one f.
    """
    if known is None:
        if classes is not None:
            raise ValueError(
                "classes chooses among the functions of three classes or more, and this model has "
                "a single f; leave it out."
            )
        return [0]
    if classes is None:
        return [known.index(predicted)]
    several = isinstance(classes, (list, tuple, set, np.ndarray))
    wanted = np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else classes
    for label in wanted if several else [wanted]:
        if label not in known:
            listed = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
            raise ValueError(f"classes has {label!r}, which is no class; the classes are {listed}.")
    chosen = [known.index(label) for label in (wanted if several else [wanted])]
    if not chosen:
        raise ValueError("classes is empty; name at least one class, or leave it out.")
    return chosen
