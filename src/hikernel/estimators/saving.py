"""Save fitted estimators to files, and load them.

The state of an estimator is all that its methods and fitted attributes need, without duplicates.
What follows from it (data frames, names of terms) is computed again after loading. The state is
checked before saving and after loading: what could not be loaded is not saved.

A file has no rows of X, but some values of its columns: knots of the kernel, spline and rank bases,
smallest and largest value of the polynomial ones, and the text of categories. ``dual_coef_`` has
one number per training row and can be left out. Of the parameters that only ``fit`` uses, arrays
become lists, and splitters and scorers are left out with a warning.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hikernel.bases import Basis, FittedBasis
from hikernel.checks import outside_level
from hikernel.columns import ColumnDesign, ColumnTable
from hikernel.engines import ENGINES
from hikernel.estimators.classifier import HKLClassifier, Labels
from hikernel.estimators.cross_validated import HKLClassifierCV, HKLRegressorCV
from hikernel.estimators.regressor import HKLRegressor
from hikernel.graphs import Grid
from hikernel.losses import CLASSIFICATION, REGRESSION, LogLoss, Loss, Multinomial
from hikernel.persistence import MAX_BYTES, file_in_errors, load_state, save_state
from hikernel.persistence.content import ContentError, conforms, shown
from hikernel.persistence.soundness import check_bases, check_columns, check_model, check_record
from hikernel.selection import REFITS, FitRecord, Fitted, TermModel

__all__ = ["ESTIMATORS", "estimator_from_state", "estimator_state", "load", "save"]

ESTIMATORS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV)
}
"""Estimator classes by name; the name is the kind of a file."""

_STATE_TYPES: dict[str, Any] = {
    "params": dict[str, Any],
    "columns": ColumnTable,
    "bases": tuple[FittedBasis, ...],
    "notes": tuple[tuple[str, str], ...],
    "graph": Grid,
    "loss": Loss,
    "selected": TermModel,
    "refit": str | None,
    "model": TermModel | None,
    "classes": np.ndarray | None,
    "choice": dict[str, Any] | None,
    "record": FitRecord,
}
"""Types of a state. ``selected`` is the model of the convex problem, ``model`` that of a refit."""

_CHOICE_TYPES: dict[str, Any] = {
    "alpha_": float,
    "best_score_": float,
    "n_splits_": int,
    "cv_results_": dict[str, np.ndarray],
}
"""Fitted attributes of a cross-validated estimator that a file keeps; ``path_`` is not kept."""

_SCALARS: tuple[type, ...] = (str, int, float, np.generic, type(None))
_KINDS: dict[str, tuple[type, ...]] = {"loss": (str, Loss), "basis": (str, Basis)}
_MAPPINGS = ("basis", "class_weight", "ordered")
_LISTS = ("alphas", "categorical", "ordered")
_FOR_FITS_ALONE = (*_LISTS, "cv", "scoring")
"""Parameters that a file may leave out, because a fitted model no longer needs them."""
_NEVER_KEPT = "graph"
"""Parameter that is never in a file: models with a graph of their own cannot be saved."""


def save(estimator: Any, path: str | os.PathLike[str], *, dual_coef: bool = True) -> None:
    """Write a fitted estimator to a file.

    The file is written atomically: after an error, the previous file is unchanged.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV
        Fitted estimator.
    path : str or path
        File to write. The extension is free; ".hik" is usual. An existing file is replaced.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``, which is as long as the training data. Without it, the
        file is as large as the terms and bases, and the loaded ``dual_coef_`` has no rows.

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
    state = estimator_state(estimator, dual_coef=dual_coef)
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
    HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV

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


