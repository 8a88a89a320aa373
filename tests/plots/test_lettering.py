"""Text in pictures: names of any kind fit their room, and nothing is read as mathematics."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from plots.hand_made import HOSTILE, hostile_names, long_names, make_summary
from plots.looking import figure_of, visible_texts

from hikernel.plots import overview, plot_effect, plot_effects, plot_hull, plot_importance
from hikernel.plots.lettering import clean, fit, fit_all, number, percent, spread, text_width, wrap


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("two\nlines\tand\x00 zeros", "two lines and zeros"),
        ("", '""'),
        ("\n", '""'),
        ("turned \u202e round \u200b", "turned round"),
        ("\ud800 half", "\ufffd half"),
        (17, "17"),
        (("a", 1), "('a', 1)"),
    ],
)
def test_names_become_one_line(name, text):
    assert clean(name) == text


def test_what_is_too_long_loses_its_middle():
    text = fit("abcdefghij" * 10, 60.0, 10.0)
    front, back = text.split("…")
    assert text_width(text, 10.0) <= 60.0
    assert ("abcdefghij" * 10).startswith(front)
    assert ("abcdefghij" * 10).endswith(back)
    assert abs(len(front) - len(back)) <= 1
    assert fit("short", 60.0, 10.0) == "short"


@pytest.mark.parametrize(
    "names",
    [
        [f"the same long start, then {k:02d}, then the same long end" for k in range(20)],
        [f"{k:02d} differs at the start and ends with the same words" for k in range(20)],
        ["a\tb", "a b", "a\nb"],
        ["x" * 100 + "a" + "y" * 100, "x" * 100 + "b" + "y" * 100, "x" * 202],
    ],
)
def test_short_names_of_one_axis_differ(names):
    labels = fit_all(names, 60.0, 9.0)
    assert len(set(labels)) == len(names)
    assert all(text_width(label, 9.0) <= 60.0 for label in labels)


def test_what_differs_is_what_is_kept():
    names = [f"the same long start, then {word}, and the same long end" for word in ("ab", "cd")]
    first, second = fit_all(names, 60.0, 9.0)
    assert "ab" in first
    assert "cd" in second


def test_every_factor_of_a_product_is_seen():
    text = fit(" * ".join([*long_names(2), "age"]), 250.0, 10.0)
    first, second, third = text.split(" * ")
    assert (first[:3], first[-5:]) == ("the", "no. 0")
    assert (second[:3], second[-5:]) == ("the", "no. 1")
    assert third == "age"
    assert text_width(text, 10.0) <= 250.0


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.floats(40.0, 300.0))
def test_any_name_fits(name, points):
    text = fit(name, points, 9.0)
    assert text
    assert "\n" not in text
    assert text_width(text, 9.0) <= points


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 100.0), max_size=9))
def test_places_are_apart_within_limits_and_keep_their_order(wanted):
    found = spread(wanted, 10.0, 0.0, 100.0)
    assert len(found) == len(wanted)
    if not wanted:
        return
    assert min(found) >= -1e-9
    assert max(found) <= 100.0 + 1e-9
    order = np.argsort(wanted, kind="stable")
    assert np.all(np.diff(np.array(found)[order]) >= 10.0 - 1e-9)


def test_places_with_room_are_where_they_are_wanted():
    assert spread([50.0, 10.0], 5.0, 0.0, 100.0) == [50.0, 10.0]
    assert spread([50.0, 50.0], 10.0, 0.0, 100.0) == [45.0, 55.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.5, "1.5"),
        (-0.04464, "−0.0446"),
        (123456.0, "123,456"),
        (1e9, "1.00e9"),
        (-3e-7, "−3.00e-7".replace("-", "−")),
        (float("nan"), ""),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_numbers_like_another_have_its_digits():
    assert [number(value, like=0.7) for value in (0.21, -0.5, 0.0179)] == ["0.21", "−0.50", "0.02"]


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.00001, "< 0.1 %"), (0.057, "5.7 %"), (0.384, "38 %")]
)
def test_shares_are_percent(share, text):
    assert percent(share) == text


def test_long_texts_are_broken_into_lines():
    text = wrap("one two three four five six seven eight nine ten", 60.0, 10.0, max_lines=3)
    lines = text.split("\n")
    assert len(lines) == 3
    assert lines[0].startswith("one")
    assert lines[-1].endswith("…")
    assert all(text_width(line, 10.0) <= 60.0 for line in lines)


@pytest.mark.parametrize(
    "draw", [overview, plot_effects, plot_hull, plot_importance, lambda s: plot_effect(s, 2)]
)
def test_names_of_data_are_never_mathematics(draw):
    """Every text with a dollar sign is drawn as it is, also where TeX is switched on."""
    summary = make_summary(14, names=hostile_names(14), classes=["$a_b", "y^{2", "z$z$"])
    with plt.rc_context({"text.usetex": False, "text.parse_math": True}):
        figure = figure_of(draw(summary))
        seen = [text for text, _ in visible_texts(figure)]
    named = [
        text for text in seen if "$" in text.get_text() and "mathdefault" not in text.get_text()
    ]
    assert named
    assert not any(text.get_parse_math() for text in named)
    assert not any(text.get_usetex() for text in named)


def test_no_name_breaks_a_label():
    for name in HOSTILE:
        summary = make_summary(1, names=[name, *"bcdefgh"])
        ax = plot_effect(summary, 0)
        ax.figure.canvas.draw()
        assert ax.get_xlabel() == clean(name)
        plt.close(ax.figure)


def test_a_class_with_an_underscore_in_front_is_in_the_legend():
    summary = make_summary(3, classes=["_a", "_b", "c"])
    legend = plot_effect(summary, "x3").get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["_a", "_b", "c"]


def test_fonts_of_the_user_are_used():
    sizes = []
    for size in (8.0, 14.0):
        with plt.rc_context({"font.size": size}):
            figure = plot_importance(make_summary(3)).figure
        sizes.append(
            [text.get_fontsize() for text in figure.findobj(Text) if text.get_text() == "x0"]
        )
    assert sizes[1][0] == pytest.approx(sizes[0][0] * 14.0 / 8.0)
