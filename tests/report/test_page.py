"""The page in a browser: tables, plots, hull, path, colours, narrow screens, hostile names."""

import io

import numpy as np
import pytest
from report.made import HOSTILE, made

from hikernel.graphs.grid import unambiguous
from hikernel.report import assembly

pytestmark = pytest.mark.slow

CLASSES = ["setosa", "versicolor", "virginica"]
SECTIONS = [
    "quality",
    "effects",
    "variables",
    "whatif",
    "certificate",
    "hull",
    "path",
    "data",
    "settings",
    "load",
]


def names(page):
    return page.locator("tr.effect th .name").all_inner_texts()


def shares(page):
    texts = page.locator("tr.effect .bar-text").all_inner_texts()
    return [float(text.replace("\u202f%", "").replace("<\u202f", "")) for text in texts]


def sorted_by(page, title):
    return page.locator("th[aria-sort]", has_text=title).get_attribute("aria-sort")


def drawn(page, place):
    """Scroll to a plot and wait until Bokeh has drawn it."""
    plot = page.locator(f"{place} .plot").first
    plot.scroll_into_view_if_needed()
    plot.locator("canvas").first.wait_for()
    page.locator(f"{place} .plot[data-drawn]").first.wait_for()
    page.wait_for_timeout(50)
    return plot


def walk_through(page):
    """Scroll through the whole page, so that every plot that can be seen is drawn."""
    from playwright.sync_api import expect

    # Plots that are drawn move what is below them, so that the height is asked for at every step.
    y = 0
    while y < page.evaluate("document.documentElement.scrollHeight"):
        page.evaluate(f"window.scrollTo(0, {y})")
        page.wait_for_timeout(30)
        y += 300
    # Not wait_for_function: it evaluates text inside the page, which the page's policy forbids.
    expect(page.locator(".plot:not([data-drawn])")).to_have_count(0, timeout=30_000)


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def brightness(png):
    from PIL import Image

    return float(np.asarray(Image.open(io.BytesIO(png)).convert("L")).mean())


@pytest.mark.parametrize("classes", [None, ["no", "yes"], CLASSES], ids=["numbers", "two", "three"])
def test_every_kind_of_plot_is_drawn(opened, classes):
    with opened(made(7, classes=classes)) as page:
        assert page.locator("main > section").evaluate_all("all => all.map(e => e.id)") == SECTIONS
        page.get_by_role("button", name="Open all").click()
        walk_through(page)
        assert page.locator("#effects .plot canvas").count() >= 7
        assert page.locator("text=could not be drawn").count() == 0
        assert "What drives price" in page.locator("h1").inner_text()


def test_the_first_screen_says_what_matters(opened):
    with opened(made(5)) as page:
        text = page.locator("header").inner_text()
        for part in [
            "1,234 rows",
            "20 columns",
            "5 effects",
            "69.0\u202f%",
            "proven",
            "income (50",
        ]:
            assert part in text
        quality = page.locator("#quality").inner_text()
        for part in ["This model", "Linear model", "Constant", "0.31", "0.42", "smaller is better"]:
            assert part in quality


def test_packed_data_are_read(opened, monkeypatch):
    monkeypatch.setattr(assembly, "PACKED", 0)
    with opened(made(2, target=HOSTILE[0])) as page:
        assert page.locator("#summary").get_attribute("type") == "application/octet-stream"
        assert HOSTILE[0] in page.locator("h1").inner_text()
        assert page.locator("tr.effect").count() == 2


def test_effects_are_sorted_by_click(opened):
    with opened(made(12)) as page:
        assert shares(page) == sorted(shares(page), reverse=True)
        assert sorted_by(page, "Share") == "descending"
        page.get_by_role("button", name="Share", exact=True).click()
        assert shares(page) == sorted(shares(page))
        assert sorted_by(page, "Share") == "ascending"
        page.get_by_role("button", name="Effect", exact=True).click()
        assert names(page) == sorted(names(page))
        assert sorted_by(page, "Effect") == "ascending"
        assert sorted_by(page, "Share") == "none"


