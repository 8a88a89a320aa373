"""Error rates on the classification data of the paper, and the speed of a logistic path.

Protocol of the paper's second table: 1,024 rows drawn by ``default_rng(seed).permutation``, the
first half for training, the second for the test, seeds 0 to 9. Alpha (20 of them) by 5-fold
cross-validation of the log loss within the training half; then, as one more choice of the same
cross-validation, the basis: orthonormal polynomials (the default), polynomials of the rank, and the
paper's product of bumps (Gaussian kernels without a constant level, three functions above it).
Word frequencies (spambase) get the ranks alone, since products of unbounded polynomials explode
there, and categories (mushrooms) a block of indicators per column.
"best alpha" is the error at the alpha
that is best on the test half, as in the paper. Targets: at or below the paper's HKL.

On ringnorm and twonorm the error of the best possible rule (known, the data are generated) on
the same test rows is shown: no method can be expected to be below it.

Speed (``--speed``): a 20-alpha path at n = 4096, p = 32 (pumadyn-32nh, y above its median or not)
with the log loss, over the same path with the squared error on y. Target: at most 5.

Ends with an error if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path as FilePath

import joblib
import numpy as np
import pandas as pd
from common import add_data_folder, data_file
from sklearn.model_selection import StratifiedKFold

from hikernel import hkl_path
from hikernel.bases import Gaussian

PAPER = {"mushrooms": 0.1, "ringnorm": 1.6, "spambase": 8.1, "twonorm": 3.2, "magic04": 15.6}
"""HKL in the paper's second table, the better of its two kernels."""
PAPER_L2 = {"mushrooms": 0.1, "ringnorm": 1.2, "spambase": 8.3, "twonorm": 2.8, "magic04": 15.7}
BUMPS = Gaussian(degree=3, b=0.1, remainder=False)
BASES = {
    "orthonormal": "orthonormal",
    "rank": "rank",
    "bumps": BUMPS,
    "categorical": "categorical",
}
NUMBERS = ("orthonormal", "rank", "bumps")
CANDIDATES = dict.fromkeys(PAPER, NUMBERS) | {
    "spambase": ("rank",),
    "mushrooms": ("categorical",),
}
N_ALPHAS = 20
SPEED_TARGET = 5.0


def load(folder: FilePath, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of numbers, or codes of categories, and labels 0 and 1."""
    frame = pd.read_csv(data_file(folder, name))
    labels = frame.pop("target").to_numpy()
    for column in frame.select_dtypes(exclude="number"):
        frame[column] = pd.factorize(frame[column], sort=True)[0]
    return frame.to_numpy(float), (labels == np.unique(labels)[1]).astype(int)


def best_rule(name: str, X: np.ndarray) -> np.ndarray | None:
    """Return the labels of the rule with the least error, where the distribution is known."""
    a = 2.0 / np.sqrt(20.0)
    if name == "twonorm":
        return (X.sum(axis=1) < 0.0).astype(int)
    if name == "ringnorm":
        odds = 20.0 * np.log(2.0) + (X**2).sum(axis=1) / 8.0 - ((X - a) ** 2).sum(axis=1) / 2.0
        return (odds > 0.0).astype(int)
    return None


def log_loss(f: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log loss of decision values for labels 0 and 1."""
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -f, f))))


def one_basis(X: np.ndarray, y: np.ndarray, basis: object, seed: int) -> tuple:
    """Return the path on the training half, the best alpha and its cross-validated loss."""
    path = hkl_path(X, y, loss="log_loss", basis=basis, n_alphas=N_ALPHAS)
    losses = np.zeros(len(path))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for fit, held in folds.split(X, y):
        part = hkl_path(X[fit], y[fit], loss="log_loss", basis=basis, alphas=path.alphas)
        for i in range(len(path)):
            # A fold whose path ended early keeps its last model.
            alpha = part.alphas[min(i, len(part) - 1)]
            losses[i] += log_loss(part.decision_function(X[held], alpha), y[held]) / 5
    best = int(np.argmin(losses))
    return path, best, float(losses[best])


