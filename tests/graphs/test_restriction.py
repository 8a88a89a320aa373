"""Restricted grids against enumeration: families of sets, boxes, children, sources, counts."""

import itertools

import numpy as np
import pytest
from oracles.restrictions import all_supports, naive_permits, random_restriction

from hikernel.graphs import Grid, boxes, restriction
from hikernel.graphs.boxes import cover, n_vertices
from hikernel.graphs.restriction import Restriction

SEEDS = range(16)


@pytest.mark.parametrize("dense", [0, 10**6])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_family_is_what_its_rules_say(seed, dense, monkeypatch):
    monkeypatch.setattr(restriction, "_DENSE", dense)
    rng = np.random.default_rng(seed)
    rule = random_restriction(rng, 6)
    supports = all_supports(rule)
    inside = [naive_permits(rule, support) for support in supports]
    assert rule.permits(supports).tolist() == inside
    family = set(itertools.compress(supports, inside))
    assert all(set(itertools.combinations(s, len(s) - 1)) <= family for s in family if s)
    members = sorted(family)
    joins = rule.partners(members)
    for support, row in zip(members, joins, strict=True):
        expected = [
            m not in support and tuple(sorted((*support, m))) in family
            for m in range(len(rule.column_of))
        ]
        assert row.tolist() == expected
    assert rule.largest_term >= max(map(len, family))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_boxes_cover_the_sets_that_contain_a_set(seed, most):
    rng = np.random.default_rng(seed)
    rule = random_restriction(rng, 6, indicators=0)
    limit = [None, 2, 3][seed % 3]
    family = [s for s in all_supports(rule) if naive_permits(rule, s) and len(s) <= (limit or 9)]
    for start in [s for s in family if len(s) <= 2]:
        found = cover(rule, start, limit, most)
        assert len(found.boxes) <= max(1, most)
        members = [
            frozenset((*box.required, *some))
            for box in found.boxes
            for size in range(min(box.limit - len(box.required), len(box.free)) + 1)
            for some in itertools.combinations(box.free, size)
        ]
        wanted = {frozenset(s) for s in family if set(start) <= set(s)}
        assert wanted <= set(members)
        if found.exact:
            assert set(members) == wanted
            assert len(members) - len(found.repeated) == len(wanted)
        assert found.exact or most < 1000


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restricted_grid_is_the_family_times_levels(seed):
    rng = np.random.default_rng(seed)
    rule = random_restriction(rng, 4, indicators=seed % 2)
    p = len(rule.column_of)
    levels = rng.integers(0, 3, size=p)
    parents = [tuple(int(rng.integers(j)) for j in range(1, q + 1)) for q in levels]
    limit = [None, 1, 2, 3][seed % 4]
    weights = tuple((1.0, *[2.0] * q) for q in levels)
    grid = Grid(weights, 1.0, limit, tuple(parents), rule)
    whole = Grid(weights, 1.0, limit, tuple(parents))
    every = [()]
    for m, q in enumerate(levels):
        every += [(*node, (m, j)) for node in every for j in range(1, q + 1)]
    inside = {
        node
        for node in every
        if len(node) <= (limit or p) and naive_permits(rule, [m for m, _ in node])
    }
    assert {node for node in every if node in grid} == inside
    assert grid.n_vertices == len(inside)
    assert n_vertices(rule, tuple(levels.tolist()), limit) == (len(inside), True)
    for node in inside:
        assert set(grid.children(node)) == set(whole.children(node)) & inside
        assert set(grid.ancestors(node)) <= inside
    chosen = [sorted(inside)[i] for i in rng.integers(len(inside), size=3)]
    hull = grid.hull(chosen)
    expected = {v for v in inside - hull if all(u in hull for u in grid.parents(v))}
    assert set(grid.sources_of_complement(sorted(hull))) == expected
    assert grid.hull(grid.extreme_points(hull)) == hull


def test_the_number_of_vertices_of_large_grids():
    """Groups, one column with all others, one column alone, and all pairs of a thousand columns."""
    p, q = 60, 3
    groups = Restriction(
        tuple(range(p)), tuple((tuple(range(i, i + 6)), 0) for i in range(0, p, 6))
    )
    assert n_vertices(groups, (q,) * p, None) == (10 * (4**6 - 1) + 1, True)
    first = Restriction(tuple(range(p)), (((0,), 1),))
    assert n_vertices(first, (q,) * p, None) == (1 + p * q + (p - 1) * q * q, True)
    alone = Restriction(tuple(range(p))).without_interactions_of([5])
    assert n_vertices(alone, (q,) * p, None) == (4**59 + q, True)
    pairs = Restriction(tuple(range(1000)), (((), 2),), (((3, 7), 0),))
    assert n_vertices(pairs, (1,) * 1000, None) == (1 + 1000 + 1000 * 999 // 2 - 1, True)
    hard = Restriction(tuple(range(p)), None, tuple(((i, i + 1), 0) for i in range(p - 1)))
    count, exact = n_vertices(hard, (1,) * p, None)
    fibonacci = [1, 2]
    while len(fibonacci) <= p:
        fibonacci.append(sum(fibonacci[-2:]))
    assert not exact
    assert fibonacci[p] <= count < 2**p


def test_columns_in_no_interaction_come_on_top_of_the_rule():
    rule = Restriction((0, 1, 2, 0), (((0, 1, 2), 0),)).without_interactions_of([0])
    assert rule.permits([(0, 1), (3, 1), (1, 2), (0,), (0, 3)]).tolist() == [
        *(False, False, True),
        *(True, False),
    ]
    assert rule.without_interactions_of([0]) == rule
    assert rule.largest_term == 2


@pytest.mark.parametrize("group", [((1, 0), 0), ((0, 0), 0), ((0,), 0), ((0, 9), 0), ((0, 1), -1)])
def test_impossible_groups_are_refused(group):
    with pytest.raises(ValueError, match="group"):
        Restriction((0, 1, 2), (group,))


def test_millions_of_sets_are_looked_at_in_parts(monkeypatch):
    rule = Restriction(tuple(range(9)), (((0,), 1), ((1, 2, 3), 0)), (((0, 5), 0),))
    pairs = list(itertools.combinations(range(9), 2))
    whole = rule.permits(pairs)
    sizes = []
    of = restriction._Sets.of
    monkeypatch.setattr(restriction, "_CHUNK", 9 * 4)
    monkeypatch.setattr(
        restriction._Sets, "of", lambda sets, n: sizes.append(len(sets)) or of(sets, n)
    )
    assert rule.permits(pairs).tolist() == whole.tolist()
    assert max(sizes) == 4


def test_boxes_stay_whole_where_splitting_them_would_take_too_long(monkeypatch):
    rule = Restriction(tuple(range(6)), None, tuple(((i, i + 1), 0) for i in range(5)))
    count, exact = n_vertices(rule, (1,) * 6, None)
    assert exact
    monkeypatch.setattr(boxes, "_MOST_ASKED", 6)
    bound, exact = n_vertices(rule, (1,) * 6, None)
    assert not exact
    assert bound > count
    found = cover(rule, (), None, 100)
    assert not found.exact
    assert len(found.boxes) > 1
