"""Products by groups of equal rows are those of the features themselves."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.engines.numpy_engine import NumpyEngine

N_ROWS = 600


def categories(rng, n_groups, width):
    return rng.standard_normal((n_groups, width))[rng.integers(0, n_groups, N_ROWS)]


def engine(seed=0):
    """Return an engine with levels of 10, 33 and 11 columns that repeat, and numbers."""
    rng = np.random.default_rng(seed)
    one = np.ones((N_ROWS, 1))
    levels = [
        [one, categories(rng, 11, 10), categories(rng, 34, 33)],
        [one, categories(rng, 12, 11)],
        [one, rng.standard_normal((N_ROWS, 1)), rng.standard_normal((N_ROWS, 3))],
    ]
    widths = [tuple(level.shape[1] for level in variable) for variable in levels]
    return NumpyEngine(widths, levels, rng.uniform(0.5, 2.0, N_ROWS), [True] * 3), rng


NODES = [
    (),
    ((0, 1),),
    ((0, 2),),
    ((2, 1),),
    ((0, 1), (1, 1)),
    ((0, 2), (1, 1)),
    ((0, 2), (2, 2)),
    ((0, 1), (1, 1), (2, 2)),
]


@pytest.mark.parametrize("right", [NODES, NODES[2:5]])
def test_gram_matrices_are_those_of_the_features(right, monkeypatch):
    monkeypatch.setattr("hikernel.engines.repeated_rows._CHUNK_NUMBERS", 2**16)  # several chunks
    rows, rng = engine()
    assert rows._features.repeated is not None
    weights = rng.uniform(0.5, 2.0, N_ROWS)
    left_means, right_means = rows.means(NODES) + 0.1, rows.means(right)
    if right is NODES:
        left_means = right_means
    a, b = rows.features(NODES) - left_means, rows.features(right) - right_means
    naive = a.T @ (weights[:, None] * b)
    found = rows.gram(NODES, right, left_means, right_means, weights)
    np.testing.assert_allclose(found, naive, rtol=0.0, atol=1e-12 * np.max(np.abs(naive)))


def test_scores_are_those_of_the_features():
    rows, rng = engine()
    vector = rng.standard_normal(N_ROWS)
    found = rows.extension_squares(NODES, vector)
    for i, prefix in enumerate(NODES):
        for j, pair in enumerate(rows.level_pairs):
            if pair[0] in dict(prefix):
                assert np.isnan(found[i, j])
                continue
            node = tuple(sorted((*prefix, pair)))
            naive = float(np.sum((rows.features([node]).T @ vector) ** 2))
            assert found[i, j] == pytest.approx(naive, rel=1e-10)


def test_products_are_taken_by_groups_only_where_rows_repeat():
    rows, _ = engine()
    repeated = rows._features.repeated
    assert [repeated._is_grouped(node) for node in NODES] == [
        *(False, False, True, False, True, True, True, True),
    ]
    rng = np.random.default_rng(0)
    wide = [np.ones((N_ROWS, 1)), rng.standard_normal((N_ROWS, 40))]  # no two rows are equal
    alone = NumpyEngine([(1, 40)], [wide], np.ones(N_ROWS), [True])
    assert not alone._features.repeated._is_grouped(((0, 1),))


def test_narrow_levels_are_multiplied_as_before():
    rng = np.random.default_rng(0)
    narrow = [np.ones((N_ROWS, 1)), categories(rng, 32, 31)]
    assert NumpyEngine([(1, 31)], [narrow], np.ones(N_ROWS), [True])._features.repeated is None
