"""The default settings of HKLRegressorCV and HKLClassifierCV beside others, one change at a time.

The data are none of those the defaults were chosen on: they are generated, or come with
scikit-learn. Protocol: the latter are split in halves by ``default_rng(seed).permutation(n)``;
the former are drawn anew for each seed, with 2,000 rows for the test. Error = 100 * mean squared
error / variance of y, or the percentage of wrong labels. Generated targets have noise of 7 % of
their variance unless said otherwise, so that no method can be expected below 7. Boosting (with
scikit-learn's defaults) and a linear model are shown for orientation.

All fits without a proof, which does not change the predictions, and with one thread.

Tables: mean errors; for each setting the geometric mean over the data of its mean error over that
of the defaults (half a row is added to the wrong labels, which may be none), also of the log loss
of the classifiers, and of the times; then where the defaults are behind by more than 10 % and by
more than two standard errors of the paired differences (of few splits: a hint, not a test); what
the defaults chose; and which warnings were raised.

Results are kept in a file of one line each (``--results``) and not computed again: a run that was
stopped goes on where it was. ``--report`` prints the tables alone. The file does not know of
changes of the code: name another one after them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import read, run_missing
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from hikernel import HKLClassifierCV, HKLRegressorCV

DEFAULT = "default"
COLUMNS = ["data", "seed", "method", "seconds", "error", "half_a_row", "log_loss", "terms", "refit"]
COLUMNS += ["alpha", "alphas", "bases", "warnings", "failure"]
"""What a result may hold; labels, peers and failures have some of it."""
SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "orthonormal": {"basis": "orthonormal"},
    "asinh": {"basis": "asinh"},
    "rank": {"basis": "rank"},
    "spline": {"basis": "spline"},
    "degree 3": {"degree": 3},
    "degree 6": {"degree": 6},
    "base 1.5": {"weight_base": 1.5},
    "base 3": {"weight_base": 3.0},
    "no refit": {"refit": None},
    "ridge": {"refit": "ridge"},
    "one_se": {"rule": "one_se"},
    "40 alphas": {"n_alphas": 40},
}
PEERS = ("boosting", "linear")
TEST_ROWS = 2000
NOISE = 0.07
"""Share of the noise in the variance of y."""
Table = tuple[np.ndarray, np.ndarray]


class Split(NamedTuple):
    """Training rows, and those of the test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def noisy(f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return f with noise of a share NOISE of the whole variance."""
    return f + rng.normal(scale=np.std(f) * np.sqrt(NOISE / (1.0 - NOISE)), size=f.shape)


def friedman(maker: Callable[..., Table]) -> Callable[[int, int], Table]:
    def draw(n: int, seed: int) -> Table:
        X, f = maker(n, random_state=seed)
        return X, noisy(f, np.random.default_rng(seed))

    return draw


def sparse_uncorrelated(n: int, seed: int) -> Table:
    return datasets.make_sparse_uncorrelated(n, random_state=seed)  # noise of 8 %


def linear(n: int, seed: int) -> Table:
    """Five of 30 columns matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    return X, noisy(X[:, :5] @ [2.0, -1.5, 1.0, 1.0, -0.5], rng)


def additive(n: int, seed: int) -> Table:
    """A step, a full period of a sine and a line; ten columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    return X, noisy(2.0 * (X[:, 0] > 0.6) + np.sin(2.0 * np.pi * X[:, 1]) + X[:, 2], rng)


def lognormal_values(n: int, seed: int) -> Table:
    """A product of two skewed columns as they are, and a line."""
    rng = np.random.default_rng(seed)
    X = np.exp(0.7 * rng.normal(size=(n, 8)))
    return X, noisy(X[:, 0] * X[:, 1] + X[:, 2], rng)


def lognormal_logs(n: int, seed: int) -> Table:
    """A product of the logarithms of two skewed columns, and another logarithm."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 8))
    return np.exp(Z), noisy(Z[:, 0] * Z[:, 1] + Z[:, 2], rng)


def heavy_tails(n: int, seed: int) -> Table:
    """Columns of Student's t(3); outliers in y of the training rows alone, 3 % of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3.0, size=(n, 8))
    f = X[:, 0] + 2.0 * np.tanh(X[:, 1]) + X[:, 2] * np.tanh(X[:, 3])
    y = noisy(f, rng)
    out = rng.uniform(size=n) < 0.03
    out[n - TEST_ROWS :] = False
    y[out] += 5.0 * np.std(f) * rng.standard_normal(np.count_nonzero(out))
    return X, y


def counts(n: int, seed: int) -> Table:
    """Twenty columns of counts, 95 % of them zero, and two dense columns."""
    rng = np.random.default_rng(seed)
    C = np.where(rng.uniform(size=(n, 20)) < 0.05, rng.geometric(0.3, size=(n, 20)), 0)
    Z = rng.normal(size=(n, 2))
    f = np.log1p(C[:, :6]) @ [2.0, 2.0, -2.0, 1.0, 1.0, -1.0] + Z[:, 0] * (C[:, 6] > 0) + Z[:, 1]
    return np.column_stack([C, Z]), noisy(f, rng)


def small(n: int, seed: int) -> Table:
    """Few rows: a line, a square and a product; ten columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    return X, noisy(X[:, 0] + 0.5 * X[:, 1] ** 2 + X[:, 2] * X[:, 3], rng)


def tree(n: int, seed: int) -> Table:
    """Constant on the six leaves of a tree; eight columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 8))
    left = np.where(X[:, 1] < 0.3, 0.0, np.where(X[:, 2] < 0.6, 2.0, 5.0))
    right = np.where(X[:, 3] < 0.5, np.where(X[:, 1] < 0.7, 3.0, -1.0), 1.0)
    return X, noisy(np.where(X[:, 0] < 0.5, left, right), rng)


def moons(n: int, seed: int) -> Table:
    """Two moons and eight columns of noise."""
    X, y = datasets.make_moons(n, noise=0.25, random_state=seed)
    return np.column_stack([X, np.random.default_rng(seed).normal(size=(n, 8))]), y


def quantiles(n: int, seed: int) -> Table:
    """Inside or outside of a sphere in ten columns."""
    return datasets.make_gaussian_quantiles(
        n_samples=n, n_features=10, n_classes=2, random_state=seed
    )


def clusters(n: int, seed: int) -> Table:
    """Four informative of 20 columns, two clusters to a class."""
    return datasets.make_classification(
        n, n_features=20, n_informative=4, n_redundant=2, flip_y=0.02, random_state=seed
    )


GENERATED: dict[str, tuple[int, Callable[[int, int], Table]]] = {
    "friedman1": (1000, friedman(datasets.make_friedman1)),
    "friedman2": (1000, friedman(datasets.make_friedman2)),
    "friedman3": (1000, friedman(datasets.make_friedman3)),
    "sparse": (500, sparse_uncorrelated),
    "linear": (200, linear),
    "additive": (500, additive),
    "lognormal": (500, lognormal_values),
    "lognormal logs": (500, lognormal_logs),
    "heavy tails": (500, heavy_tails),
    "counts": (1000, counts),
    "small": (60, small),
    "tree": (500, tree),
    "moons": (500, moons),
    "quantiles": (500, quantiles),
    "clusters": (500, clusters),
}
"""Training rows and generator."""
SHIPPED: dict[str, Callable[..., Table]] = {
    "diabetes": datasets.load_diabetes,
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
}
LABELS = ("moons", "quantiles", "clusters", "breast cancer", "wine", "iris")
DATA = ["diabetes", *GENERATED, "breast cancer", "wine", "iris"]


def split(name: str, seed: int) -> Split:
    """Return the rows of one split."""
    if name in GENERATED:
        n, draw = GENERATED[name]
        X, y = draw(n + TEST_ROWS, seed)
        return Split(X[:n], y[:n], X[n:], y[n:])
    X, y = SHIPPED[name](return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[: len(y) // 2], rows[len(y) // 2 :]
    return Split(X[train], y[train], X[test], y[test])


def make(method: str, labels: bool, seed: int) -> Any:
    """Return an estimator."""
    if method == "boosting":
        cls = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
        return cls(random_state=seed)
    if method == "linear":
        ridge = RidgeCV(np.geomspace(1e-4, 1e5, 28))
        logistic = LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000)
        return make_pipeline(StandardScaler(), logistic if labels else ridge)
    return (HKLClassifierCV if labels else HKLRegressorCV)(certify="none", **SETTINGS[method])


def one_fit(name: str, seed: int, method: str) -> dict[str, Any]:
    """Return error and time of one method on one split; a failure is a result too."""
    labels = name in LABELS
    data = split(name, seed)
    model = make(method, labels, seed)
    out: dict[str, Any] = {"data": name, "seed": seed, "method": method}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            model.fit(data.X, data.y)
        except Exception as failure:
            return out | {"failure": f"{type(failure).__name__}: {failure}"}
        out["seconds"] = time.perf_counter() - start
        f = model.predict(data.X_test)
        if labels:
            out["error"] = 100.0 * float(np.mean(f != data.y_test))
            out["half_a_row"] = 50.0 / len(f)
            out["log_loss"] = float(log_loss(data.y_test, model.predict_proba(data.X_test)))
        else:
            wrong = float(np.mean((f - data.y_test) ** 2))
            out["error"] = 100.0 * wrong / float(np.var(data.y_test))
    if method in SETTINGS:
        point = model.path_.at(model.alpha_)
        out |= {
            "terms": point.model.n_terms,
            "refit": model.refit_ or "none",
            "alpha": 1 + int(np.argmin(np.abs(model.path_.alphas - model.alpha_))),
            "alphas": len(model.path_),
            "bases": dict(Counter(model.bases_["basis"])),
            "warnings": dict(Counter(f"{w.category.__name__}: {w.message}" for w in caught)),
        }
    return out


def describe(row: dict[str, Any]) -> str:
    """Return a result, or why there is none, in a few words."""
    return str(row.get("failure") or f"{row['error']:7.2f} {row['seconds']:6.1f} s")


def print_table(title: str, table: pd.DataFrame, digits: int) -> None:
    """Print a table of numbers, a dash where there is none."""
    print(f"\n{title}\n{'':>14} " + " ".join(f"{column:>11}" for column in table.columns))
    for name, row in table.iterrows():
        cells = ["-" if np.isnan(value) else f"{value:.{digits}f}" for value in row]
        print(f"{name:>14} " + " ".join(f"{cell:>11}" for cell in cells))


def ratios(rows: pd.DataFrame, value: str, methods: list[str]) -> pd.Series:
    """Return geometric means over the data of the mean value over that of the defaults."""
    if rows.empty:
        return pd.Series(np.nan, index=methods)
    table = rows.pivot(index=["data", "seed"], columns="method", values=value)
    out = {}
    for method in methods:
        both = table[[DEFAULT]].assign(other=table.get(method, np.nan)).dropna()
        means = both.groupby("data").mean()
        out[method] = float(np.exp(np.mean(np.log(means["other"] / means[DEFAULT]))))
    return pd.Series(out)


def report(args: argparse.Namespace) -> None:
    """Print the tables."""
    rows = pd.DataFrame(read(args.results), columns=COLUMNS)
    rows = rows[rows["data"].isin(args.datasets) & rows["seed"].isin(args.seeds)]
    methods = [m for m in (*SETTINGS, *PEERS) if m in set(rows["method"]) & set(args.methods)]
    rows = rows.assign(positive=rows["error"] + rows["half_a_row"].fillna(0.0))
    errors = rows.pivot_table(index="data", columns="method", values="error")
    names = [name for name in args.datasets if name in errors.index]
    print_table("error, mean over the splits", errors.reindex(names, columns=methods), 2)
    labels = rows["data"].isin(LABELS)
    summary = {
        "error, numbers": ratios(rows[~labels], "positive", methods),
        "error, labels": ratios(rows[labels], "positive", methods),
        "error, all": ratios(rows, "positive", methods),
        "log loss": ratios(rows[labels], "log_loss", methods),
        "seconds": ratios(rows, "seconds", methods),
    }
    print_table("over the defaults, geometric means", pd.DataFrame(summary).T, 3)
    print("\nthe defaults are behind")
    for name in names:
        part = rows[rows["data"] == name]
        table = part.pivot(index="seed", columns="method", values="positive")
        table = table.reindex(columns=methods)
        for method in methods:
            differences = (table[DEFAULT] - table[method]).dropna()
            mean = differences.mean()
            error = differences.std() / np.sqrt(max(len(differences), 1))
            if mean > 0.1 * table[DEFAULT].mean() and mean > 2.0 * error:
                print(f"{name:>14} {method:>11} by {mean:.2f} +- {error:.2f}")
    print("\nwhat the defaults chose: terms, place of alpha, refits, bases")
    for name in names:
        part = rows[(rows["data"] == name) & (rows["method"] == DEFAULT)]
        refits = ", ".join(f"{k} {v}" for k, v in Counter(part["refit"]).items())
        pairs = zip(part["alpha"], part["alphas"], strict=True)
        places = ", ".join(f"{a:.0f}/{b:.0f}" for a, b in pairs)
        bases: Counter[str] = sum((Counter(found) for found in part["bases"]), Counter())
        used = ", ".join(f"{k} {v / len(part):.1f}" for k, v in bases.items())
        print(f"{name:>14} {part['terms'].mean():6.1f}  {places}; {refits}; {used}")
    print("\nwarnings and failures")
    heard: Counter[str] = Counter()
    for found in rows["warnings"].dropna():
        heard.update(found)
    for message, times in heard.most_common():
        print(f"{times:6} x {message}")
    for i, message in rows["failure"].dropna().items():
        print(f"{rows['data'][i]:>14} {rows['seed'][i]} {rows['method'][i]:>11} {message}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    methods = [*SETTINGS, *PEERS]
    parser.add_argument("--datasets", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--methods", nargs="+", default=methods, choices=methods)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--results", type=FilePath, default=FilePath("build/defaults.jsonl"))
    parser.add_argument("--report", action="store_true", help="print what is in the file")
    args = parser.parse_args()
    if DEFAULT not in args.methods:
        args.methods = [DEFAULT, *args.methods]
    if not args.report:
        run_missing(args, one_fit, describe)
    report(args)


if __name__ == "__main__":
    main()