def test_effects_are_sorted_and_opened_by_keyboard(opened):
    with opened(made(12)) as page:
        page.locator("th.col-terms button").focus()
        page.keyboard.press("Enter")
        terms = [int(text) for text in page.locator("td.col-terms").all_inner_texts()]
        assert terms == sorted(terms, reverse=True)
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.className")
        assert focused == "opener"
        before = page.evaluate("document.activeElement.getAttribute('aria-expanded')")
        page.keyboard.press("Space")
        after = page.evaluate("document.activeElement.getAttribute('aria-expanded')")
        assert {before, after} == {"true", "false"}
        assert page.evaluate("document.activeElement.className") == "opener"


def test_a_row_opens_its_plot_and_closes_it(opened):
    with opened(made(4)) as page:
        row = page.locator("tr.effect").nth(2)
        detail = page.locator("tr.detail").nth(2)
        assert not detail.is_visible()
        row.locator("button.opener").click()
        detail.locator("canvas").first.wait_for(state="attached")
        assert row.locator("button.opener").get_attribute("aria-expanded") == "true"
        row.locator("td.col-share").click()  # the row is as good as its button
        assert not detail.is_visible()


HOVERS = {
    "curve": (0, (0.72, 0.4), ["income", "effect"]),
    "bars": (2, (0.45, 0.36), ["town", "Bergen", "share of the rows"]),
    "surface": (3, (0.72, 0.4), ["income", "age", "effect"]),
    "curves": (4, (0.72, 0.4), ["income", "Oslo", "Bergen", "Rome"]),
}


def test_hovering_shows_values(opened):
    with opened(made(5)) as page:
        for kind, (effect, (x, y), said) in HOVERS.items():
            if effect:
                page.locator("button.opener").nth(effect).click()
            plot = drawn(page, f"tr.detail:nth-of-type({2 * effect + 2})")
            box = plot.bounding_box()
            middle = (box["x"] + x * box["width"], box["y"] + y * box["height"])
            page.mouse.move(middle[0] - 8, middle[1])
            page.mouse.move(*middle, steps=4)
            tip = page.locator(".hk-tip", has_text=said[1]).first
            tip.wait_for()
            for part in said:
                assert part in tip.inner_text(), kind


def test_the_numbers_of_a_plot_can_be_read(opened):
    summary = made(2)
    with opened(summary) as page:
        page.locator("tr.detail details summary").first.click()
        rows = page.locator("tr.detail table.plain tbody tr")
        rows.last.wait_for()
        assert rows.count() == 13
        view = summary["effects"][0]["view"]
        first, last = rows.first.inner_text().split("\t"), rows.last.inner_text().split("\t")
        assert float(first[0].replace("\u2212", "-")) == view["axes"][0]["values"][0]
        assert float(last[1].replace("\u2212", "-")) == pytest.approx(view["values"][0][-1], 1e-2)


def test_slices_and_classes_are_chosen(opened):
    with opened(made(7, classes=CLASSES)) as page:
        page.locator("button.opener").nth(6).click()
        detail = page.locator("tr.detail").nth(6)
        assert "Held fixed in this plot: d at 0.25" in detail.inner_text()
        detail.locator("details summary").click()
        value = detail.locator("table.plain td").first

        def seen():
            return float(value.inner_text().replace("\u2212", "-"))

        before = seen()  # x y (z + 1) at x = y = -2, z = 0
        assert before == pytest.approx(4.0)
        detail.get_by_role("radio").last.check()
        assert seen() == pytest.approx(12.0)
        detail.get_by_label("Class").select_option(label="virginica")
        assert seen() == pytest.approx(-12.0)


