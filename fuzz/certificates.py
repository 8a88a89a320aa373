"""Bounds of certificates against the optimum: no bound may lie above any objective of the graph.

A small random problem is searched with a random tolerance, so that every certificate of the search
claims a bound. Then all kernels are listed, and the problem with all of them is solved as precisely
as possible: by the reduced solver, whose objective is recomputed from the rows, and now and then by
cvxpy. The objective of any model is at least the optimum, so that a bound above it is wrong,
however good or bad the solver is. Statistical bounds may be above it now and then; how many are is
in the summary.
"""

from __future__ import annotations

import itertools
import warnings
from unittest import mock

import numpy as np
from losses.cases import CASES
from oracles.dags import dag_optimum, factor, random_blocks, random_parents
from oracles.designs import design_of
from oracles.naive import all_nodes
from oracles.searches import explicit, graph_problem, grid_problem, lookahead, paper
from oracles.twin import twin_optimum

from fuzz.tables import some
from fuzz.verdict import Outcome, require
from hikernel import bases
from hikernel.engines.block_engine import BlockEngine
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.graphs import KernelGraph, PrecomputedGrid, SubstringGraph
from hikernel.search import objective
from hikernel.search.effort import PROOF_WORK

__all__ = ["run"]

BASES = (
    bases.OrthonormalPolynomial(2), bases.OrthonormalPolynomial(3), bases.Polynomial(2),
    bases.Hermite(2), bases.Gaussian(degree=2), bases.Spline(), bases.Steps(2),
    bases.AsinhPolynomial(2), bases.RankPolynomial(2), bases.KernelPCA("laplace", degree=2),
    bases.Anova(),
    bases.Branches((bases.OrthonormalPolynomial(2), bases.Steps(2))),
)  # fmt: skip
SCALES = (1e-6, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e6)
ALPHAS = (1e-6, 1e-4, 1e-3, 1e-2, 1e-2, 0.1, 0.1, 1.0, 10.0)
_ROUNDING = 1e-12
"""Rounding errors of a bound, relative to the loss of the best constant. A bound is a difference of
sums of that size over the rows, computed in floating point with 2e-16."""
_REACHED = 1e-9
"""Relative: bounds are compared with an objective that was computed by sums of its own size."""
_TWIN = 1e-6
"""Relative: the value of cvxpy is off the optimum by what its solver allows."""


def run(rng):
    """Run one case: search, solve with all kernels, compare."""
    name = some(rng, (*CASES, "poisson", "poisson"))
    case = CASES[name]
    n = int(rng.integers(3, 7) if rng.random() < 0.4 else rng.integers(7, 25))
    make = some(rng, (_grid, _grid, _grid, _dag, _dag, _precomputed, _strings))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = make(rng, case, n)
        if made is None:
            return Outcome("no target")
        problem, nodes, search, twin = made
        slow = make is _precomputed or n > 12
        tol = some(rng, (0.3, 0.05, 1e-2, 1e-2 if slow else 1e-5))
        limits = _proof(rng, make) if search is lookahead else {}
        # Graphs as small as these are listed; the sums over all descendants are to be tried, too.
        with mock.patch.object(objective, "_LISTED", some(rng, (0, 0, 0, 2000))):
            result = search(problem, tol=tol, max_kernels=some(rng, (3, 200)), **limits)
        best = _enumerated(problem, nodes)
        if twin is not None and rng.random() < 0.2:
            value = twin()
            room = _TWIN * abs(value) + 1e-9
            require(best >= value - room, f"{best!r} below the optimum {value!r} of cvxpy")
    above = _compare(problem, result, best)
    return Outcome(result.certificate.kind + (", above the optimum" if above else ""))


def _proof(rng, make):
    """How to bound the tail, and limits at which a proof gives up."""
    kinds = ("exact", "exact", "exact", "auto", "exact" if make is _precomputed else "statistical")
    return {
        "certify": some(rng, kinds),  # Gram matrices have no statistical bounds
        "seed": int(rng.integers(1000)),
        "max_explored": some(rng, (10**6, 10**6, 10**6, 10)),
        "max_work": some(rng, (PROOF_WORK, PROOF_WORK, PROOF_WORK, 1e4)),
    }


