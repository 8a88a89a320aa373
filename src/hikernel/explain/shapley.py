"""Shapley values of a model: f(x) as a sum over the columns of the table, exact.

A game gives every set T of columns a value v(T) at a row x, with v(all columns) = f(x). The Shapley
value of a column is what it adds to v, averaged over all orders in which the columns can join.
f is a sum of terms, and the value of a sum is the sum of the values, so each term is a game of its
own few columns S, and the average over their 2^|S| subsets is a short sum:

    s_c(x) = sum over T of w_T v_T(x),    w_T = (|T| - 1)! (|S| - |T|)! / |S|!     if c is in T,
                                          w_T = -|T|! (|S| - |T| - 1)! / |S|!      if it is not.

Two games are played here. Where the columns outside T are absent, v(T) is zero for a term unless T
has all of its columns, so that the term is split evenly over them. Where they are drawn from
background rows z, v(T) = mean over z of <coef, Phi(x_T, z_rest)>. Terms are products, so that

    v(T) = <c_T, Phi_T(x)>,    c_T = coef contracted with the mean over z of Phi_{S - T}(z).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import FloatArray, Node
from hikernel.explain.effects import require_finite, term_effects
from hikernel.selection import TermModel

__all__ = ["column_shares", "shapley_values"]

_CHUNK_NUMBERS = 2**21
"""Numbers of features held in memory at a time (16 MiB)."""

Columns = frozenset[int]


def column_shares(model: TermModel, design: ColumnDesign) -> FloatArray:
    """Return the share of every column of the table, shape (n_features_in,), of sum one.

    The share of a term in the variance of all terms is split evenly over its columns, as its value
    is in `shapley_values`. All shares are zero for a model without terms.
    """
    kept = model.kept()
    shares = model.shares[kept.positions]
    out = np.zeros(design.table.n_features_in)
    for node, share in zip(kept.nodes, shares, strict=True):
        columns = sorted(_columns(design, node))
        out[columns] += share / max(len(columns), 1)
    total = float(np.sum(out))
    return out / total if total > 0.0 else out


def shapley_values(
    model: TermModel, design: ColumnDesign, rows: FloatArray, background: FloatArray | None
) -> FloatArray:
    """Return the Shapley values of f at rows, shape (n, n_features_in), or (n, n_features_in, k).

    Parameters
    ----------
    model : TermModel
        The model.
    design : ColumnDesign
        Its columns and bases.
    rows : ndarray of shape (n, p)
        Encoded rows, as for ``model.predict``.
    background : ndarray of shape (n_background, p), or None
        Encoded rows from which the values of absent columns are drawn. Without them, an absent
        column contributes nothing, as a missing value does.

    Returns
    -------
    ndarray
        The values of a row sum to f(x) minus the mean of f over the background rows; without
        these, minus the intercept.

    Raises
    ------
    ValueError
        If a basis has no constant level, so that every term depends on every column.
    """
    if not all(basis.constant_level for basis in design.bases):
        raise ValueError(
            "Shapley values need bases with a constant level 0: without one no column can be "
            "absent from a term. Give the basis by name, or pass constant_level=True to it."
        )
    n_columns = design.table.n_features_in
    require_memory(
        len(rows) * n_columns * math.prod(model.coef.shape[1:]),
        f"Shapley values of {len(rows)} rows and {n_columns} columns",
        "Pass fewer rows at a time; effects(X) has a column for every effect only.",
    )
    if background is None:
        return _evenly_split(model, design, rows)
    games = _games(model, design, background)
    out = np.zeros((len(rows), n_columns, *model.coef.shape[1:]))
    widths = [len(next(iter(parts.values()))) for parts in games.values()]
    step = max(1, _CHUNK_NUMBERS // max(sum(widths), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            features = _features(design, list(games), rows[some])
            for node, parts in games.items():
                inside = _columns(design, node)
                for columns, coef in parts.items():
                    value = features[node] @ coef
                    for c in columns:
                        out[some, c] += _weight(len(inside), len(columns), c in inside) * value
    require_finite(out)
    return out


def _evenly_split(model: TermModel, design: ColumnDesign, rows: FloatArray) -> FloatArray:
    """Return the values where absent columns contribute nothing: a term is split evenly."""
    terms = term_effects(model, design, rows)
    out = np.zeros((len(terms), design.table.n_features_in, *terms.shape[2:]))
    for i, node in enumerate(model.kept().nodes):
        columns = _columns(design, node)
        for c in columns:
            out[:, c] += terms[:, i] / len(columns)
    return out


def _columns(design: ColumnDesign, node: Node) -> Columns:
    """Return the columns of the table that a node depends on, through their indicators too."""
    return frozenset(design.table.input_of(m) for m, _ in node)


def _weight(joined: int, of: int, inside: bool) -> float:
    """Return w_T for a set T of size ``joined`` out of a term's ``of`` columns."""
    if inside:
        return math.factorial(joined - 1) * math.factorial(of - joined) / math.factorial(of)
    return -math.factorial(joined) * math.factorial(of - joined - 1) / math.factorial(of)