def test_the_hull_is_walked_through_by_click(opened):
    with opened(made(4, n_hull=7)) as page:
        panel = page.locator(".hull-panel")
        nodes = page.locator(".hull-diagram .node")
        assert nodes.count() == 7
        nodes.nth(2).click()
        assert panel.locator("h3").inner_text() == "term 2"
        assert panel.locator(".chip").all_inner_texts() == ["constant"]
        drawn(page, ".hull-panel")
        assert "Its effect: income" in panel.inner_text()
        panel.get_by_role("button", name="constant").click()
        assert panel.locator("h3").inner_text() == "constant"
        assert panel.get_by_role("button", name="term 3").count() == 1
        assert nodes.nth(0).get_attribute("aria-pressed") == "true"
        assert page.locator(".node[aria-pressed=true]").count() == 1


def test_the_hull_is_walked_through_by_keyboard(opened):
    with opened(made(4, n_hull=40)) as page:
        title = page.locator(".hull-panel h3")
        page.locator(".node[tabindex='0']").focus()
        page.keyboard.press("Home")
        assert title.inner_text() == "constant"
        page.keyboard.press("ArrowDown")
        below = title.inner_text()
        assert below == "term 1"
        page.keyboard.press("ArrowRight")
        assert title.inner_text() == "term 2"
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowUp")
        assert title.inner_text() == "constant"
        assert "node" in page.evaluate("document.activeElement.getAttribute('class')")
        page.get_by_label("Go to").select_option(label="term 34")
        assert title.inner_text() == "term 34"


@pytest.mark.parametrize(("n", "width"), [(7, 1200), (200, 1200), (200, 360)])
def test_nodes_of_the_hull_do_not_overlap(opened, n, width):
    with opened(made(3, n_hull=n), width=width) as page:
        boxes = page.locator(".node .dot").evaluate_all(
            "all => all.map(e => { const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2, b.width / 2]; })"
        )
        spots = np.array(boxes)
        apart = np.hypot(*(spots[:, None, :2] - spots[None, :, :2]).transpose(2, 0, 1))
        touch = apart < spots[:, None, 2] + spots[None, :, 2] - 1
        assert touch.sum() == n  # each with itself
        frame = page.locator(".hull-diagram").bounding_box()
        assert spots[:, 0].min() > frame["x"]
        assert spots[:, 0].max() < frame["x"] + frame["width"]


def test_the_path_is_read_by_keyboard(opened):
    summary = made(8)
    with opened(summary) as page:
        reading = page.locator("#path .reading")
        assert "The chosen model" in reading.inner_text()
        slider = page.locator("#path input[type=range]")
        slider.focus()
        page.keyboard.press("ArrowRight")
        point = summary["path"][13]
        assert "At this point" in reading.inner_text()
        assert f"terms\n{point['n_terms']}\n" in reading.inner_text()
        assert slider.get_attribute("aria-valuetext").endswith(f"{point['n_effects']} effects")
        shown = reading.locator("table tbody tr").count()
        assert shown == len(point["effects"])
        page.keyboard.press("Home")
        assert "this model is a constant" in reading.inner_text()
        drawn(page, "#path")
        page.get_by_role("button", name="Go to the chosen model").click()
        assert "The chosen model" in reading.inner_text()


def test_nothing_scrolls_sideways_on_a_phone(opened):
    with opened(made(60, n_hull=200), width=360, height=740) as page:
        assert overflow(page) <= 0
        assert page.locator("tr.effect th").first.bounding_box()["width"] > 120
        for opener in page.locator("button.opener").all()[1:7]:
            opener.click()
        page.locator("details summary").evaluate_all("all => all.forEach(e => e.click())")
        walk_through(page)
        assert overflow(page) <= 0


