"""Every loss with targets of its kind; a new loss joins all tests with one line here.

(Its twin in cvxpy is a line in ``oracles/twin.py``.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from hikernel.losses import (
    Cox,
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)


def numbers(signal, rng):
    y = signal + 0.5 * rng.standard_normal(signal.shape)
    return (y - y.mean()) / y.std()


def counts(signal, rng):
    return rng.poisson(np.exp(0.5 * signal)).astype(float)


def sizes(signal, rng):
    return np.exp(0.5 * signal) * rng.gamma(2.0, 0.5, signal.shape)


def claims(signal, rng):
    y = rng.poisson(1.0, signal.shape) * sizes(signal, rng)
    y[0] = 0.0
    return y


def signs(signal, rng):
    return np.where(signal + 0.5 * rng.standard_normal(signal.shape) > 0.0, 1.0, -1.0)


def marks(signal, rng):
    chosen = np.argmax(signal + 0.5 * rng.standard_normal(signal.shape), axis=1)
    return np.eye(signal.shape[1])[chosen]


def ranks(signal, rng):
    """Ranks of times with ties, negative if censored; the largest time is one of an event."""
    time = np.ceil(4.0 * rng.exponential(np.exp(-signal)))
    rank = np.unique(time, return_inverse=True)[1] + 1.0
    return np.where((rng.random(signal.shape) < 0.7) | (time == time.max()), rank, -rank)


def one_vs_rest(signal, rng):
    return 2.0 * marks(signal, rng) - 1.0


@dataclass(frozen=True)
class Case:
    """A loss, how targets come from a signal, and the outputs (None: f is a vector).

    ``bounded`` says whether slopes are bounded, on one side at least, so that the conjugate is
    infinite somewhere; ``in_units`` names a parameter that is in units of y. ``problems`` is how
    many random ones are solved by the twin, too.
    """

    name: str
    loss: Loss
    target: Callable
    outputs: int | None = None
    bounded: bool = True
    in_units: str | None = None
    problems: int = 20

    def shape(self, n):
        return (n,) if self.outputs is None else (n, self.outputs)

    def sample(self, seed=0, n=40, spread=1.5):
        """Target, prediction, and weights of sum one."""
        rng = np.random.default_rng(seed)
        signal = rng.standard_normal(self.shape(n))
        y = self.target(signal, rng)
        self.loss.check_target(y)
        weights = rng.uniform(0.5, 2.0, n)
        return y, spread * rng.standard_normal(self.shape(n)), weights / weights.sum()

    def smoothing(self, amount=0.1):
        """What the loss is to be smoothed by: nothing, for a smooth loss."""
        return 0.0 if self.loss.smooth else amount

    def cost(self, smoothing):
        """What that costs a row at most, in the sense of Fenchel and Young."""
        parts = 0 if self.loss.smooth else len(self.loss.plus_parts(np.zeros(1))[1])
        return parts * (self.outputs or 1) * smoothing


CASES = {
    case.name: case
    for case in (
        Case("squared_error", SquaredError(), numbers, bounded=False),
        Case("huber", Huber(0.5), numbers, in_units="delta"),
        Case("quantile", Quantile(0.3), numbers),
        Case("epsilon_insensitive", EpsilonInsensitive(0.1), numbers, in_units="epsilon"),
        Case("poisson", Poisson(), counts),
        Case("gamma", Gamma(), sizes, problems=4),
        Case("tweedie", Tweedie(1.7), claims, problems=4),
        Case("log_loss", LogLoss(), signs),
        Case("hinge", Hinge(), signs),
        Case("squared_hinge", SquaredHinge(), signs),
        Case("multinomial", Multinomial(), marks, 3),
        Case("log_loss one-vs-rest", LogLoss(), one_vs_rest, 3),
        Case("hinge one-vs-rest", Hinge(), one_vs_rest, 3),
        Case("squared_hinge one-vs-rest", SquaredHinge(), one_vs_rest, 3),
    )
}


JOINT = {"cox": Case("cox", Cox(), ranks)}
"""Losses in which rows interact, so that nothing can be said of a single row."""


def some_cases(wanted):
    """Run a test with the cases for which ``wanted`` holds."""
    chosen = {name: case for name, case in CASES.items() if wanted(case)}
    return pytest.mark.parametrize("case", chosen.values(), ids=list(chosen))


every_case = some_cases(lambda case: True)

every_loss = pytest.mark.parametrize(
    "case", [*CASES.values(), *JOINT.values()], ids=[*CASES, *JOINT]
)
