"""Growth of the path without tail bounds in the rows and in the variables.

Generated data with a known sparse polynomial, noise half of the signal, 10 alphas.

Rows: n from 4,000 to 256,000, p = 20, alphas from 0.1 to 0.001; each n in a process of its own. The
exponents of time and of peak memory above the imports, by least squares in logarithms. Target:
exponent of time at most 1.15.

Variables: p from 10 to 2,000 at n = 1000, alphas from 0.3 to 0.01, ``max_order=2`` where
``hkl_path`` has it, and a truth of lower degree that can enter at these alphas. The growth is
reported, without target.

Both tables tell at how many alphas the hull is exactly that of the true terms. Where it is at none,
this is mostly a neighbour of two true variables, correlated with both, that enters before them.

Ends with an error if the target is missed.
"""

from __future__ import annotations

import argparse
import inspect
import json
import resource
import subprocess
import sys
import time

import numpy as np

from hikernel import hkl_path
from hikernel.datasets import make_polynomial
from hikernel.graphs import Grid, geometric_weights

ROWS = [4000 * 2**k for k in range(7)]
VARIABLES = [10, 30, 100, 300, 1000, 2000]
DEGREE = 4
NOISE = 0.5
ROW_TERMS = {((0, 1),): 1.0, ((3, 2),): 0.7, ((5, 1), (8, 1)): 1.0, ((2, 1), (7, 2)): 0.6}
VARIABLE_TERMS = {((0, 1),): 1.0, ((3, 2),): 0.7, ((5, 1), (8, 1)): 1.0}
ROW_ALPHAS, VARIABLE_ALPHAS = (0.1, 0.001), (0.3, 0.01)
EXPONENT_TARGET = 1.15


def peak_mib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(table: str, n: int, p: int, repeats: int) -> dict[str, float]:
    """One path in this process: seconds, peak memory, whether the true hull is on it."""
    by_rows = table == "n"
    terms = ROW_TERMS if by_rows else VARIABLE_TERMS
    alphas = np.geomspace(*(ROW_ALPHAS if by_rows else VARIABLE_ALPHAS), 10)
    order = {} if by_rows or not has_max_order() else {"max_order": 2}
    small = make_polynomial(200, 10, terms, noise=NOISE, seed=1)
    hkl_path(small.X, small.y, n_alphas=3, **order)  # loads what is loaded lazily
    baseline = peak_mib()
    data = make_polynomial(n, p, terms, noise=NOISE, seed=0)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        path = hkl_path(data.X, data.y, alphas=alphas, **order)
        times.append(time.perf_counter() - start)
    truth = Grid(geometric_weights([DEGREE] * p, 2.0)).hull(terms)
    hulls = [set(point.model.nodes) for point in path.points]
    return {
        "seconds": min(times),
        "mib": peak_mib() - baseline,
        "points": len(path),
        "terms": path.points[-1].model.n_terms,
        "exact": sum(hull == truth for hull in hulls),
        "contained": sum(hull >= truth for hull in hulls),
    }


def has_max_order() -> bool:
    return "max_order" in inspect.signature(hkl_path).parameters


def in_fresh_process(**job: object) -> dict:
    """``measure`` in a process of its own, so that the peak is its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def run_table(table: str, sizes: list[int], repeats: int) -> list[dict]:
    """Run every size, a line each."""
    print(
        f"{table:>7} {'seconds':>8} {'us/unit':>9} {'MiB':>7} {'points':>6} {'terms':>5} "
        f"{'true hull at':>12} {'within at':>9}"
    )
    out = []
    for size in sizes:
        n, p = (size, 20) if table == "n" else (1000, size)
        row = in_fresh_process(table=table, n=n, p=p, repeats=repeats)
        out.append(row)
        print(
            f"{size:7d} {row['seconds']:8.2f} {1e6 * row['seconds'] / size:9.1f} "
            f"{row['mib']:7.0f} {row['points']:6d} {row['terms']:5d} {row['exact']:12d} "
            f"{row['contained']:9d}",
            flush=True,
        )
    return out


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    """Print the two tables and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--variables", type=int, nargs="*", default=VARIABLES)
    parser.add_argument("--repeats", type=int, default=2, help="paths per size, the best counts")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(**json.loads(arguments.job))))
        return
    met = True
    if arguments.rows:
        rows = run_table("n", arguments.rows, arguments.repeats)
        if len(rows) > 1:
            slope = exponent(arguments.rows, [row["seconds"] for row in rows])
            memory = exponent(arguments.rows, [max(1.0, row["mib"]) for row in rows])
            met = slope <= EXPONENT_TARGET
            print(
                f"exponent of time in n {slope:.2f}, target {EXPONENT_TARGET:g}: "
                f"{'met' if met else 'missed'}; of memory {memory:.2f}\n"
            )
    if arguments.variables:
        print(f"n = 1000, {'max_order=2' if has_max_order() else 'hkl_path has no max_order yet'}")
        rows = run_table("p", arguments.variables, arguments.repeats)
        if len(rows) > 1:
            slope = exponent(arguments.variables, [row["seconds"] for row in rows])
            print(f"exponent of time in p {slope:.2f}")
    if not met:
        sys.exit("Target missed.")


if __name__ == "__main__":
    main()
