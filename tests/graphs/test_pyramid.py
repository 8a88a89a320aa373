"""Pyramid match against histograms by loops."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.graphs.pyramid import PyramidMatch

DEPTH = 3


def make(n, dim, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.standard_normal((rng.integers(0, 15), dim)) for _ in range(n - 1)] + [
        rng.standard_normal((5, dim))
    ]


def naive_cell(point, low, high, level):
    """The cell in exact arithmetic; the last one holds the upper face of the box."""
    out = []
    for x, a, b in zip(point, low, high, strict=True):
        x, a, b = Fraction(float(x)), Fraction(float(a)), Fraction(float(b))
        out.append(2**level - 1 if x == b else floor((x - a) / (b - a) * 2**level))
    return tuple(out)


def naive_kernel(x, z, low, high, level):
    left, right = (Counter(naive_cell(p, low, high, level) for p in cloud) for cloud in (x, z))
    return sum(min(left[cell], right[cell]) for cell in left)


@pytest.mark.parametrize("dim", [1, 2, 3])
@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_kernels_equal_loops_over_cells(dim, seed):
    train, new = make(6, dim, seed), make(4, dim, seed + 1, scale=3.0)
    points = np.concatenate(train)
    low, high = points.min(axis=0), points.max(axis=0)
    match = PyramidMatch(DEPTH, normalize=False).fit(train)
    for level in range(DEPTH + 1):
        expected = [[naive_kernel(x, z, low, high, level) for z in train] for x in new]
        np.testing.assert_array_equal(match.kernel(level)(new, train), expected)


@pytest.mark.parametrize("normalize", [False, True])
@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_what_a_kernel_must_be(normalize, seed):
    train = make(8, 2, seed)
    match = PyramidMatch(DEPTH, normalize=normalize).fit(train)
    grams = match.grams(train, train)
    sizes = np.array([len(cloud) for cloud in train])
    diagonal = (sizes > 0).astype(float) if normalize else sizes
    for level, gram in enumerate(grams):
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() > -1e-10
        np.testing.assert_array_equal(np.diag(gram), diagonal)
        part = match.kernel(level)(train[2:5], train[1:7])
        np.testing.assert_array_equal(part, gram[2:5, 1:7])
    # Cells only split: finer levels match less.
    assert (np.diff(grams, axis=0) <= 0.0).all()


def test_normalised_is_the_cosine():
    train = make(6, 2, 0)
    plain = PyramidMatch(2, normalize=False).fit(train).grams(train, train)
    root = np.sqrt(np.maximum(1.0, [len(cloud) for cloud in train]))
    cosine = PyramidMatch(2).fit(train).grams(train, train)
    np.testing.assert_allclose(cosine, plain / np.outer(root, root), rtol=1e-14)


def test_the_order_of_points_does_not_matter():
    train = make(6, 2, 3)
    rng = np.random.default_rng(0)
    mixed = [rng.permutation(cloud) for cloud in train]
    match = PyramidMatch(DEPTH).fit(train)
    np.testing.assert_array_equal(match.grams(train, train), match.grams(mixed, train))


def test_units_do_not_matter():
    train = make(6, 3, 4)
    scale, shift = np.array([1e-3, 1.0, 1e6]), np.array([0.0, 5.0, -1e3])
    moved = [cloud * scale + shift for cloud in train]
    here, there = PyramidMatch(DEPTH).fit(train), PyramidMatch(DEPTH).fit(moved)
    np.testing.assert_array_equal(here.grams(train, train), there.grams(moved, moved))


def test_points_outside_lie_in_cells_of_their_own():
    match = PyramidMatch(1, normalize=False).fit([np.array([[0.0], [4.0]])])
    clouds = [np.array([[x]]) for x in (4.0, 4.5, 5.0, 6.5, -0.5, 0.0, 1e300, -1e300)]
    groups = [0, 1, 1, 2, 3, 4, 5, 6]  # cells of length 2; 4 closes the box
    expected = np.equal.outer(groups, groups).astype(float)
    np.testing.assert_array_equal(match.kernel(1)(clouds, clouds), expected)
    groups = [0, 1, 1, 1, 2, 0, 3, 4]
    expected = np.equal.outer(groups, groups).astype(float)
    np.testing.assert_array_equal(match.kernel(0)(clouds, clouds), expected)


def test_a_constant_coordinate_is_robust_to_rounding():
    rng = np.random.default_rng(5)
    train = [np.column_stack([rng.random(6), np.full(6, 0.1)]) for _ in range(5)]
    match = PyramidMatch(10).fit(train)
    noisy = [cloud + np.array([0.0, (-1) ** i * 1e-9]) for i, cloud in enumerate(train)]
    np.testing.assert_array_equal(match.grams(noisy, train), match.grams(train, train))
    one_point = PyramidMatch(3).fit([np.ones((2, 2))])
    np.testing.assert_array_equal(one_point.grams([np.ones((4, 2))], [np.ones((4, 2))]), 1.0)


def test_every_training_point_is_in_the_box():
    # Sides for which (high - low) / side need not be 1 after rounding.
    rng = np.random.default_rng(6)
    train = [rng.standard_normal((4, 2)) * 10.0 ** rng.integers(-8, 8) for _ in range(50)]
    gram = PyramidMatch(0, normalize=False).fit(train).kernel(0)(train, train)
    np.testing.assert_array_equal(gram, 4.0)


def test_a_kernel_survives_pickling():
    train = make(4, 2, 7)
    kernel = PyramidMatch(2).fit(train).kernel(2)
    copy = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(copy(train, train), kernel(train, train))


@pytest.mark.parametrize(
    ("clouds", "message"),
    [
        ([], "is empty"),
        ([np.zeros((0, 2))], "No cloud has a point"),
        ([np.zeros((3, 2)), np.zeros((3, 3))], "those of cloud 1 have 3"),
        ([np.zeros((3, 2)), np.zeros(3)], "Cloud 1 must have shape"),
        ([[["a", "b"]]], "Cloud 0 is no array"),
        ([[[0.0, np.nan]]], "not finite"),
        ([[[-1e308], [1e308]]], "rescale"),
    ],
)
def test_bad_clouds_are_told_in_a_sentence(clouds, message):
    with pytest.raises(ValueError, match=message):
        PyramidMatch(2).fit(clouds)


@pytest.mark.parametrize("depth", [-1, 49, 1.5, True])
def test_bad_depths_are_refused(depth):
    with pytest.raises(ValueError, match="depth"):
        PyramidMatch(depth)


def test_bad_calls_are_told_in_a_sentence():
    match = PyramidMatch(2)
    with pytest.raises(ValueError, match="Call fit"):
        match.kernel(0)([np.zeros((1, 1))], [np.zeros((1, 1))])
    with pytest.raises(ValueError, match="level"):
        match.kernel(3)
    match.fit([np.zeros((1, 2))])
    with pytest.raises(ValueError, match="must have 2 coordinates"):
        match.kernel(0)([np.zeros((1, 3))], [np.zeros((1, 2))])
