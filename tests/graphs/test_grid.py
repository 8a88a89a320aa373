"""The grid against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.naive import all_nodes, is_ancestor, random_tree, way_up

from hikernel.graphs import ROOT, Grid, geometric_weights, node_degree, node_name, node_order


def some_grid(levels, base, root, order, seed):
    """A grid of chains (no seed) or of random trees."""
    rng = np.random.default_rng(seed)
    trees = None if seed is None else tuple(random_tree(rng, q) for q in levels)
    return Grid(geometric_weights(levels, base), root, order, trees)


grids = st.builds(
    some_grid,
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    st.sampled_from([0.1, 1.0, 2.0]),
    st.sampled_from([None, 1, 2, 3]),
    st.none() | st.integers(0, 10**6),
)


@st.composite
def grid_and_set(draw):
    grid = draw(grids)
    nodes = all_nodes(grid)
    return grid, draw(st.lists(st.sampled_from(nodes), max_size=5))


@given(grids)
@settings(max_examples=50, deadline=None)
def test_relations_equal_enumeration(grid):
    nodes = all_nodes(grid)
    assert grid.n_vertices == len(nodes) == len(set(nodes))
    for v in nodes:
        assert v in grid
        degree = sum(len(way_up(j, m, grid)) - 1 for m, j in v)
        assert grid.degree(v) == grid.sort_key(v) == degree
        up = {u for u in nodes if is_ancestor(u, v, grid)}
        assert set(grid.ancestors(v)) == up
        assert len(grid.ancestors(v)) == len(up)
        assert set(grid.parents(v)) == {u for u in up if grid.degree(u) == degree - 1}
        down = {u for u in nodes if is_ancestor(v, u, grid)}
        assert set(grid.children(v)) == {u for u in down if grid.degree(u) == degree + 1}


@given(grids)
@settings(max_examples=50, deadline=None)
def test_scales_equal_sums_over_the_levels(grid):
    for m, (tail, own) in enumerate(zip(grid.tail_scales(), grid.own_scales(), strict=True)):
        d = grid.level_weights[m]
        expected = np.zeros((2, len(d), len(d)))
        for last in range(len(d)):
            way = way_up(last, m, grid)
            for i, j in enumerate(way):
                expected[:, j, last] = sum(d[r] for r in way[: i + 1]) ** -2.0, d[last] ** -2.0
        np.testing.assert_allclose(tail[: len(d)], expected[0])
        np.testing.assert_allclose(own[: len(d)], expected[1])
        if len(d) == 1:
            continue
        # The row of any level above 0 is the sum over the levels whose parent is 0.
        first = [j for j in range(1, len(d)) if way_up(j, m, grid)[1] == 0]
        assert grid.first_levels(m) == first
        np.testing.assert_allclose(tail[grid.any_level(m)], np.sum(expected[0, first], axis=0))
        np.testing.assert_allclose(own[grid.any_level(m)], np.sum(expected[1, first], axis=0))


@given(grid_and_set())
@settings(max_examples=100, deadline=None)
def test_hull_extreme_points_and_sources_equal_enumeration(case):
    grid, chosen = case
    nodes = all_nodes(grid)
    hull = {u for u in nodes if any(is_ancestor(u, v, grid) for v in chosen)}
    assert grid.hull(chosen) == hull
    assert grid.is_hull(hull)
    extreme = {u for u in hull if not any(u != v and is_ancestor(u, v, grid) for v in hull)}
    assert grid.extreme_points(chosen) == extreme
    outside = [u for u in nodes if u not in hull]
    inner = {u for u in outside if any(u != v and is_ancestor(v, u, grid) for v in outside)}
    sources = set(outside) - inner
    assert set(grid.sources_of_complement(hull)) == sources
    # Every node outside descends from a source: the tail bounds cover the whole graph.
    assert all(any(is_ancestor(t, u, grid) for t in sources) for u in outside)


def test_a_set_without_an_ancestor_is_no_hull():
    grid = Grid(geometric_weights([2, 2], 2.0))
    assert not grid.is_hull([((0, 2),)])
    assert grid.is_hull([(), ((0, 1),)])


def test_weights_are_products_with_a_root_of_its_own():
    grid = Grid(((1.0, 3.0), (1.0, 2.0, 5.0)), root_weight=0.1)
    assert grid.weight(ROOT) == 0.1
    assert grid.weight(((0, 1), (1, 2))) == 15.0
    np.testing.assert_allclose(grid.weights([ROOT, ((0, 1),)]), [0.1, 3.0])


def test_tail_scales_are_interval_sums():
    grid = Grid(((1.0, 2.0, 4.0),))
    (scales,) = grid.tail_scales()
    np.testing.assert_allclose(scales, [[1, 1 / 9, 1 / 49], [0, 1 / 4, 1 / 36], [0, 0, 1 / 16]])


def test_a_graph_of_ten_to_the_thirty_is_never_enumerated():
    grid = Grid(geometric_weights([4] * 60, 2.0))
    assert grid.n_vertices == 5**60 > 10**30
    deep = tuple((m, 1) for m in range(5))
    assert len(grid.hull([deep])) == 32
    assert len(grid.sources_of_complement([ROOT])) == 60


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="root_weight"):
        Grid(((1.0, 2.0),), root_weight=bad)
    with pytest.raises(ValueError, match="variable 0"):
        Grid(((1.0, bad),))


def test_max_order_limits_the_graph():
    grid = Grid(geometric_weights([4] * 2000, 2.0), max_order=2)
    assert grid.n_vertices == 1 + 8000 + 16 * 2000 * 1999 // 2
    assert ((0, 1), (1, 1), (2, 1)) not in grid
    assert len(grid.children(((0, 1), (1, 1)))) == 2
    with pytest.raises(ValueError, match="max_order"):
        Grid(((1.0, 2.0),), max_order=0)


def test_level_zero_has_weight_one():
    with pytest.raises(ValueError, match="Level 0 of variable 1"):
        Grid(((1.0, 2.0), (2.0, 2.0)))


def test_overflowing_weights_say_what_to_do():
    with pytest.raises(ValueError, match="weight_base nearer to 1"):
        Grid(geometric_weights([40], 1e10))


@pytest.mark.parametrize(
    "node", [((0, 3),), ((2, 1),), ((1, 1), (0, 1)), ((0, 0),), "x", ((0, 1), (0, 2))]
)
def test_what_is_not_a_node(node):
    assert node not in Grid(geometric_weights([2, 2], 2.0))


def test_names():
    node = ((0, 2), (2, 1))
    assert node_name(node, ["a", "b", "c"]) == "a^2 * c"
    assert node_order(node) == 2
    assert node_degree(node) == 3
