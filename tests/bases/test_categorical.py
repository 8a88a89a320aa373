"""Categories: one block, bounded, and blind to how the codes are written."""

from __future__ import annotations

import numpy as np
import pytest
from bases.cases import level_kernels

from hikernel.bases import Categorical, OrthonormalPolynomial, RankPolynomial, make_basis


def drawn(shares, n=400, seed=0):
    codes = np.random.default_rng(seed).choice(len(shares), size=n, p=shares).astype(float)
    codes[: len(shares)] = np.arange(len(shares))
    return codes


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.2, 0.3, 0.5], [0.05] * 20, [0.7, 0.1, 0.1, 0.1]])
def test_the_block_is_centred_with_total_variance_one(shares):
    codes = drawn(shares)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, size=codes.size)
    fitted = Categorical().fit(codes, weights)
    assert fitted.widths == (1, len(shares) - 1)
    block = fitted.transform(codes)[1]
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ block, 0.0, atol=1e-14)
    assert (share @ block**2).sum() == pytest.approx(1.0)
    assert np.abs(block).max() <= 2.0


@pytest.mark.parametrize("bound", [2.0, 0.5, 10.0])
@pytest.mark.parametrize("rare", [1, 3, 30])
def test_rare_categories_stay_within_the_bound(bound, rare):
    codes = np.zeros(10_000)
    codes[:rare] = np.arange(1, rare + 1)
    block = Categorical(bound).fit(codes).transform(codes)[1]
    longest = np.sqrt((block**2).sum(axis=1).max())
    # With shares this rare a total variance of one would take rows longer than 18.
    assert longest == pytest.approx(bound)
    assert block.var(axis=0).sum() < 1.0


def test_a_category_of_almost_all_the_weight_loses_no_digits():
    weights = np.array([1.0, 1e-12])
    block = Categorical(bound=1e9).fit([0.0, 1.0], weights).transform([0.0, 1.0])[1]
    w = 1e-12 / (1.0 + 1e-12)
    expected = [-np.sqrt(w / (1 - w)), np.sqrt((1 - w) / w)]
    np.testing.assert_allclose(block[:, 0], expected, rtol=1e-12, atol=1e-15 * expected[1])


def test_two_categories_are_the_other_bases_linear_level():
    codes = drawn([0.6, 0.4])
    level = Categorical().fit(codes).transform(codes)[1]
    np.testing.assert_allclose(level, OrthonormalPolynomial(3).fit(codes).transform(codes)[1])
    rare = drawn([0.95, 0.05])
    level = Categorical().fit(rare).transform(rare)[1]
    np.testing.assert_allclose(level, RankPolynomial(3).fit(rare).transform(rare)[1])


def test_which_code_a_category_has_does_not_matter():
    codes = drawn([0.1, 0.2, 0.3, 0.4])
    names = np.array([17.0, -3.5, 1e15 + 1, 0.1])
    plain = level_kernels(Categorical().fit(codes), codes[:50])
    named = level_kernels(
        Categorical().fit(names[codes.astype(int)]), names[codes[:50].astype(int)]
    )
    for left, right in zip(plain, named, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-14)


def test_many_codes_survive_exactly():
    # Standardising would merge or shift some of these; each must find its own row.
    codes = np.arange(3000.0)
    table = Categorical(most=3000).fit(codes).transform(codes)[1]
    distance = ((table[1:] - table[:-1]) ** 2).sum(axis=1)
    np.testing.assert_allclose(distance, 2.0 / (1.0 - 1.0 / 3000), rtol=1e-10)


def test_unseen_and_missing_values_give_zero():
    fitted = Categorical().fit([0.0, 1.0, 3.0, 3.0])
    one, block = fitted.transform([-1.0, 2.0, 4.0, 0.5, np.nan, 1e308])
    np.testing.assert_array_equal(one, np.ones((6, 1)))
    np.testing.assert_array_equal(block, np.zeros((6, 2)))


def test_categories_of_weight_zero_are_unseen():
    fitted = Categorical().fit([0.0, 1.0, 2.0], [1.0, 1.0, 0.0])
    assert fitted.widths == (1, 1)
    assert not fitted.transform([2.0])[1].any()


def test_by_name():
    assert make_basis("categorical", degree=4) == Categorical()


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, "2", True])
def test_the_bound_is_checked(bound):
    with pytest.raises(ValueError, match=r"bound .*positive"):
        Categorical(bound)


def towns(n_towns=200, n=4000, seed=0):
    """Codes of towns, of which the k-th has a share that falls like 1/k."""
    shares = 1.0 / np.arange(1, n_towns + 1)
    return drawn(shares / shares.sum(), n, seed)


def test_many_categories_are_a_chain_from_frequent_to_rare():
    codes = towns()
    fitted = Categorical().fit(codes)
    assert fitted.widths == (1, 16, 32, 64, 87)
    assert fitted.parents == (0, 1, 2, 3)
    counts = np.bincount(codes.astype(int))
    order = np.argsort(-counts, kind="stable")
    levels = fitted.transform(np.arange(200.0))
    # The pool of level 1 has one value there; level 2 is zero outside of it.
    pooled = levels[1][order[16:]]
    np.testing.assert_array_equal(pooled, np.tile(pooled[:1], (184, 1)))
    assert len(np.unique(levels[1], axis=0)) == 17
    assert not levels[2][order[:16]].any()
    assert len(np.unique(levels[2][order[16:]], axis=0)) == 33
    every = np.hstack(levels)
    assert np.linalg.matrix_rank(every) == 200


def test_levels_of_the_chain_are_orthogonal():
    codes = towns()
    levels = Categorical().fit(codes).transform(codes)
    for i in range(5):
        for j in range(i):
            np.testing.assert_allclose(levels[j].T @ levels[i] / codes.size, 0.0, atol=1e-12)
    assert all(np.sqrt((level**2).sum(axis=1).max()) <= 2.0 + 1e-12 for level in levels)


def test_rare_categories_stay_in_the_pool():
    codes = towns()
    counts = np.bincount(codes.astype(int))
    fitted = Categorical(least=10 / codes.size).fit(codes)
    assert sum(fitted.widths[1:]) == np.sum(counts >= 10)
    last = fitted.transform(np.flatnonzero(counts < 10).astype(float))[-1]
    np.testing.assert_array_equal(last, np.tile(last[:1], (len(last), 1)))


def test_identifiers_are_a_constant():
    assert Categorical(least=2 / 100).fit(np.arange(100.0)).widths == (1,)
    assert Categorical(least=2 / 20).fit(np.arange(20.0)).widths == (1, 19)  # a single level


def test_thousands_of_categories_have_a_limit():
    codes = towns(5000, 40_000)
    assert sum(Categorical().fit(codes).widths[1:]) == 500


def test_cutting_the_chain_keeps_its_levels():
    codes = towns()
    fitted = Categorical().fit(codes)
    for few, level in zip(fitted.up_to(2).transform(codes), fitted.transform(codes), strict=False):
        np.testing.assert_array_equal(few, level)
    assert fitted.up_to(2).max_level == 2


@pytest.mark.parametrize(
    ("name", "value"), [("most", 1), ("most", 2.5), ("least", -0.1), ("least", 1.0)]
)
def test_the_chain_is_checked(name, value):
    with pytest.raises(ValueError, match=name):
        Categorical(**{name: value})
