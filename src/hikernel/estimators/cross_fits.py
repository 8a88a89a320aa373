"""The model of a fitted estimator, fitted again on the training rows of folds.

Alpha and refit stay as they were chosen on all rows; bases, terms and coefficients are found again
on every fold, and predict its test rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from hikernel.checks import random_generator
from hikernel.columns.basis_choice import AUTO, WITH_JUMPS, WITH_STEPS
from hikernel.columns.reading import lies_in_blocks
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.training_data import TrainingData
from hikernel.estimators.uncertainty import observation_std
from hikernel.graphs import GraphSource, take
from hikernel.search import SearchSettings
from hikernel.selection import Fold, TrainingProblem
from hikernel.selection.posterior import posterior_of

__all__ = ["out_of_fold"]


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
    exposure: Any,
    *,
    cv: Any,
    scaled: bool,
) -> tuple[FloatArray, FloatArray | None]:
    """Return f of every row by a model that has not seen it, and the std of y there if scaled.

    Parameters
    ----------
    estimator : HKLEstimator
        Fitted; its alpha, refit and kinds of bases are used on every fold.
    X, y, sample_weight, offset, exposure
        The training data.
    cv : int, splitter, or pairs (train, test)
        The folds, which test every row once.
    scaled : bool
        Whether the standard deviations are needed.

    Raises
    ------
    ValueError
        If the folds do not test every row exactly once, or a fold cannot be fitted.
    """
    twin = clone(estimator)  # reading a target keeps its labels, and X a source
    settings = replace(twin._check_parameters(), certify="none")
    if lies_in_blocks(X):
        raise ValueError(
            "cv= takes rows in memory, and X lies in blocks; pass new rows without cv."
        )
    data = twin._read_data(X, y, sample_weight, offset, exposure)
    if is_classifier(estimator) and list(twin.classes_) != list(estimator.classes_):
        raise ValueError(
            f"y has the classes {twin.classes_.tolist()} and the model was fitted to "
            f"{estimator.classes_.tolist()}; cv= is for the training rows."
        )
    data = replace(data, source=_source(estimator, data.source))
    folds = _folds(cv, X, data.y, twin)
    jobs = (
        delayed(_predicted)(
            twin, estimator.alpha_, estimator.refit_, settings, data, X, fold, scaled
        )
        for fold in folds
    )
    f = np.empty_like(data.target, dtype=float)
    std = np.empty(len(f)) if scaled else None
    parts = Parallel(n_jobs=getattr(twin, "n_jobs", None))(jobs)
    for (_, test), (values, spread) in zip(folds, parts, strict=True):
        f[test] = values
        if std is not None:
            std[test] = spread
    return f, std


def _source(estimator: Any, source: GraphSource) -> Any:
    """Return the graph before it has seen data, with steps where cross-validation chose them."""
    design = estimator._columns
    if design is None:
        return source
    if design.source is not None:
        return design.source
    if not (isinstance(estimator.basis, str) and estimator.basis == AUTO):
        return source
    for basis in (WITH_JUMPS, WITH_STEPS):
        if any(name.endswith(basis.removeprefix(AUTO)) for name, _ in design.notes):
            return replace(source, basis=basis)  # type: ignore[type-var]
    return source


def _folds(cv: Any, X: Any, y: NDArray[Any], estimator: Any) -> list[Fold]:
    """Return the folds as pairs of row numbers; raise unless they test every row once."""
    labels = is_classifier(estimator)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        seed = int(random_generator(estimator.random_state).randint(2**31 - 1))
        cv = (StratifiedKFold if labels else KFold)(int(cv), shuffle=True, random_state=seed)
    splitter = check_cv(cv, y, classifier=labels)
    folds = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, y)]
    tested = np.sort(np.concatenate([test for _, test in folds]))
    if not np.array_equal(tested, np.arange(len(y))):
        raise ValueError("cv must test every row exactly once, as KFold does; pass another one.")
    return folds


def _predicted(
    estimator: Any,
    lam: float,
    refit: str | None,
    settings: SearchSettings,
    data: TrainingData,
    X: Any,
    fold: Fold,
    scaled: bool,
) -> tuple[FloatArray, FloatArray | None]:
    """Return f at the test rows of a fold, and the standard deviation of y there."""
    train, test = fold
    rows, weights = take(data.rows, train), data.weights[train]
    offset = None if data.offset is None else data.offset.values
    known = None if offset is None else offset[train]
    try:
        problem = TrainingProblem.make(
            data.source, rows, data.target[train], weights, data.loss, known
        )
    except ValueError as error:
        raise ValueError(
            f"A fold cannot be fitted: {error} Use fewer folds, or folds that are shuffled."
        ) from None
    fitted = estimator._refitted(refit, problem, problem.solve(lam, settings))
    new = fitted.design.read(take(X, test))
    f = fitted.model.predict(fitted.design, new)
    f = f if offset is None else f + offset[test]
    if not scaled:
        return f, None
    posterior = posterior_of(problem, fitted)
    if posterior is None:
        raise ValueError("A fold has as many parameters as rows; use scaled=False.")
    bars = posterior.std(fitted.model, fitted.design, new, len(f))
    return f, observation_std(data.loss, f, bars, posterior.dispersion)
