"""Slopes: coefficients that meet them never decrease, at any point; others nearly always do."""

from __future__ import annotations

import numpy as np
import pytest
from bases.cases import CASES
from scipy.interpolate import BPoly

from hikernel.bases import (
    AsinhPolynomial,
    Branches,
    Categorical,
    OrthonormalPolynomial,
    RankPolynomial,
    Steps,
)
from hikernel.bases.bernstein import control_points
from hikernel.graphs import Direction
from hikernel.losses import SquaredError
from hikernel.selection.constrained import _Constrained

GUARANTEED = {
    "orthonormal": OrthonormalPolynomial(4),
    "orthonormal of degree 9": OrthonormalPolynomial(9),
    "asinh": AsinhPolynomial(5),
    "rank": RankPolynomial(4),
    "steps": Steps(4),
    "orthonormal and steps": Branches((OrthonormalPolynomial(4), Steps(3))),
    "rank and steps": Branches((RankPolynomial(3), Steps(2))),
}
COLUMNS = {
    "normal": lambda rng: rng.standard_normal(200),
    "skewed": lambda rng: rng.lognormal(sigma=1.5, size=200),
    "ties": lambda rng: rng.integers(0, 6, 200).astype(float),
    "mostly zero": lambda rng: np.where(rng.random(200) < 0.9, 0.0, rng.exponential(size=200)),
    "huge": lambda rng: 1e300 * rng.uniform(-1.0, 1.0, 200),
}


def everywhere(x, cuts):
    """Points in, around and far outside the range of a column, and next to jumps."""
    low, high = x.min(), x.max()
    width = high / 2 - low / 2
    inside = 2.0 * np.linspace(low / 2, high / 2, 4001)
    outside = np.array([low - 0.1 * width, high + 0.1 * width, -1e308, 1e308, 0.0])
    beside = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    return np.unique(np.concatenate([inside, outside, beside, x]))


def nearest(slopes, beta):
    """Coefficients near beta that meet the slopes."""
    every = Direction(np.arange(len(beta)), slopes)
    unit = np.ones(len(beta))
    empty = np.empty((0, len(beta)))
    problem = _Constrained.of(empty, unit[:0], unit[:0], SquaredError(), unit, [every])
    return problem.cleaned(beta, beta)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", GUARANTEED)
def test_what_meets_the_slopes_never_decreases(name, column):
    rng = np.random.default_rng(3)
    x = COLUMNS[column](rng)
    fitted = GUARANTEED[name].fit(x)
    slopes = fitted.slopes()
    cuts = fitted.branches[1].cuts if name.endswith("and steps") else np.empty(0)
    cuts = fitted.cuts if name == "steps" else cuts
    levels = np.hstack(fitted.transform(everywhere(x, cuts))[1:])
    assert slopes.shape[1] == levels.shape[1]
    moved = 0
    for _ in range(20):
        beta = nearest(slopes, rng.standard_normal(levels.shape[1]))
        f = levels @ beta
        assert np.min(np.diff(f)) >= -1e-12 * max(np.ptp(f), 1.0)
        moved += np.ptp(f) > 1e-6
        # What meets them stays, also where rounding puts it just outside.
        again = levels @ nearest(slopes, beta * (1.0 + 1e-16 * rng.standard_normal(len(beta))))
        np.testing.assert_allclose(again, f, atol=1e-7 * max(np.ptp(f), 1e-3))
    assert moved > 5  # most of them are no constants


@pytest.mark.parametrize("name", ["rank", "steps", "rank and steps"])
def test_slopes_of_knots_and_jumps_are_necessary(name):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 300).astype(float)
    fitted = GUARANTEED[name].fit(x)
    levels = np.hstack(fitted.transform(np.linspace(-1.0, 13.0, 20001))[1:])
    for _ in range(50):
        beta = rng.standard_normal(levels.shape[1])
        rises = bool(np.all(np.diff(levels @ beta) >= -1e-12))
        assert rises == bool(np.all(fitted.slopes() @ beta >= -1e-12))


@pytest.mark.parametrize("name", ["orthonormal", "asinh"])
def test_slopes_of_polynomials_lose_next_to_nothing(name):
    """A polynomial with slope zero at a point inside: a thousandth of a line makes it pass."""
    rng = np.random.default_rng(0)
    fitted = GUARANTEED[name].fit(rng.standard_normal(300))
    grid = np.linspace(*fitted.domain, 20001)
    t, levels = fitted.argument(grid), np.hstack(fitted.transform(grid)[1:])
    for at in np.linspace(0.1, 0.9, 9):
        inside = t[0] + at * (t[-1] - t[0])
        aim = (t - inside) ** 3 / 3.0  # its slope has a double root
        design = np.column_stack([levels, np.ones(len(t))])
        beta = np.linalg.lstsq(design, aim, rcond=None)[0][:-1]
        beta[0] += 1e-3 * (t[-1] - t[0]) ** 2  # level 1 has slope one or so
        assert np.all(fitted.slopes() @ beta >= 0.0)


def test_control_points_are_those_of_scipy():
    rng = np.random.default_rng(0)
    fitted = OrthonormalPolynomial(6).fit(rng.gamma(3.0, size=100))
    edges = np.linspace(fitted.low, fitted.high, 6)
    points = control_points(fitted.projections.sum(axis=1), fitted.norms, edges)
    z = rng.uniform(fitted.low, fitted.high, 50)
    for level, expected in zip(points, fitted._levels(z)[1:], strict=True):
        np.testing.assert_allclose(BPoly(level.T, edges)(z), expected[:, 0], atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_no_basis_claims_more_than_it_has(name):
    """Every known basis: either no slopes, or such that the guarantee holds far away."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(80)
    fitted = CASES[name].basis.fit(x)
    slopes = fitted.slopes()
    if slopes is None:
        return
    levels = np.hstack(fitted.transform(everywhere(x, np.empty(0)))[1:])
    beta = nearest(slopes, rng.standard_normal(slopes.shape[1]))
    assert np.min(np.diff(levels @ beta)) >= -1e-12


def test_constant_columns_have_nothing_to_constrain():
    for basis in (*GUARANTEED.values(), Categorical()):
        assert basis.fit(np.ones(5)).slopes().size == 0
