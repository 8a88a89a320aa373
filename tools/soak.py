"""Fit models of every kind again and again, and see whether anything grows.

Each fit is followed by what users do with a model: predict, explain, save, load, write a page. The
resident memory (after the garbage collector and ``malloc_trim``), the open files and the threads
are noted every 25 fits. Memory grows if the median of all slopes between two notes (Theil and Sen)
is above 4 kB per fit, without the first fifth, in which caches fill and the heap finds its size.
Files and threads grow if the last note has more of them than the first after that fifth.

``python tools/soak.py --fits 500``; ``make soak`` does that. Ends with 1 if something grows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    HKLSurvival,
    hkl_path,
    load,
)

LIMIT_KB = 4.0
"""Growth of resident memory per fit, in kB, that counts as a leak."""
N_ROWS = 80

Work = Callable[[np.random.Generator, Path], Any]


# -- what is done --------------------------------------------------------------------------------


def table(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a frame with numbers, categories and missing values, and a target."""
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (N_ROWS, 3)), columns=["low", "high", "width"])
    y = X["low"] + X["high"] * X["width"] + 0.1 * rng.standard_normal(N_ROWS)
    X["kind"] = rng.choice(["oak", "elm", "ash"], N_ROWS)
    X.loc[::9, "low"] = np.nan
    return X, y.fillna(0.0).to_numpy()


def use(model: Any, X: pd.DataFrame, folder: Path) -> None:
    """Do with a fitted model what users do."""
    model.predict(X)
    model.effects(X)
    model.save(folder / "model.hik")
    again = load(folder / "model.hik")
    again.predict(X)
    again.report(folder / "page.html")
    again.export(folder / "model.json")
    str(again)
    again.formula()
    again.explain(X.iloc[[0]])


def regression(rng: np.random.Generator, folder: Path) -> None:
    """One alpha, given."""
    X, y = table(rng)
    use(HKLRegressor(0.01, max_order=2).fit(X, y), X, folder)


def automatic(rng: np.random.Generator, folder: Path) -> None:
    """The alpha chosen on the training rows, with steps."""
    X, y = table(rng)
    use(HKLRegressor(basis="auto+steps", max_order=1).fit(X, y), X, folder)


def classes(rng: np.random.Generator, folder: Path) -> None:
    """Three classes."""
    X, y = table(rng)
    model = HKLClassifier(0.01, max_order=2).fit(X, np.digitize(y, [-0.3, 0.3]))
    model.predict_proba(X)
    use(model, X, folder)


def folds(rng: np.random.Generator, folder: Path) -> None:
    """Cross-validation."""
    X, y = table(rng)
    use(HKLRegressorCV(cv=2, n_alphas=4, max_order=1, basis="polynomial").fit(X, y), X, folder)


def class_folds(rng: np.random.Generator, folder: Path) -> None:
    """Cross-validation of two classes."""
    X, y = table(rng)
    model = HKLClassifierCV(cv=2, n_alphas=4, max_order=1, basis="polynomial")
    use(model.fit(X, y > np.median(y)), X, folder)


def survival(rng: np.random.Generator, folder: Path) -> None:
    """Censored times."""
    X, y = table(rng)
    times = pd.DataFrame({"event": rng.random(N_ROWS) < 0.7, "time": np.exp(-y)})
    model = HKLSurvival(0.01, max_order=1).fit(X, times.to_records(index=False))
    model.predict_survival_function(X)
    model.save(folder / "model.hik")
    load(folder / "model.hik").predict(X)


def path(rng: np.random.Generator, folder: Path) -> None:
    """A path of alphas."""
    X, y = table(rng)
    hkl_path(X, y, n_alphas=4, max_order=2).table()


def failed(rng: np.random.Generator, folder: Path) -> None:
    """A fit that ends in an error."""
    X, y = table(rng)
    try:
        HKLRegressor(0.01, loss="poisson").fit(X, y - 10.0)
    except ValueError:
        return
    raise AssertionError("a negative count was accepted")


KINDS: list[Work] = [
    *(regression, automatic, classes, folds),
    *(class_folds, survival, path, failed),
]


# -- what is measured ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Note:
    """What the process holds after some fits."""

    fits: int
    kilobytes: float
    files: int
    threads: int

    def __str__(self) -> str:
        return (
            f"{self.fits:5d} fits: {self.kilobytes / 1024:8.2f} MB, {self.files} open files, "
            f"{self.threads} threads"
        )


def note(fits: int) -> Note:
    """Look at this process, after what can be freed is freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    return Note(
        fits,
        resident * os.sysconf("SC_PAGE_SIZE") / 1024,
        len(os.listdir("/proc/self/fd")),
        max(threading.active_count(), len(os.listdir("/proc/self/task"))),
    )


def growth(notes: Sequence[Note]) -> float:
    """Return the median slope of the memory between two notes, in kB per fit."""
    pairs = combinations(notes, 2)
    return median((b.kilobytes - a.kilobytes) / (b.fits - a.fits) for a, b in pairs)


def verdict(notes: Sequence[Note]) -> list[str]:
    """Return what grows, in words; the rule is that of the module's docstring."""
    late = [one for one in notes if one.fits >= 0.2 * notes[-1].fits]
    found = []
    if growth(late) > LIMIT_KB:
        found.append(f"memory grows by {growth(late):.1f} kB per fit")
    for name in ("files", "threads"):
        first, last = getattr(late[0], name), getattr(late[-1], name)
        if last > first:
            found.append(f"{name} grow from {first} to {last}")
    return found


def soak(
    fits: int, every: int, works: Sequence[Work], say: Callable[[object], None]
) -> Sequence[Note]:
    """Do the works by turns, so many fits in all, and return the notes."""
    notes = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(1, fits + 1):
            # The same few tables again and again: what differs is not the size of the data.
            rng = np.random.default_rng(number // len(works) % 3)
            works[number % len(works)](rng, Path(folder))
            if number % every == 0:
                notes.append(note(number))
                say(notes[-1])
    return notes


def main() -> int:
    """Run; return 1 if something grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=500)
    parser.add_argument("--every", type=int, default=25, help="fits between two notes")
    given = parser.parse_args()
    if given.fits < 3 * given.every:
        parser.error(
            f"{given.fits} fits are too few to see growth; do at least {3 * given.every}, or look "
            "more often with --every."
        )
    began = time.monotonic()
    notes = soak(given.fits, given.every, KINDS, lambda one: print(one, flush=True))
    found = verdict(notes)
    late = [one for one in notes if one.fits >= 0.2 * given.fits]
    print(f"{growth(late):.2f} kB per fit after the first fifth, {time.monotonic() - began:.0f} s")
    print("; ".join(found) or "nothing grows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
