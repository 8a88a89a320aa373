"""Support recovery on generated data: look-ahead, the rule of the paper, lasso on pairs.

n = 1024 rows of correlated normal inputs (correlation 0.3^|i - j|), four true terms drawn at random
(degree 1 to 4, shared at random among 1 to 4 variables; coefficients of random sign that give
each term the same size), noise 0.3 of the signal. A draw counts as recovered if some alpha of the
path selects exactly the hull of the true terms: all of them, their ancestors and nothing else. For
lasso the hull of its support on standardised features of degree 2 is compared, along a path of
30 alphas, as many as the others have; it cannot recover a term of higher degree, so the share of
draws whose terms all have degree 2 at most is printed beside it. Also: how often a hull on the path
contains all true terms, and how often one has exactly the true variables. Mean seconds of a
path.

There is no target: the rates are reported.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from hikernel import hkl_path
from hikernel.datasets import KnownTruth, make_polynomial
from hikernel.graphs import Grid, Node, geometric_weights, node_degree

N_ROWS, N_TERMS, DEGREE = 1024, 4, 4
NOISE = 0.3
METHODS = ("lookahead", "paper", "lasso")
Hulls = list[set[Node]]


def random_terms(p: int, rng: np.random.Generator) -> dict[Node, float]:
    """Four different terms; the coefficient makes up for the size of the powers."""
    terms: dict[Node, float] = {}
    while len(terms) < N_TERMS:
        degree = int(rng.integers(1, DEGREE + 1))
        order = int(rng.integers(1, degree + 1))
        cuts = np.sort(rng.choice(np.arange(1, degree), order - 1, replace=False))
        powers = np.diff([0, *cuts, degree])
        variables = np.sort(rng.choice(p, order, replace=False))
        node = tuple((int(m), int(j)) for m, j in zip(variables, powers, strict=True))
        # The mean of x^2j is (2j - 1)!! for a standard normal x.
        size = math.prod(math.prod(range(1, 2 * j, 2)) for _, j in node) ** 0.5
        terms[node] = float(rng.choice([-1.0, 1.0])) / size
    return terms


def hkl_hulls(data: KnownTruth, search: str) -> Hulls:
    path = hkl_path(data.X, data.y, search=search)
    return [set(point.model.nodes) for point in path.points]


def lasso_hulls(data: KnownTruth, graph: Grid) -> Hulls:
    """Hulls of the supports of lasso on all products of two."""
    features = PolynomialFeatures(2, include_bias=False)
    Z = np.asfortranarray(StandardScaler().fit_transform(features.fit_transform(data.X)))
    y = data.y - np.mean(data.y)
    alphas = np.max(np.abs(Z.T @ y)) / len(y) * np.geomspace(1.0, 1e-2, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, coefs, _ = lasso_path(Z, y, alphas=alphas, max_iter=100, tol=1e-3)
    nodes = [tuple((int(m), int(row[m])) for m in np.flatnonzero(row)) for row in features.powers_]
    supports = [[nodes[i] for i in np.flatnonzero(column)] for column in coefs.T]
    return [graph.hull([(), *support]) for support in supports]


def variables(hull: set[Node]) -> set[int]:
    return {m for node in hull for m, _ in node}


def one_draw(p: int, seed: int, methods: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Exact, all true terms found, true variables, all of degree 2, and seconds, per method."""
    terms = random_terms(p, np.random.default_rng([p, seed]))
    data = make_polynomial(N_ROWS, p, terms, noise=NOISE, seed=seed)
    graph = Grid(geometric_weights([DEGREE] * p, 2.0))
    truth = graph.hull(terms)
    easy = max(node_degree(node) for node in terms) <= 2
    out = []
    for method in methods:
        start = time.perf_counter()
        hulls = lasso_hulls(data, graph) if method == "lasso" else hkl_hulls(data, method)
        seconds = time.perf_counter() - start
        exact = any(hull == truth for hull in hulls)
        contained = any(hull >= truth for hull in hulls)
        same_variables = any(variables(hull) == variables(truth) for hull in hulls)
        out.append((exact, contained, same_variables, easy, seconds))
    return out


def main() -> None:
    """Print a line per number of variables and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--variables", type=int, nargs="+", default=[8, 16, 32, 64, 128])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--n-jobs", type=int, default=1)
    arguments = parser.parse_args()
    methods = tuple(arguments.methods)
    print(
        f"{'p':>4} {'method':>9} {'exact hull':>10} {'contained':>9} {'variables':>9} "
        f"{'seconds':>8}   ({arguments.draws} draws)"
    )
    for p in arguments.variables:
        draws = np.array(
            Parallel(n_jobs=arguments.n_jobs)(
                delayed(one_draw)(p, seed, methods) for seed in range(arguments.draws)
            )
        )
        means = np.mean(draws, axis=0)
        for method, (exact, contained, same, easy, seconds) in zip(methods, means, strict=True):
            note = f"   all terms of degree <= 2 in {100 * easy:.0f} %" if method == "lasso" else ""
            print(
                f"{p:4d} {method:>9} {100 * exact:8.0f} % {100 * contained:7.0f} % "
                f"{100 * same:7.0f} % {seconds:8.2f}{note}",
                flush=True,
            )


if __name__ == "__main__":
    main()
