"""What a warm-started estimator keeps from one fit to the next: the problem and its solutions.

Bases, features and bounds on pairs depend on the rows and on the graph, but not on alpha. A fit at
another alpha on the same data takes them as they are, and starts at the nearest solution.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
import pandas as pd

from hikernel.estimators.training_data import TrainingData
from hikernel.search import SearchSettings
from hikernel.selection import LambdaPath, TermModel, TrainingProblem

__all__ = ["KeptProblem", "fingerprint"]

Fingerprint = tuple[str, str]

_OF_THE_SOLVE = {
    "alpha",
    "certify",
    "max_kernels",
    "proof_effort",
    "on_interrupt",
    "random_state",
    "refit",
    "search",
    "time_budget",
    "tol",
    "verbose",
    "warm_start",
}
"""Parameters on which the problem does not depend: only how it is solved, and what comes after."""


@dataclass
class KeptProblem:
    """A training problem with what was solved on it.

    Attributes
    ----------
    key : pair of str, or None
        Fingerprint of the data and of the parameters that make the problem; None if it has none.
    problem : TrainingProblem
        The problem.
    data : TrainingData
        The arguments of ``fit`` that it was made of.
    models : dict of float to TermModel
        Solutions by lambda.
    paths : dict of SearchSettings to LambdaPath
        Paths over lambda by the settings they were solved with.
    """

    key: Fingerprint | None
    problem: TrainingProblem
    data: TrainingData
    models: dict[float, TermModel] = field(default_factory=dict)
    paths: dict[SearchSettings, LambdaPath] = field(default_factory=dict)

    def after_fit(self, parameters: dict[str, Any]) -> KeptProblem:
        """Return the same with the fingerprint that its parameters have after the fit.

        It is another one if they have a graph, which keeps what it has computed.
        """
        if self.key is None:
            return self
        found = fingerprint((), parameters)
        return replace(self, key=found and (self.key[0], found[1]))

    def nearest(self, lam: float, max_kernels: int) -> TermModel | None:
        """Return the solution at the nearest lambda above, or else below, or None.

        Solutions with more than ``max_kernels`` nodes are no start.

        A search that starts above adds terms, as along a path; one that starts below has to find
        out which terms are idle.
        """
        models = self.models.items()
        known = np.array(sorted(at for at, model in models if len(model.nodes) <= max_kernels))
        if len(known) == 0:
            return None
        above = known[known >= lam]
        return self.models[float(above[0] if len(above) else known[-1])]

    def path(self, settings: SearchSettings) -> LambdaPath | None:
        """Return the path that was solved with these settings, if there is one."""
        return self.paths.get(_of_path(settings))

    def keep_path(self, settings: SearchSettings, path: LambdaPath) -> None:
        """Keep a path and its models."""
        self.paths[_of_path(settings)] = path
        self.models |= {point.model.lam: point.model for point in path.points}


def _of_path(settings: SearchSettings) -> SearchSettings:
    """Return the settings without what a path, which proves nothing, does not depend on."""
    return replace(settings, certify="none", seed=0)


def fingerprint(arguments: tuple[Any, ...], parameters: dict[str, Any]) -> Fingerprint | None:
    """Return hashes of the arguments of ``fit`` and of the parameters that make the problem.

    None if something in them cannot be pickled, such as a kernel that is a lambda.
    """
    chosen = {name: value for name, value in parameters.items() if name not in _OF_THE_SOLVE}
    # pandas 2 keeps the memory layout of what a frame was made of, which the hash would see.
    alike = tuple(item.copy() if isinstance(item, pd.DataFrame) else item for item in arguments)
    try:
        return str(joblib.hash(alike)), str(joblib.hash(chosen))
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
