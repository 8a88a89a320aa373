"""Scores of lambdas and refits on folds, and the rules that pick one pair of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from hikernel.engines.protocol import FloatArray
from hikernel.selection.lambda_path import ROUNDING, PathEnd

__all__ = ["Choice", "CrossValidation", "relative_gain"]

_SAME = 0.005
_ALIKE = 0.02
"""Relative differences of errors that the rule "sparse" accepts: always, and at most if it is
within a standard error."""


_DOUBTED = "variables"
_CLEAR_ERRORS = 2.0
"""A refit that must win by so many standard errors."""


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
    effects : ndarray of shape (n_refits, n_lams, n_folds)
        Number of effects of each model: sets of variables with a term; NaN as for the scores.
    end : PathEnd
        Why the lambdas end where they do.
    work : float
        Work of all searches (``search.effort``).
    """

    lams: FloatArray
    refits: list[str | None]
    scores: FloatArray
    terms: FloatArray
    effects: FloatArray
    end: PathEnd
    work: float

    @property
    def means(self) -> FloatArray:
        """Mean scores, shape (n_refits, n_lams); minus infinity where a fold has no score."""
        return np.where(np.isnan(self.scores).any(axis=2), -np.inf, self.scores.mean(axis=2))

    def mean_score(self, choice: Choice) -> float:
        """Return the mean score of a pair."""
        return float(self.means[self.refits.index(choice.refit), choice.position])

    def best(self) -> Choice:
        """Return the pair with the best mean score; ties go to the larger lambda.

        Scores that differ by rounding only count as ties, so that the choice does not depend on
        the order in which sums were taken.

        Raises
        ------
        ValueError
            If no pair has a score on every fold.
        """
        return self._best_of(range(len(self.refits)))

    def _best_of(self, rows: Sequence[int]) -> Choice:
        """Return the best pair with one of some refits, given by position."""
        means = np.full(self.means.T.shape, -np.inf)
        means[:, rows] = self.means.T[:, rows]
        position, row = np.unravel_index(int(np.argmax(_tied(means))), means.shape)
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
        error = _standard_error(folds)
        enough = np.flatnonzero(self.means[row] >= self.means[row, best.position] - error)
        return Choice(int(enough[0]), best.refit)

    def sparse(self) -> Choice:
        """Return the pair with the fewest effects that is about as good as the best.

        The error of a pair is the distance of its mean score from a perfect one: zero for losses
        with a minus sign, one for scores such as accuracy and R^2. A pair is about as good as the
        best if its error is larger by at most 0.5 %, or by at most 2 % and one standard error of
        the difference, which is taken fold by fold. Among pairs with equally many effects on
        average, the one with the best score is returned; ties go to the larger lambda.

        The refit "variables" fits products that nothing has selected. It takes part only if its
        best score is above that of the other refits by two standard errors of the difference.
        """
        rows = self._clear_refits()
        best = self._best_of(rows)
        top = self.scores[self.refits.index(best.refit), best.position]
        mean = float(np.mean(top))
        error = _error_of(mean)
        candidates = []
        for (row, position), effects in np.ndenumerate(self.effects.mean(axis=2)):
            if row not in rows:
                continue
            lost = top - self.scores[row, position]
            margin = max(_SAME * error, min(_ALIKE * error, _standard_error(lost)))
            if float(np.mean(lost)) <= margin:  # never for NaN, where a refit does not apply
                candidates.append((float(effects), float(np.mean(lost)), position, row))
        fewest = [c for c in candidates if c[0] == min(candidates)[0]]
        enough = min(fewest)[1] + ROUNDING * abs(mean)
        _, _, position, row = next(c for c in sorted(fewest, key=_by_lambda) if c[1] <= enough)
        return Choice(position, self.refits[row])

    def _clear_refits(self) -> list[int]:
        """Return the positions of the refits, without one that has to win clearly and does not."""
        rows = list(range(len(self.refits)))
        others = [row for row in rows if self.refits[row] != _DOUBTED]
        doubted = [row for row in rows if row not in others]
        if not np.any(np.isfinite(self.means[others])):
            return rows
        if not np.any(np.isfinite(self.means[doubted])):
            return others
        pairs = self._best_of(doubted), self._best_of(others)
        scores = [self.scores[self.refits.index(c.refit), c.position] for c in pairs]
        gain = scores[0] - scores[1]
        clear = float(np.mean(gain)) > _CLEAR_ERRORS * _standard_error(gain)
        return rows if clear else others

    def results(self) -> dict[str, NDArray[Any]]:
        """Return the table as scikit-learn's ``cv_results_``: one entry per alpha and refit.

        Models without a refit have the entry "None" in "refit". Ties share the best rank, also
        scores that differ from the best by rounding only.
        """
        n_refits, n_lams, n_folds = self.scores.shape
        flat = self.scores.reshape(-1, n_folds)
        names = np.repeat(np.array([str(name) for name in self.refits]), n_lams)
        ranks = rankdata(-_tied(self.means.ravel()), method="min")
        table: dict[str, NDArray[Any]] = {
            "alpha": np.tile(self.lams, n_refits),
            "refit": names,
            "mean_terms": np.tile(self.terms.mean(axis=1), n_refits),
            "mean_effects": self.effects.mean(axis=2).ravel(),
            "mean_test_score": flat.mean(axis=1),
            "std_test_score": flat.std(axis=1),
            "rank_test_score": ranks.astype(np.int32),
        }
        for k in range(n_folds):
            table[f"split{k}_test_score"] = flat[:, k]
        return table


def _by_lambda(candidate: tuple[float, float, int, int]) -> tuple[int, int]:
    """Return position and row of a candidate of ``CrossValidation.sparse``."""
    return candidate[2:]


def _tied(means: FloatArray) -> FloatArray:
    """Return the scores, with the best one in place of all that differ from it by rounding only.

    >>> _tied(np.array([-3.0, -2.0 - 1e-12, -2.0]))
    array([-3., -2., -2.])
    """
    best = float(np.max(means, initial=-np.inf))
    if not np.isfinite(best):
        return means
    return np.where(means >= best - ROUNDING * abs(best), best, means)


def _error_of(score: float) -> float:
    """Return the distance of a score from a perfect one, at least 0.

    A perfect score is zero for losses with a minus sign, and one for scores in (0, 1] such as
    accuracy and R^2.

    >>> _error_of(-0.3), _error_of(0.75)
    (0.3, 0.25)
    """
    return 1.0 - score if 0.0 < score <= 1.0 else abs(score)


def relative_gain(old: float, new: float) -> float:
    """Return by which share of its distance from a perfect score a score has improved.

    A perfect score is one if the better of both lies in (0, 1], and zero otherwise. Scores above
    one, which have no perfect value, are compared with their own size.

    >>> relative_gain(-0.4, -0.3), relative_gain(0.5, 0.75), relative_gain(0.05, -0.02)
    (0.25000000000000006, 0.5, 0.0)
    """
    if not new > old:
        return 0.0
    size = abs((1.0 if 0.0 < new <= 1.0 else 0.0) - old)
    return (new - old) / size if size > 0.0 else np.inf


def _standard_error(folds: FloatArray) -> float:
    """Return the standard error of the mean over the folds; 0 for a single fold."""
    return float(np.std(folds, ddof=1)) / np.sqrt(len(folds)) if len(folds) > 1 else 0.0
