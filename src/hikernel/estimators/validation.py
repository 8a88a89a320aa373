"""What a user can get wrong, found before work starts and said in a sentence."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length

from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer
from hikernel.engines.protocol import FloatArray
from hikernel.frames import ColumnTable, read_table
from hikernel.selection import SearchSettings

__all__ = [
    "TrainingData",
    "check_alphas",
    "check_choice",
    "check_number",
    "check_search",
    "check_target",
    "check_target_scale",
    "check_training_data",
    "check_verbose",
    "check_weights",
    "outside_level",
    "read_new_rows",
    "warn_of_lost_columns",
]

_PACKAGE = str(Path(__file__).parents[1] / "_")[:-1]
"""The folder of this package, with a separator at its end."""


def outside_level() -> int:
    """Return the ``stacklevel`` by which a warning names the line that called this package.

    To be called within the call of ``warnings.warn``, however deep in the package that is.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def check_number(
    name: str, value: object, *, above: float, below: float = math.inf, remedy: str = ""
) -> None:
    """Raise unless ``value`` is a real number strictly between two limits."""
    if isinstance(value, bool) or not isinstance(value, Real) or not above < float(value) < below:
        limits = f"above {above:g}" + (f" and below {below:g}" if below < math.inf else "")
        problem = f"{name} must be a finite number {limits}, got {value!r}."
        raise ValueError(f"{problem} {remedy}".strip())


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def check_alphas(alphas: Any) -> None:
    """Raise unless ``alphas`` is None or a sequence of at least one positive number."""
    if alphas is None:
        return
    if isinstance(alphas, (str, bytes, Mapping)) or np.ndim(alphas) != 1:
        raise ValueError(
            f"alphas must be a list of numbers, or None for an automatic grid, got {alphas!r}."
        )
    if len(alphas) == 0:
        raise ValueError("alphas is empty; pass at least one, or None for an automatic grid.")
    for alpha in alphas:
        check_number("every alpha", alpha, above=1e-100)


def check_verbose(verbose: object) -> None:
    """Raise unless ``verbose`` is True, False or an integer that is not negative."""
    if not isinstance(verbose, (bool, np.bool_)):
        check_integer("verbose", verbose, 0)


