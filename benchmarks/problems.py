"""The problems of the comparison with peers, each split into rows to train and rows to test.

- "paper": the fifteen sets of the paper. Regression: ``default_rng(seed).permutation(n)``, the
  first half to train, the second to test. Classes: the first 512 rows of the permutation to
  train, all others to test.
- "tables": eight tables with mixed columns, ``train_test_split(test_size=1/3)``, stratified for
  classes; rows without target are dropped, text stays text.
- "generated": the truth is known. 1,000 rows to train and 2,000 to test, drawn anew for each seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pandas as pd
from common import data_file
from defaults import additive, friedman, tree
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from hikernel.datasets import make_polynomial

__all__ = ["GENERATED", "GROUPS", "PAPER_CLASSES", "PAPER_REGRESSION", "TABLES", "Problem"]
__all__ += ["default_tables", "halves", "load_paper", "load_table", "problem", "score", "table"]

PAPER_REGRESSION = (
    "abalone",
    "boston",
    "bank-32fh",
    "bank-32fm",
    "bank-32nh",
    "bank-32nm",
    "pumadyn-32fh",
    "pumadyn-32fm",
    "pumadyn-32nh",
    "pumadyn-32nm",
)
PAPER_CLASSES = ("mushrooms", "ringnorm", "spambase", "twonorm", "magic04")
CLASS_ROWS = 512
TABLES: dict[str, tuple[str, Any]] = {
    "ames": ("Sale_Price", np.log),
    "diamonds": ("price", np.log),
    "concrete": ("compressive_strength", None),
    "stackoverflow": ("Salary", None),
    "churn": ("churn", "classes"),
    "credit": ("Status", "classes"),
    "vehicle": ("Class", "classes"),
    "hpc": ("class", "classes"),
}
"""Name of the target, and its transformation or "classes"."""
TRAIN_ROWS, TEST_ROWS = 1000, 2000
NOISE = 0.3
"""Standard deviation of the noise of generated polynomials, of that of the signal."""

Terms = dict[tuple[tuple[int, int], ...], float]
Effects = list[frozenset[str]]


@dataclass
class Problem:
    """Rows to train and to test, and the true effects where they are known."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    classes: bool
    truth: Effects = field(default_factory=list)


def score(data: Problem, answer: np.ndarray) -> dict[str, float]:
    """Return the error on the test rows, and for classes the percentage of wrong labels."""
    if not data.classes:
        f = np.ravel(answer)
        return {"error": 100.0 * float(np.mean((f - data.y_test) ** 2) / np.var(data.y_test))}
    labels = np.unique(data.y)
    shares = np.clip(answer, 1e-12, 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    wrong = labels[np.argmax(answer, axis=1)] != data.y_test
    return {
        "error": 100.0 * float(log_loss(data.y_test, shares, labels=labels)),
        "wrong": 100.0 * float(np.mean(wrong)),
    }


def load_paper(folder: FilePath, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the target of a set of the paper."""
    frame = pd.read_csv(data_file(folder, name))
    return frame, frame.pop("target").to_numpy()


def default_tables() -> FilePath:
    """Return HIKERNEL_TABLES, or shared/tables beside the checkout."""
    beside = FilePath(__file__).resolve().parents[2] / "shared" / "tables"
    return FilePath(os.environ.get("HIKERNEL_TABLES") or beside)


def load_table(folder: FilePath, name: str) -> tuple[pd.DataFrame, pd.Series, bool]:
    """Return the columns, the target, and whether it holds classes."""
    target, kind = TABLES[name]
    frame = pd.read_csv(data_file(folder, name)).dropna(subset=[target])
    y = frame.pop(target)
    if callable(kind):
        y = kind(y)
    return frame, y, isinstance(kind, str)


def halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows for training and those for the test."""
    rows = np.random.default_rng(seed).permutation(n)
    return rows[: n // 2], rows[n // 2 :]


def paper(folder: FilePath, name: str, seed: int) -> Problem:
    """Return a split of a set of the paper."""
    X, y = load_paper(folder, name)
    if name in PAPER_CLASSES:
        rows = np.random.default_rng(seed).permutation(len(y))
        train, test = rows[:CLASS_ROWS], rows[CLASS_ROWS:]
    else:
        train, test = halves(len(y), seed)
    return Problem(X.iloc[train], y[train], X.iloc[test], y[test], name in PAPER_CLASSES)


def table(folder: FilePath, name: str, seed: int) -> Problem:
    """Return a split of a table."""
    X, y, classes = load_table(folder, name)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=1 / 3, random_state=seed, stratify=y if classes else None
    )
    return Problem(X, y.to_numpy(), X_test, y_test.to_numpy(), classes)


def polynomial(p: int, terms: Terms) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
    """Return a generator of rows of a sparse polynomial of correlated normal columns."""

    def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        data = make_polynomial(n, p, terms, noise=NOISE, seed=seed)
        return data.X, data.y

    return draw


LINES: Terms = {((0, 1),): 1.0, ((5, 1),): -1.0, ((10, 1),): 0.7, ((15, 1),): 0.5}
CURVES: Terms = {((0, 1),): 1.0, ((5, 2),): 0.7, ((10, 3),): 0.3, ((15, 2),): -0.7}
PAIRS: Terms = {((0, 1), (1, 1)): 1.0, ((5, 2), (10, 1)): 0.6, ((15, 1),): 1.0}
TRIPLE: Terms = {((0, 1), (5, 1), (10, 1)): 1.0, ((2, 1), (15, 1)): 1.0, ((7, 1),): 1.0}
WIDE: Terms = {((0, 1), (50, 1)): 1.0, ((100, 2),): 0.7, ((150, 1),): 1.0, ((199, 1),): 0.7}


def variables(terms: Terms) -> list[set[int]]:
    """Return the columns of each term."""
    return [{m for m, _ in term} for term in terms]


GENERATED: dict[str, tuple[Callable[[int, int], tuple[np.ndarray, np.ndarray]], list[set[int]]]] = {
    "lines": (polynomial(20, LINES), variables(LINES)),
    "curves": (polynomial(20, CURVES), variables(CURVES)),
    "pairs": (polynomial(20, PAIRS), variables(PAIRS)),
    "triple": (polynomial(20, TRIPLE), variables(TRIPLE)),
    "wide": (polynomial(200, WIDE), variables(WIDE)),
    "friedman1": (friedman(make_friedman1), [{0, 1}, {2}, {3}, {4}]),
    "jump": (additive, [{0}, {1}, {2}]),
    "tree": (tree, [{0, 1, 2}, {0, 1, 3}]),
}
"""Generator of rows, and the columns of each true effect."""


def generated(name: str, seed: int) -> Problem:
    """Return a problem with a known truth."""
    draw, truth = GENERATED[name]
    X, y = draw(TRAIN_ROWS + TEST_ROWS, seed)
    frame = pd.DataFrame(X, columns=[f"x{m}" for m in range(X.shape[1])])
    names = [frozenset(f"x{m}" for m in effect) for effect in truth]
    n = TRAIN_ROWS
    return Problem(frame.iloc[:n], y[:n], frame.iloc[n:], y[n:], False, names)


GROUPS: dict[str, tuple[str, ...]] = {
    "paper": PAPER_REGRESSION + PAPER_CLASSES,
    "tables": tuple(TABLES),
    "generated": tuple(GENERATED),
}


def problem(sets: FilePath, tables: FilePath, name: str, seed: int) -> Problem:
    """Return the problem of that name, which is in one of the three groups."""
    if name in TABLES:
        return table(tables, name, seed)
    if name in GENERATED:
        return generated(name, seed)
    return paper(sets, name, seed)
