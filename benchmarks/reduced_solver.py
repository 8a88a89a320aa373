"""Speed of the reduced solver, as ratios in one run.

At R = 100, 300 and 1000 columns (one per node, hulls grown at random in a grid of 20 variables):
the time of a cold solve to relative gap 1e-6 over that of one ``scipy.linalg.eigh`` of the same
size, and the time of a solve warm started from the neighbouring lambda (factor 0.7) over the
cold one. Medians over repetitions. Ends with an error if a ratio of the sums over all problems of a
size misses its target, 30 and 0.5.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import eigh

from hikernel.bases import OrthonormalPolynomial
from hikernel.columns import ColumnGrid
from hikernel.graphs import ROOT, Grid
from hikernel.losses import SquaredError
from hikernel.reduced import ReducedProblem
from hikernel.reduced.forms import PrimalForm

TOL = 1e-6
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4)
COLD_TARGET, WARM_TARGET = 30.0, 0.5


def random_hull(grid: Grid, size: int, rng: np.random.Generator) -> list:
    """Grow a hull by adding random sources of its complement."""
    hull, sources = [ROOT], grid.sources_of_complement([ROOT])
    while len(hull) < size:
        node = sources.pop(int(rng.integers(len(sources))))
        hull.append(node)
        inside = set(hull)
        known = set(sources)
        sources += [
            child
            for child in grid.children(node)
            if child not in known and all(parent in inside for parent in grid.parents(child))
        ]
    return hull


def make_problem(size: int, seed: int) -> ReducedProblem:
    """A problem with eight true terms in a hull of ``size`` nodes, 2000 rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 20)) + 0.3 * rng.standard_normal((2000, 1))
    weights = np.ones(len(X))
    columns = ColumnGrid(basis=OrthonormalPolynomial(4))
    rows = columns.read(X)
    design = columns.fit(rows, weights)
    grid, engine = design.graph, design.engine(design.training_rows(rows), weights)
    hull = random_hull(grid, size, rng)
    coef = np.zeros(size)
    coef[rng.choice(size, 8, replace=False)] = rng.standard_normal(8)
    y = engine.apply(hull, coef)
    y = y / y.std() + 0.5 * rng.standard_normal(len(y))
    return ReducedProblem(engine, grid, y / y.std(), hull, SquaredError())


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measure(problem: ReducedProblem, lam: float, repeats: int) -> tuple[float, float, str]:
    """Time of a cold and of a warm solve, and their Newton steps."""
    start = problem.solve(lam / 0.7, tol=TOL).warm_start
    cold = partial(problem.solve, lam, tol=TOL)
    warm = partial(problem.solve, lam, tol=TOL, warm=start)
    times = seconds(cold, repeats), seconds(warm, repeats)
    first, second = cold(), warm()
    if not (first.status.ok and second.status.ok):
        raise RuntimeError("a solve did not converge")
    return *times, f"{first.n_iter}/{second.n_iter}"


def main() -> None:
    """Print one line per size and lambda, and the ratio of the sums per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'R':>5} {'lambda':>8} {'cold/eigh':>10} {'warm/cold':>10} {'steps':>9}")
    missed = []
    for size in arguments.sizes:
        repeats = 7 if size <= 300 else 2
        totals = np.zeros(3)
        for seed in range(arguments.seeds):
            problem = make_problem(size, seed)
            form = problem.squared_form()
            assert isinstance(form, PrimalForm)
            base = seconds(partial(eigh, form.gram), max(3, repeats))
            for lam in LAMBDAS:
                cold, warm, steps = measure(problem, lam, repeats)
                totals += [base, cold, warm]
                print(f"{size:5d} {lam:8.0e} {cold / base:10.1f} {warm / cold:10.2f} {steps:>9}")
        _, cold, warm = totals
        print(f"{size:5d} {'all':>8} {cold / totals[0]:10.1f} {warm / cold:10.2f}\n")
        if cold > COLD_TARGET * totals[0] or warm > WARM_TARGET * cold:
            missed.append(size)
    if missed:
        sys.exit(f"Targets missed at R = {missed}.")


if __name__ == "__main__":
    main()
