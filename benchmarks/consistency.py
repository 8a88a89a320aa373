"""When the hull is recovered, and when its depth: the paper's section on consistency, simulated.

*Hull.* y = x0 + x1 + x0 x1 + 2 noise, three normal inputs, x0 and x1 independent and x2 of
correlation rho with both; 27 terms. rho decides about the conditions, which are computed exactly:
Gauss-Hermite points stand for the population. Counted: the hull {1, x0, x1, x0 x1} is what
lambda_n = 0.2 n^(-1/4) selects (lambda_n -> 0, lambda_n sqrt(n) -> infinity, as the theory asks),
and, a far weaker wish, what any of 30 lambdas between 0.5 and 0.0001 selects.

*Depth.* Two inputs x0, x1 and four more, uncorrelated, half the sum of which has correlation 0.95
with x0 x1; products of all six, 64 terms, so that the depth of a hull is its interaction order.
The truth is additive (the sum of all inputs), or has x0 x2 added to it. The weight of a term is
base^order, with a fixed base of 2 or of 6, or with one that grows slowly, sqrt(log n). Counted: the
depth of what lambda_n = 0.02 n^(-1/3) selects is the true one. lambda_n falls faster here, since a
term of order k is shrunken by lambda_n base^(2k), which must tend to 0 too.

Results go to docs/figures/consistency.json, and from there into docs/figures/consistency.png, which
needs matplotlib (the extra ``plot``); ``--draw-only`` draws what was computed before.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from hikernel import hkl_path
from hikernel.bases import OrthonormalPolynomial
from hikernel.columns import ColumnGrid
from hikernel.consistency import ConsistencyReport, consistency_conditions
from hikernel.graphs import Node, node_degree

Array = NDArray[np.float64]

FIGURES = FilePath(__file__).resolve().parents[1] / "docs" / "figures"
SIZES = tuple(2**k for k in range(5, 16))
NOISE = 2.0
RHOS = (0.25, 0.65)
ALPHAS = np.geomspace(0.5, 1e-4, 30)
LINK = 0.95
"""Correlation of x0 x1 with half the sum of the other inputs, for the depth."""
BASES = ("2", "6", "sqrt(log n)")

X0, X1, X0_X1, X0_X2 = ((0, 1),), ((1, 1),), ((0, 1), (1, 1)), ((0, 1), (2, 1))
HULL_TRUTH: dict[Node, float] = {X0: 1.0, X1: 1.0, X0_X1: 1.0}
ADDITIVE: dict[Node, float] = {((m, 1),): 1.0 for m in range(6)}
DEPTH_TRUTHS = {"additive": ADDITIVE, "one interaction": ADDITIVE | {X0_X2: 1.0}}


def correlated(Z: Array, rho: float) -> Array:
    """Inputs of the first simulation from independent standard ones, shape (n, 3)."""
    rest = math.sqrt(1.0 - 2.0 * rho**2)
    return np.column_stack([Z[:, 0], Z[:, 1], rho * (Z[:, 0] + Z[:, 1]) + rest * Z[:, 2]])


def linked(Z: Array) -> Array:
    """Inputs of the second one from independent standard ones, shape (n, 6)."""
    product = LINK * Z[:, 0] * Z[:, 1] + math.sqrt(1.0 - LINK**2) * Z[:, 2]
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    mixed = np.column_stack([product, Z[:, 3:]]) @ (signs / 2.0)
    return np.column_stack([Z[:, :2], mixed])


def uniform(rng: np.random.Generator, n: int) -> Array:
    """Independent uniform variables of variance one, shape (n, 6)."""
    return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), size=(n, 6))


def target(X: Array, terms: dict[Node, float], rng: np.random.Generator) -> Array:
    """The truth on the rows, with noise."""
    f = sum(b * np.prod([X[:, m] for m, _ in node], axis=0) for node, b in terms.items())
    return np.asarray(f + NOISE * rng.standard_normal(len(X)))


def product_rule(points: Array, weights: Array, dimension: int) -> tuple[Array, Array]:
    """Points and weights of a product of one-variable quadrature rules."""
    Z = np.array(list(itertools.product(points, repeat=dimension)))
    W = np.prod(list(itertools.product(weights / np.sum(weights), repeat=dimension)), axis=1)
    return Z, W


def conditions(
    X: Array, weights: Array, terms: dict[Node, float], degree: int, base: float
) -> ConsistencyReport:
    """The conditions of the population that the weighted points stand for."""
    p = X.shape[1]
    levels = itertools.product(range(degree + 1), repeat=p)
    nodes = [tuple((m, j) for m, j in enumerate(node) if j > 0) for node in levels]
    columns = ColumnGrid(basis=OrthonormalPolynomial(degree), weight_base=base)
    design = columns.fit(columns.read(X), weights)
    engine = design.engine(X, weights)
    means = engine.means(nodes)
    covariance = engine.gram(nodes, nodes, means, means)
    return consistency_conditions(design.grid, nodes, covariance, terms)


def values(report: ConsistencyReport) -> dict[str, float]:
    """The numbers of a report that go into the file."""
    names = ("necessary", "sufficient", "closed_form")
    return {name: round(getattr(report, name).value, 4) for name in names}


def hull_conditions(rho: float) -> ConsistencyReport:
    """The conditions of the first simulation."""
    points, weights = product_rule(*np.polynomial.hermite_e.hermegauss(8), 3)
    return conditions(correlated(points, rho), weights, HULL_TRUTH, 2, 2.0)


def depth_conditions(terms: dict[Node, float], base: float) -> ConsistencyReport:
    """The conditions of the second one."""
    points, weights = np.polynomial.legendre.leggauss(6)
    Z, W = product_rule(math.sqrt(3.0) * points, weights, 6)
    return conditions(linked(Z), W, terms, 1, base)


def selected(X: Array, y: Array, alphas: Sequence[float], degree: int, base: float) -> list[set]:
    """The hulls along a path, solved well beyond the precision of a usual fit."""
    path = hkl_path(
        X,
        y,
        alphas=alphas,
        basis="orthonormal",
        degree=degree,
        weight_base=base,
        tol=1e-6,
        certify="none",
    )
    return [set(point.model.nodes) for point in path.points]


def hull_draw(rho: float, n: int, seed: int) -> tuple[bool, bool]:
    """Whether lambda_n, and whether any lambda, selects exactly the true hull."""
    rng = np.random.default_rng([n, seed])
    X = correlated(rng.standard_normal((n, 3)), rho)
    y = target(X, HULL_TRUTH, rng)
    truth = {(), *HULL_TRUTH}
    at_rate = selected(X, y, [0.2 * n**-0.25], 2, 2.0)[0] == truth
    return at_rate, at_rate or truth in selected(X, y, ALPHAS.tolist(), 2, 2.0)


def base_of(name: str, n: int) -> float:
    """The base of the weights at n rows."""
    return math.sqrt(math.log(n)) if name == "sqrt(log n)" else float(name)


def depth_draw(terms: dict[Node, float], n: int, seed: int) -> list[int]:
    """The depth of the selected hull, for every base."""
    rng = np.random.default_rng([n, seed])
    X = linked(uniform(rng, n))
    y = target(X, terms, rng)
    alpha = 0.02 * n ** (-1 / 3)
    hulls = [selected(X, y, [alpha], 1, base_of(name, n))[0] for name in BASES]
    return [max(map(node_degree, hull)) for hull in hulls]


def share(hits: Array) -> tuple[float, float]:
    """A probability and its standard error."""
    p = float(np.mean(hits))
    return round(p, 4), round(math.sqrt(p * (1.0 - p) / len(hits)), 4)


def hull_rows(parallel: Parallel, sizes: Sequence[int], replications: int) -> list[dict[str, Any]]:
    """Recovery of the hull: a row per population and n."""
    rows = []
    for rho, n in itertools.product(RHOS, sizes):
        draws = np.array(parallel(delayed(hull_draw)(rho, n, s) for s in range(replications)))
        (rate, rate_error), (path, path_error) = share(draws[:, 0]), share(draws[:, 1])
        row = {"rho": rho, "n": n, "at_rate": rate, "at_rate_error": rate_error}
        rows.append(row | {"on_path": path, "on_path_error": path_error})
        print(f"rho {rho:4} n {n:6d}: at lambda_n {rate:.3f}, on the path {path:.3f}", flush=True)
    return rows


def depth_rows(parallel: Parallel, sizes: Sequence[int], replications: int) -> list[dict[str, Any]]:
    """Recovery of the depth: a row per truth, n and base."""
    rows = []
    for (truth, terms), n in itertools.product(DEPTH_TRUTHS.items(), sizes):
        depth = max(map(node_degree, terms))
        found = np.array(parallel(delayed(depth_draw)(terms, n, s) for s in range(replications)))
        for name, depths in zip(BASES, found.T, strict=True):
            p, error = share(depths == depth)
            deeper, _ = share(depths > depth)
            row = {"truth": truth, "n": n, "base": name, "recovered": p, "error": error}
            rows.append(row | {"deeper": deeper})
            print(f"{truth:>15} n {n:6d} base {name:>11}: {p:.3f}, deeper {deeper:.3f}", flush=True)
    return rows


def compute(sizes: Sequence[int], replications: int, n_jobs: int) -> dict[str, Any]:
    """All results, as they go into the file."""
    parallel = Parallel(n_jobs=n_jobs)
    return {
        "replications": replications,
        "hull_conditions": {str(rho): values(hull_conditions(rho)) for rho in RHOS},
        "hull": hull_rows(parallel, sizes, replications),
        "depth_conditions": {
            truth: {str(base): values(depth_conditions(terms, base)) for base in (2.0, 3.0, 6.0)}
            for truth, terms in DEPTH_TRUTHS.items()
        },
        "depth": depth_rows(parallel, sizes, replications),
    }


def draw(results: dict[str, Any], file: FilePath) -> None:
    """Draw the figure of the documentation."""
    try:
        import matplotlib as mpl
    except ImportError:
        sys.exit("The figure needs matplotlib: pip install 'hikernel[plot]'.")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    # Colours of Okabe and Ito, which colour-blind readers can tell apart; markers differ too.
    styles = [("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", ":")]
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), sharex=True, sharey=True)

    def curve(
        ax: Any, rows: list[dict[str, Any]], key: str, error: str, k: int, label: str
    ) -> None:
        colour, marker, line = styles[k]
        ax.errorbar(
            [row["n"] * (0.95, 1.0, 1.05)[k] for row in rows],  # no curve hides another
            [row[key] for row in rows],
            yerr=[row[error] for row in rows],
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=5,
            capsize=2.5,
            label=label,
        )

    outcome = {True: "the sufficient condition holds", False: "the necessary condition is violated"}
    for ax, rho in zip(axes[0], RHOS, strict=True):
        rows = [row for row in results["hull"] if row["rho"] == rho]
        known = results["hull_conditions"][str(rho)]
        curve(ax, rows, "at_rate", "at_rate_error", 0, r"at $\lambda_n = 0.2\, n^{-1/4}$")
        curve(ax, rows, "on_path", "on_path_error", 1, r"at any $\lambda$ of the path")
        ax.set_title(
            f"Hull: {outcome[known['sufficient'] < 1]}\n"
            f"(correlation {rho:g}: necessary {known['necessary']:.2f}, "
            f"closed form {known['closed_form']:.2f})",
            fontsize=10.5,
        )
    labels = {"2": "base 2", "6": "base 6", "sqrt(log n)": r"base $\sqrt{\log n}$"}
    heads = {
        "additive": "Depth: the truth is additive (order 1)",
        "one interaction": "Depth: the truth has an interaction (order 2)",
    }
    for ax, (truth, head) in zip(axes[1], heads.items(), strict=True):
        for k, name in enumerate(("sqrt(log n)", "2", "6")):
            rows = [r for r in results["depth"] if (r["truth"], r["base"]) == (truth, name)]
            curve(ax, rows, "recovered", "error", k, labels[name])
        ax.set_title(head, fontsize=10.5)
        ax.set_xlabel("rows n")
    for ax in axes.flat:
        ax.set_xscale("log", base=2)
        ax.set_xticks(SIZES[::2], [f"{n:,}" for n in SIZES[::2]])
        ax.set_ylim(-0.04, 1.04)
        ax.grid(alpha=0.25)
        ax.tick_params(labelbottom=True)
    axes[0, 0].set_ylabel("probability that the hull is recovered")
    axes[1, 0].set_ylabel("probability that the depth is recovered")
    axes[0, 0].legend(loc="lower right")
    axes[0, 1].legend(loc="upper right")
    axes[1, 0].legend(loc="center right")
    axes[1, 1].legend(loc="center left")
    figure.tight_layout(h_pad=2.0, w_pad=2.0)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)


def main() -> None:
    """Compute and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--results", type=FilePath, default=FIGURES / "consistency.json")
    parser.add_argument("--figure", type=FilePath, default=FIGURES / "consistency.png")
    parser.add_argument("--draw-only", action="store_true")
    args = parser.parse_args()
    if not args.draw_only:
        results = compute(args.sizes, args.replications, args.n_jobs)
        args.results.parent.mkdir(parents=True, exist_ok=True)
        args.results.write_text(json.dumps(results, indent=1) + "\n")
    draw(json.loads(args.results.read_text()), args.figure)


if __name__ == "__main__":
    main()
