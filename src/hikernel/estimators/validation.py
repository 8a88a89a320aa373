"""What a user can get wrong, found before work starts and said in a sentence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from hikernel.bases import Basis, make_basis
from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer
from hikernel.engines.protocol import FloatArray
from hikernel.selection import SearchSettings

__all__ = [
    "check_choice",
    "check_labelled_data",
    "check_number",
    "check_search",
    "check_target_scale",
    "check_training_data",
    "feature_names",
    "resolve_bases",
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


def check_training_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return X, y and sample weights (largest one) as float64 arrays of one length.

    Raises
    ------
    ValueError
        For text, NaN, infinity, wrong shapes, fewer than two rows, weights that are negative or
        leave fewer than two rows.
    """
    with text_explained():
        X, y = validate_data(
            estimator, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        y = np.asarray(y, dtype=np.float64)
    return X, y, _check_weights(X, sample_weight)


def check_labelled_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Return X, labels and sample weights, as :func:`check_training_data` does for numbers."""
    with text_explained():
        X, y = validate_data(estimator, X, y, dtype=np.float64, ensure_min_samples=2)
    return X, y, _check_weights(X, sample_weight)


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
        if basis.max_level == 0 and np.ptp(X[:, m]) > 0.0:
            warnings.warn(
                f"Column {names[m]} varies by less than the rounding error of its size and is "
                "taken for a constant; subtract its mean before fitting.",
                UserWarning,
                stacklevel=4,
            )


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


def feature_names(estimator: Any) -> list[str]:
    """Return the column names that ``validate_data`` found, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{m}" for m in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def resolve_bases(
    spec: Any, degree: int, n_features: int, feature_names: Sequence[str]
) -> list[Basis]:
    """Return one basis per column.

    Parameters
    ----------
    spec : str, Basis, or mapping
        A name or object for all columns, or a mapping from column names or positions to names
        or objects; columns that a mapping leaves out get "auto".
    degree : int
        Degree of the bases that are given by name.
    n_features : int
        Number of columns.
    feature_names : sequence of str
        Their names.
    """
    if not isinstance(spec, Mapping):
        return [make_basis(spec, degree)] * n_features
    bases = [make_basis("auto", degree)] * n_features
    position = {name: m for m, name in enumerate(feature_names)}
    for key, value in spec.items():
        if isinstance(key, str) and key in position:
            m = position[key]
        elif isinstance(key, (int, np.integer)) and 0 <= key < n_features:
            m = int(key)
        else:
            raise ValueError(
                f"basis names the column {key!r}, which X does not have; its columns are "
                f"{', '.join(feature_names[:10])}{', ...' if n_features > 10 else ''} "
                f"(or positions 0 to {n_features - 1})."
            )
        bases[m] = make_basis(value, degree)
    return bases
