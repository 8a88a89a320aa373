"""Coverage and size of conformal intervals and sets on the eight real tables.

Protocol of ``tables.py``: ``train_test_split(test_size=1/3, random_state=seed)``, stratified for
classes, seeds 17, 18 and 19; of diamonds 6,000 rows drawn with the same seed. Level 0.9. The
models are HKLRegressor and HKLClassifier with ``max_order=2, certify="none"``, which choose alpha
along one path, the regressor with ``refit="ridge"``.

- "split": fitted to three quarters of the training rows, calibrated on the others.
- "cross": fitted to all training rows, calibrated on them by five folds.
- "training": the same model with the quantile of its errors on the rows it was fitted to, which
  is what calibration is there to replace.

A line has the coverage of the test rows and the mean size: half the width of the intervals over the
standard deviation of y, or the number of classes in a set. With ``scaled``, intervals are relative
to the standard deviation that the model expects of y at each row.

Results are kept in a file of one line each (``--results``) and not computed again. ``--report``
prints the table alone. Ends with an error if a coverage is off by more than the binomial error of
its calibration and test rows explains (split), or by more than 0.03 (cross).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pandas as pd
from common import read, run_missing
from problems import TABLES, default_tables, load_table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from hikernel import HKLClassifier, HKLRegressor

LEVEL = 0.9
MOST_ROWS = 6_000
SETTINGS: dict[str, Any] = {"max_order": 2, "certify": "none"}
METHODS = ("split", "cross")
CROSS_ERROR = 0.03


def one_fit(folder: FilePath, name: str, seed: int, method: str) -> dict[str, Any]:
    """Return coverage and size of one method on one split."""
    X, y, classes = load_table(folder, name)
    if len(X) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, random_state=seed)
    split = partial(train_test_split, random_state=seed)
    labels = (lambda y: y) if classes else (lambda y: None)
    train_X, test_X, train_y, test_y = split(X, y, test_size=1 / 3, stratify=labels(y))
    model = HKLClassifier(**SETTINGS) if classes else HKLRegressor(**SETTINGS, refit="ridge")
    out: dict[str, Any] = {"data": name, "seed": seed, "method": method, "classes": classes}
    out |= {"tested": len(test_y)}
    start = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        if method == "split":
            train_X, X_cal, train_y, y_cal = split(
                train_X, train_y, test_size=1 / 4, stratify=labels(train_y)
            )
            model.fit(train_X, train_y)
            calibrate: Any = partial(model.calibrate, X_cal, y_cal)
        else:
            model.fit(train_X, train_y)
            calibrate = partial(model.calibrate, train_X, train_y, cv=5)
        out["fit_seconds"] = time.perf_counter() - start
        calibrate()
        out["calibrated"] = len(model._calibration.scores)
        out |= measured(model, test_X, test_y, "")
        if not classes:
            calibrate(scaled=True)
            out |= measured(model, test_X, test_y, "scaled_")
        model.calibrate(train_X, train_y)
        out |= measured(model, test_X, test_y, "training_")
    return out | {"seconds": time.perf_counter() - start, "terms": len(model.terms_)}


def measured(model: Any, X: pd.DataFrame, y: pd.Series, prefix: str) -> dict[str, float]:
    """Return coverage and mean size on test rows."""
    if hasattr(model, "classes_"):
        sets = model.predict_set(X, LEVEL)
        covered = sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        size = np.mean(np.sum(sets, axis=1))
    else:
        low, high = model.predict_interval(X, LEVEL).T
        covered = (low <= y) & (y <= high)
        size = np.mean(high - low) / 2.0 / np.std(y)
    return {f"{prefix}coverage": float(np.mean(covered)), f"{prefix}size": float(size)}


def describe(row: dict[str, Any]) -> str:
    """Return a result in a few words."""
    return f"{row['coverage']:.3f} {row['size']:.3f} {row['seconds']:6.1f} s, {row['terms']} terms"


def report(args: argparse.Namespace) -> bool:
    """Print the table, and return whether the coverages are as they should be."""
    rows = pd.DataFrame(read(args.results))
    rows = rows[rows["seed"].isin(args.seeds)]
    columns = ["split", "scaled", "cross", "scaled", "training errors"]
    print("| table | " + " | ".join(f"{name}: coverage, size" for name in columns) + " |")
    print("|" + " --- |" * (len(columns) + 1))
    met = True
    for name in [name for name in args.datasets if name in set(rows["data"])]:
        cells = []
        for method in METHODS:
            part = rows[(rows["data"] == name) & (rows["method"] == method)]
            mean = part.mean(numeric_only=True)
            cells += [shown(mean, ""), shown(mean, "scaled_")]
            off = abs(mean["coverage"] - LEVEL)
            variance = LEVEL * (1 - LEVEL) * (1 / part["tested"] + 1 / part["calibrated"])
            allowed = 3.0 * np.sqrt(np.sum(variance)) / len(part)
            met &= bool(off <= (allowed if method == "split" else CROSS_ERROR))
        cells.append(shown(mean, "training_"))
        print(f"| {name} | " + " | ".join(cells) + " |")
    return met


def shown(mean: pd.Series, prefix: str) -> str:
    """Return coverage and size as a cell of the table."""
    if f"{prefix}coverage" not in mean or np.isnan(mean[f"{prefix}coverage"]):
        return ""
    return f"{mean[f'{prefix}coverage']:.3f}, {mean[f'{prefix}size']:.2f}"


def main() -> int:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=FilePath, default=default_tables(), help="the tables")
    parser.add_argument("--datasets", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[17, 18, 19])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--results", type=FilePath, default=FilePath("build/coverage.jsonl"))
    parser.add_argument("--report", action="store_true", help="print the table alone")
    args = parser.parse_args()
    if not args.report:
        run_missing(args, partial(one_fit, args.data), describe)
    return 0 if report(args) else 1


if __name__ == "__main__":
    sys.exit(main())
