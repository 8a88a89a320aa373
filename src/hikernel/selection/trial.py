"""A trial of a richer graph on one fold, before a whole cross-validation is spent on it.

On smooth data steps raise the error of a fold, and the trial is all they cost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from hikernel.engines.machine import is_late
from hikernel.search import SearchSettings
from hikernel.selection.folds import Fold, FoldPath, ModelScore, all_turned
from hikernel.selection.scores import CrossValidation, relative_gain
from hikernel.selection.training import TrainingProblem

__all__ = ["trial_gain"]

_log = logging.getLogger(__name__)

_MOST_WORK = 3.0
"""Work of the trial (``search.effort``), relative to that of the known graph on one fold."""


def trial_gain(
    problem: TrainingProblem,
    lams: Sequence[float],
    settings: SearchSettings,
    fold: Fold,
    score: ModelScore,
    known: CrossValidation,
    count: Callable[[int], None] | None = None,
) -> float:
    """Return the share by which the error on the first fold falls with another graph.

    The least error over all lambdas and refits is compared with that of the cross-validation of the
    known graph. The path of the trial ends when its error has turned, as in a cross-validation, or
    after three times the work that one fold of the known graph took.

    Parameters
    ----------
    problem : TrainingProblem
        The rows with the richer graph.
    lams : sequence of float
        Its values of lambda, decreasing.
    settings : SearchSettings
        How to search.
    fold : (train, test)
        The first fold of ``known``.
    score : callable
        Scores a fitted model on rows.
    known : CrossValidation
        The scores of the known graph.
    count : callable, optional
        Called with the number of models fitted, after each.
    """
    path = FoldPath(fold, known.refits, score)
    most = _MOST_WORK * known.work / (1.0 + known.scores.shape[2])
    for lam in lams:
        if is_late() or path.work > most:
            break
        before = len(path.terms)
        path.advance(problem, settings, [lam])
        if count is not None:
            count(len(path.terms) - before)
        if path.end is not None or all_turned([path]):
            break
    if not path.scores or np.all(np.isnan(path.scores)):
        return -np.inf
    best = float(np.nanmax(known.scores[:, :, 0])), float(np.nanmax(path.scores))
    _log.info("Best score on the first fold without steps %.6g, with steps %.6g.", *best)
    return relative_gain(*best)