def _games(
    model: TermModel, design: ColumnDesign, background: FloatArray
) -> dict[Node, dict[Columns, FloatArray]]:
    """Return v as coefficients c_T of the parts of the terms.

    The first key is the part of a node in the columns T, the second all columns S of the node. The
    coefficients of all terms with the same two are added.
    """
    kept = model.kept()
    splits = {node: _splits(design, node) for node in kept.nodes}
    rests = sorted({rest for pairs in splits.values() for _, rest in pairs})
    means = _means(design, rests, background)
    widths = {pair: _width(design, pair) for node in kept.nodes for pair in node}
    out: defaultdict[Node, dict[Columns, FloatArray]] = defaultdict(dict)
    for node, block in zip(kept.nodes, kept.blocks, strict=True):
        tensor = block.reshape(*(widths[pair] for pair in node), *block.shape[1:])
        columns = _columns(design, node)
        for part, rest in splits[node]:
            axes = [node.index(pair) for pair in rest]
            mean = means[rest].reshape([widths[pair] for pair in rest])
            coef = np.tensordot(tensor, mean, axes=(axes, range(len(axes))))
            # Contraction moves no other axis, so that the outputs stay last.
            flat = coef.reshape(-1, *block.shape[1:])
            known = out[part].get(columns)
            out[part][columns] = flat if known is None else known + flat
    return dict(out)


def _splits(design: ColumnDesign, node: Node) -> list[tuple[Node, Node]]:
    """Return all pairs of a node's part in some of its columns, and the part in the others."""
    columns = sorted(_columns(design, node))
    out = []
    for size in range(len(columns) + 1):
        for some in itertools.combinations(columns, size):
            inside = [pair for pair in node if design.table.input_of(pair[0]) in some]
            rest = [pair for pair in node if design.table.input_of(pair[0]) not in some]
            out.append((tuple(inside), tuple(rest)))
    return out


def _width(design: ColumnDesign, pair: tuple[int, int]) -> int:
    m, level = pair
    return design.bases[m].widths[level]


def _features(design: ColumnDesign, nodes: list[Node], rows: FloatArray) -> dict[Node, FloatArray]:
    """Return the features of nodes on rows; those of the root are ones."""
    found = design.features([node for node in nodes if node], rows)
    found[()] = np.ones((len(rows), 1))
    return found


def _means(design: ColumnDesign, nodes: list[Node], rows: FloatArray) -> dict[Node, FloatArray]:
    """Return the means of the features of nodes over rows, computed in chunks of rows."""
    out = {node: np.zeros(math.prod(_width(design, pair) for pair in node)) for node in nodes}
    step = max(1, _CHUNK_NUMBERS // sum(len(mean) for mean in out.values()))
    for start in range(0, len(rows), step):
        for node, features in _features(design, nodes, rows[start : start + step]).items():
            if node in out:
                out[node] += np.sum(features, axis=0) / len(rows)
    return out
