"""Stability selection: how often a term is selected on random subsamples of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from hikernel.checks import check_integer, check_number, check_weights, random_generator
from hikernel.engines.protocol import FloatArray, Node
from hikernel.estimators.comparison import CrossValidatedEstimator
from hikernel.estimators.estimator import HKLEstimator
from hikernel.estimators.one_alpha import OneAlphaEstimator
from hikernel.estimators.training_data import TrainingData
from hikernel.graphs import unambiguous
from hikernel.search import SearchSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StabilitySelection", "stability_selection"]

Rows = NDArray[np.intp]
Terms = frozenset[Node]
"""Terms that are selected on one subsample; columns have the same positions on all of them."""


@dataclass(frozen=True)
class StabilitySelection:
    """Result of :func:`stability_selection`.

    Attributes
    ----------
    terms : pandas.DataFrame
        One row per term that was selected at least once, the most frequent first. Columns: term,
        order (number of variables), degree (sum of levels), frequency (share of the subsamples
        that select it), selected (whether the frequency reaches the threshold).
    variables : pandas.DataFrame
        One row per column of X and per indicator of missing values. Columns: variable, frequency
        (share of the subsamples that select a term with it), selected.
    threshold : float
        Frequency at or above which a term or variable counts as selected.
    n_subsamples, subsample_size : int
        Number of subsamples, and number of rows in each of them.
    mean_terms, mean_variables : float
        Mean number of terms and of variables that are selected on a subsample.
    false_variables : float or None
        Upper bound q^2 / ((2 threshold - 1) p) on the expected number of falsely selected
        variables, where q is ``mean_variables`` and p the number of columns (Shah & Samworth 2013,
        theorem 1, for complementary pairs of halves). A selected variable is false if the
        estimator, on half of the rows, selects it with probability at most q / p, that is, no more
        often than an average column. The bound assumes independent rows (within each class, for a
        classifier), and takes q from the subsamples. It assumes nothing about how columns depend
        on each other. It does not cover noise columns that are selected more often than with
        probability q / p. None if the bound does not hold: if the fraction is not 0.5, or if the
        threshold is 0.5 or less.
    """

    terms: pd.DataFrame
    variables: pd.DataFrame
    threshold: float
    n_subsamples: int
    subsample_size: int
    mean_terms: float
    mean_variables: float
    false_variables: float | None


def stability_selection(
    estimator: OneAlphaEstimator,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    alphas: Sequence[float] | None = None,
    n_subsamples: int = 50,
    fraction: float = 0.5,
    threshold: float = 0.6,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> StabilitySelection:
    """Fit an estimator to many random subsamples and count what it selects.

    Subsamples are drawn without replacement, in pairs that share no row (Shah & Samworth 2013).
    For a classifier they are stratified by class. The fits are not certified.

    Parameters
    ----------
    estimator : HKLRegressor or HKLClassifier
        The estimator. Clones of it are fitted, with ``certify="none"`` and ``refit=None``.
    X : array-like or data frame of shape (n_samples, n_features)
        As for ``estimator.fit``.
    y : array-like of shape (n_samples,)
        Target.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, zero or positive; rows of weight zero are not drawn.
    offset, exposure : array-like of shape (n_samples,), optional
        As for ``estimator.fit``.
    alphas : sequence of float, optional
        Regularisation strengths, in place of ``estimator.alpha``. A term counts as selected on a
        subsample if it is selected at any of them.
    n_subsamples : int, default=50
        Number of subsamples; must be even.
    fraction : float, default=0.5
        Share of the rows in a subsample, at most 0.5.
    threshold : float, default=0.6
        Frequency at or above which a term or variable counts as selected.
    n_jobs : int, optional
        Number of joblib workers for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Returns
    -------
    StabilitySelection
        Frequencies of terms and variables, and a bound on false selections.

    Raises
    ------
    TypeError
        If the estimator is not an HKLRegressor or HKLClassifier.
    ValueError
        If a parameter is out of range, if the estimator has a ``graph``, or if there are too few
        rows, or too few rows of a class, for a subsample.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLRegressor, stability_selection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> found = stability_selection(HKLRegressor(alpha=0.01), X, y, n_subsamples=10)
    >>> sorted(found.variables.query("selected")["variable"])
    ['x0', 'x1', 'x2']
    """
    _check_estimator(estimator)
    check_integer("n_subsamples", n_subsamples, 2)
    if n_subsamples % 2:
        raise ValueError(
            f"n_subsamples must be even, as subsamples come in pairs; got {n_subsamples!r}."
        )
    check_number("fraction", fraction, above=0.0)
    check_number("threshold", threshold, above=0.0)
    if fraction > 0.5:
        raise ValueError(f"fraction must be 0.5 at most, so that pairs fit; got {fraction!r}.")
    if threshold > 1.0:
        raise ValueError(f"threshold must be 1 at most, as a frequency is; got {threshold!r}.")
    if alphas is None and isinstance(estimator.alpha, str):
        raise ValueError(
            f"stability_selection fits at given alphas, and alpha={estimator.alpha!r} would choose "
            "another one on every subsample; pass the alpha_ of a fitted model, or alphas=."
        )
    chosen = [float(estimator.alpha)] if alphas is None else [float(a) for a in alphas]
    if not chosen:
        raise ValueError("alphas is empty; pass at least one, or None for estimator.alpha.")
    for alpha in chosen:
        check_number("every alpha", alpha, above=1e-100)
    labels = is_classifier(estimator)
    plain = _without_extras(estimator, chosen[0])
    settings = plain._check_parameters()
    data = plain._read_data(X, y, sample_weight, offset, exposure)
    weights = check_weights(len(data.y), sample_weight)  # without class weights
    draws = _pairs(data.y if labels else None, weights, n_subsamples, fraction, random_state)
    jobs = (delayed(_fit)(plain, settings, chosen, _drawn(data, weights, rows)) for rows in draws)
    found: list[Terms] = Parallel(n_jobs=n_jobs)(jobs)
    return _summary(found, data.rows.table.names, threshold, fraction, len(draws[0]))


def _check_estimator(estimator: object) -> None:
    if isinstance(estimator, CrossValidatedEstimator):
        raise TypeError(
            f"stability_selection fits at a given alpha, and {type(estimator).__name__} chooses "
            "its own; pass HKLRegressor or HKLClassifier with the alpha_ that it chose, or "
            "with alphas=."
        )
    if not isinstance(estimator, HKLEstimator):
        raise TypeError(
            "stability_selection needs an HKLRegressor or HKLClassifier, whose terms it counts; "
            f"got {estimator!r}."
        )
    if estimator.graph is not None:
        raise ValueError(
            "stability_selection counts terms of the columns of a table, and this estimator has a "
            "graph in place of columns; leave graph out."
        )


def _without_extras(estimator: OneAlphaEstimator, alpha: float) -> OneAlphaEstimator:
    """Return a clone that only selects terms: no proof, no refit, no progress bar."""
    out: OneAlphaEstimator = clone(estimator)
    return out.set_params(alpha=alpha, certify="none", refit=None, verbose=0)


def _pairs(
    labels: NDArray[Any] | None,
    weights: FloatArray,
    n_subsamples: int,
    fraction: float,
    random_state: Any,
) -> list[Rows]:
    """Return the row numbers of each subsample; subsamples 2i and 2i + 1 share no row."""
    used = np.flatnonzero(weights > 0)
    if labels is None:
        parts = [used]
    else:
        parts = [used[labels[used] == label] for label in np.unique(labels[used])]
    sizes = [int(fraction * len(part)) for part in parts]
    if sum(sizes) < 2 or min(sizes) < 1:
        what = "rows" if labels is None else "rows of a class"
        raise ValueError(
            f"fraction={fraction!r} of the {min(len(part) for part in parts)} {what} is too few "
            "to fit; use more rows, or a larger fraction."
        )
    rng = random_generator(random_state)
    draws: list[Rows] = []
    for _ in range(n_subsamples // 2):
        orders = [rng.permutation(part) for part in parts]
        for k in range(2):
            rows = [
                order[k * size : (k + 1) * size] for order, size in zip(orders, sizes, strict=True)
            ]
            draws.append(np.sort(np.concatenate(rows)))
    return draws


def _drawn(data: TrainingData, weights: FloatArray, rows: Rows) -> TrainingData:
    """Return some of the rows, with weights that those of classes have no part in."""
    offset = data.offset
    return replace(
        data,
        rows=data.rows.alone(rows),
        y=data.y[rows],
        target=data.target[rows],
        weights=weights[rows],
        offset=None if offset is None else replace(offset, values=offset.values[rows]),
    )


def _fit(
    estimator: OneAlphaEstimator,
    settings: SearchSettings,
    alphas: list[float],
    drawn: TrainingData,
) -> Terms:
    """Return what is selected on the given rows, at any of the alphas."""
    estimator = clone(estimator)  # it keeps the labels of y, and threads share the given one
    y = drawn.y
    target, weights, loss = estimator._read_target(y, check_weights(len(y), drawn.weights))
    data = replace(drawn, target=target, weights=weights, loss=loss)
    problem = estimator._training_problem(data, settings)
    terms: set[Node] = set()
    for alpha in alphas:
        model = problem.solve(alpha, settings)
        kept = model.kept().nodes
        terms.update(problem.design.for_any_rows(node) for node in kept if node)
        estimator._warn(model)
        estimator._warn_of_outliers(problem, model)
    return frozenset(terms)


def _level_name(name: str, level: int) -> str:
    """Return the name of a level; that of steps has no cuts, which differ between subsamples."""
    power = "" if abs(level) == 1 else f"^{abs(level)}"
    return f"{name}{power}" if level > 0 else f"steps{power}({name})"


def _summary(
    found: Sequence[Terms],
    names: Sequence[str],
    threshold: float,
    fraction: float,
    size: int,
) -> StabilitySelection:
    """Return the frequencies, and the bound on false selections if it holds."""
    import pandas as pd

    n = len(found)
    counts = Counter(term for terms in found for term in terms)
    labels = unambiguous(names)
    words = {
        term: " * ".join(_level_name(labels[m], level) for m, level in term) for term in counts
    }
    shapes = {term: (len(term), sum(abs(level) for _, level in term)) for term in counts}
    ordered = sorted(counts, key=lambda term: (-counts[term], shapes[term][::-1], words[term]))
    frequency = np.array([counts[term] / n for term in ordered], dtype=float)
    hits = Counter(m for terms in found for m in {m for term in terms for m, _ in term})
    shares = np.array([hits[m] / n for m in range(len(names))], dtype=float)
    q = float(np.sum(shares))
    holds = fraction == 0.5 and threshold > 0.5
    return StabilitySelection(
        terms=pd.DataFrame(
            {
                "term": [words[term] for term in ordered],
                "order": [shapes[term][0] for term in ordered],
                "degree": [shapes[term][1] for term in ordered],
                "frequency": frequency,
                "selected": frequency >= threshold,
            }
        ),
        variables=pd.DataFrame(
            {"variable": list(names), "frequency": shares, "selected": shares >= threshold}
        ),
        threshold=threshold,
        n_subsamples=n,
        subsample_size=size,
        mean_terms=float(np.sum(frequency)),
        mean_variables=q,
        false_variables=q**2 / ((2.0 * threshold - 1.0) * len(names)) if holds else None,
    )
