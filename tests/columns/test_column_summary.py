"""Summaries of columns: merging is adding, and the stated error holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.bases.column import Column
from hikernel.columns.column_summary import ColumnSummary, weighted_median

COLUMNS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "far from zero": lambda rng, n: 1.7e9 + 1e4 * rng.standard_normal(n),
    "heavy tails": lambda rng, n: np.exp(4.0 * rng.standard_normal(n)),
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
    "huge": lambda rng, n: rng.choice([-1.0, 1.0], n) * 1.7e308 * rng.random(n),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
}


def summary_of(x, weights, center, cuts, most):
    parts = np.split(np.arange(len(x)), cuts)
    total = ColumnSummary.of(x[parts[0]], weights[parts[0]], center, most)
    for part in parts[1:]:
        total = total.merge(ColumnSummary.of(x[part], weights[part], center, most), most)
    return total


@pytest.mark.parametrize("name", COLUMNS)
def test_no_value_moves_by_more_than_is_said(name):
    rng = np.random.default_rng(0)
    x, weights = COLUMNS[name](rng, 20_000), rng.uniform(0.5, 2.0, 20_000)
    center = weighted_median(x, weights)
    summary = summary_of(x, weights, center, [7, 5000], most=100)
    assert not summary.is_exact
    known = ~np.isnan(x)
    values = np.sort(summary.values())
    ordered = np.sort(x[known])
    # Cells are intervals: with equal weights, the k-th smallest value lies in the k-th cell.
    plain = ColumnSummary.of(ordered, np.ones(len(ordered)), center, 100)
    order = np.argsort(plain.values())
    moved = np.repeat(plain.values()[order], plain.weights[order].astype(int))
    with np.errstate(over="ignore"):
        distance = np.abs(ordered - center)
    allowed = 2.0**-12 * distance + 1e-15 * np.abs(ordered)
    assert np.all(np.abs(moved - ordered) <= allowed)
    np.testing.assert_allclose(summary.weights.sum(), weights[known].sum(), rtol=1e-12)
    if name != "huge":
        mean = summary.weights @ summary.values() / summary.weights.sum()
        wanted = np.average(x[known], weights=weights[known])
        np.testing.assert_allclose(mean - center, wanted - center, rtol=1e-9, atol=1e-12)
        spread = np.average((x[known] - wanted) ** 2, weights=weights[known])
        found = summary.weights @ (summary.values() - wanted) ** 2 / summary.weights.sum()
        assert (
            0.0 <= 1.0 - found / spread <= 2.0**-24 * (1 + (wanted - center) ** 2 / spread) + 1e-9
        )
    assert len(values) < 20_000 or name == "huge"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 300), max_size=4), st.sampled_from([5, 1000]))
def test_a_summary_does_not_depend_on_how_rows_are_cut(seed, cuts, most):
    rng = np.random.default_rng(seed)
    x = rng.choice([rng.standard_normal(300), rng.integers(-9, 9, 300).astype(float)])
    weights = rng.uniform(0.5, 2.0, 300)
    whole = ColumnSummary.of(x, weights, 0.25, most)
    cut = summary_of(x, weights, 0.25, sorted(cuts), most)
    assert whole.is_exact == cut.is_exact == (np.unique(x).size <= most)
    np.testing.assert_array_equal(cut.cells, whole.cells)
    np.testing.assert_allclose(cut.weights, whole.weights, rtol=1e-13)
    np.testing.assert_allclose(cut.means, whole.means, rtol=1e-12)


def test_a_column_of_few_values_is_the_column_in_memory():
    rng = np.random.default_rng(1)
    x = rng.choice([-0.0, 0.0, 3.0, -1e-300, 7.5, np.nan], 500)
    weights = rng.uniform(0.5, 2.0, 500)
    expected = Column.from_rows(x, weights)
    found = summary_of(x, weights, 3.0, [100, 101, 400], 16).column()
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-13)
    assert found.position.size == 0
    empty = ColumnSummary.of(np.full(3, np.nan), np.ones(3), 0.0).column()
    assert empty.values.size == 0
