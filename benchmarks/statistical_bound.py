"""How often statistical bounds cover the sums that they bound, on rows of many kinds.

The bounds are those of a proof (``engines/sketch.py``): 1,000 draws of random signs, a risk of 5 %
for all of them at once, here for all single columns and all pairs of columns. U(t) is summed
exactly over all pairs of rows, and compared with the bounds of many seeds. A seed fails where any
bound is below its sum.

- light rows: uniform, normal;
- heavy rows: Student's t with 2 degrees of freedom, lognormal with sigma 2, marks (one row in 50);
- adversarial rows: columns of +-0.5, and far rows that are 3 in every column: one of them, 20 equal
  ones, or 20 that are *hidden*. The product over all columns is huge there, in one draw of 2^p.

The dual vector is what the best constant leaves of a target: noise of the same kind on light and
heavy rows, a clear signal on adversarial ones. On hidden rows it is tiny, of one sign, so that
draws and diagonal see little of them, and their sum, which all 20 rows make together, is large:
more than twice the mean of the draws, which is noticed, or less, which is not. Columns are taken as
an estimator takes them by default, or as polynomials with ``weight_base=2``, whatever they hold.

A line has the seeds that failed, the share of bounds that are infinite (nothing is claimed), and
the median of bound / sum of the others. Ends with an error if light or heavy rows fail more often
than the risk explains; of adversarial rows, the table says how often they do.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Any

import numpy as np
from scipy.stats import binom

from hikernel.bases import OrthonormalPolynomial
from hikernel.columns import ColumnGrid
from hikernel.engines.sketch import sketched_bounds
from hikernel.search.objective import N_DRAWS, RISK

GRIDS: dict[str, dict[str, Any]] = {
    "default": {},
    "base 2": {"basis": OrthonormalPolynomial(4), "weight_base": 2.0},
    "base 2, max_order=2": {"basis": OrthonormalPolynomial(4), "weight_base": 2.0, "max_order": 2},
}
FAR = 20
LEFT = {"hidden far rows": 0.02, "well hidden far rows": 0.01}
"""What the best constant leaves of a far row, where it leaves about 1 of the others."""


def light_or_heavy(kind, rng, n, p):
    """Return rows, and a target whose noise is of the same kind."""
    draw = {
        "uniform": lambda shape: rng.uniform(-1.0, 1.0, shape),
        "normal": rng.standard_normal,
        "Student t": lambda shape: rng.standard_t(2.0, shape),
        "lognormal": lambda shape: rng.lognormal(0.0, 2.0, shape),
        "marks": lambda shape: (rng.random(shape) < 0.02).astype(float),
    }[kind]
    X = draw((n, p))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + draw(n)


def adversarial(kind, rng, n, p):
    """Return rows of which some are far from all others in every column."""
    n_far = 1 if kind == "one far row" else FAR
    X = rng.choice([-0.5, 0.5], (n, p))
    y = 2.0 * X[:, 0] + 0.1 * rng.standard_normal(n)
    X[:n_far] = 3.0
    y[:n_far] = np.mean(y[n_far:]) + LEFT.get(kind, 1.0)
    return X, y


KINDS = {
    "uniform": light_or_heavy, "normal": light_or_heavy,
    "Student t": light_or_heavy, "lognormal": light_or_heavy, "marks": light_or_heavy,
    "one far row": adversarial, "equal far rows": adversarial, "hidden far rows": adversarial,
    "well hidden far rows": adversarial,
}  # fmt: skip


def coverage(kind, settings, n, p, repetitions, seed):
    """Return failures, the share of infinite bounds, and the median of bound / sum."""
    X, y = KINDS[kind](kind, np.random.default_rng([seed, p]), n, p)
    source = ColumnGrid(**settings)
    rows = source.read(X)
    design = source.fit(rows, np.ones(n))
    engine, graph = design.engine(design.training_rows(rows), np.ones(n)), design.graph
    alpha = (y - y.mean()) / (n * y.std())
    with_levels = [m for m in range(p) if graph.max_level(m) > 0]
    supports = [(m,) for m in with_levels] + list(itertools.combinations(with_levels, 2))
    nodes = [tuple((m, graph.any_level(m)) for m in support) for support in supports]
    where = (nodes, alpha, graph.tail_scales(), graph.max_order)
    exact, parts = engine.tail_sums(*where), engine.tail_exact_parts(*where)
    failed, infinite, ratios = 0, [], []
    for repetition in range(repetitions):
        draws = engine.tail_draws(*where, N_DRAWS, repetition)
        bounds = sketched_bounds(draws, RISK, parts)
        # The exact sums are rounded up; a share of 1e-6 is far above that.
        failed += bool(np.any(bounds < exact * (1.0 - 1e-6)))
        infinite.append(np.mean(np.isinf(bounds)))
        ratios.append(bounds[np.isfinite(bounds)] / exact[np.isfinite(bounds)])
    told = np.concatenate(ratios)
    return failed, float(np.mean(infinite)), float(np.median(told)) if len(told) else np.nan


def main():
    """Print a table; return 1 if light or heavy rows fail too often."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=700)
    parser.add_argument("--p", type=int, nargs="+", default=[6, 16])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    most = int(binom.ppf(0.999, args.repetitions, RISK))
    too_often = False
    print(f"{args.n} rows, {N_DRAWS} draws, risk {RISK}, {args.repetitions} seeds")
    for p, (grid, settings), kind in itertools.product(args.p, GRIDS.items(), KINDS):
        start = time.process_time()
        failed, infinite, ratio = coverage(kind, settings, args.n, p, args.repetitions, args.seed)
        too_often = too_often or (KINDS[kind] is light_or_heavy and failed > most)
        print(
            f"p = {p:2d}  {grid:20s} {kind:30s} failed {failed:3d}   infinite {infinite:4.0%}   "
            f"bound / sum {ratio:8.2f}   {time.process_time() - start:5.1f} s",
            flush=True,
        )
    return int(too_often)


if __name__ == "__main__":
    sys.exit(main())
