"""The parts of a saved estimator: their types, and whether they belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from hikernel.bases import FittedBasis
from hikernel.columns import ColumnTable
from hikernel.columns.shared_bases import SharedBases
from hikernel.estimators.comparison import CrossValidatedEstimator
from hikernel.estimators.cross_validated import HKLRegressorCV
from hikernel.estimators.kept_parameters import check_parameters
from hikernel.estimators.regressor import HKLRegressor
from hikernel.estimators.survival import HKLSurvival, HKLSurvivalCV
from hikernel.graphs import Grid
from hikernel.losses import CLASSIFICATION, REGRESSION, SURVIVAL, LogLoss, Loss, Multinomial
from hikernel.losses.breslow import BreslowBaseline
from hikernel.persistence.content import ContentError, conforms, shown
from hikernel.persistence.soundness import (
    check_baseline,
    check_bases,
    check_columns,
    check_model,
    check_record,
    check_shared_bases,
)
from hikernel.persistence.uncertainty_checks import check_calibration, check_posterior
from hikernel.selection import REFITS, FitRecord, TermModel
from hikernel.selection.conformal import Calibration
from hikernel.selection.posterior import Posterior

__all__ = ["CHOICE_TYPES", "check_state"]

_STATE_TYPES: dict[str, Any] = {
    "params": dict[str, Any],
    "columns": ColumnTable,
    "bases": tuple[FittedBasis, ...] | SharedBases,
    "notes": tuple[tuple[str, str], ...],
    "graph": Grid,
    "loss": Loss,
    "selected": TermModel,
    "refit": str | None,
    "model": TermModel | None,
    "classes": np.ndarray | None,
    "choice": dict[str, Any] | None,
    "record": FitRecord,
    "posterior": Posterior | None,
    "calibration": Calibration | None,
    "baseline": BreslowBaseline | None,
}
"""Types of a state. ``selected`` is the model of the convex problem, ``model`` that of a refit."""

CHOICE_TYPES: dict[str, Any] = {
    "alpha_": float,
    "best_score_": float,
    "n_splits_": int,
    "cv_results_": dict[str, np.ndarray],
}
"""Fitted attributes of a cross-validated estimator that a file keeps; ``path_`` is not kept."""


def check_state(cls: type[Any], state: object) -> dict[str, Any]:
    """Return ``state``; raise unless its parts are complete, of the right types and consistent."""
    if not isinstance(state, dict) or set(state) != set(_STATE_TYPES):
        raise ContentError(f"it does not hold the parts of a {cls.__name__}")
    for name, hint in _STATE_TYPES.items():
        if not conforms(state[name], hint):
            raise ContentError(f"its {name} is of the wrong type ({type(state[name]).__name__})")
    check_parameters(cls, state["params"])
    columns, bases, graph, refit = (state[name] for name in ("columns", "bases", "graph", "refit"))
    check_columns(columns)
    if isinstance(bases, SharedBases):
        check_shared_bases(bases, columns, graph)
        bases = bases.every()
    check_record(state["record"], len(columns.names))
    if len(state["notes"]) != len(columns.names):
        raise ContentError("the notes on its bases do not belong to its columns")
    if refit not in (None, *REFITS):
        raise ContentError(f"it was refitted by {shown(refit)}")
    if (refit is None) != (state["model"] is None):
        raise ContentError("it does not hold the model of its refit, or one too many")
    _check_choice(cls, state["choice"])
    richer = refit == "variables"
    check_bases(bases, graph, len(columns.names), richer=richer)
    n_outputs = _check_outputs(cls, state["loss"], state["classes"])
    _check_survival(cls, state["baseline"])
    check_model(state["selected"], bases, graph, n_outputs, hull=True)
    if state["model"] is not None:
        check_model(state["model"], bases, graph, n_outputs, richer=richer)
    check_posterior(state["posterior"], state["model"])
    check_calibration(state["calibration"], state["posterior"], labels=state["classes"] is not None)
    return state


def _check_choice(cls: type[Any], choice: Any) -> None:
    """Raise unless ``choice`` is a valid choice of this class, or None without cross-validation."""
    if not issubclass(cls, CrossValidatedEstimator):
        if choice is not None:
            raise ContentError(f"a {cls.__name__} makes no choice")
        return
    if choice is None or set(choice) != set(CHOICE_TYPES):
        raise ContentError("it does not say what cross-validation chose")
    for name, hint in CHOICE_TYPES.items():
        if not conforms(choice[name], hint):
            raise ContentError(f"its {name} is of the wrong type")
    if len({len(column) for column in choice["cv_results_"].values()}) > 1:
        raise ContentError("the columns of its cv_results_ differ in length")


def _check_survival(cls: type[Any], baseline: BreslowBaseline | None) -> None:
    """Raise unless there is a valid baseline hazard exactly where survival is predicted."""
    if issubclass(cls, (HKLSurvival, HKLSurvivalCV)) != (baseline is not None):
        raise ContentError("it has no baseline hazard, or one too many")
    if baseline is not None:
        check_baseline(baseline)


def _check_outputs(cls: type[Any], loss: Loss, classes: Any) -> int | None:
    """Return the number of outputs, None for one; raise if the loss does not fit the classes."""
    for kinds, losses, what in (
        ((HKLRegressor, HKLRegressorCV), REGRESSION, "regressor"),
        ((HKLSurvival, HKLSurvivalCV), SURVIVAL, "model of survival"),
    ):
        if issubclass(cls, kinds):
            if type(loss) not in losses.values() or classes is not None:
                raise ContentError(f"the loss {shown(loss)} is not one of a {what}")
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
