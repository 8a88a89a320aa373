"""What a user can get wrong, found before work starts and said in a sentence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
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
    "check_choice",
    "check_number",
    "check_search",
    "check_target_scale",
    "check_training_data",
    "read_new_rows",
    "text_explained",
    "warn_of_lost_columns",
]


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


@contextmanager
def text_explained() -> Iterator[None]:
    """Say what to do about text where numbers are needed."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"There is text where numbers are needed ({error}). Encode it as numbers first, "
                "for example with sklearn.preprocessing.OneHotEncoder."
            ) from error
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
        For infinity, dates, wrong shapes, fewer than two rows, NaN in y or in the weights, and
        weights that are negative or leave fewer than two rows.
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
    with text_explained():
        target = _check_y(y, multi_output=False, y_numeric=not labels, estimator=estimator)
        if not labels:
            target = np.asarray(target, dtype=np.float64)
    check_consistent_length(matrix, target)
    return TrainingData(columns, matrix, target, _check_weights(matrix, sample_weight))


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
            stacklevel=5,
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


def _check_weights(X: FloatArray, sample_weight: Any) -> FloatArray:
    with text_explained():
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
                stacklevel=4,
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