def estimator_state(estimator: Any, *, dual_coef: bool = True) -> dict[str, Any]:
    """Return the state of a fitted estimator.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV
        Fitted estimator.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``: one number per training row (and output), not needed for
        predictions. Otherwise it has no rows.

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
        listed = " or ".join(ESTIMATORS)
        raise ValueError(
            f"Only a fitted {listed} can be saved, got {shown(estimator)}; save the model inside a "
            "pipeline or search by itself, or use pickle or joblib."
        )
    params = _kept_params(estimator)
    design = estimator._column_design("save()")
    selected, model = estimator._selected, estimator._model
    if not dual_coef:
        selected = replace(selected, dual_coef=selected.dual_coef[:0].copy())
    state = {
        "params": params,
        "columns": design.table,
        "bases": design.bases,
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
    }
    try:
        _check_state(type(estimator), state)
    except ContentError as error:
        raise ValueError(f"This model cannot be saved: {error}.") from error
    return state


def _choice(estimator: Any) -> dict[str, Any] | None:
    """Return the choice of a cross-validated estimator; None for others."""
    if not isinstance(estimator, (HKLClassifierCV, HKLRegressorCV)):
        return None
    return {name: getattr(estimator, name) for name in _CHOICE_TYPES}


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
    checked = _check_state(cls, state)
    estimator = cls(**checked["params"])
    loss, graph, selected, model = (
        checked[name] for name in ("loss", "graph", "selected", "model")
    )
    if model is None:
        model = selected
    else:
        model = replace(model, dual_coef=selected.dual_coef, history=selected.history)
    columns, bases, notes = (checked[name] for name in ("columns", "bases", "notes"))
    design = ColumnDesign(columns, bases, graph, notes, cls.__name__, estimator.engine)
    if checked["classes"] is not None:
        estimator._labels = Labels(checked["classes"], loss)
        estimator.classes_ = estimator._labels.classes
    estimator._set_fitted(Fitted(selected, model, design, checked["refit"]), loss, graph)
    estimator._record = checked["record"]
    for name, value in (checked["choice"] or {}).items():
        setattr(estimator, name, value)
    return estimator


def _check_state(cls: type[Any], state: object) -> dict[str, Any]:
    """Return ``state``; raise unless its parts are complete, of the right types and consistent."""
    if not isinstance(state, dict) or set(state) != set(_STATE_TYPES):
        raise ContentError(f"it does not hold the parts of a {cls.__name__}")
    for name, hint in _STATE_TYPES.items():
        if not conforms(state[name], hint):
            raise ContentError(f"its {name} is of the wrong type ({type(state[name]).__name__})")
    _check_params(cls, state["params"])
    columns, bases, graph, refit = (state[name] for name in ("columns", "bases", "graph", "refit"))
    check_columns(columns)
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
    check_model(state["selected"], bases, graph, n_outputs)
    if state["model"] is not None:
        check_model(state["model"], bases, graph, n_outputs, richer=richer)
    return state


def _check_choice(cls: type[Any], choice: Any) -> None:
    """Raise unless ``choice`` is a valid choice of this class, or None without cross-validation."""
    if not issubclass(cls, (HKLClassifierCV, HKLRegressorCV)):
        if choice is not None:
            raise ContentError(f"a {cls.__name__} makes no choice")
        return
    if choice is None or set(choice) != set(_CHOICE_TYPES):
        raise ContentError("it does not say what cross-validation chose")
    for name, hint in _CHOICE_TYPES.items():
        if not conforms(choice[name], hint):
            raise ContentError(f"its {name} is of the wrong type")
    if len({len(column) for column in choice["cv_results_"].values()}) > 1:
        raise ContentError("the columns of its cv_results_ differ in length")


def _check_outputs(cls: type[Any], loss: Loss, classes: Any) -> int | None:
    """Return the number of outputs, None for one; raise if the loss does not fit the classes."""
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


def _kept_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters for a file: arrays as lists, splitters and scorers as defaults."""
    params: dict[str, Any] = estimator.get_params(deep=False)
    if params.pop(_NEVER_KEPT) is not None:
        raise ValueError(
            "This model has a graph of its own (graph=), which a file without pickle cannot hold; "
            "use pickle or joblib, or keep hull_, coef_ and intercept_."
        )
    params["random_state"] = _seed(params["random_state"])
    params |= {name: _as_list(params[name]) for name in _LISTS if name in params}
    defaults = type(estimator)().get_params(deep=False)
    for name in _FOR_FITS_ALONE:
        if name in params and not _can_be_kept(name, params[name]):
            _warn_not_kept(name, params[name], defaults[name])
            params[name] = defaults[name]
    return params


def _check_params(cls: type[Any], params: Mapping[str, Any]) -> None:
    """Raise unless ``params`` are the parameters of ``cls``, of types that a file may hold."""
    expected = set(cls._get_param_names()) - {_NEVER_KEPT}
    if set(params) != expected:
        wrong = sorted(set(params) ^ expected)
        raise ContentError(f"the parameters of {cls.__name__} are wrong: {shown(wrong)}")
    for name, value in params.items():
        if not _can_be_kept(name, value):
            raise ContentError(f"the parameter {name} is {shown(value)}")
    if params["engine"] not in ("auto", *ENGINES):
        engine = shown(params["engine"])
        raise ContentError(f"its engine {engine} is not in hikernel.engines.ENGINES; add it there")


def _can_be_kept(name: str, value: object) -> bool:
    parts: list[Any] = [value]
    if isinstance(value, Mapping) and name in _MAPPINGS:
        parts = list(value.values())
    for kinds in ((list, tuple), (tuple,)) if name in _LISTS else ():  # a tuple names a column
        parts = [one for part in parts for one in (part if isinstance(part, kinds) else [part])]
    return all(isinstance(part, _KINDS.get(name, _SCALARS)) for part in parts)


def _as_list(value: Any) -> Any:
    """Return an array, an index or a set as a list; anything else as it is."""
    if isinstance(value, Mapping):
        return {key: _as_list(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (str, bytes, list, tuple, Iterator)):
        return value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)  # so that equal models give equal files
    return list(value) if isinstance(value, Iterable) else value


def _warn_not_kept(name: str, value: object, default: object) -> None:
    warnings.warn(
        f"{name}={' '.join(shown(value).split())} is not kept in the file; the loaded model "
        f"predicts the same, and would be fitted again with {name}={default!r}.",
        UserWarning,
        stacklevel=outside_level(),
    )


def _seed(random_state: object) -> object:
    """Return ``random_state`` if it is an integer or None; raise otherwise."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return random_state
    raise ValueError(
        f"random_state is {shown(random_state)}, a generator in use, which a model file cannot "
        "hold; call estimator.set_params(random_state=0) first (the fitted model does not depend "
        "on it), or use pickle."
    )
