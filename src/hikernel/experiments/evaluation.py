"""The protocol of the tables: half splits, test errors along a path, inner cross-validation."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from hikernel.engines.protocol import FloatArray
from hikernel.experiments.fingerprint import fingerprint
from hikernel.experiments.methods import METHODS, FittedPath
from hikernel.experiments.paper_data import Dataset, load
from hikernel.experiments.settings import (
    CLASSIFICATION_ROWS,
    CLIP,
    CV_CRITERION,
    CV_FOLDS,
    LOG_OFFSET,
    KernelChoice,
    kernel_for,
)
from hikernel.experiments.store import Job, Result

__all__ = ["run_job", "split"]

Rows = NDArray[np.intp]


def split(data: Dataset, seed: int) -> tuple[Rows, Rows]:
    """Return the training rows and the test rows.

    They are the first and the second half of ``default_rng(seed).permutation(n)``; for
    classification, of its first 1,024 entries. The data of the figure are drawn anew for every
    seed and have a fixed split: the first ``n_train`` rows are for training.
    """
    n = len(data.y)
    if data.n_train is not None:
        return np.arange(data.n_train), np.arange(data.n_train, n)
    rows = np.random.default_rng(seed).permutation(n)
    if data.task == "classification":
        rows = rows[:CLASSIFICATION_ROWS]
    half = len(rows) // 2
    return rows[:half], rows[half:]


def run_job(job: Job, folder: Path | None, openml: bool = False) -> Result:
    """Fit a path on the training half and return its errors.

    BLAS is limited to one thread, because jobs run in parallel.
    """
    kernel = kernel_for(job.data, job.kernel)
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # outliers and few rows are expected here
        data = load(job.data, folder, seed=job.seed, openml=openml)
        train, test = split(data, job.seed)
        table: Any = data.frame
        if kernel.basis is not None:
            table = prepared(data, train)
        path = METHODS[job.method](_rows(table, train), data.y[train], data.task, kernel)
        errors = path_errors(data, path.decide(_rows(table, test)), data.y[test])
        cv = path.held_out
        if cv is None:
            cv = _cross_validate(job, data, table, train, kernel, path)
    return Result(
        job=job,
        n=len(data.y) if data.task == "regression" else len(train) + len(test),
        p=table.shape[1],
        grid=path.grid.tolist(),
        test=_rounded(errors),
        cv=_rounded(cv),
        terms=[int(t) for t in path.terms],
        seconds=round(time.perf_counter() - start, 2),
        note=path.note,
        end=path.end,
        settings=fingerprint(job),
        source=data.source,
        reached=path.reached or len(path.grid),
        n_vertices=_power(path.n_vertices),
    )


def prepared(data: Dataset, train: Rows) -> FloatArray:
    """Return the inputs of the kernels, shape (n, p).

    They are ``data.X``, except for the data sets with a logarithm or a clipping limit in
    `settings`. The limit is in standard deviations around the mean of the training rows.
    """
    X = data.X
    if data.name in LOG_OFFSET:
        X = np.log(LOG_OFFSET[data.name] + X)
    if data.name in CLIP:
        center, reach = X[train].mean(axis=0), CLIP[data.name] * X[train].std(axis=0)
        X = np.clip(X, center - reach, center + reach)
    return X


def path_errors(data: Dataset, f: FloatArray, y: FloatArray) -> FloatArray:
    """Return the error in percent of each of the k columns of f, shape (k,).

    For regression, the mean squared error over the variance of all y; for classification, the
    share of wrong signs. ``f`` has shape (n, k), ``y`` has shape (n,).
    """
    if data.task == "regression":
        with np.errstate(over="ignore"):
            return np.asarray(100.0 * np.mean((f - y[:, None]) ** 2, axis=0) / np.var(data.y))
    return np.asarray(100.0 * np.mean((f > 0.0) != (y[:, None] > 0.5), axis=0))


def _cross_validate(
    job: Job, data: Dataset, table: Any, train: Rows, kernel: KernelChoice, path: FittedPath
) -> FloatArray:
    """Return the cross-validated criterion of every parameter, on folds of the training half.

    The criterion is that of `settings.CV_CRITERION`.
    """
    total = np.zeros(len(path.grid))
    folds = (KFold if data.task == "regression" else StratifiedKFold)(
        CV_FOLDS, shuffle=True, random_state=job.seed
    )
    for fit, held in folds.split(train, data.y[train]):
        rows, out = train[fit], train[held]
        part = METHODS[job.method](_rows(table, rows), data.y[rows], data.task, kernel)
        f, y = part.decide(_rows(table, out)), data.y[out][:, None]
        with np.errstate(over="ignore"):
            losses = (
                (f - y) ** 2
                if CV_CRITERION[data.task] == "squared_error"
                else np.logaddexp(0.0, np.where(y > 0.5, -f, f))
            )
            total += losses.mean(axis=0) / CV_FOLDS
    return total


def _rows(table: Any, rows: Rows) -> Any:
    return table[rows] if isinstance(table, np.ndarray) else table.iloc[rows]


def _rounded(values: FloatArray) -> list[float]:
    """Return the values to seven digits, with 1e300 for those that are not finite."""
    return [float(f"{v:.7g}") if np.isfinite(v) else 1e300 for v in values]


def _power(count: int) -> str:
    """Return a count as a power of ten, such as "10^22"; an empty string for 0."""
    return f"10^{round(math.log10(count))}" if count else ""