def one_split(folder: FilePath, name: str, seed: int) -> list[dict]:
    """Return one row per basis, and one for the basis that cross-validation chose."""
    warnings.simplefilter("ignore")
    X, y = load(folder, name)
    rows = np.random.default_rng(seed).permutation(len(y))[:1024]
    train, test = rows[:512], rows[512:]
    out = []
    for label in CANDIDATES[name]:
        start = time.perf_counter()
        path, best, loss = one_basis(X[train], y[train], BASES[label], seed)
        errors = 100.0 * np.mean(path.predict(X[test]) != y[test][:, None], axis=0)
        out.append(
            {
                "data": name,
                "seed": seed,
                "basis": label,
                "error": errors[best],
                "best_alpha": errors.min(),
                "terms": path.points[best].model.n_terms,
                "loss": loss,
                "seconds": time.perf_counter() - start,
            }
        )
    chosen = min(out, key=lambda row: row["loss"])
    rule = best_rule(name, X[test])
    least = np.nan if rule is None else 100.0 * float(np.mean(rule != y[test]))
    return [*out, {**chosen, "basis": "chosen", "least": least, "picked": chosen["basis"]}]


def measure_errors(folder: FilePath, names: list[str], seeds: int, n_jobs: int) -> bool:
    """Print the table and return whether every target is met."""
    jobs = [(name, seed) for name in names for seed in range(seeds)]
    results = joblib.Parallel(n_jobs)(joblib.delayed(one_split)(folder, *job) for job in jobs)
    frame = pd.DataFrame([row for split in results for row in split])
    print(f"error rates in percent, mean and standard deviation over {seeds} splits")
    print(
        "     data       basis         error  best alpha  terms  seconds   paper HKL  L2  best rule"
    )
    met = True
    for name in names:
        for label in [*BASES, "chosen"]:
            part = frame[(frame["data"] == name) & (frame["basis"] == label)]
            if part.empty:
                continue
            mean = part["error"].mean()
            line = f"{name:>9} {label:>11} {mean:7.2f} +- {part['error'].std():4.2f} "
            line += f"{part['best_alpha'].mean():8.2f} {part['terms'].mean():8.1f} "
            line += f"{part['seconds'].mean():8.1f}"
            if label == "chosen":
                met &= mean <= PAPER[name] + 0.05  # the paper prints one digit
                least = part["least"].mean()
                line += f" {PAPER[name]:9.1f} {PAPER_L2[name]:5.1f}"
                line += "" if np.isnan(least) else f" {least:8.2f}"
                line += "   " + ", ".join(
                    f"{k} {v}" for k, v in part["picked"].value_counts().items()
                )
            print(line, flush=True)
    return met


def measure_speed(folder: FilePath) -> bool:
    """Print times of both losses and return whether the target is met."""
    frame = pd.read_csv(data_file(folder, "pumadyn-32nh"))
    y = frame.pop("target").to_numpy()
    rows = np.random.default_rng(0).permutation(len(y))[:4096]
    X, y = frame.to_numpy()[rows], y[rows]
    labels = (y > np.median(y)).astype(int)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        square = hkl_path(X, y, n_alphas=N_ALPHAS)
        middle = time.perf_counter()
        logistic = hkl_path(X, labels, loss="log_loss", n_alphas=N_ALPHAS)
        times.append((middle - start, time.perf_counter() - middle))
    first, second = np.min(times, axis=0)
    print(
        f"path of {N_ALPHAS} alphas at n = 4096, p = 32: squared error {first:.2f} s "
        f"({square.points[-1].model.n_terms} terms at last), log loss {second:.2f} s "
        f"({logistic.points[-1].model.n_terms}), ratio {second / first:.2f}"
    )
    return bool(second / first <= SPEED_TARGET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_folder(parser)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--speed", action="store_true", help="the speed of a path alone")
    args = parser.parse_args()
    if args.speed:
        met = measure_speed(args.data)
    else:
        met = measure_errors(args.data, args.datasets, args.seeds, args.n_jobs)
    if not met:
        sys.exit("A target is missed.")


if __name__ == "__main__":
    main()
