"""What the estimators have in common: checks, the fit of one alpha, fitted attributes, warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer, check_optional_integer
from hikernel.engines.protocol import FloatArray
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.estimators.choices import choices_frame, choose_bases
from hikernel.estimators.explanations import Explanations
from hikernel.estimators.graph_input import check_graph, check_graph_data
from hikernel.estimators.progress import SearchProgress
from hikernel.estimators.validation import (
    check_number,
    check_search,
    check_target_scale,
    check_training_data,
    check_verbose,
    outside_level,
    warn_of_lost_columns,
)
from hikernel.frames import ColumnTable
from hikernel.losses import Loss
from hikernel.selection import (
    REFITS,
    Fitted,
    SearchSettings,
    TermModel,
    TrainingProblem,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
)

__all__ = ["HKLEstimator"]

_FEW_ROWS = 20
"""Rows up to which a single one may well carry most of the objective."""


class HKLEstimator(Explanations, BaseEstimator):  # type: ignore[misc]  # untyped base
    """Base of the estimators; subclasses set the parameters and read y."""

    columns_: ColumnTable
    _basis_notes: tuple[tuple[str, str], ...]

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model: after a fit that failed there is none."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn which tables are understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _check_parameters(self) -> SearchSettings:
        # A fit that fails must not leave the model of one table with the columns of another.
        self.__dict__.pop("_model", None)
        if hasattr(self, "alpha"):
            remedy = "Without a penalty nothing is selected."
            check_number("alpha", self.alpha, above=1e-100, remedy=remedy)
            if self.refit == "auto":
                raise ValueError(
                    'refit="auto" is a choice of cross-validation; use HKLRegressorCV or '
                    "HKLClassifierCV, or name the refit."
                )
        if self.refit not in (None, "auto", *REFITS):
            listed = ", ".join(repr(name) for name in (None, *REFITS))
            raise ValueError(f"refit must be one of {listed}, got {self.refit!r}.")
        check_integer("degree", self.degree, 1)
        check_optional_integer("max_order", self.max_order, 1, "any number of variables")
        check_number("weight_base", self.weight_base, above=0.0)
        check_number("root_weight", self.root_weight, above=0.0)
        check_verbose(self.verbose)
        if self.graph is not None:
            check_graph(self.graph, self.get_params(deep=False))
        return check_search(
            self.search,
            self.tol,
            self.max_kernels,
            self.certify,
            self.time_budget,
            self.random_state,
        )

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, *, labels: bool = False
    ) -> tuple[Any, NDArray[Any], FloatArray]:
        """Return the matrix of X, y and the weights, and keep what is known of the columns.

        With a graph, the rows as it takes them in place of a matrix.
        """
        if self.graph is not None:
            for name in ("columns_", "n_features_in_", "feature_names_in_", "bases_"):
                self.__dict__.pop(name, None)
            return check_graph_data(self.graph, X, y, sample_weight, labels=labels, estimator=self)
        data = check_training_data(
            X, y, sample_weight, self.categorical, labels=labels, estimator=self
        )
        self._keep_columns(data.columns)
        return data.X, data.y, data.weights

    def _keep_columns(self, columns: ColumnTable) -> None:
        """Set the fitted attributes that describe the columns of X."""
        self.columns_ = columns
        self.n_features_in_ = columns.n_features_in
        if columns.feature_names_in is not None:
            self.feature_names_in_ = np.array(columns.feature_names_in, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _training_problem(
        self, X: Any, y: FloatArray, weights: FloatArray, loss: Loss
    ) -> TrainingProblem:
        """Return the fitted bases and the rows, and warn of columns that are lost."""
        if self.graph is not None:
            problem = TrainingProblem.of_graph(self.graph, X, y, weights, loss)
            check_target_scale(problem.scale)
            return problem
        choices = choose_bases(self.basis, self.degree, self.columns_, X, weights)
        self._basis_notes = tuple(choice.note for choice in choices)
        problem = TrainingProblem.make(
            X,
            y,
            weights,
            [choice.basis for choice in choices],
            loss,
            max_order=self.max_order,
            weight_base=self.weight_base,
            root_weight=self.root_weight,
        )
        check_target_scale(problem.scale)
        assert isinstance(problem.design, Design)
        warn_of_lost_columns(X[problem.used], problem.design, self.columns_.names)
        return problem

    def _fit_terms(
        self,
        X: Any,
        y: FloatArray,
        weights: FloatArray,
        loss: Loss,
        settings: SearchSettings,
    ) -> None:
        """Search, refit, set the fitted attributes, and say aloud what did not work out."""
        problem = self._training_problem(X, y, weights, loss)
        self._check_refit(problem)
        with SearchProgress(self.max_kernels, enabled=self.verbose > 0) as progress:
            model = problem.solve(float(self.alpha), settings, callback=progress)
        self._store(problem, self._refitted(problem, model, self.refit))
        self._warn(model)
        self._warn_of_outliers(problem, model)

    def _check_refit(self, problem: TrainingProblem) -> None:
        """Raise for a refit that the loss has not got."""
        if self.refit not in (None, "auto") and not refit_is_possible(problem):
            raise ValueError(
                f"refit={self.refit!r} needs a smooth loss; use refit=None with this one."
            )
        if self.refit not in (None, "auto") and too_many_kernel_rows(problem):
            raise ValueError(
                f"refit={self.refit!r} takes Gram matrices of up to 1,000 rows (over the number of "
                f"outputs), and there are {problem.engine.n_rows}; use refit=None, or features."
            )

    def _refitted(self, problem: TrainingProblem, model: TermModel, name: str | None) -> Fitted:
        """Return the model estimated once more."""
        fitted = refit(name, problem, model)
        if fitted is None:
            other = "" if name == "ridge" else '"ridge" or '
            raise ValueError(
                f"refit={name!r} does not apply: {model.n_terms} terms, or the products of their "
                f"variables, have too many columns for {problem.engine.n_rows} rows, or are not "
                f"given by columns at all; raise alpha, or use refit={other}None."
            )
        return fitted

    def _warn_of_outliers(self, problem: TrainingProblem, model: TermModel) -> None:
        """Say when a single row carries most of the objective, to which tol is relative."""
        losses = problem.engine.row_weights * problem.loss.value(
            problem.y, problem.prediction(model)
        )
        scaled = problem.loss.degree > 0 and len(losses) > _FEW_ROWS
        if scaled and np.max(losses) > 0.5 * np.sum(losses) > 0.0:
            row = int(np.flatnonzero(problem.used)[np.argmax(losses)])
            warnings.warn(
                f"Row {row} carries more than half of the objective, to which tol is relative, so "
                "that the fit to all other rows may be poor; check that row, or lower tol.",
                UserWarning,
                stacklevel=outside_level(),
            )

    def _store(self, problem: TrainingProblem, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        model = fitted.model
        self._model = model
        self._design = fitted.design
        self.loss_ = problem.loss
        self.graph_ = problem.graph
        self.nodes_ = model.nodes
        self.coef_ = model.coef
        self.intercept_: Any = model.intercept
        self.dual_coef_ = model.dual_coef
        self.refit_ = fitted.refit
        self.certificate_ = model.certificate
        self.history_ = model.history
        self.n_iter_ = len(model.history)
        self.hull_ = model.frame(fitted.design, self._names)
        if isinstance(fitted.design, Design):
            self.bases_ = choices_frame(self._basis_notes, self.columns_, fitted.design.bases)

    def _warn(self, model: TermModel) -> None:
        if not model.status.ok:
            warnings.warn(model.status.sentence, ConvergenceWarning, stacklevel=outside_level())
        if not model.certificate.certified and self.certify != "none":
            warnings.warn(
                model.certificate.explain(), CertificateWarning, stacklevel=outside_level()
            )

    def _decide(self, X: Any) -> FloatArray:
        """Return f(x) for the rows of X, shape (n,) or (n, k)."""
        check_is_fitted(self)
        return self._model.predict(self._design, self._read(X))
