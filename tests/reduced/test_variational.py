"""eta, zeta, the norm and its dual, against loops; and the slips of the paper that live here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.naive import all_nodes, dual_norm_squared, is_ancestor, omega

from hikernel.graphs import Grid, geometric_weights
from hikernel.reduced import HullMap
from hikernel.reduced import variational as module


@st.composite
def hulls(draw):
    levels = draw(st.lists(st.integers(1, 2), min_size=1, max_size=4))
    grid = Grid(
        geometric_weights(levels, draw(st.sampled_from([0.5, 1.0, 2.0]))),
        draw(st.sampled_from([0.1, 1.0])),
    )
    chosen = draw(st.lists(st.sampled_from(all_nodes(grid)), min_size=1, max_size=4))
    nodes = sorted(grid.hull(chosen), key=lambda v: (len(v), v))
    return grid, nodes, draw(st.integers(0, 2**31))


@given(hulls())
@settings(max_examples=60, deadline=None)
def test_maps_equal_loops(case):
    grid, nodes, seed = case
    rng = np.random.default_rng(seed)
    hull = HullMap(nodes, grid)
    theta = rng.dirichlet(np.ones(len(nodes))) + 1e-9
    theta /= theta.sum()
    eta = hull.eta(theta)
    assert hull.weights**2 @ eta == pytest.approx(1.0)
    inverse = 1.0 / eta
    zeta = [1.0 / sum(inverse[i] for i, v in enumerate(nodes) if is_ancestor(v, w)) for w in nodes]
    np.testing.assert_allclose(hull.zeta(eta), zeta, rtol=1e-12)
    norms = rng.uniform(0, 1, len(nodes))
    assert hull.norm(norms**2) == pytest.approx(omega(grid, nodes, norms))
    middle = rng.standard_normal((len(nodes), len(nodes)))
    middle += middle.T
    kappa = np.array(
        [[zeta[j] / eta[i] if is_ancestor(v, w) else 0.0 for j, w in enumerate(nodes)]
         for i, v in enumerate(nodes)]
    )  # fmt: skip
    np.testing.assert_allclose(kappa.sum(axis=0), 1.0)
    np.testing.assert_allclose(
        hull.sandwich(middle, eta, np.array(zeta)), kappa @ middle @ kappa.T, rtol=1e-9, atol=1e-9
    )


@given(hulls())
@settings(max_examples=60, deadline=None)
def test_the_norm_is_the_minimum_over_eta(case):
    grid, nodes, seed = case
    rng = np.random.default_rng(seed)
    hull = HullMap(nodes, grid)
    squares = rng.uniform(0.1, 1, len(nodes)) ** 2
    best = hull.descendant_norms(squares) / hull.weights / hull.norm(squares)
    assert hull.weights**2 @ best == pytest.approx(1.0)
    assert squares @ (1.0 / hull.zeta(best)) == pytest.approx(hull.norm(squares) ** 2)
    other = hull.eta(rng.dirichlet(np.ones(len(nodes))) + 1e-12)
    assert squares @ (1.0 / hull.zeta(other)) >= hull.norm(squares) ** 2 * (1 - 1e-9)


@given(hulls())
@settings(max_examples=40, deadline=None)
def test_dual_norm_bounds_are_valid_and_get_tight(case):
    grid, nodes, seed = case
    rng = np.random.default_rng(seed)
    hull = HullMap(nodes, grid)
    squares = rng.uniform(0, 1, len(nodes)) ** 2
    attained = dual_norm_squared(grid, nodes, squares, rounds=300)
    start = hull.eta(rng.dirichlet(np.ones(len(nodes))) + 1e-6)
    start /= hull.weights**2 @ start
    first = hull.refine_dual_norm(squares, start, rounds=0).value
    refined = hull.refine_dual_norm(squares, start, rounds=400)
    assert first >= attained * (1 - 1e-9)
    assert attained * (1 - 1e-9) <= refined.value <= first
    assert refined.value == pytest.approx(
        hull.refine_dual_norm(squares, refined.eta, rounds=0).value
    )
    assert refined.value <= 1.05 * attained + 1e-12


def test_refinement_stops_when_it_is_enough_and_survives_zero_scores():
    grid = Grid(geometric_weights([2, 2], 2.0))
    hull = HullMap(all_nodes(grid), grid)
    eta = hull.eta(np.full(hull.size, 1.0 / hull.size))
    zero = hull.refine_dual_norm(np.zeros(hull.size), eta)
    assert zero.value == 0.0
    one = np.zeros(hull.size)
    one[3] = 1.0
    refined = hull.refine_dual_norm(one, eta, rounds=200)
    assert 0.0 < refined.value <= hull.refine_dual_norm(one, eta, rounds=0).value
    assert np.all(refined.eta > 0.0)
    early = hull.refine_dual_norm(one, eta, rounds=200, enough=np.inf)
    np.testing.assert_array_equal(early.eta, eta)


def test_sparse_and_dense_relations_agree(monkeypatch):
    grid = Grid(geometric_weights([2, 2, 1], 2.0))
    nodes = all_nodes(grid)
    eta = np.random.default_rng(0).uniform(0.1, 1, len(nodes))
    middle = np.eye(len(nodes))
    results = []
    for threshold in (-1.0, 2.0):
        monkeypatch.setattr(module, "_DENSE_ABOVE", threshold)
        monkeypatch.setattr(module, "_DENSE_BELOW", 0)
        hull = HullMap(nodes, grid)
        results.append((hull.zeta(eta), hull.sandwich(middle, eta, hull.zeta(eta))))
    for dense, sparse in zip(*results, strict=True):
        np.testing.assert_allclose(dense, sparse, rtol=1e-12)


def test_a_hull_with_a_hole_is_refused():
    grid = Grid(geometric_weights([2], 2.0))
    with pytest.raises(ValueError, match="ancestor"):
        HullMap([(), ((0, 2),)], grid)


class TestSlips:
    """Slip 2 of the paper: on a tree the set of zetas is convex, with the roles put right."""

    def setup_method(self):
        # A chain root - 1 - 2 is a tree.
        self.grid = Grid(geometric_weights([2], 2.0))
        self.nodes = [(), ((0, 1),), ((0, 2),)]
        self.hull = HullMap(self.nodes, self.grid)

    def test_the_root_not_the_leaf_has_zeta_equal_eta(self):
        eta = np.array([0.5, 0.1, 0.02])
        zeta = self.hull.zeta(eta)
        assert zeta[0] == pytest.approx(eta[0])
        assert abs(zeta[2] - eta[2]) > 1e-3

    def test_the_constraint_in_zeta(self):
        d = self.hull.weights
        rng = np.random.default_rng(0)
        for _ in range(20):
            eta = self.hull.eta(rng.dirichlet(np.ones(3)))
            zeta = self.hull.zeta(eta)
            total = d[0] ** 2 * zeta[0]
            for v, parent in ((1, 0), (2, 1)):
                total += d[v] ** 2 * (zeta[v] + zeta[v] ** 2 / (zeta[parent] - zeta[v]))
            assert total == pytest.approx(d**2 @ eta)

    def test_that_constraint_is_convex(self):
        d = self.hull.weights

        def total(zeta):
            out = d[0] ** 2 * zeta[0]
            for v, parent in ((1, 0), (2, 1)):
                out += d[v] ** 2 * (zeta[v] + zeta[v] ** 2 / (zeta[parent] - zeta[v]))
            return out

        rng = np.random.default_rng(1)
        for _ in range(200):
            a = self.hull.zeta(self.hull.eta(rng.dirichlet(np.ones(3))))
            b = self.hull.zeta(self.hull.eta(rng.dirichlet(np.ones(3))))
            assert total(0.5 * (a + b)) <= 0.5 * (total(a) + total(b)) + 1e-12
