"""The conditions written down from the paper: loops, cvxpy for the dual norm, nothing shared."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from hikernel.graphs import Dag


def closure(parents):
    """A(v) of every node, by walking up."""
    out = {}

    def up(node):
        if node not in out:
            out[node] = {node}.union(*(up(parent) for parent in parents[node]))
        return out[node]

    for node in parents:
        up(node)
    return out


@dataclass(frozen=True)
class Case:
    """A population on a random DAG."""

    parents: dict
    weights: dict
    widths: dict
    sigma: np.ndarray
    beta: dict
    hull: set

    @property
    def graph(self):
        return Dag(self.parents, self.weights)

    @property
    def nodes(self):
        return list(self.parents)

    def columns(self, node):
        start = 0
        for other in self.nodes:
            if other == node:
                return list(range(start, start + self.widths[node]))
            start += self.widths[other]
        raise KeyError(node)

    def arguments(self):
        return (
            (self.graph, self.nodes, self.sigma, self.beta),
            {"widths": [self.widths[v] for v in self.nodes]},
        )


def random_case(seed, m=7, edge=0.35, correlation=1.0):
    """A DAG of m nodes with blocks of one to three columns and at least one node outside W."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(m)]
    parents = {v: [u for u in names[:i] if rng.random() < edge] for i, v in enumerate(names)}
    weights = {v: float(rng.uniform(0.5, 3.0)) for v in names}
    widths = {v: int(rng.integers(1, 4)) for v in names}
    size = sum(widths.values())
    root = rng.standard_normal((size, size + 3))
    sigma = correlation * root @ root.T / size + np.eye(size) * 0.2
    above = closure(parents)
    active = [v for v in names[: m - 2] if rng.random() < 0.4] or [names[0]]
    beta = {v: rng.standard_normal(widths[v]) for v in active}
    hull = set().union(*(above[v] for v in active))
    return Case(parents, weights, widths, sigma, beta, hull)


def pull_of(case, *, over_ancestors=True):
    """A_w for w outside W, in loops; ``over_ancestors=False`` is the main text's formula."""
    above = closure(case.parents)
    inside = [v for v in case.nodes if v in case.hull]
    norm = {
        v: np.sqrt(sum(np.sum(b**2) for w, b in case.beta.items() if v in above[w])) for v in inside
    }
    q = []
    for w in inside:
        chain = above[w] if over_ancestors else {w}
        factor = sum(case.weights[v] / norm[v] for v in chain)
        q.extend(factor * case.beta.get(w, np.zeros(case.widths[w])))
    columns = [c for v in inside for c in case.columns(v)]
    solution = np.linalg.solve(case.sigma[np.ix_(columns, columns)], q)
    return {
        w: case.sigma[np.ix_(case.columns(w), columns)] @ solution
        for w in case.nodes
        if w not in case.hull
    }


def dual_norm_by_cvxpy(parents, weights, x):
    """max x'Delta over Delta with sum_v d_v |Delta_D(v)| <= 1, v among the keys of x."""
    above = closure(parents)
    delta = {w: cp.Variable(len(block)) for w, block in x.items()}
    norm = sum(weights[v] * cp.norm(cp.hstack([delta[w] for w in x if v in above[w]])) for v in x)
    gain = sum(block @ delta[w] for w, block in x.items())
    problem = cp.Problem(cp.Maximize(gain), [norm <= 1])
    return float(problem.solve(solver=cp.CLARABEL))


def sources_of(parents, outside):
    """Nodes outside W all of whose ancestors but themselves are in W."""
    above = closure(parents)
    return [w for w in outside if not (above[w] - {w}) & set(outside)]


def paper_bound(parents, weights, x):
    """The main text's sufficient condition, in loops."""
    above = closure(parents)
    values = []
    for t in sources_of(parents, x):
        total = 0.0
        for w in x:
            if t in above[w]:
                between = [v for v in above[w] if t in above[v]]
                total += np.sum(x[w] ** 2) / sum(weights[v] for v in between) ** 2
        values.append(total)
    return float(np.sqrt(max(values)))
