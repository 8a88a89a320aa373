"""Waves of a period, beside what all bases share."""

import numpy as np
import pytest

from hikernel.bases import Periodic

HOURS = np.arange(24.0)


def test_evenly_spread_rows_give_plain_cosines():
    fitted = Periodic(24.0, 3).fit(HOURS)
    for j, level in enumerate(fitted.transform(HOURS)[1:], start=1):
        expected = np.cos(2 * np.pi * j * (HOURS[:, None] - HOURS) / 24)
        np.testing.assert_allclose(level @ level.T, expected, atol=1e-12)


def test_values_come_back_after_a_period_and_the_origin_does_not_matter():
    rng = np.random.default_rng(0)
    x, new = rng.uniform(0, 24, 50), rng.uniform(0, 24, 9)
    fitted, moved = Periodic(24.0).fit(x), Periodic(24.0).fit(x + 5.3)
    for here, later, other in zip(
        fitted.transform(new), fitted.transform(new - 48.0), moved.transform(new + 5.3), strict=True
    ):
        np.testing.assert_allclose(here, later, atol=1e-12)
        np.testing.assert_allclose(here @ here.T, other @ other.T, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "n_levels"),
    [(HOURS, 4), ([0.0, 6.0, 12.0, 18.0], 2), ([0.0, 12.0], 1), ([1.0, 25.0], 0)],
)
def test_no_more_waves_than_the_phases_can_tell(values, n_levels):
    assert Periodic(24.0, 4).fit(values).max_level == n_levels


def test_a_level_is_bounded_where_rows_crowd():
    fitted = Periodic(24.0, 2).fit(np.r_[np.full(200, 8.0), 20.0])
    for level in fitted.transform(np.linspace(0, 24, 100))[1:]:
        assert np.linalg.norm(level, axis=1).max() <= 2.0 + 1e-12


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"period": 0.0}, "period"), ({"period": 1.0, "degree": 0}, "degree")],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Periodic(**settings)


def test_names():
    fitted = Periodic(24.0, 2).fit(HOURS)
    assert [fitted.level_name(j, "hour") for j in (1, 2)] == ["hour", "wave 2 of hour"]
    assert fitted.bulk == (0.0, 24.0)
