"""Fitted estimators as states of plain data and registered objects, and back.

A state is all that the methods and fitted attributes of an estimator need, each thing once; what
follows from it (frames, names of terms) is made again. It is checked both ways: what cannot be
loaded is not saved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from hikernel.bases.design import Design
from hikernel.estimators import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.estimators.labels import Labels
from hikernel.frames import ColumnTable
from hikernel.graphs import Grid
from hikernel.losses import CLASSIFICATION, REGRESSION, LogLoss, Loss, Multinomial
from hikernel.persistence.checks import check_bases, check_columns, check_model
from hikernel.persistence.content import ContentError, conforms, shown
from hikernel.persistence.parameters import check_params, kept_params
from hikernel.selection import Fitted, TermModel, TrainingProblem
from hikernel.selection.refit import REFITS

__all__ = ["ESTIMATORS", "estimator_from_state", "estimator_state"]

ESTIMATORS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV)
}
"""Estimators by the kind of their files."""

_STATE_TYPES: dict[str, Any] = {
    "params": dict[str, Any],
    "columns": ColumnTable,
    "basis_notes": tuple[tuple[str, str], ...],
    "design": Design,
    "graph": Grid,
    "loss": Loss,
    "model": TermModel,
    "classes": np.ndarray | None,
    "choice": dict[str, Any] | None,
}
_CHOICE_TYPES: dict[str, Any] = {
    "alpha_": float,
    "refit_": str | None,
    "best_score_": float,
    "n_splits_": int,
    "cv_results_": dict[str, np.ndarray],
}
"""What a cross-validated estimator keeps of its choice; not the path."""


@dataclass(frozen=True)
class _Fitted:
    """The part of a training problem that a fitted estimator keeps."""

    design: Design
    graph: Grid
    loss: Loss


def estimator_state(estimator: Any, *, dual_coef: bool = True) -> dict[str, Any]:
    """Return the state of a fitted estimator.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV
        Fitted.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``, one number a training row (and output), which no
        prediction needs; otherwise it has no rows.

    Returns
    -------
    dict
        Parameters, fitted bases, graph, loss, model, labels and column names.

    Raises
    ------
    ValueError
        For estimators that are not fitted, or not of this package, and for parameters that a file
        cannot hold.

    Warns
    -----
    UserWarning
        For parameters that a file cannot hold and no prediction needs; they become defaults.
    """
    if type(estimator) not in ESTIMATORS.values():
        listed = " or ".join(ESTIMATORS)
        raise ValueError(
            f"Only a fitted {listed} can be saved, got {shown(estimator)}; save the model inside a "
            "pipeline or search by itself, or use pickle or joblib."
        )
    check_is_fitted(estimator)
    if estimator.graph is not None:
        raise ValueError(
            "This model was fitted on a graph of kernels, whose functions and matrices a file "
            "without pickle cannot hold; use pickle or joblib, or keep hull_, coef_ and intercept_."
        )
    model = estimator._model
    if not dual_coef:
        model = replace(model, dual_coef=model.dual_coef[:0].copy())
    state = {
        "params": kept_params(estimator),
        "columns": estimator.columns_,
        "basis_notes": estimator._basis_notes,
        "design": estimator._design,
        "graph": estimator.graph_,
        "loss": estimator.loss_,
        "model": model,
        "classes": estimator.classes_ if is_classifier(estimator) else None,
        "choice": _choice(estimator),
    }
    try:
        _check_state(type(estimator), state)
    except ContentError as error:
        raise ValueError(f"This model cannot be saved: {error}.") from error
    return state


def _choice(estimator: Any) -> dict[str, Any] | None:
    """Return what a cross-validated estimator chose, None for the others."""
    if not isinstance(estimator, (HKLClassifierCV, HKLRegressorCV)):
        return None
    return {name: getattr(estimator, name) for name in _CHOICE_TYPES}


def estimator_from_state(kind: str, state: object) -> Any:
    """Return the fitted estimator of a state.

    Parameters
    ----------
    kind : str
        Name of the estimator.
    state : dict
        As :func:`estimator_state` returns it.

    Returns
    -------
    HKLRegressor or HKLClassifier

    Raises
    ------
    ContentError
        For anything that is not the state of such an estimator.
    """
    cls = ESTIMATORS.get(kind)
    if cls is None:
        raise ContentError(f"it holds a {shown(kind)}, which this version of hikernel has not got")
    checked = _check_state(cls, state)
    estimator = cls(**checked["params"])
    estimator._keep_columns(checked["columns"])
    estimator._basis_notes = checked["basis_notes"]
    model, loss = checked["model"], checked["loss"]
    fitted = _Fitted(checked["design"], checked["graph"], loss)
    refit = checked["params"]["refit"] if checked["choice"] is None else None
    estimator._store(cast(TrainingProblem, fitted), Fitted(model, fitted.design, refit))
    if model.intercept.ndim == 0:
        estimator.intercept_ = float(model.intercept)
    if checked["classes"] is not None:
        estimator._labels = Labels(checked["classes"], loss)
        estimator.classes_ = estimator._labels.classes
    for name, value in (checked["choice"] or {}).items():
        setattr(estimator, name, value)
    return estimator


def _check_state(cls: type[Any], state: object) -> dict[str, Any]:
    """Return a state whose parts are there, of their types, and fit together."""
    if not isinstance(state, dict) or set(state) != set(_STATE_TYPES):
        raise ContentError(f"it does not hold the parts of a {cls.__name__}")
    for name, hint in _STATE_TYPES.items():
        if not conforms(state[name], hint):
            raise ContentError(f"its {name} is of the wrong type ({type(state[name]).__name__})")
    check_params(cls, state["params"])
    columns = state["columns"]
    check_columns(columns)
    if len(state["basis_notes"]) != len(columns.names):
        raise ContentError("the notes on its bases are not one a column")
    refitted = state["params"]["refit"] if state["choice"] is None else None
    richer = _check_choice(cls, state["choice"]) or refitted == "variables"
    check_bases(state["design"], state["graph"], len(columns.names), richer=richer)
    n_outputs = _check_outputs(cls, state["loss"], state["classes"])
    check_model(state["model"], state["design"], state["graph"], n_outputs, richer=richer)
    return state


def _check_choice(cls: type[Any], choice: Any) -> bool:
    """Check what a cross-validation chose; return whether it refitted with richer bases."""
    if not issubclass(cls, (HKLClassifierCV, HKLRegressorCV)):
        if choice is not None:
            raise ContentError(f"a {cls.__name__} makes no choice")
        return False
    if choice is None or set(choice) != set(_CHOICE_TYPES):
        raise ContentError("it does not say what cross-validation chose")
    for name, hint in _CHOICE_TYPES.items():
        if not conforms(choice[name], hint):
            raise ContentError(f"its {name} is of the wrong type")
    if choice["refit_"] not in (None, *REFITS):
        raise ContentError(f"it was refitted by {shown(choice['refit_'])}")
    if len({len(column) for column in choice["cv_results_"].values()}) > 1:
        raise ContentError("the columns of its cv_results_ differ in length")
    return bool(choice["refit_"] == "variables")


def _check_outputs(cls: type[Any], loss: Loss, classes: Any) -> int | None:
    """Return the number of outputs, None for one, of a loss and labels that go together."""
    if issubclass(cls, (HKLRegressor, HKLRegressorCV)):
        if type(loss) not in REGRESSION.values() or classes is not None:
            raise ContentError(f"the loss {shown(loss)} is not one of a regressor")
        return None
    if classes is None or classes.ndim != 1 or len(classes) < 2:
        raise ContentError("the labels of the classes are missing")
    if len(set(classes.tolist())) != len(classes):
        raise ContentError("a class is there twice")
    several = len(classes) > 2
    allowed: set[type] = set(CLASSIFICATION.values())
    if several:
        allowed = allowed - {LogLoss} | {Multinomial}
    if type(loss) not in allowed:
        raise ContentError(f"the loss {shown(loss)} is not one for {len(classes)} classes")
    return len(classes) if several else None