def _enumerated(problem, nodes):
    """The objective of the problem with all kernels: an upper bound, however well it is solved."""
    # Solves with Gram matrices of large scale take minutes for more digits.
    features = isinstance(problem.engine, (NumpyEngine, BlockEngine))
    return problem.solved(nodes, tol=1e-3, solve_tol=1e-7 if features else 1e-4).objective


def _compare(problem, result, best):
    """Raise a FuzzError where a proven bound is above an objective.

    Returns whether a statistical one is.
    """
    least = min([best, *(step.objective for step in result.history), result.certificate.objective])
    loss, omega, y = problem.loss, problem.engine.row_weights, problem.y
    start = loss.intercept(y, np.zeros(y.shape), omega, 0.0 if loss.smooth else 1e-12)
    constant = float(omega @ loss.value(y, np.zeros(y.shape) + start))
    room = _REACHED * least + _ROUNDING * constant
    above = False
    for step in [*result.history, result.certificate]:
        over = step.dual_bound > least + room
        above = above or (over and step.kind == "statistical")
        require(
            not over or step.kind == "statistical",
            f"{type(loss).__name__}: the bound {step.dual_bound!r} is above {least!r} by "
            f"{step.dual_bound - least:.3g}, {type(problem.objective).__name__}, n = {len(y)}, "
            f"lambda = {problem.lam}",
        )
    return above


def _target(rng, case, signal):
    """A target of the loss for this signal, or None where the rows allow none."""
    if case.outputs is not None:
        signal = np.column_stack([signal, -signal, rng.standard_normal(len(signal))])
    try:
        y = case.target(signal, rng)
        case.loss.check_target(y)
    except ValueError:
        return None
    return y if np.isfinite(y).all() and len(np.unique(y)) > 1 else None


def _weights(rng, n):
    kinds = (np.ones(n), rng.integers(1, 4, n), 10.0 ** rng.uniform(-3, 3, n))
    return np.asarray(some(rng, kinds), dtype=float)


def _grid(rng, case, n):
    p = int(rng.integers(1, 4))
    X = rng.standard_normal((n, p)) * some(rng, SCALES)
    if rng.random() < 0.2:
        X = np.round(X / np.abs(X).max(), 1)  # ties
    y = _target(rng, case, rng.standard_normal() * X[:, 0] / np.abs(X).max() + X[:, -1])
    if y is None:
        return None
    weights = _weights(rng, n)
    limits = {
        "weight_base": some(rng, (1.0, 2.0, 4.0)),
        "root_weight": some(rng, (1.0, 0.1, 10.0)),
        "max_order": some(rng, (None, None, 1, 2)),
    }
    chosen = [some(rng, BASES) for _ in range(p)]
    if not all(getattr(basis, "constant_level", True) for basis in chosen):
        limits["max_order"] = None  # every term contains every variable
    elif p > 1 and rng.random() < 0.15:
        limits["interactions"] = some(rng, ([(0, 1)], [(0, p - 1)]))
    design = design_of(X, chosen, weights, **limits)
    nodes = [v for v in all_nodes(design.grid) if v in design.grid]
    if len(nodes) > 150:
        return None
    engine = design.engine(X, weights)
    loss = case.loss.on_rows(y, engine.row_weights)
    lam = some(rng, ALPHAS)
    problem = grid_problem(engine, design.grid, y, lam, loss)
    levels = [fitted.transform(X[:, m]) for m, fitted in enumerate(design.bases)]

    def twin():
        return twin_optimum(design.grid, levels, nodes, y, weights, lam, loss)[0]

    tame = len(nodes) <= 30 and lam >= 1e-4 and weights.max() <= 100.0 * weights.min()
    return problem, nodes, some(rng, (lookahead, lookahead, paper)), twin if tame else None


