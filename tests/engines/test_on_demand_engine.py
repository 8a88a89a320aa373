"""Columns on demand: every verb against the matrix they make."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.engines import machine
from hikernel.engines.block_engine import BlockEngine
from hikernel.engines.on_demand_engine import OnDemandEngine
from hikernel.errors import MemoryPlanError

N = 15
RNG = np.random.default_rng(0)
TABLE = {node: RNG.poisson(2.0, N).astype(float) for node in "abcd"}
WEIGHTS = RNG.uniform(0.5, 2.0, N)
NODES = ["c", "a", "d"]


def engines(rows=None):
    """The engine, and the same rows as blocks of one column."""
    columns = OnDemandEngine(TABLE.__getitem__, np.arange(N), WEIGHTS)
    blocks = BlockEngine({v: column[:, None] for v, column in TABLE.items()}, {}, WEIGHTS)
    return (columns, blocks) if rows is None else (columns.subset(rows), blocks.subset(rows))


@pytest.fixture(params=["all", "some", "some of some"])
def both(request):
    if request.param == "all":
        return engines()
    ours, theirs = engines(np.array([2, 0, 2, 9, 14, 3]))
    if request.param == "some of some":
        again = np.array([4, 1, 5, 5])
        return ours.subset(again), theirs.subset(again)
    return ours, theirs


def test_it_is_the_engine_of_one_column_blocks(both):
    ours, theirs = both
    rng = np.random.default_rng(1)
    n = theirs.n_rows
    assert ours.n_rows == n
    np.testing.assert_allclose(ours.row_weights, theirs.row_weights)
    assert ours.row_weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(ours.features(NODES), theirs.features(NODES))
    assert [ours.width(node) for node in NODES] == [1, 1, 1]
    assert ours.kernel_operator(NODES) is None
    other = rng.uniform(0.0, 3.0, n)
    for weights in (None, other):
        means = ours.means(NODES, weights)
        np.testing.assert_allclose(means, theirs.means(NODES, weights))
        moments = ours.gram(NODES, NODES[:2], means, means[:2], weights)
        expected = theirs.gram(NODES, NODES[:2], means, means[:2], weights)
        np.testing.assert_allclose(moments, expected, atol=1e-12)
    means = ours.means(NODES)
    np.testing.assert_allclose(
        ours.gram_diagonal(NODES, means), theirs.gram_diagonal(NODES, means), atol=1e-12
    )
    for vector in (rng.standard_normal(n), rng.standard_normal((n, 2))):
        for absolute in (False, True):
            np.testing.assert_allclose(
                ours.correlate(NODES, vector, absolute=absolute),
                theirs.correlate(NODES, vector, absolute=absolute),
            )
        for up in (False, True):
            np.testing.assert_allclose(
                ours.score_squares(NODES, vector, rounded_up=up),
                theirs.score_squares(NODES, vector, rounded_up=up),
            )
        coef = rng.standard_normal((3, *vector.shape[1:]))
        np.testing.assert_allclose(ours.apply(NODES, coef), theirs.apply(NODES, coef))


def test_nothing_is_asked_for_no_nodes():
    ours, _ = engines()
    assert ours.features([]).shape == (N, 0)
    assert ours.correlate([], np.ones(N)).shape == (0,)
    np.testing.assert_array_equal(ours.apply([], np.zeros(0)), np.zeros(N))


def test_columns_are_made_when_asked_for_and_not_kept():
    asked = []

    def column(node):
        asked.append(node)
        return TABLE[node]

    engine = OnDemandEngine(column, np.arange(N), WEIGHTS)
    assert asked == []
    engine.features(["a"])
    engine.features(["a", "b"])
    assert asked == ["a", "a", "b"]


def test_memory_is_planned(monkeypatch):
    ours, _ = engines()
    monkeypatch.setattr(machine, "available_bytes", lambda: 3 * 8 * N * 3 - 1)
    with pytest.raises(MemoryPlanError, match=r"features of 3 nodes for 15 rows.*max_kernels"):
        ours.features(NODES)
    assert ours.features(NODES[:2]).shape == (N, 2)
