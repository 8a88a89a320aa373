"""Processor seconds of a cross-validated fit, stage by stage.

Functions of the package are wrapped from outside, so that the package has no clock in it. The
time of a stage is that of its function without that of the stages it calls, except for the trial
of steps and the proof, which count as a whole. Folds must run in this process (``n_jobs=None``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from hikernel.estimators import comparison, estimator, fold_scores
from hikernel.selection import folds, training

__all__ = ["STAGES", "stage_seconds"]

STAGES: dict[str, list[tuple[Any, str]]] = {
    "read": [(estimator.HKLEstimator, "_read_data")],
    "bases": [(training.TrainingProblem, "make")],
    "path": [(folds.PathSolver, "advance")],
    "folds": [(folds.FoldPath, "advance")],
    "refits": [(folds, "refit")],
    "scores": [(fold_scores.LossScore, "__call__")],
    "trial": [(comparison, "trial_gain"), (comparison.CrossValidatedEstimator, "_richer")],
    "proof": [(comparison, "_proven")],
    "simpler": [(comparison, "score_simpler_models")],
    "last refit": [(comparison, "refit")],
}
"""Where each stage of a fit begins."""

_WHOLE = ("trial", "proof", "simpler")
"""Stages that the stages they call belong to."""


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys([*STAGES, "other"], 0.0)
        self._open = ["other"]
        self._last = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._last
        self._last = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens in the context as this stage, or as the whole one it is part of."""
        self._turn()
        inside = self._open[-1]
        part = inside in _WHOLE or (inside == "folds" and name == "path")
        self._open.append(inside if part else name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()


def _wrapped(function: Callable[..., Any], clock: _Clock, name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        with clock.stage(name):
            return function(*args, **kwargs)

    return timed


def stage_seconds(fit: Callable[[], Any]) -> dict[str, float]:
    """Return the processor seconds of every stage of a fit, and "other"."""
    clock = _Clock()
    with ExitStack() as patches:
        for name, places in STAGES.items():
            for owner, attribute in places:
                kind = owner.__dict__[attribute]
                plain = kind.__func__ if isinstance(kind, classmethod) else kind
                timed: Any = _wrapped(plain, clock, name)
                timed = classmethod(timed) if isinstance(kind, classmethod) else timed
                patches.enter_context(patch.object(owner, attribute, timed))
        with clock.stage("other"):
            fit()
    return clock.seconds
