"""Cross-validation of lambda and refit together.

All folds use the same lambdas, those of the path over all rows. Each fold solves this path on its
training rows; bases and features are shared, only rows are left out. It applies every refit that is
compared to every model, and scores the held-out rows. Then a rule picks one pair of lambda and
refit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata

from hikernel.engines.protocol import FloatArray
from hikernel.search import SearchSettings
from hikernel.selection.lambda_path import compute_path
from hikernel.selection.refit import Fitted, refit, variables_key
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = ["Choice", "CrossValidation", "Fold", "ModelScore", "check_folds", "cross_validate"]

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

ModelScore = Callable[[Fitted, NDArray[np.intp]], float]
"""Scores a model on held-out rows, given as positions among the rows used; larger is better."""


@dataclass(frozen=True)
class Choice:
    """A pair of a lambda, given by its position, and a refit."""

    position: int
    refit: str | None


@dataclass(frozen=True)
class CrossValidation:
    """Scores of all lambdas and refits on all folds.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
        The lambdas that every fold reached, largest first.
    refits : list of (str or None)
        The refits compared.
    scores : ndarray of shape (n_refits, n_lams, n_folds)
        Larger is better; NaN where a refit does not apply.
    terms : ndarray of shape (n_lams, n_folds)
        Number of terms of each model.
    """

    lams: FloatArray
    refits: list[str | None]
    scores: FloatArray
    terms: FloatArray

    @property
    def means(self) -> FloatArray:
        """Mean scores, shape (n_refits, n_lams); minus infinity where a fold has no score."""
        return np.where(np.isnan(self.scores).any(axis=2), -np.inf, self.scores.mean(axis=2))

    def best(self) -> Choice:
        """Return the pair with the best mean score; ties go to the larger lambda.

        Raises
        ------
        ValueError
            If no pair has a score on every fold.
        """
        means = self.means.T
        position, row = np.unravel_index(int(np.argmax(means)), means.shape)
        if means[position, row] == -np.inf:
            raise ValueError(
                "No alpha has a score on every fold, so that none can be chosen: "
                + (
                    "scoring returned NaN or infinity; check it, or use fewer folds."
                    if None in self.refits
                    else f"refit={self.refits[0]!r} does not apply to any of them (too many "
                    'columns for the rows), or scoring returned NaN; use refit="auto".'
                )
            )
        return Choice(int(position), self.refits[int(row)])

    def one_standard_error(self) -> Choice:
        """Return the best refit with its largest lambda within one standard error of the best."""
        best = self.best()
        row = self.refits.index(best.refit)
        folds = self.scores[row, best.position]
        error = float(np.std(folds, ddof=1)) / np.sqrt(len(folds)) if len(folds) > 1 else 0.0
        enough = np.flatnonzero(self.means[row] >= self.means[row, best.position] - error)
        return Choice(int(enough[0]), best.refit)

    def results(self) -> dict[str, NDArray[Any]]:
        """Return the table as scikit-learn's ``cv_results_``: one entry per alpha and refit.

        Models without a refit have the entry "None" in "refit". Ties share the best rank.
        """
        n_refits, n_lams, n_folds = self.scores.shape
        flat = self.scores.reshape(-1, n_folds)
        names = np.repeat(np.array([str(name) for name in self.refits]), n_lams)
        ranks = rankdata(-self.means.ravel(), method="min")
        table: dict[str, NDArray[Any]] = {
            "alpha": np.tile(self.lams, n_refits),
            "refit": names,
            "mean_terms": np.tile(self.terms.mean(axis=1), n_refits),
            "mean_test_score": flat.mean(axis=1),
            "std_test_score": flat.std(axis=1),
            "rank_test_score": ranks.astype(np.int32),
        }
        for k in range(n_folds):
            table[f"split{k}_test_score"] = flat[:, k]
        return table


def check_folds(problem: TrainingProblem, folds: Sequence[Fold]) -> None:
    """Raise a ValueError if a fold cannot be fitted or scored.

    That is the case if it has no training rows or no test rows, or if the loss does not accept its
    training target (for example a single class).
    """
    if not folds:
        raise ValueError("cv gives no folds; at least one is needed.")
    for k, (train, test) in enumerate(folds):
        for rows, part in ((train, "training"), (test, "test")):
            if len(rows) == 0:
                raise ValueError(f"Fold {k} of cv has no {part} rows of positive weight.")
        try:
            problem.loss.check_target(problem.y[train])
        except ValueError as error:
            raise ValueError(
                f"The training rows of fold {k} cannot be fitted: {error} Use fewer folds, or "
                "folds that are shuffled or stratified."
            ) from None


def cross_validate(
    problem: TrainingProblem,
    lams: Sequence[float],
    settings: SearchSettings,
    folds: Sequence[Fold],
    refits: Sequence[str | None],
    score: ModelScore,
    n_jobs: int | None = None,
) -> CrossValidation:
    """Score every lambda and refit on every fold.

    Parameters
    ----------
    problem : TrainingProblem
        The problem with all rows.
    lams : sequence of float
        The values of lambda, decreasing.
    settings : SearchSettings
        How to search, in every fold. Certificates are not kept, so pass ``certify="none"``.
    folds : sequence of (train, test)
        Positions of the training and the test rows among the rows used.
    refits : sequence of (str or None)
        Refits to compare; None is the model without a refit.
    score : callable
        Scores a fitted model on rows; see :data:`ModelScore`.
    n_jobs : int, optional
        Number of parallel jobs, through joblib.
    """
    jobs = (
        delayed(_one_fold)(problem, list(lams), settings, fold, list(refits), score)
        for fold in folds
    )
    # Every process would get a copy of all Gram matrices; threads share them.
    prefer = "threads" if problem.engine.has_kernels else None
    parts = Parallel(n_jobs=n_jobs, prefer=prefer)(jobs)
    reached = min(scores.shape[1] for scores, _ in parts)
    return CrossValidation(
        lams=np.array(lams[:reached], dtype=float),
        refits=list(refits),
        scores=np.stack([scores[:, :reached] for scores, _ in parts], axis=2),
        terms=np.stack([terms[:reached] for _, terms in parts], axis=1).astype(float),
    )


def _one_fold(
    problem: TrainingProblem,
    lams: list[float],
    settings: SearchSettings,
    fold: Fold,
    refits: list[str | None],
    score: ModelScore,
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the scores of one fold, shape (n_refits, n_points), and the number of terms."""
    train, test = fold
    part = problem.subset(train)
    path = compute_path(part, lams, settings)
    scores = np.full((len(refits), len(path.points)), np.nan)
    known: dict[tuple[str | None, object], float] = {}
    for j, point in enumerate(path.points):
        for i, name in enumerate(refits):
            key = (name, _fingerprint(name, point.model, j))
            if key not in known:
                fitted = refit(name, part, point.model)
                known[key] = np.nan if fitted is None else score(fitted, test)
            scores[i, j] = known[key]
    return scores, np.array([point.model.n_terms for point in path.points])


def _fingerprint(name: str | None, model: TermModel, position: int) -> object:
    """Return the key under which the score of a refit is reused within a fold.

    Neighbouring lambdas often select the same variables. The score of "variables" is then computed
    once; scores of the other refits are computed for every lambda.
    """
    return variables_key(model) if name == "variables" else position