def _dag(rng, case, n):
    m = int(rng.integers(1, 10))
    parents = random_parents(rng, m, most=2)
    scale = some(rng, SCALES)
    blocks = {v: block * scale for v, block in random_blocks(rng, parents, n).items()}
    grams = {v: block @ block.T for v, block in blocks.items() if rng.random() < 0.4}
    features = {v: block for v, block in blocks.items() if v not in grams}
    y = _target(rng, case, (blocks[str(m - 1)][:, 0] + blocks["0"][:, -1]) / scale)
    if y is None:
        return None
    weights = _weights(rng, n)
    own = {v: float(rng.uniform(0.5, 3.0)) for v in blocks}
    graph = KernelGraph(parents, features=features, grams=grams, weights=own)
    engine = graph.fit(np.arange(n), weights).engine(None, weights)
    loss, lam = case.loss.on_rows(y, engine.row_weights), some(rng, ALPHAS)
    problem = graph_problem(engine, graph.dag, y, lam, loss)

    def twin():
        known = {v: factor(grams[v]) if v in grams else blocks[v] for v in blocks}
        return dag_optimum(parents, own, known, y, weights, lam, loss)[0]

    tame = scale == 1.0 and lam >= 1e-4 and weights.max() <= 100.0 * weights.min()
    return problem, list(parents), explicit, twin if tame else None


def _strings(rng, case, n):
    """Substrings of random strings, up to three letters long."""
    letters, longest = some(rng, ("ab", "abc")), int(rng.integers(1, 4))
    rows = ["".join(rng.choice(list(letters), int(rng.integers(1, 9)))) for _ in range(n)]
    binary, base = bool(rng.random() < 0.3), some(rng, (1.0, 2.0, 4.0))
    words = ["".join(w) for k in range(longest) for w in itertools.product(letters, repeat=k + 1)]
    nodes = [w for w in words if any(w in row for row in rows)]
    counts = {w: np.array([float(_count(row, w, binary)) for row in rows]) for w in nodes}
    y = _target(rng, case, counts[nodes[0]] - counts[nodes[-1]])
    if y is None:
        return None
    weights = _weights(rng, n)
    source = SubstringGraph(longest, binary=binary, weight_base=base)
    design = source.fit(source.read(rows), weights)
    engine = design.engine(design.training_rows(rows), weights)
    loss, lam = case.loss.on_rows(y, engine.row_weights), some(rng, ALPHAS)
    problem = graph_problem(engine, design.graph, y, lam, loss)

    def twin():
        parents = {w: sorted({w[1:], w[:-1]} - {""}) for w in nodes}
        own = {w: base ** (len(w) - 1) for w in nodes}
        blocks = {w: counts[w][:, None] for w in nodes}
        return dag_optimum(parents, own, blocks, y, weights, lam, loss)[0]

    tame = lam >= 1e-4 and weights.max() <= 100.0 * weights.min()
    return problem, nodes, explicit, twin if tame else None


def _count(row, word, binary):
    """How often a word occurs, overlaps included; or whether it does."""
    found = sum(row.startswith(word, i) for i in range(len(row)))
    return min(found, 1) if binary else found


def _precomputed(rng, case, n):
    """A grid whose levels are Gram matrices, of any scale."""
    p, scale = int(rng.integers(1, 4)), some(rng, SCALES)
    if rng.random() < 0.7:
        scale **= 1.0 / p  # else the products of all variables are of this scale to the power of p
    factors = [[rng.standard_normal((n, 2)) * scale for _ in range(2)] for _ in range(p)]
    y = _target(rng, case, factors[0][0][:, 0] / scale)
    if y is None:
        return None
    weights = _weights(rng, n)
    source = PrecomputedGrid([[F @ F.T for F in levels] for levels in factors])
    design = source.fit(np.arange(n), weights)
    engine = design.engine(design.training_rows(np.arange(n)), weights)
    loss, lam = case.loss.on_rows(y, engine.row_weights), some(rng, ALPHAS)
    problem = grid_problem(engine, design.graph, y, lam, loss)
    return problem, all_nodes(design.graph), lookahead, None