def test_names_from_data_stay_text(opened):
    summary = made(
        7,
        names=HOSTILE[:3],
        labels=HOSTILE[3:7],
        target=HOSTILE[0],
        classes=[HOSTILE[7], HOSTILE[1], HOSTILE[2]],
    )
    for node, name in zip(summary["hull"], HOSTILE, strict=False):
        node["term"] = name
    with opened(summary, width=360) as page:
        page.get_by_role("button", name="Open all").click()
        page.locator("details summary").evaluate_all("all => all.forEach(e => e.click())")
        walk_through(page)
        assert HOSTILE[0] in page.locator("h1").inner_text()
        assert page.locator("button.opener").nth(0).inner_text() == HOSTILE[0]
        added = "main :is(img, iframe, object, embed, script, style, a)"
        assert page.evaluate(f"document.querySelectorAll('{added}').length") == 0
        assert page.title() == f"A model of {HOSTILE[0]}"
        options = page.locator("#whatif .input select option").all_text_contents()
        assert options[0] == HOSTILE[3]
        assert overflow(page) <= 0
        plot = drawn(page, "tr.detail")
        box = plot.bounding_box()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=3)
        page.locator(".hk-tip").first.wait_for()
        assert HOSTILE[0] in page.locator(".hk-tip").first.inner_text()


def test_dark_mode_changes_the_page_and_its_plots(opened):
    with opened(made(4)) as page:
        light = brightness(drawn(page, "tr.detail").screenshot())
        light_page = brightness(page.screenshot())
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(300)
        dark = brightness(drawn(page, "tr.detail").screenshot())
        assert light > 220
        assert dark < 60
        assert light_page > 220
        assert brightness(page.screenshot()) < 60


def test_paper_is_white_and_has_no_buttons(opened):
    with opened(made(2), dark=True) as page:
        drawn(page, "tr.detail")
        page.emulate_media(media="print", color_scheme="dark")
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert brightness(page.locator("#quality").screenshot()) > 200
        for hidden in ["nav", "#effects .buttons", "#path .slide"]:
            assert not page.locator(hidden).is_visible()
        page.emulate_media(media="screen")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast(opened, dark):
    def luminance(color):
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    def contrast(one, other):
        high, low = sorted([luminance(one), luminance(other)], reverse=True)
        return (high + 0.05) / (low + 0.05)

    with opened(made(1), dark=dark) as page:
        colors = {
            name: page.evaluate(f"HK.theme.color('{name}')")
            for name in ["ink", "muted", "accent", "negative", "card", "bg", "track", "accent-soft"]
        }
        series = [page.evaluate(f"HK.theme.series({i}).color") for i in range(8)]
    for ground in ["card", "bg", "track", "accent-soft"]:
        assert contrast(colors["ink"], colors[ground]) >= 7.0
        assert contrast(colors["muted"], colors[ground]) >= 4.5
        assert contrast(colors["accent"], colors[ground]) >= 4.5
    assert contrast(colors["negative"], colors["card"]) >= 4.5
    assert min(contrast(color, colors["card"]) for color in series) >= 3.0


