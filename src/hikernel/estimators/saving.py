"""Save fitted estimators to files, and load them.

The state of an estimator is all that its methods and fitted attributes need, without duplicates.
What follows from it (data frames, names of terms) is computed again after loading. The state is
checked before saving and after loading: what could not be loaded is not saved.

A file has no rows of X, but some values of its columns: knots of the kernel, spline and rank bases,
smallest and largest value of the polynomial ones, and the text of categories. ``dual_coef_`` has
one number per training row and can be left out; so can the covariance for error bars, which is as
large as the square of the number of coefficients. Of the parameters that only ``fit`` uses, arrays
become lists, and splitters and scorers are left out with a warning.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from sklearn.base import is_classifier

from hikernel.columns import ColumnDesign
from hikernel.columns.shared_bases import SharedBases
from hikernel.columns.sparse_grid import SparseDesign
from hikernel.estimators.classifier import HKLClassifier
from hikernel.estimators.comparison import CrossValidatedEstimator
from hikernel.estimators.cross_validated import HKLClassifierCV, HKLRegressorCV
from hikernel.estimators.kept_parameters import kept_parameters
from hikernel.estimators.labels import Labels
from hikernel.estimators.regressor import HKLRegressor
from hikernel.estimators.state_checks import CHOICE_TYPES, check_state
from hikernel.estimators.survival import HKLSurvival, HKLSurvivalCV
from hikernel.losses import Loss
from hikernel.persistence import MAX_BYTES, file_in_errors, load_state, save_state
from hikernel.persistence.content import ContentError, shown
from hikernel.persistence.registry import NAMES
from hikernel.selection import Fitted
from hikernel.selection.conformal import Calibration

__all__ = ["ESTIMATORS", "estimator_from_state", "estimator_state", "load", "save"]

ESTIMATORS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        HKLClassifier,
        HKLClassifierCV,
        HKLRegressor,
        HKLRegressorCV,
        HKLSurvival,
        HKLSurvivalCV,
    )
}
"""Estimator classes by name; the name is the kind of a file."""


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    dual_coef: bool = True,
    error_bars: bool = True,
) -> None:
    """Write a fitted estimator to a file.

    The file is written atomically: after an error, the previous file is unchanged.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form
        Fitted estimator.
    path : str or path
        File to write. The extension is free; ".hik" is usual. An existing file is replaced.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``, which is as long as the training data. Without it, the
        file is as large as the terms and bases, and the loaded ``dual_coef_`` has no rows.
    error_bars : bool, default=True
        Whether to keep what the error bars of a refit need: 8 bytes times the square of the number
        of coefficients, 0.3 MB for 200.

    Raises
    ------
    ValueError
        If the estimator is not fitted, or holds an object that only pickle can store: a graph, a
        user-defined kernel, basis or loss, or a random generator.
    OSError
        If the path is a folder, its folder does not exist, or it cannot be written to.

    Warns
    -----
    UserWarning
        If ``cv`` or ``scoring`` is an object, which a file cannot hold. The loaded model makes
        the same predictions, and has the default of that parameter.

    Examples
    --------
    >>> import hikernel, numpy as np, tempfile, os
    >>> from hikernel import HKLRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))
    >>> model = HKLRegressor(alpha=0.01).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.hik"))
    ...     again = hikernel.load(os.path.join(folder, "model.hik"))
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    state = estimator_state(estimator, dual_coef=dual_coef, error_bars=error_bars)
    save_state(path, state, type(estimator).__name__)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a fitted estimator from a file that :func:`save` wrote.

    Safe with untrusted files: nothing in a file is executed, and loading takes memory and time in
    proportion to its size.

    The loaded model has the methods and fitted attributes of the saved one, except for ``path_``.
    Of a cross-validated model, a file keeps the choice (``alpha_``, ``refit_``, ``cv_results_``,
    ``best_score_``) and the model at that alpha; access to ``path_`` is an AttributeError. Solve
    the path again with :func:`~hikernel.hkl_path`, or save the model with pickle. ``dual_coef_``
    has no rows if it was not saved. Parameters that were arrays are now lists; a ``cv`` or
    ``scoring`` that was an object is now the default.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2**30
        Larger files are rejected.

    Returns
    -------
    HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form

    Raises
    ------
    ModelFileError
        If the file is damaged, of a newer version, or not a hikernel model; the message says which.
    OSError
        If the file does not exist or cannot be read.
    """
    kind, state = load_state(path, max_bytes=max_bytes)
    with file_in_errors(path):
        return estimator_from_state(kind, state)


def estimator_state(
    estimator: Any, *, dual_coef: bool = True, error_bars: bool = True
) -> dict[str, Any]:
    """Return the state of a fitted estimator.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form
        Fitted estimator.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``: one number per training row (and output), not needed for
        predictions. Otherwise it has no rows.
    error_bars : bool, default=True
        Whether to keep the covariance of the coefficients.

    Returns
    -------
    dict
        Parameters, columns, fitted bases, graph, loss, models and labels.

    Raises
    ------
    ValueError
        If the estimator is not fitted or not one of this package, or if a file cannot hold one of
        its parameters.

    Warns
    -----
    UserWarning
        If a file cannot hold a parameter that only ``fit`` uses; it becomes the default.
    """
    if type(estimator) not in ESTIMATORS.values():
        *names, last = ESTIMATORS
        listed = f"{', '.join(names)} or {last}"
        raise ValueError(
            f"Only a fitted {listed} can be saved, got {shown(estimator)}; save the model inside a "
            "pipeline or search by itself, or use pickle or joblib."
        )
    params = kept_parameters(estimator)
    design = estimator._column_design("save()")
    _refuse_own_loss(estimator.loss_)
    selected, model = estimator._selected, estimator._model
    if not dual_coef:
        selected = replace(selected, dual_coef=selected.dual_coef[:0].copy())
    state = {
        "params": params,
        "columns": design.table,
        "bases": design.kept_bases(),
        "notes": design.notes,
        "graph": estimator.graph_,
        "loss": estimator.loss_,
        "selected": selected,
        "refit": estimator.refit_,
        # Dual variables and history are those of ``selected``, and not stored twice.
        "model": None
        if estimator.refit_ is None
        else replace(model, dual_coef=model.dual_coef[:0].copy(), history=[]),
        "classes": estimator.classes_ if is_classifier(estimator) else None,
        "choice": _choice(estimator),
        "record": estimator._record,
        "posterior": getattr(estimator, "_posterior", None) if error_bars else None,
        "calibration": _calibration(estimator, error_bars),
        "baseline": getattr(estimator, "_baseline", None),
    }
    try:
        check_state(type(estimator), state)
    except ContentError as error:
        raise ValueError(f"This model cannot be saved: {error}.") from error
    return state


def _refuse_own_loss(loss: Loss) -> None:
    """Raise for a loss of a class of the user, which no file can name."""
    if type(loss) not in NAMES:
        raise ValueError(
            f"The loss {loss.name!r} is of your own class {type(loss).__name__}, which a file "
            "without pickle cannot hold; use pickle or joblib, or add it to the package."
        )


def _calibration(estimator: Any, error_bars: bool) -> Calibration | None:
    """Return the calibration for a file; scaled intervals need error bars."""
    found: Calibration | None = getattr(estimator, "_calibration", None)
    return None if found is not None and found.scaled and not error_bars else found


def _choice(estimator: Any) -> dict[str, Any] | None:
    """Return the choice of a cross-validated estimator; None for others."""
    if not isinstance(estimator, CrossValidatedEstimator):
        return None
    return {name: getattr(estimator, name) for name in CHOICE_TYPES}


def estimator_from_state(kind: str, state: object) -> Any:
    """Return the fitted estimator with the given state.

    Parameters
    ----------
    kind : str
        Name of the estimator class.
    state : dict
        As :func:`estimator_state` returns it.

    Raises ContentError if ``state`` is not the state of such an estimator.
    """
    cls = ESTIMATORS.get(kind)
    if cls is None:
        raise ContentError(f"it holds a {shown(kind)}, which this hikernel does not know")
    checked = check_state(cls, state)
    estimator = cls(**checked["params"])
    loss, graph, selected, model = (
        checked[name] for name in ("loss", "graph", "selected", "model")
    )
    if model is None:
        model = selected
    else:
        model = replace(model, dual_coef=selected.dual_coef, history=selected.history)
    columns, bases, notes = (checked[name] for name in ("columns", "bases", "notes"))
    kept = (graph, notes, cls.__name__, estimator.engine)
    design = (
        SparseDesign(columns, bases.every(), *kept)
        if isinstance(bases, SharedBases)
        else ColumnDesign(columns, bases, *kept)
    )
    if checked["classes"] is not None:
        estimator._labels = Labels(checked["classes"], loss)
        estimator.classes_ = estimator._labels.classes
    estimator._set_fitted(Fitted(selected, model, design, checked["refit"]), loss, graph)
    estimator._record = checked["record"]
    for name in ("posterior", "calibration"):
        if checked[name] is not None:
            setattr(estimator, f"_{name}", checked[name])
    if checked["baseline"] is not None:
        estimator._baseline = checked["baseline"]
    for name, value in (checked["choice"] or {}).items():
        setattr(estimator, name, value)
    return estimator
