"""Growth of the path without tail bounds in the rows and in the variables.

Generated data with a known sparse polynomial, noise half of the signal, 10 alphas.

Rows: n from 4,000 to 256,000, p = 20, alphas from 0.1 to 0.001; each n in a process of its own. The
exponents of time and of peak memory above the imports, by least squares in logarithms. Targets:
exponent of time at most 1.15, and at every n the true hull at some alpha.

Variables: p from 10 to 2,000 at n = 1000, alphas from 0.3 to 0.01, ``max_order=2`` where
``hkl_path`` has it. The growth is reported, without target.

Ends with an error if a target is missed.
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
from hikernel.experiments.synthetic import make_polynomial
from hikernel.graphs import Grid, geometric_weights

ROWS = [4000 * 2**k for k in range(7)]
VARIABLES = [10, 30, 100, 300, 1000, 2000]
DEGREE = 4
NOISE = 0.5
TERMS = {((0, 1),): 1.0, ((3, 2),): 0.7, ((5, 1), (8, 1)): 1.0, ((2, 1), (7, 2)): 0.6}
EXPONENT_TARGET = 1.15


def peak_mib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n: int, p: int, alphas: np.ndarray, repeats: int) -> dict[str, float]:
    """One path in this process: seconds, peak memory, whether the true hull is on it."""
    warm = make_polynomial(200, p=10, terms=TERMS, noise=NOISE, seed=1)
    hkl_path(warm.X, warm.y, n_alphas=3)  # loads what is loaded lazily
    baseline = peak_mib()
    data = make_polynomial(n, p, TERMS, noise=NOISE, seed=0)
    order = {"max_order": 2} if p != 20 and has_max_order() else {}
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        path = hkl_path(data.X, data.y, alphas=alphas, **order)
        times.append(time.perf_counter() - start)
    truth = Grid(geometric_weights([DEGREE] * p, 2.0)).hull(TERMS)
    hulls = [set(point.model.nodes) for point in path.points]
    return {
        "seconds": min(times),
        "mib": peak_mib() - baseline,
        "points": len(path),
        "terms": path.points[-1].model.n_terms,
        "exact": sum(hull == truth for hull in hulls),
    }


def has_max_order() -> bool:
    return "max_order" in inspect.signature(hkl_path).parameters


def in_fresh_process(n: int, p: int, alphas: tuple[float, float], repeats: int) -> dict:
    """``measure`` in a process of its own, so that the peak is its own."""
    job = json.dumps({"n": n, "p": p, "alphas": alphas, "repeats": repeats})
    done = subprocess.run(
        [sys.executable, __file__, "--job", job], stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(
    label: str, sizes: list[int], jobs: list[tuple[int, int]], alphas: tuple, repeats: int
) -> list:
    """Run the jobs, a line each."""
    print(
        f"{label:>7} {'seconds':>8} {'per unit':>9} {'MiB':>7} {'points':>6} {'terms':>5} "
        f"{'true hull at':>13}"
    )
    out = []
    for size, (n, p) in zip(sizes, jobs, strict=True):
        row = in_fresh_process(n, p, alphas, repeats)
        out.append(row)
        found = f"{row['exact']} alphas" if row["exact"] else "none"
        print(
            f"{size:7d} {row['seconds']:8.2f} {1e6 * row['seconds'] / size:7.1f}us "
            f"{row['mib']:7.0f} {row['points']:6d} {row['terms']:5d} {found:>13}",
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
        job = json.loads(arguments.job)
        job["alphas"] = np.geomspace(*job["alphas"], 10)
        print(json.dumps(measure(**job)))
        return
    missed = []
    if arguments.rows:
        sizes = arguments.rows
        rows = table("n", sizes, [(n, 20) for n in sizes], (0.1, 0.001), arguments.repeats)
        if len(sizes) > 1:
            slope = exponent(sizes, [row["seconds"] for row in rows])
            memory = exponent(sizes, [row["mib"] for row in rows])
            met = slope <= EXPONENT_TARGET
            print(
                f"exponent of time in n {slope:.2f}, target {EXPONENT_TARGET:g}: "
                f"{'met' if met else 'missed'}; of memory {memory:.2f}\n"
            )
            missed += [] if met else ["exponent of time"]
        missed += [
            f"true hull at n = {n}" for n, row in zip(sizes, rows, strict=True) if not row["exact"]
        ]
    if arguments.variables:
        sizes = arguments.variables
        print(f"n = 1000, {'max_order=2' if has_max_order() else 'without max_order'}")
        rows = table("p", sizes, [(1000, p) for p in sizes], (0.3, 0.01), arguments.repeats)
        if len(sizes) > 1:
            slope = exponent(sizes, [row["seconds"] for row in rows])
            print(f"exponent of time in p {slope:.2f}")
    if missed:
        sys.exit(f"Missed: {', '.join(missed)}.")


if __name__ == "__main__":
    main()