def test_everything_that_can_be_used_has_a_name(opened):
    with opened(made(7, classes=CLASSES)) as page:
        page.get_by_role("button", name="Open all").click()
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, [role=button], summary")]
            .filter((e) => !e.closest(".plot"))
            .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label")
              || [...(e.labels || [])].some((label) => label.textContent.trim())))
            .map((e) => e.outerHTML)"""
        )
        assert nameless == []
        levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => +e.tagName[1])")
        assert levels[0] == 1
        assert max(np.diff(levels)) <= 1
        assert levels.count(1) == 1
        assert page.locator("header, nav[aria-label], main, footer").count() == 4
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))


def without(**changes):
    return made(2) | changes


MISSING = {
    "nothing to draw": (
        without(
            path=[],
            hull=[],
            search=[],
            function=None,
            function_note="The basis Own is not one of this package.",
            quality={"kind": "training", "model": None, "explained": None},
        ),
        {
            "path": "no path to walk along",
            "hull": "not on record",
            "certificate": "Gap of this model",
            "whatif": "The basis Own is not one of this package",
            "quality": "No error was measured",
        },
    ),
    "a constant": (
        without(
            effects=[],
            variables=[],
            terms=[],
            hull=made(1)["hull"][:1],
            function=made(1)["function"] | {"inputs": [], "variables": [], "terms": []},
            certificate=made(1)["certificate"] | {"kind": "none", "gap": None, "certified": False},
        ),
        {
            "effects": "predicts the same for every row",
            "variables": "uses no variable",
            "whatif": "always the same",
            "certificate": "Not proven",
            "hull": "1 term",
        },
    ),
    "training error": (
        without(
            quality={"kind": "training", "model": None, "explained": 0.5, "words": "Half."},
            certificate=made(1)["certificate"] | {"certified": False, "gap": 0.2},
        ),
        {"quality": "flatter it", "certificate": "could be better by up to 20"},
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_known_is_said(opened, name):
    summary, said = MISSING[name]
    with opened(summary) as page:
        title = "What drives price" if summary["effects"] else "Nothing found that drives price"
        assert page.locator("h1").inner_text() == title
        for section, words in said.items():
            assert words in page.locator(f"#{section}").inner_text()
        for other in SECTIONS:
            assert len(page.locator(f"#{other} > div").inner_text()) > 10
        assert page.locator("text=could not be drawn").count() == 0


def test_a_model_on_a_graph_has_no_columns(opened):
    summary = without(
        variables=[],
        function=None,
        function_note="The model was fitted on a graph of kernels, which has no columns.",
        data={
            "n_rows": 50,
            "n_columns": None,
            "has_columns": False,
            "columns": [],
            "weighted": True,
        },
    )
    for effect in summary["effects"]:
        effect |= {"view": None, "variables": [], "order": 0, "shape": ""}
    with opened(summary) as page:
        assert "has no plot" in page.locator("#effects").inner_text()
        assert page.locator("th.col-share").is_visible()
        assert not page.locator("th.col-order").is_visible()
        assert "graph of kernels" in page.locator("#variables").inner_text()
        assert "graph of kernels" in page.locator("#data").inner_text()
        assert "which has no columns" in page.locator("#whatif").inner_text()
        assert "50 rows, with sample weights" in page.locator("#data").inner_text()
        loading = page.locator("#load").inner_text()
        assert "joblib" in loading
        assert "hikernel.load" not in loading
        assert "constant" not in page.locator("#hull").inner_text()
        assert page.locator("nav a", has_text="Effects").count() == 1
        for empty in ["Variables", "What if"]:
            assert page.locator("nav a", has_text=empty).count() == 0


def test_what_is_before_the_refit_is_said(opened):
    with opened(made(5)) as page:
        chosen = page.locator("#path .reading").inner_text()
        assert "before the refit (sparse), which kept 5 effects" in chosen
        assert "Shares are those before the refit" in page.locator("#hull").inner_text()
        assert "not part of the proof" in page.locator("header").inner_text()
    with opened(made(5) | {"refit": None}) as page:
        assert "before the refit" not in page.locator("main").inner_text()
        assert "refit" not in page.locator("header").inner_text()


@pytest.mark.parametrize(
    ("gap", "card", "verdict"),
    [
        (1e-9, "proven within 0.01\u202f%", "is better by more than 0.01\u202f%"),
        (0.8, "not proven", "Next to nothing is proven"),
        (1.0, "not proven", "Nothing is proven"),
    ],
)
def test_tiny_and_useless_gaps_are_read_as_what_they_are(opened, gap, card, verdict):
    summary = made(2)
    summary["certificate"] |= {"gap": gap, "tol": 2.0}
    with opened(summary) as page:
        assert page.locator(".fact strong").last.inner_text() == card
        assert verdict in page.locator("#certificate .verdict").inner_text()


def test_categories_that_are_left_out_are_counted(opened):
    summary = made(3)
    extra = [{"label": f"town {i}", "share": 0.001} for i in range(77)]
    summary["data"]["columns"][2]["categories"] += extra
    with opened(summary) as page:
        for opener in page.locator("button.opener").all()[1:]:
            opener.click()
        details = page.locator("tr.detail")
        assert "most frequent" not in details.nth(0).inner_text()
        assert "Categories of town: 3 most frequent of 80." in details.nth(2).inner_text()
        numbers = details.nth(2).locator("summary").inner_text()
        assert numbers == "Show the numbers (town: 3 most frequent of 80)"


def test_doubtful_names_are_quoted_everywhere(opened):
    raw = ["x ", "x * X", "b^2"]
    with opened(made(7, names=raw)) as page:
        labels = page.locator("#variables th .name").all_inner_texts()
        assert labels == ["'x '", "'x * X'", "b^2"]
        assert page.locator("#whatif .input-name").all_inner_texts() == ["'x '", "b^2"]
        columns = page.locator("#data th .name").all_inner_texts()
        assert columns[:3] == labels
    names = ["it's \\ ", "a\u2028b", "\"q\" 'n'", "", "intercept", "age^2", "age", "x\U000e0001"]
    for name in names:
        summary = made(1, names=[name, "age", "town"])
        with opened(summary) as page:
            spelled = page.locator("#variables th .name").first.text_content()
            assert spelled == unambiguous([name, "age", "town"])[0]


@pytest.mark.parametrize(
    ("quality", "weak"),
    [
        ({"explained": 0.004, "model": 0.996}, True),
        ({"explained": None, "model": 1.0}, True),
        ({"explained": None, "model": 0.9}, False),
        ({"explained": None, "model": 0.0441, "constant": None}, False),
    ],
)
def test_a_model_that_explains_nothing_is_not_praised(opened, quality, weak):
    summary = made(2)
    summary["quality"] |= quality
    with opened(summary) as page:
        asked = "Nothing found that drives price" if weak else "What drives price"
        assert page.locator("h1").inner_text() == asked
        for part in ["header", "#quality"]:
            said = page.locator(part).inner_text()
            assert ("hardly better than a constant" in said) == weak
            assert ("no constant to compare with" in said) == ("constant" in quality)
        if "constant" in quality:
            assert page.locator(".fact strong").first.inner_text() == "mean loss 0.0441"


def test_the_path_has_room_on_a_phone(opened):
    with opened(made(8), width=375) as page:
        drawn(page, "#path")
        frame, inside = page.evaluate(
            """() => {
              const figure = Bokeh.documents.flatMap((one) => one.roots())
                .find((root) => root.xaxes?.[0].axis_label?.startsWith("alpha"));
              const [legend] = Bokeh.index.query((view) => view.model === figure.legend);
              return [document.querySelector("#path .plot").clientWidth, legend.bbox.width];
            }"""
        )
        assert 0 < inside <= frame


def test_a_part_that_cannot_be_drawn_leaves_the_others(opened):
    broken = made(2) | {"hull": [{"term": "x", "parents": [7], "share": 1.0}]}
    with opened(broken, wrong=["TypeError"]) as page:
        assert "could not be drawn" in page.locator("#hull").inner_text()
        assert "The chosen model" in page.locator("#path .reading").inner_text()


def test_a_table_of_many_thousand_columns_is_cut_and_says_so(opened):
    summary = made(2)
    columns = summary["data"]["columns"]
    columns[0] |= {"name": "sold (year)", "min": 2019, "max": 2021, "quantiles": {"0.5": 2020}}
    columns += [{**columns[-1], "name": f"word {i}"} for i in range(3000)]
    with opened(summary) as page:
        data = page.locator("#data")
        assert "2019 to 2021, half below 2020" in data.inner_text()
        assert data.locator("summary").inner_text() == "3,008 more columns the model does not use"
        data.locator("summary").click()
        assert "The first 1,000 of them:" in data.inner_text()
        assert data.locator("details tbody tr").count() == 1000
