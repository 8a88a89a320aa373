"""Coverage of error bars on generated data: how often f lies within 1.96 standard deviations.

f = x0 + sin(3 x1) + 2 x1 x2 on (-1, 1)^6, 300 rows, normal noise of standard deviation 0.5, 2,000
new rows from the same distribution. The share of new rows whose f lies within mean +- 1.96 std
would be 0.95 on average over rows and data sets if the terms were known. Error bars take
the selected terms as given. The first row has all terms of the three right variables up to degree
4, with nothing to select; the last rows the bootstrap, which selects again, and the bars that the
convex problem would have without a refit, with its penalty lambda / zeta as a prior.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hikernel import HKLRegressor, HKLRegressorCV, bootstrap
from hikernel.selection import Fitted, TrainingProblem
from hikernel.selection.posterior import posterior_of

NOISE, ROWS, NEW, WIDTH = 0.5, 300, 2_000, 1.96


def truth(X: np.ndarray) -> np.ndarray:
    """Return f at rows."""
    return X[:, 0] + np.sin(3.0 * X[:, 1]) + 2.0 * X[:, 1] * X[:, 2]


def without_refit(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions of the convex problem, and bars from its own penalty."""
    model = HKLRegressor(certify="none").fit(X, y)
    source = model._source(X)
    problem = TrainingProblem.make(source, source.read(X), y, np.ones(len(y)), model.loss_)
    zeta = np.repeat(model._model.zeta, model._model.widths)
    fitted = Fitted(
        model._model,
        model._model,
        problem.design,
        refit="ridge",
        mu=model.alpha_,
        scales=np.sqrt(zeta),
    )
    posterior = posterior_of(problem, fitted)
    assert posterior is not None
    return model.predict(new), posterior.std(model._model, model._design, new, len(new))


def resampled(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and the standard deviations of 25 bootstrap samples."""
    model = HKLRegressor(certify="none", refit="ridge")
    return model.fit(X, y).predict(new), bootstrap(model, X, y, n_bootstraps=25).std(new)


def all_terms(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    """Return predictions and error bars of all terms of the right variables, unpenalised."""
    model = HKLRegressor(1e-7, certify="none", refit="unpenalised", max_order=2)
    return model.fit(X[:, :3], y).predict(new[:, :3], return_std=True)


def refitted(model: Any) -> Any:
    """Return a function that fits a model and gives its error bars."""
    return lambda X, y, new: model.fit(X, y).predict(new, return_std=True)


METHODS: dict[str, Any] = {
    "all terms of the right variables": all_terms,
    'HKLRegressor(refit="unpenalised")': refitted(
        HKLRegressor(certify="none", refit="unpenalised")
    ),
    'HKLRegressor(refit="ridge")': refitted(HKLRegressor(certify="none", refit="ridge")),
    'HKLRegressor(refit="sparse")': refitted(HKLRegressor(certify="none", refit="sparse")),
    'HKLRegressor(refit="variables")': refitted(HKLRegressor(certify="none", refit="variables")),
    'HKLRegressorCV(refit="ridge")': refitted(HKLRegressorCV(certify="none", refit="ridge")),
    "bootstrap of 25": resampled,
    "no refit, prior of zeta": without_refit,
}


def main() -> int:
    """Print the table; end with an error if the bars cover less than they did when measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="number of data sets")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    args = parser.parse_args()
    print("| model | coverage | mean std | mean error |\n| --- | --- | --- | --- |")
    met = True
    for name in args.methods:
        method = METHODS[name]
        found = []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            X, new = rng.uniform(-1, 1, (ROWS, 6)), rng.uniform(-1, 1, (NEW, 6))
            y = truth(X) + NOISE * rng.standard_normal(ROWS)
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                mean, std = method(X, y, new)
            error = np.abs(mean - truth(new))
            found.append([np.mean(error <= WIDTH * std), np.mean(std), np.mean(error)])
        cells = np.mean(found, axis=0)
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)
        least = 0.93 if method is all_terms else 0.8 if "Regressor" in name else 0.0
        met &= bool(cells[0] >= least)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
