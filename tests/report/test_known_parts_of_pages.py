"""Pages of models with error bars, dates, an exposure, or a hazard."""

import json

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor, HKLSurvival

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2021-03-01 08:00")
    X = pd.DataFrame({"age": rng.uniform(20, 70, 120), "town": rng.choice(["Oslo", "Rome"], 120)})
    X["when"] = start + pd.to_timedelta(rng.integers(0, 300, 120), unit="h")
    return X, rng


def plain(model):
    return json.loads(json.dumps(model.summary(), allow_nan=False))


def test_rates_over_time_with_error_bars(opened, rows):
    X, rng = rows
    years = pd.Series(rng.uniform(0.2, 2.0, 120), name="years")
    mean = np.exp(0.02 * X["age"] + (X["town"] == "Rome") + 0.1 * np.sin(X["when"].dt.hour / 4))
    y = pd.Series(rng.gamma(3.0, mean / 3.0) * years.to_numpy(), name="cost")
    model = HKLRegressor(1e-3, loss="gamma", refit="ridge", max_order=1, certify="none")
    model.fit(X, y, exposure=years)
    with opened(plain(model)) as page:
        said = page.locator("#whatif .prediction")
        assert said.inner_text().startswith("Prediction of cost for years = 1")
        row = pd.DataFrame({"age": [31.5], "town": ["Rome"], "when": ["2021-03-05T17:30"]})
        page.locator("#whatif input[type=number]").fill("31.5")
        page.locator("#whatif select").select_option(label="Rome")
        field = page.locator("#whatif input[type=datetime-local]")
        field.fill(row["when"][0])
        row["when"] = pd.to_datetime(row["when"])
        value = json.loads(said.locator("output").get_attribute("data-value"))
        np.testing.assert_allclose(value, model.predict(row), rtol=1e-9)
        assert field.bounding_box()["width"] > 200  # the time of day must be seen, too

        page.get_by_role("button", name="Open all").click()
        effects = page.locator("#effects")
        effects.get_by_text("The lines hold the effect with 95 %").first.wait_for()
        effects.get_by_text("The band holds the effect with 95 %").first.wait_for()
        effects.get_by_text("Show the numbers").first.click()
        assert "standard deviation" in effects.locator(".numbers table").first.inner_text()


def test_plots_have_room_for_error_bars(opened, rows):
    X, rng = rows
    model = HKLRegressor(1e-2, refit="ridge", max_order=1, certify="none")
    with opened(plain(model.fit(X, X["age"] + rng.normal(size=120)))) as page:
        bars, wide = {"low": [-0.1, 0.8], "high": [0.1, 1.2]}, {"low": [-9.0], "high": [9.0]}
        widened = "([limits, bars]) => HK.views.widened(limits, bars)"
        assert page.evaluate(widened, [[0, 1], bars]) == [-0.1, 1.2]
        assert page.evaluate(widened, [[0, 1], wide]) == [-0.3, 1.3]
        assert page.evaluate(widened, [[0, 1], None]) == [0, 1]
        ends = page.evaluate("HK.views.errorBars({ values: [1, null], std: [0.5, 0] })")
        np.testing.assert_allclose([ends["low"], ends["high"]], [[0.02, 0.0], [1.98, 0.0]])


def test_the_base_value_of_a_risk_is_zero(opened, rows):
    X, rng = rows
    y = pd.DataFrame({"months": rng.exponential(np.exp(-0.03 * X["age"])), "died": True})
    model = HKLSurvival(1e-3, refit="ridge", max_order=1, certify="none").fit(X[["age", "town"]], y)
    summary = plain(model)
    summary["function"]["intercept"] = [-7.6e-17]  # what rounding can leave
    with opened(summary) as page:
        assert page.locator("#whatif tr.base td.num").inner_text() == "0"
        assert "Prediction of log hazard" in page.locator("#whatif .prediction").inner_text()
