"""Effects as pictures: what is drawn is what the summary says."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from plots.hand_made import (
    CASES,
    CITIES,
    FIVE,
    LONG,
    category_column,
    make_summary,
    view_of,
)
from plots.looking import readable, visible_texts

from hikernel.plots import plot_effect, plot_effects
from hikernel.plots.canvas import BLUE, LINE_STYLES, VERMILLION
from hikernel.plots.lettering import number

ELEVEN = make_summary(11)
KINDS = ["curve", "bars", "surface", "bars", "curves", "curve", "tiles"]


def effect_of(summary, *variables):
    return next(e for e in summary["effects"] if e["variables"] == list(variables))


def long_lines(ax, points):
    """The curves of axes, without the line at zero."""
    return [line for line in ax.lines if len(line.get_xdata()) == points]


def texts(ax):
    return [text.get_text() for text, _ in visible_texts(ax.figure)]


def test_a_curve_has_the_numbers_of_the_summary_and_the_density_below_it():
    ax = plot_effect(ELEVEN, "x0")
    view = effect_of(ELEVEN, "x0")["view"]
    (line,) = long_lines(ax, 41)
    np.testing.assert_array_equal(line.get_xdata(), view["axes"][0]["values"])
    np.testing.assert_array_equal(line.get_ydata(), view["values"][0])
    assert ax.get_xlabel() == "x0"
    assert ax.get_ylabel() == "effect on price"
    assert ax.get_title(loc="left") == "x0  (22 %)"
    (strip,) = [patch for patch in ax.patches if patch.get_label() == "density of the rows"]
    heights, edges, _ = strip.get_data()
    column = ELEVEN["data"]["columns"][0]
    np.testing.assert_allclose(edges, column["histogram"]["edges"])
    shares = np.array(column["histogram"]["shares"])
    np.testing.assert_allclose(heights / heights.max(), shares / shares.max())


def test_the_curve_lies_above_the_density():
    ax = plot_effect(ELEVEN, "x0")
    ax.figure.canvas.draw()
    (line,) = long_lines(ax, 41)
    lowest = ax.transData.transform(np.column_stack(line.get_data()))[:, 1].min()
    (strip,) = [patch for patch in ax.patches if patch.get_label() == "density of the rows"]
    assert strip.get_window_extent().y1 < lowest


def test_a_spike_of_the_density_does_not_hide_the_other_rows():
    summary = make_summary(1)
    shares = np.full(30, 0.1 / 29)
    shares[0] = 0.9
    summary["data"]["columns"][0]["histogram"]["shares"] = shares.tolist()
    ax = plot_effect(summary, 0)
    (strip,) = ax.patches
    heights = strip.get_data().values
    assert heights[0] == heights.max()
    # It is broken, and the label says what that means.
    (gaps,) = [part.get_segments() for part in ax.collections if part.get_label() == "cut bars"]
    edges = summary["data"]["columns"][0]["histogram"]["edges"]
    np.testing.assert_allclose(np.array(gaps)[:, :, 0], [edges[:2]])
    assert 0 < gaps[0][0, 1] < heights[0]
    assert ax.get_xlabel() == "x0 (broken bars are taller)"
    assert heights[1:].min() > 0.15 * heights.max()


def test_a_column_of_few_values_has_a_thin_bar_at_each():
    summary = make_summary(1)
    column = summary["data"]["columns"][0]
    column |= {"histogram": None, "values": [[0.0, 0.5], [1.0, 0.3], [4.0, 0.2]]}
    (strip,) = plot_effect(summary, 0).patches
    heights, edges, _ = strip.get_data()
    middles = (edges[:-1] + edges[1:])[heights > 0] / 2
    np.testing.assert_allclose(middles, [0.0, 1.0, 4.0])
    np.testing.assert_allclose(heights[heights > 0] / heights.max(), [1.0, 0.6, 0.4])


def test_jumps_are_upright():
    summary = make_summary(1, steps=True)
    ax = plot_effect(summary, 0)
    view = summary["effects"][0]["view"]
    x, y = long_lines(ax, len(view["axes"][0]["values"]))[0].get_data()
    np.testing.assert_array_equal(y, view["values"][0])
    jump = np.argmax(np.abs(np.diff(y)))
    pixels = ax.transData.transform(np.column_stack([x, y]))
    assert abs(pixels[jump + 1, 0] - pixels[jump, 0]) < 0.01
    assert abs(pixels[jump + 1, 1] - pixels[jump, 1]) > 50


def test_categories_are_bars_with_names_values_and_shares_of_the_rows():
    ax = plot_effect(ELEVEN, "x3")
    view = effect_of(ELEVEN, "x3")["view"]
    values = dict(zip(view["axes"][0]["values"], view["values"][0], strict=True))
    bars, rows = ax.containers
    names = dict(zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True))
    drawn = {names[bar.get_y() + bar.get_height() / 2]: bar.get_width() for bar in bars}
    assert drawn == pytest.approx(values)
    assert [names[y] for y in sorted(names)] == sorted(values, key=values.get)
    shares = {c["label"]: c["share"] for c in ELEVEN["data"]["columns"][3]["categories"]}
    widths = {names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in rows}
    total = sum(widths.values())
    assert {name: width / total for name, width in widths.items()} == pytest.approx(shares)
    assert ax.get_xlabel() == "effect on price"


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"]])
def test_ordered_categories_stay_in_their_order(classes):
    summary = make_summary(2, classes=classes)
    summary["data"]["columns"][3]["ordered"] = True
    ax = plot_effect(summary, "x3")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == CITIES[:5]
    assert np.all(np.diff(ax.get_yticks()) < 0)  # the first on top
    values = np.array(summary["effects"][1]["view"]["values"])
    if classes is None:
        assert [bar.get_width() for bar in ax.containers[0]] == pytest.approx(values[0])


def test_what_raises_f_has_another_colour_than_what_lowers_it():
    bars = plot_effect(ELEVEN, "x3").containers[0]
    colours = {bar.get_width() > 0: bar.get_facecolor() for bar in bars}
    assert colours == {True: to_rgba(BLUE), False: to_rgba(VERMILLION)}


def test_values_of_a_column_of_two_numbers_have_few_digits_and_shares():
    summary = make_summary(2)
    view = summary["effects"][1]["view"]
    view["axes"][0]["values"] = ["-0.0446416", "0.0506801"]
    view["values"] = [[0.2, -0.1]]
    column = summary["data"]["columns"][3]
    del column["categories"]
    column |= {"kind": "number", "values": [[-0.0446416, 0.53], [0.0506801, 0.47]]}
    ax = plot_effect(summary, 1)
    assert {"\N{MINUS SIGN}0.0446", "0.0507", "53 %", "47 %"} <= set(texts(ax))


def test_an_indicator_of_missing_values_has_its_shares_by_position():
    summary = make_summary(4)
    view = summary["effects"][3]["view"]
    view["axes"][0]["values"] = ["no", "yes"]
    shares = [c["share"] for c in summary["data"]["columns"][4]["categories"]]
    ax = plot_effect(summary, 3)
    assert {"no", "yes", *(f"{100 * share:.0f} %" for share in shares)} <= set(texts(ax))


def test_two_numbers_are_contours_whose_colours_are_centred():
    ax = plot_effect(ELEVEN, ("x1", "x0"))
    filled = ax.collections[0]
    low, high = filled.get_clim()
    assert low == -high < 0.0
    np.testing.assert_allclose(filled.norm(0.0), 0.5)
    view = effect_of(ELEVEN, "x0", "x1")["view"]
    assert ax.get_xlim() == (view["axes"][0]["values"][0], view["axes"][0]["values"][-1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    bar = next(other for other in ax.figure.axes if other is not ax)
    assert bar.get_ylabel() == "effect on price"


def test_the_colours_of_contours_show_the_right_side():
    """Red below zero and blue above, at the corners of a product."""
    ax = plot_effect(ELEVEN, "x0 * x1")
    figure = ax.figure
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba()).astype(float)
    view = effect_of(ELEVEN, "x0", "x1")["view"]
    x, y = (np.array(axis["values"]) for axis in view["axes"])
    values = np.array(view["values"][0])
    for i, j in ((38, 38), (4, 38), (38, 4), (12, 12)):
        column, row = ax.transData.transform((x[i], y[j]))
        red, _, blue, _ = image[image.shape[0] - 1 - int(row), int(column)]
        assert np.sign(blue - red) == np.sign(values[i, j])


def test_corners_without_rows_do_not_set_the_colours():
    ax = plot_effect(ELEVEN, "x0 * x1")
    view = effect_of(ELEVEN, "x0", "x1")["view"]
    assert 0.0 < ax.collections[0].get_clim()[1] < 0.6 * np.abs(view["values"]).max()


def test_a_number_and_a_category_are_a_curve_per_category_with_its_name():
    ax = plot_effect(ELEVEN, ("x0", "x3"))
    view = effect_of(ELEVEN, "x0", "x3")["view"]
    lines = long_lines(ax, 41)
    np.testing.assert_array_equal(
        [line.get_ydata() for line in lines], np.transpose(view["values"][0])
    )
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 5
    assert set(CITIES[:5]) <= set(texts(ax))


def test_of_many_curves_the_largest_are_coloured_and_the_others_counted():
    summary = make_summary(11, many=True)
    ax = plot_effect(summary, ("x0", "x3"))
    view = effect_of(summary, "x0", "x3")["view"]
    colours = {colour for colour, _ in LINE_STYLES}
    lines = long_lines(ax, 41)
    named = [line for line in lines if line.get_color() in colours]
    assert len(lines) == len(CITIES) > 12 >= len(named) > 5
    said = set(texts(ax))
    assert f"+ {len(lines) - len(named)} more" in said
    assert len(said & set(CITIES)) == len(named)
    # The largest, by reach and share of the rows, is among them.
    reach = np.abs(np.array(view["values"][0])).max(axis=0)
    shares = [c["share"] for c in summary["data"]["columns"][3]["categories"]]
    assert CITIES[int(np.argmax(reach * np.sqrt(shares)))] in said


@pytest.mark.parametrize("names", ["town {}", LONG])
def test_categories_that_are_not_in_the_view_are_counted(names):
    summary = make_summary(11)
    towns = [names.format(k) for k in range(80)]
    column = category_column("x3", towns, np.random.default_rng(0))
    column["categories"].sort(key=lambda one: -one["share"])
    summary["data"]["columns"][3] = column
    for effect in summary["effects"]:
        if "x3" in effect["variables"]:
            members = [c for c in summary["data"]["columns"] if c["name"] in effect["variables"]]
            effect["view"] = view_of(members, 1, 1.0)
    ax = plot_effect(summary, "x3")
    assert ax.get_ylabel() == "x3 (30 most frequent of 80)"
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len(set(labels)) == len(labels) == 30
    assert "x3: 30 most frequent of 80" in plot_effect(summary, ("x0", "x3")).get_title(loc="left")
    tiles = plot_effect(summary, ("x3", "x4"))
    assert "30 most frequent of 80" in tiles.get_xlabel() + tiles.get_ylabel()
    small = plt.figure(figsize=(5, 3)).add_subplot()
    plot_effect(summary, "x3", ax=small)
    count = len(small.get_yticks())
    assert count < 30
    assert f"({count} most frequent of 80)" in small.get_ylabel()


def test_two_categories_are_tiles_with_numbers():
    ax = plot_effect(ELEVEN, ("x3", "x4"))
    values = np.array(effect_of(ELEVEN, "x3", "x4")["view"]["values"][0])
    np.testing.assert_allclose(ax.collections[0].get_array(), values)
    low, high = ax.collections[0].get_clim()
    assert low == -high
    written = {t.get_position(): t.get_text() for t in ax.texts}
    for i, j in np.ndindex(values.shape):
        assert written[(j + 0.5, i + 0.5)] == number(values[i, j], like=high)
    assert [t.get_text() for t in ax.get_yticklabels()] == CITIES[:5]
    assert ax.yaxis_inverted()


@pytest.mark.parametrize(
    ("variables", "kind"), [(("x0", "x1", "x2"), "surface"), (("x0", "x3", "x4"), "curves")]
)
def test_three_variables_have_a_panel_per_value_of_the_third(variables, kind):
    panels = plot_effect(ELEVEN, variables)
    view = effect_of(ELEVEN, *variables)["view"]
    third = view["axes"][2]["values"]
    assert panels.shape == (len(third),)
    for j, (ax, value) in enumerate(zip(panels, third, strict=True)):
        shown = value if isinstance(value, str) else number(value)
        assert ax.get_title(loc="left") == f"{variables[-1]} = {shown}"
        values = np.array(view["values"][0])[..., j]
        if kind == "curves":
            drawn = [line.get_ydata() for line in long_lines(ax, 41)]
            np.testing.assert_array_equal(drawn, values.T)
    if kind == "surface":
        assert len({ax.collections[0].get_clim() for ax in panels}) == 1
    else:
        assert len({ax.get_ylim() for ax in panels}) == 1


def test_further_variables_are_held_at_a_value_that_is_told():
    panels = plot_effect(ELEVEN, ("x0", "x1", "x2", "x5"))
    held = effect_of(ELEVEN, "x0", "x1", "x2", "x5")["view"]["held"][0]
    for ax in panels:
        assert ax.get_title(loc="left").endswith(f", x5 = {number(held['value'])}")


def test_classes_are_a_line_each_or_a_panel_each():
    summary = make_summary(11, classes=FIVE)
    ax = plot_effect(summary, "x0")
    lines = long_lines(ax, 41)
    view = effect_of(summary, "x0")["view"]
    np.testing.assert_array_equal([line.get_ydata() for line in lines], view["values"])
    assert {"setosa", "a $ class", '""', "virginica_2"} <= set(texts(ax))
    assert plot_effect(summary, ("x0", "x1")).shape == (5,)
    assert plot_effect(summary, ("x0", "x3")).shape == (5,)
    assert plot_effect(summary, ("x0", "x1", "x2")).shape == (5, 3)
    dots = plot_effect(summary, "x3")
    assert len([line for line in dots.lines if line.get_linestyle() == "None"]) == 5


@pytest.mark.parametrize("output", ["setosa", 0])
def test_one_class_alone(output):
    summary = make_summary(11, classes=FIVE)
    ax = plot_effect(summary, ("x0", "x1"), output=output)
    assert isinstance(ax, plt.Axes)
    curve = plot_effect(summary, "x0", output=output)
    np.testing.assert_array_equal(
        long_lines(curve, 41)[0].get_ydata(), effect_of(summary, "x0")["view"]["values"][0]
    )
    assert curve.get_ylabel() == "effect on score of setosa"


def test_two_classes_are_one_score():
    summary = make_summary(3, classes=["no", "yes"])
    assert plot_effect(summary, 0).get_ylabel() == "effect on log odds of yes"
    summary["link"]["kind"] = "sign"
    assert plot_effect(summary, 0).get_ylabel() == "effect on score of yes"


def test_counts_have_a_logarithm():
    summary = make_summary(3)
    summary["link"]["kind"] = "exp"
    assert plot_effect(summary, 0).get_ylabel() == "effect on log price"


def test_missing_values_in_a_view_are_gaps():
    summary = make_summary(3)
    for effect in summary["effects"]:
        values = effect["view"]["values"][0]
        values[2] = None if not isinstance(values[2], list) else [None] * len(values[2])
        plot_effect(summary, effect["name"]).figure.canvas.draw()
    ax = plot_effect(summary, 0)
    assert np.isnan(long_lines(ax, 41)[0].get_ydata()).sum() == 1


def test_an_axis_that_a_few_rows_make_very_long_is_cut_off_and_says_so():
    summary = make_summary(11, heavy=True)
    column = summary["data"]["columns"][0]
    ax = plot_effect(summary, "x0")
    assert ax.get_xlabel() == "x0 (ends cut off)"
    assert ax.get_xlim()[1] < 2 * column["quantiles"]["0.99"] < column["max"]
    (line,) = [line for line in ax.lines if len(line.get_xdata()) > 2 or line.get_xdata()[0] != 0]
    view = effect_of(summary, "x0")["view"]
    x, y = line.get_data()
    np.testing.assert_allclose(y, np.interp(x, view["axes"][0]["values"], view["values"][0]))


@pytest.mark.parametrize("effect", [0, -11, "x0", ("x0",), ["x0"], np.int64(0)])
def test_an_effect_is_found_by_position_name_or_variables(effect):
    assert plot_effect(ELEVEN, effect).get_title(loc="left") == "x0  (22 %)"


@pytest.mark.parametrize("effect", ["x1 * x0", ("x1", "x0"), "x0 * x1"])
def test_variables_come_in_any_order(effect):
    assert plot_effect(ELEVEN, effect).get_title(loc="left") == "x0 * x1  (14 %)"


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        (11, "There is no effect 11; this model has 11, counted from 0."),
        ("x0 * x9", "There is no effect 'x0 \\* x9'; the nearest are 'x0 \\* x3', 'x0 \\* x1'"),
        (("x4", "x5"), "There is no effect x4 \\* x5; the nearest are"),
        ("zzz", "There is no effect 'zzz'; this model has 'x0', 'x3', 'x0 \\* x1' and 8 more."),
        (1.5, "given by its name, its position or a tuple of its variables, got 1.5."),
        (True, "given by its name, its position or a tuple of its variables, got True."),
    ],
)
def test_an_unknown_effect_is_a_sentence_with_the_nearest_ones(effect, message):
    with pytest.raises(ValueError, match=message):
        plot_effect(ELEVEN, effect)
    assert plt.get_fignums() == []


def test_an_unknown_output_is_a_sentence():
    with pytest.raises(ValueError, match="one output, 'price', so output='yes' is not needed"):
        plot_effect(ELEVEN, 0, output="yes")
    with pytest.raises(ValueError, match="output must be one of 'a', 'b', 'c', got 'd'"):
        plot_effects(make_summary(3, classes=["a", "b", "c"]), output="d")


@pytest.mark.parametrize("draw", [plot_effects, lambda s: plot_effect(s, 0)])
def test_a_model_of_a_graph_has_no_effects_to_draw(draw):
    with pytest.raises(ValueError, match=r"fitted on a graph.*plot_importance and plot_hull"):
        draw(make_summary(6, graph=True))
    assert plt.get_fignums() == []


@pytest.mark.parametrize("draw", [plot_effects, lambda s: plot_effect(s, 0)])
def test_a_constant_has_no_effects(draw):
    summary = make_summary(1)
    summary["effects"] = []
    with pytest.raises(ValueError, match=r"predicts a constant\. Try a smaller alpha"):
        draw(summary)


def test_an_effect_without_a_view_is_skipped_by_the_grid_and_a_sentence_alone():
    summary = make_summary(3)
    summary["effects"][0]["view"] = None
    with pytest.raises(ValueError, match="no grid of the effect 'x0'"):
        plot_effect(summary, 0)
    titles = [ax.get_title(loc="left") for ax in plot_effects(summary).axes]
    assert "x3  (33 %)" in titles
    assert not any(title.startswith("x0  ") for title in titles)


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_the_grid_has_the_largest_effects_in_order(count):
    summary = make_summary(11)
    figure = plot_effects(summary, max_effects=count)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    names = [title.split("  (")[0] for title in titles if title]
    assert names == [effect["name"] for effect in summary["effects"]][:count]
    words = figure.get_suptitle()
    if count < 11:
        assert words.startswith(f"The {count} largest of 11 effects")
    else:
        assert words == "All 11 effects on price"


def test_the_grid_takes_the_class_and_the_slice_where_an_effect_is_largest():
    summary = make_summary(11, classes=FIVE)
    figure = plot_effects(summary)
    view = effect_of(summary, "x0", "x1", "x2")["view"]
    sizes = np.abs(np.array(view["values"])).max(axis=(1, 2))
    k, j = np.unravel_index(np.argmax(sizes), sizes.shape)
    (title,) = [
        ax.get_title(loc="left")
        for ax in figure.axes
        if ax.get_title(loc="left").startswith("x0 * x1 * x2  ")
    ]
    assert f"score of {FIVE[k]}, x2 = {number(view['axes'][2]['values'][j])}" in title
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [name or '""' for name in FIVE]


@pytest.mark.parametrize("bad", [0, 1.5, "many"])
def test_a_bad_number_of_effects_is_a_sentence(bad):
    with pytest.raises(ValueError, match="max_effects must be an integer >= 1"):
        plot_effects(ELEVEN, max_effects=bad)


def test_panels_take_the_place_of_the_axes_that_are_given():
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    left.plot([0, 1], [0, 1])
    panels = plot_effect(ELEVEN, ("x0", "x1", "x2"), ax=right)
    figure.canvas.draw()
    assert all(panel.figure is figure for panel in panels)
    assert all(panel.get_position().x0 > left.get_position().x1 for panel in panels)
    by_hand = figure.add_axes((0.1, 0.1, 0.3, 0.3))
    panels = plot_effect(ELEVEN, ("x0", "x1", "x2"), ax=by_hand)
    assert all(panel.get_position().x1 < 0.41 for panel in panels)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sixty", "long", "hostile", "five classes"])
def test_nothing_overlaps_or_is_cut_off(name):
    """All kinds of effects as panels, and the hardest of each case in a figure of its own."""
    summary = CASES[name]()
    for k in (1, 7) if name == "five classes" else (0, 1, 2, 4, 6):
        readable(plot_effect(summary, k))
    readable(plot_effects(summary, max_effects=9))
