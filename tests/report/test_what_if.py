"""The what-if panel says what ``predict`` says, for rows typed, chosen and ticked in a browser."""

import json

import numpy as np
import pandas as pd
import pytest
from report.models import MODELS, answers, as_inputs, rows_to_ask

from hikernel import HKLRegressor

pytestmark = pytest.mark.slow


def enter(page, function, row):
    """Enter a row as a user does: fields, lists, boxes for missing values."""
    for i, (one, value) in enumerate(zip(function["inputs"], row, strict=True)):
        box = page.locator(f".input[data-input='{i}']")
        tick = box.get_by_label("missing")
        if one["missing_allowed"]:
            tick.set_checked(value is None)
        if value is None:
            continue
        if one["kind"] == "number":
            box.locator("input[type=number]").fill(repr(value))
        else:
            box.locator("select").select_option(value=str(int(value)))


def said(page, attribute="data-value"):
    return json.loads(page.locator("#whatif output").get_attribute(attribute))


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    model = MODELS[request.param]()
    summary = json.loads(json.dumps(model.summary(), allow_nan=False))
    rows = rows_to_ask()
    for one in summary["function"]["inputs"]:
        if not one["missing_allowed"]:
            rows = rows[rows[one["name"]].notna()]
    return model, summary, rows


def test_the_page_predicts_as_the_model_does(opened, case):
    model, summary, rows = case
    asked = as_inputs(summary["function"], rows)
    expected = answers(model, rows)
    assert any(None in row for row in asked)
    assert any(-1 in row for row in asked)
    with opened(summary) as page:
        bars_add_up(page, summary)
        np.testing.assert_allclose(all_at_once(page, summary, asked), expected, rtol=1e-9)
        page.locator("#whatif details summary").evaluate_all("all => all.forEach(e => e.click())")
        for row, right in list(zip(asked, expected, strict=True))[:8]:
            enter(page, summary["function"], row)
            np.testing.assert_allclose(said(page), right, rtol=1e-9)
        bars_add_up(page, summary)


def all_at_once(page, summary, rows):
    return page.evaluate(
        """([rows, summary]) => rows.map((row) => {
          const { f } = HK.evaluate.evaluate(summary.function, row, summary.effects.length);
          const said = HK.evaluate.predict(summary.link, f, summary.classes);
          return said.probabilities || [said.value];
        })""",
        [rows, summary],
    )


def bars_add_up(page, summary):
    texts = page.locator("#whatif .waterfall td.num").all_inner_texts()
    numbers = [float(text.replace("\u2212", "-").replace(",", "")) for text in texts]
    assert len(numbers) > 3
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.02)
    if summary["link"]["kind"] == "identity":
        assert numbers[-1] == pytest.approx(said(page)[0], rel=1e-3)


def test_the_slider_moves_by_keyboard_and_the_button_goes_back(opened):
    summary = MODELS["regression"]().summary()
    with opened(summary) as page:
        start = said(page)
        box = page.locator(".input", has_text="size").first
        field = box.locator("input[type=number]")
        before = float(field.input_value())
        box.locator("input[type=range]").focus()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert float(field.input_value()) > before
        moved = said(page)
        assert moved != start
        page.get_by_role("button", name="Back to a typical row").click()
        assert said(page) == start
        assert float(field.input_value()) == before


def test_what_is_no_number_is_marked_and_changes_nothing(opened):
    summary = MODELS["regression"]().summary()
    with opened(summary) as page:
        start = said(page)
        field = page.locator(".input", has_text="size").first.locator("input[type=number]")
        field.fill("")
        assert field.get_attribute("aria-invalid") == "true"
        assert said(page) == start


def test_the_class_that_is_explained_is_the_predicted_one_or_the_chosen_one(opened):
    model = MODELS["three classes"]()
    summary = model.summary()
    with opened(summary) as page:
        chosen = page.locator("#whatif .choice select")
        best = int(np.argmax(said(page)))
        assert int(chosen.input_value()) == best
        other = (best + 1) % 3
        chosen.select_option(value=str(other))
        total = page.locator("#whatif tr.total td.num").inner_text().replace("\u2212", "-")
        assert float(total) == pytest.approx(said(page, "data-f")[other], rel=1e-3)
        page.locator(".input input[type=number]").first.fill("12.5")
        assert int(page.locator("#whatif .choice select").input_value()) == other


def test_a_date_is_typed_and_slid(opened):
    rng = np.random.default_rng(0)
    times = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900 * 24, 150), unit="h")
    X = pd.DataFrame({"when": times, "size": rng.normal(size=150)})
    y = np.sin(2 * np.pi * times.day_of_year / 365) + (times.day_of_week < 5) + X["size"]
    model = HKLRegressor(1e-2, max_order=1).fit(X, y)
    with opened(model.summary(), width=400) as page:
        box = page.locator(".input", has_text="when")
        field = box.locator("input[type=datetime-local]")
        size = float(page.locator(".input input[type=number]").input_value())
        for text in ("2020-07-04T10:30", "1999-12-31T23:59"):
            field.fill(text)
            row = pd.DataFrame({"when": [pd.Timestamp(text)], "size": [size]})
            np.testing.assert_allclose(said(page), model.predict(row), rtol=1e-9)
        before = said(page)
        box.locator("input[type=range]").focus()
        page.keyboard.press("End")
        assert field.input_value().startswith("2021-08-")
        assert field.input_value().endswith("T23:59")
        assert said(page) != before
        # Month, day, year and time are all in sight.
        assert field.bounding_box()["width"] > 200
        assert box.bounding_box()["x"] + box.bounding_box()["width"] <= 400
