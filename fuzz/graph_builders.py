"""Graph builders with good and bad edges, kernels, weights, strings, clouds and labelled graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import hikernel
from fuzz.tables import WORDS, some
from fuzz.verdict import Outcome, attempt, check_certificate, require
from hikernel.graphs import (
    KernelGraph,
    PrecomputedGrid,
    SubstringGraph,
    pyramid_match,
    weisfeiler_lehman,
)

__all__ = ["run"]

JUNK = (None, "", "x", 0, -1, 1.5, np.nan, np.inf, True, [], {}, object(), 10**6)
NODES = ("a", "b", "c", "d", "é", "", 0, 1, ("p", 1), 2.5, None, "a b")


def run(rng):
    """Run one case: build a graph, fit, predict."""
    outcome = Outcome()
    n = int(some(rng, (5, 8, 12, 20, 12, 8, 2, 1, 0) if rng.random() < 0.5 else (10, 20)))
    build = some(rng, (_kernel_graph, _kernel_graph, _precomputed, _strings, _clouds, _labelled))
    bad = rng.random() < 0.5
    y = rng.standard_normal(n)
    if bad and rng.random() < 0.1:
        y = some(rng, (np.zeros(n), y[:-1], np.full(n, np.nan), y * 1e300, y * 1e-200))
    alpha = some(rng, (1e-3, 0.05, 1.0, 100.0))
    refit = some(rng, (None, None, "ridge", "sparse"))
    model, f = None, None
    with attempt(outcome):
        graph, X = build(rng, n, bad)
        model = hikernel.HKLRegressor(alpha, graph=graph, refit=refit).fit(X, y)
    if outcome.kind != "model":
        return outcome
    check_certificate(model.certificate_)
    with attempt(outcome):
        f = model.predict(X)
    require(outcome.kind == "model", f"fitted, and no prediction: {outcome.sentence}")
    require(np.isfinite(f).all() and len(f) == n, "predictions that are not finite")
    told = Outcome()
    if rng.random() < 0.3:
        with attempt(told):
            some(rng, (lambda: str(model), model.summary, lambda: model.effects(X)))()
    if rng.random() < 0.3:
        with attempt(told):
            g = model.predict(_other(rng, X))
            require(np.isfinite(g).all(), "new predictions that are not finite")
    outcome.warnings += told.warnings
    return outcome


def _other(rng, X):
    """Return other rows of the same kind, or none."""
    if isinstance(X, list) and X and rng.random() < 0.6:
        return X[::-1] if rng.random() < 0.5 else [*X[:1], some(rng, JUNK)]
    return some(rng, (X, [], None, "x", np.arange(3), [10**9], [-1], {"a": np.eye(2)}, [[1.5]]))


def _gram(rng, n, bad):
    """A positive semidefinite matrix, or one that is none."""
    F = rng.standard_normal((n, int(rng.integers(1, 4))))
    K = F @ F.T * some(rng, (1.0, 1.0, 1e-3, 10.0, 1e-12))
    if not bad or rng.random() < 0.6:
        return K
    return some(
        rng,
        (
            K - 2.0 * np.eye(n), K + np.triu(np.ones((n, n))), K[:-1], K * np.nan, K.astype(str),
            np.zeros((n, n)), K.tolist(), K.astype(np.float32), K * 1e300, K * 1e-300, 3.0, None,
            pd.DataFrame(K), K[None], K.astype(complex), K.astype(object), K > 0, K * 1e-320,
        ),
    )  # fmt: skip


def _features(rng, n, bad):
    F = rng.standard_normal((n, int(rng.integers(1, 4))))
    if not bad or rng.random() < 0.6:
        return F
    return some(
        rng,
        (
            F[:, 0], F[:, :0], F * np.inf, F * 1e200, F * 1e-200, F[:-1], F.tolist(), "x", [0], [],
            [77], ["nowhere"], None, F.astype(str), lambda X: X, lambda X: 3.0, lambda X: None,
            np.zeros_like(F), lambda X: X[:1], F.astype(object), lambda: 1,
        ),
    )  # fmt: skip


def _edges(rng, nodes, bad):
    """Edges of a DAG in one of their forms, or of something else."""
    m = len(nodes)
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m) if rng.random() < 0.4]
    if bad and rng.random() < 0.3:
        pairs.append(some(rng, ((m - 1, 0), (0, 0)))) if m else None
    named = [(nodes[i], nodes[j]) for i, j in pairs]
    if bad and rng.random() < 0.15:
        return some(
            rng, ([*named, ("a", "nowhere")], "ab", 5, None, [("a",)], {"a": "b"}, named * 2)
        )
    how = rng.random()
    if how < 0.4:
        return {nodes[j]: [a for a, b in named if b == nodes[j]] for j in range(m)}
    if how < 0.6 and None not in nodes:
        graph = nx.DiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(named)
        return graph
    return named


def _kernel_graph(rng, n, bad):
    pool = NODES if bad else ("a", "b", "c", "d", "é")
    nodes = [pool[i] for i in rng.permutation(len(pool))[: int(rng.integers(not bad, 5))]]
    given = {"edges": _edges(rng, nodes, bad)}
    kind = some(rng, ("grams", "features", "kernels", "columns", "mixed"))
    X = np.arange(n)
    if kind in ("grams", "features"):
        maker = _gram if kind == "grams" else _features
        given[kind] = {node: maker(rng, n, bad) for node in nodes}
    elif kind == "mixed":
        given["grams"] = {node: _gram(rng, n, bad) for node in nodes[:2]}
        given["features"] = {node: _features(rng, n, bad) for node in nodes[2:]}
    else:
        X = rng.standard_normal((n, 3)) * some(rng, (1.0, 1.0, 1e150, 1e-150) if bad else (1.0,))
        if kind == "columns":
            given["features"] = {node: [int(rng.integers(3))] for node in nodes}
        else:
            given["kernels"] = {node: some(rng, _kernels(bad)) for node in nodes}
    if rng.random() < 0.3:
        given["weights"] = {node: some(rng, (0.5, 1.0, 3.0)) for node in nodes}
        if bad and rng.random() < 0.3 and nodes:
            given["weights"][some(rng, (*nodes, "z"))] = some(rng, (*JUNK[:-2], 5e-324, 1e300))
    if bad and rng.random() < 0.2:
        name = some(rng, ("weight_base", "dtype", "grams", "weights"))
        given[name] = some(rng, (*JUNK, "float32"))
    edges = given.pop("edges")
    return KernelGraph(edges, **given), X


def _kernels(bad):
    good = (
        lambda A, B: A @ B.T,
        lambda A, B: np.exp(-((A[:, None] - B[None]) ** 2).sum(-1)),
        lambda A, B: A[:, [0]] * B[:, 0],
    )
    if not bad:
        return good
    return (
        *good, *good, lambda A, B: A[:, [0]] - B[:, 0], lambda A, B: np.zeros(3), lambda A: 1,
        lambda A, B: np.full((len(A), len(B)), np.nan), lambda A, B: "kernel", lambda A, B: None,
        lambda A, B: np.ones((len(A), len(B))), 5, lambda A, B: [][1],
    )  # fmt: skip


def _precomputed(rng, n, bad):
    p = int(rng.integers(1, 4))
    levels = [[_gram(rng, n, bad) for _ in range(rng.integers(1 - bad, 3))] for _ in range(p)]
    given = {}
    if rng.random() < 0.3:
        given["names"] = (
            [some(rng, WORDS) for _ in range(p)] if bad else [f"v{m}" for m in range(p)]
        )
    if bad and rng.random() < 0.3:
        name = some(rng, ("names", "weight_base", "root_weight", "max_order", "dtype"))
        given[name] = some(rng, JUNK[:-1])
        if rng.random() < 0.2:
            levels = some(rng, JUNK)
    return PrecomputedGrid(levels, **given), np.arange(n)


def _strings(rng, n, bad):
    letters = some(rng, ("ab", "ACGT", "é😀x", "\x00a"))
    rows = ["".join(some(rng, letters) for _ in range(rng.integers(0, 12))) for _ in range(n)]
    if bad and rows and rng.random() < 0.4:
        rows[0] = some(rng, (None, 3, b"ab", np.nan, ["a"], "", "\ud800"))
    length = int(rng.integers(1, 4))
    if bad and rng.random() < 0.3:
        length = some(rng, JUNK[:-1])
    given = {"binary": bool(rng.random() < 0.3)}
    if bad and rng.random() < 0.2:
        given["weight_base"] = some(rng, JUNK)
    if not bad:
        return SubstringGraph(length, **given), some(rng, (list, np.array, pd.Series))(rows)
    X = rows if rng.random() < 0.8 else some(rng, ("abc", None, 3, rows[:1], [rows]))
    return SubstringGraph(length, **given), X


def _clouds(rng, n, bad):
    d = int(rng.integers(1, 3))
    rows = [rng.standard_normal((int(rng.integers(1, 6)), d)) for _ in range(n)]
    if bad and rows and rng.random() < 0.5:
        rows[0] = some(
            rng,
            (None, 3.0, np.zeros((0, d)), np.zeros((2, d + 1)), np.full((2, d), np.nan), "x",
             np.full((1, d), 1e308), np.full((1, d), 5e-324), [[]], np.zeros((2, d), complex)),
        )  # fmt: skip
    depth = some(rng, JUNK[:-1]) if bad and rng.random() < 0.3 else int(rng.integers(0, 4))
    return pyramid_match(depth, normalize=bool(rng.random() < 0.5)), rows


def _labelled(rng, n, bad):
    rows = [_one_labelled(rng) for _ in range(n)]
    if bad and rows and rng.random() < 0.5:
        rows[0] = some(
            rng, (None, 3, nx.Graph(), nx.path_graph(3), "x", ([], []), {}, ([1], [(0, 5)]))
        )
    depth = some(rng, JUNK[:-1]) if bad and rng.random() < 0.3 else int(rng.integers(0, 3))
    given = {"normalize": bool(rng.random() < 0.5), "degree_labels": bool(rng.random() < 0.2)}
    if bad and rng.random() < 0.1:
        given["label"] = some(rng, JUNK)
    return weisfeiler_lehman(depth, **given), rows


def _one_labelled(rng):
    graph = nx.gnp_random_graph(int(rng.integers(1, 6)), 0.5, seed=int(rng.integers(2**31)))
    for node in graph:
        graph.nodes[node]["label"] = some(rng, ("C", "N", "é"))
    return graph