@contextmanager
def _text_explained(name: str, advice: str) -> Iterator[None]:
    """Say what to do about text where numbers are needed."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"{name} holds text ({error}), but {advice}.") from error
        raise


@dataclass(frozen=True)
class TrainingData:
    """What ``fit`` was given, checked.

    Attributes
    ----------
    columns : ColumnTable
        How the table of the user becomes a matrix.
    X : ndarray of shape (n, p)
        That matrix: finite numbers, codes of categories, and NaN.
    y : ndarray of shape (n,)
        Float64, or labels of any type.
    weights : ndarray of shape (n,)
        Zero or positive, the largest one.
    """

    columns: ColumnTable
    X: FloatArray
    y: NDArray[Any]
    weights: FloatArray


def check_training_data(
    X: Any,
    y: Any,
    sample_weight: Any,
    categorical: Iterable[str | int] | None,
    *,
    labels: bool = False,
    estimator: Any = None,
) -> TrainingData:
    """Return X, y and sample weights as arrays of one length.

    Parameters
    ----------
    X : array-like or data frame
        Numbers, booleans, categories, missing values.
    y : array-like of shape (n,)
        Numbers, or labels of any type.
    sample_weight : array-like of shape (n,), float, or None
        Weights.
    categorical : iterable of str or int, or None
        Columns to take as categories whatever their type.
    labels : bool, default=False
        Whether y holds labels.
    estimator : estimator, optional
        For messages.

    Raises
    ------
    TypeError
        For sparse matrices, lazy frames and objects that are neither text nor numbers.
    ValueError
        For infinity, dates, wrong shapes, fewer than two rows, missing entries of y or of the
        weights, and weights that are negative or leave fewer than two rows.
    """
    name = "hkl_path" if estimator is None else type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    raw = read_table(X)
    if raw.n_rows < 2:
        raise ValueError(
            f"Found array with {raw.n_rows} sample(s) while a minimum of 2 is required by {name}."
        )
    columns = ColumnTable.fit(raw, categorical=categorical)
    matrix = columns.transform(raw)
    target = check_target(y, labels, estimator)
    check_consistent_length(matrix, target)
    return TrainingData(columns, matrix, target, check_weights(matrix, sample_weight))


def check_target(y: Any, labels: bool, estimator: Any) -> NDArray[Any]:
    """Return y as float64, or as labels of any type, shape (n,)."""
    _refuse_missing(y, "label" if labels else "value")
    remedy = "use HKLClassifier" if estimator is not None else 'choose loss="log_loss"'
    with _text_explained("y", f"a regressor needs numbers; for labels {remedy}"):
        target = _check_y(y, multi_output=False, y_numeric=not labels, estimator=estimator)
        return target if labels else np.asarray(target, dtype=np.float64)


def _refuse_missing(y: Any, what: str) -> None:
    """Raise where y has missing entries, which NumPy may take for text or not sort at all."""
    import pandas as pd

    # NumPy would make the text "nan" of a NaN in a list of texts.
    values = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if values.dtype.kind not in "fOmM" or values.size != len(np.atleast_1d(values)):
        return
    rows = np.flatnonzero(pd.isna(values.ravel()))
    if rows.size:
        raise ValueError(
            f"y contains NaN or None: it has {rows.size} missing {what}(s), the first in row "
            f"{rows[0]}, counted from 0; drop these rows of X and y."
        )


def read_new_rows(estimator: Any, X: Any) -> FloatArray:
    """Return the matrix of new rows, and warn where only one of the tables has column names."""
    columns: ColumnTable = estimator.columns_
    name = type(estimator).__name__
    raw = read_table(X)
    if (columns.feature_names_in is None) != (raw.names is None):
        warnings.warn(
            f"X has feature names, but {name} was fitted without feature names"
            if raw.names is not None
            else f"X does not have valid feature names, but {name} was fitted with feature names",
            UserWarning,
            stacklevel=outside_level(),
        )
    if columns.feature_names_in is None or raw.names is None:
        # Names that differ say more than their number does, so that they come first.
        _check_count(name, len(raw.columns), columns.n_features_in)
    return columns.transform(raw)


def _check_count(name: str, given: int, expected: int) -> None:
    if given != expected:
        raise ValueError(
            f"X has {given} features, but {name} is expecting {expected} features as input."
        )


def check_weights(X: FloatArray, sample_weight: Any) -> FloatArray:
    """Return weights of the rows of X, zero or positive, the largest one."""
    with _text_explained("sample_weight", "weights are numbers, one for each row"):
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    if np.any(weights < 0):
        raise ValueError("sample_weight has negative entries; weights must be zero or positive.")
    positive = int(np.count_nonzero(weights))
    if positive < 2:
        raise ValueError(
            f"Only {positive} row(s) have a positive sample_weight; at least 2 are needed."
        )
    return np.asarray(weights / np.max(weights))


def warn_of_lost_columns(X: FloatArray, design: Design, names: Sequence[str]) -> None:
    """Warn of columns that vary, but by less than the rounding of their size."""
    for m, basis in enumerate(design.bases):
        if basis.max_level == 0 and _varies(X[:, m]):
            warnings.warn(
                f"Column {names[m]} varies by less than the rounding error of its size and is "
                "taken for a constant; subtract its mean before fitting.",
                UserWarning,
                stacklevel=outside_level(),
            )


def _varies(column: FloatArray) -> bool:
    """Whether the values that are not missing differ."""
    values = column[~np.isnan(column)]
    return bool(values.size and values.max() > values.min())


def check_search(
    search: str,
    tol: float,
    max_kernels: int,
    certify: str,
    time_budget: float | None,
    random_state: Any,
) -> SearchSettings:
    """Return the settings of a search, or say what is wrong with them."""
    check_choice("search", search, ["lookahead", "paper"])
    check_integer("max_kernels", max_kernels, 1)
    check_number("tol", tol, above=1e-13, below=1.0)
    check_choice("certify", certify, ["auto", "exact", "statistical", "none"])
    if time_budget is not None:
        check_number("time_budget", time_budget, above=0.0)
        if search == "paper":
            raise ValueError('time_budget works with search="lookahead" only.')
    if certify == "statistical" and search == "paper":
        raise ValueError('certify="statistical" works with search="lookahead" only.')
    return SearchSettings(
        search=search,  # type: ignore[arg-type]
        tol=tol,
        max_kernels=max_kernels,
        certify=certify,  # type: ignore[arg-type]
        time_budget=time_budget,
        seed=int(check_random_state(random_state).randint(2**31 - 1)),
    )


def check_target_scale(scale: float) -> None:
    """Raise unless the square of the standard deviation of y can be represented."""
    if not 1e-152 <= scale <= 1e152:
        raise ValueError(
            f"y has a standard deviation of {scale:.3g}, whose square leaves the range of "
            "floating point numbers; rescale y, for example by its standard deviation."
        )
