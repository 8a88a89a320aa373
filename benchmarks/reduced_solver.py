"""Speed of the reduced solver, as ratios in one run.

At R = 100, 300 and 1000 columns (one per node, hulls grown at random in a grid of 20 variables):
the time of a cold solve to relative gap 1e-6 over that of one ``scipy.linalg.eigh`` of the same
size, and the time of a solve warm started from the neighbouring lambda (factor 0.7) over the
cold one. Medians over repetitions; the targets are 30 and 0.5.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.linalg import eigh

from hikernel.bases import OrthonormalPolynomial
from hikernel.bases.design import Design
from hikernel.graphs import ROOT, Grid, geometric_weights
from hikernel.reduced import ReducedProblem

TOL = 1e-6
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4)


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
    design = Design.fit(X, [OrthonormalPolynomial(4)] * 20, weights)
    grid = Grid(geometric_weights(design.max_levels, 2.0))
    engine = design.engine(X, weights)
    hull = random_hull(grid, size, rng)
    coef = np.zeros(size)
    coef[rng.choice(size, 8, replace=False)] = rng.standard_normal(8)
    y = engine.apply(hull, coef)
    y = y / y.std() + 0.5 * rng.standard_normal(len(y))
    return ReducedProblem(engine, grid, y / y.std(), hull)


def seconds(work, repeats: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Print one line per size and lambda."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'R':>5} {'lambda':>8} {'cold/eigh':>10} {'warm/cold':>10} {'steps':>9}")
    for size in arguments.sizes:
        repeats = 5 if size <= 300 else 1
        totals = np.zeros(3)
        for seed in range(arguments.seeds):
            problem = make_problem(size, seed)
            gram = problem.form().gram  # type: ignore[attr-defined]
            problem.solve(0.1, tol=TOL)
            base = seconds(lambda: eigh(gram), max(3, repeats))  # noqa: B023
            for alpha in LAMBDAS:
                before = problem.solve(alpha / 0.7, tol=TOL)
                solutions = {}

                def cold():
                    solutions["cold"] = problem.solve(alpha, tol=TOL)  # noqa: B023

                def warm():
                    solutions["warm"] = problem.solve(  # noqa: B023
                        alpha,  # noqa: B023
                        tol=TOL,
                        warm_eta=before.eta,  # noqa: B023
                    )

                cold_time, warm_time = seconds(cold, repeats), seconds(warm, repeats)
                assert solutions["cold"].status.ok
                assert solutions["warm"].status.ok
                totals += [base, cold_time, warm_time]
                steps = f"{solutions['cold'].n_iter}/{solutions['warm'].n_iter}"
                print(
                    f"{size:5d} {alpha:8.0e} {cold_time / base:10.1f} "
                    f"{warm_time / cold_time:10.2f} {steps:>9}"
                )
        print(
            f"{size:5d} {'all':>8} {totals[1] / totals[0]:10.1f} {totals[2] / totals[1]:10.2f}\n"
        )


if __name__ == "__main__":
    main()
