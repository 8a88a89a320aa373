"""Importance, hull, path, proof, stability, one prediction, and all of it at one look."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from plots.hand_made import CASES, FIVE, LONG, make_summary
from plots.looking import figure_of, readable, visible_texts

from hikernel.plots import (
    overview,
    plot_certificate,
    plot_hull,
    plot_importance,
    plot_path,
    plot_prediction,
    plot_stability,
)
from hikernel.plots.canvas import BLUE, FAINT, ORDERS

ELEVEN = make_summary(11)


def texts(drawn):
    return [text.get_text() for text, _ in visible_texts(figure_of(drawn))]


def tick_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def hexadecimal(colour):
    import matplotlib.colors

    return matplotlib.colors.to_hex(colour).upper()


# Importance.


def test_bars_of_effects_have_their_shares_and_names():
    ax = plot_importance(ELEVEN)
    assert tick_names(ax) == [effect["name"] for effect in ELEVEN["effects"]]
    widths = [bar.get_width() for bar in ax.containers[0]]
    assert widths == pytest.approx([effect["share"] for effect in ELEVEN["effects"]])
    places = [bar.get_y() for bar in ax.containers[0]]
    assert places == sorted(places, reverse=True)
    for bar, effect in zip(ax.containers[0], ELEVEN["effects"], strict=True):
        colour = ORDERS[min(effect["order"], 4) - 1][0]
        assert hexadecimal(bar.get_facecolor()) == colour.upper()


def test_effects_beyond_the_last_bar_are_one_bar():
    summary = CASES["sixty"]()
    ax = plot_importance(summary, max_items=20)
    assert len(ax.containers[0]) == 21
    assert tick_names(ax)[-1] == "40 other effects"
    rest = sum(effect["share"] for effect in summary["effects"][20:])
    assert ax.containers[0][-1].get_width() == pytest.approx(rest)
    assert hexadecimal(ax.containers[0][-1].get_facecolor()) == FAINT.upper()


def test_a_single_effect_beyond_the_last_bar_has_its_own():
    assert tick_names(plot_importance(ELEVEN, max_items=10))[-1] == ELEVEN["effects"][10]["name"]


def test_fewer_bars_where_there_is_no_room():
    figure, axes = plt.subplots(3, 3, figsize=(9, 6))
    ax = plot_importance(CASES["sixty"](), ax=axes[1, 1])
    assert 3 < len(ax.containers[0]) < 12
    readable(figure)


def test_bars_of_variables_have_all_and_alone():
    ax = plot_importance(ELEVEN, by="variable")
    ranked = sorted(ELEVEN["variables"], key=lambda variable: -variable["share"])
    assert tick_names(ax) == [variable["name"] for variable in ranked]
    total, alone = ([bar.get_width() for bar in part] for part in ax.containers)
    assert total == pytest.approx([variable["share"] for variable in ranked])
    assert alone == pytest.approx([variable["alone"] for variable in ranked])
    few = plot_importance(ELEVEN, by="variable", max_items=2)
    assert few.get_xlabel().endswith("; 4 more are not shown")


def test_importance_says_what_it_cannot_draw():
    with pytest.raises(ValueError, match="fitted on a graph, which has no variables"):
        plot_importance(make_summary(6, graph=True), by="variable")
    with pytest.raises(ValueError, match="by must be one of 'effect', 'variable', got 'term'"):
        plot_importance(ELEVEN, by="term")
    with pytest.raises(ValueError, match="max_items must be an integer >= 1"):
        plot_importance(ELEVEN, max_items=0)


# Hull.


def nodes_of(ax):
    """Places of the idle and of the active nodes, as drawn."""
    found = {part.get_label(): part for part in ax.collections}
    return found["idle"], found["active"]


def test_the_hull_has_every_node_and_every_edge():
    ax = plot_hull(ELEVEN)
    hull = ELEVEN["hull"]
    idle, active = nodes_of(ax)
    assert len(active.get_offsets()) == sum(node["active"] for node in hull)
    assert len(idle.get_offsets()) == sum(not node["active"] for node in hull)
    (edges,) = [part for part in ax.collections if isinstance(part, LineCollection)]
    assert len(edges.get_segments()) == sum(len(node["parents"]) for node in hull)
    for start, end in edges.get_segments():
        assert start[1] > end[1]  # parents are above
    assert np.allclose(idle.get_facecolors(), 1.0)
    assert not np.allclose(active.get_facecolors(), 1.0)
    assert {"degree 1", "degree 2", "x0", "x0 * x1", "x0^2"} <= set(texts(ax))


def test_the_area_of_a_node_grows_with_its_share():
    idle, active = nodes_of(plot_hull(ELEVEN))
    shares = [node["share"] for node in ELEVEN["hull"] if node["active"]]
    sizes = active.get_sizes()
    assert np.argmax(sizes) == np.argmax(shares)
    order = np.argsort(shares)
    assert np.all(np.diff(sizes[order]) >= -1e-9)
    assert sizes.max() / sizes[order[-2]] == pytest.approx(shares[order[-1]] / shares[order[-2]])
    assert idle.get_sizes().max() <= sizes.min() + 1e-9


def test_nodes_of_a_row_do_not_lie_on_each_other():
    ax = plot_hull(CASES["sixty"]())
    ax.figure.canvas.draw()
    places = np.concatenate([part.get_offsets() for part in nodes_of(ax)])
    pixels = ax.transData.transform(places)
    radius = np.concatenate([part.get_sizes() for part in nodes_of(ax)]) ** 0.5 / 2
    radius *= ax.figure.dpi / 72
    for row in np.unique(places[:, 1]):
        here = np.flatnonzero(places[:, 1] == row)
        here = here[np.argsort(pixels[here, 0])]
        gaps = np.diff(pixels[here, 0]) - radius[here[1:]] - radius[here[:-1]]
        assert np.all(gaps > 0)


def test_of_a_large_hull_the_largest_terms_are_drawn_with_their_ancestors():
    summary = make_summary(3)
    n = 500
    summary["hull"] = [
        {"term": "1", "order": 0, "degree": 0, "share": 0.0, "active": False, "parents": []}
    ]
    for i in range(n):
        parents = [0] if i < 100 else [1 + i % 100, 1 + (7 * i) % 100]
        summary["hull"].append(
            {
                "term": f"term {i}",
                "order": len(parents),
                "degree": len(parents),
                "share": (i + 1.0) / n**2,
                "active": i >= 100,
                "parents": sorted(set(parents)),
            }
        )
    ax = plot_hull(summary, max_nodes=120)
    drawn = sum(len(part.get_offsets()) for part in nodes_of(ax))
    assert 100 < drawn <= 120
    said = texts(ax)
    assert f"term {n - 1}" in said
    assert f"{n + 1 - drawn} smaller terms are left out" in said
    named = sum(text.startswith("term ") or text == "1" for text in said)
    assert 0 < named < drawn
    assert f"{drawn - named} of {drawn} terms have no name here, for want of room" in said
    readable(ax)


def test_the_hull_of_a_graph_may_have_many_roots():
    summary = make_summary(3, graph=True)
    summary["hull"] = [
        {"term": name, "order": 0, "degree": 0, "share": 0.3, "active": True, "parents": []}
        for name in "ACGT"
    ] + [{"term": "AC", "order": 0, "degree": 1, "share": 0.2, "active": True, "parents": [0, 1]}]
    ax = plot_hull(summary)
    said = texts(ax)
    assert {"A", "C", "G", "T", "AC", "depth 1", "active"} <= set(said)
    assert "one variable" not in said


def test_the_root_alone_is_a_hull():
    summary = make_summary(3)
    summary["hull"] = summary["hull"][:1]
    assert "1" in texts(plot_hull(summary))


# Path.


def error_lines(ax):
    return [part.lines[0] for part in ax.containers]


def test_the_path_has_the_errors_their_bars_and_the_number_of_effects():
    ax = plot_path(ELEVEN)
    path = ELEVEN["path"]
    for line, refit in zip(error_lines(ax), ("None", "sparse"), strict=True):
        np.testing.assert_allclose(line.get_xdata(), [point["alpha"] for point in path])
        np.testing.assert_allclose(line.get_ydata(), [p["cv"][refit]["mean"] for p in path])
    segments = ax.containers[1].lines[2][0].get_segments()
    for segment, point in zip(segments, path, strict=True):
        error = point["cv"]["sparse"]
        np.testing.assert_allclose(
            segment[:, 1], [error["mean"] - error["se"], error["mean"] + error["se"]]
        )
    (other,) = [axes for axes in ax.figure.axes if axes is not ax]
    counts = next(line for line in other.lines if line.get_label() == "effects")
    np.testing.assert_allclose(counts.get_ydata(orig=True), [p["n_effects"] for p in path])
    assert {"no refit", "refit: sparse", "mean loss, cross-validated"} <= set(texts(ax))
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] > ax.get_xlim()[1]


def chosen_mark(ax):
    (mark,) = [line for line in ax.lines if line.get_label() == "chosen"]
    return float(mark.get_xdata()[0]), float(mark.get_ydata()[0])


@pytest.mark.parametrize("refit", [None, "sparse"])
def test_the_chosen_point_is_marked_at_its_alpha_and_refit(refit):
    summary = make_summary(11)
    summary["refit"] = refit
    point = next(point for point in summary["path"] if point["chosen"])
    ax = plot_path(summary)
    assert chosen_mark(ax) == pytest.approx((point["alpha"], point["cv"][str(refit)]["mean"]))
    label = "number of effects" if refit is None else "effects before the refit"
    assert label in texts(ax)
    upright = [line for line in ax.lines if list(line.get_xdata()) == [point["alpha"]] * 2]
    assert len(upright) == 1


def test_a_path_without_cross_validation_shows_what_is_explained():
    summary = CASES["no cross-validation"]()
    ax = plot_path(summary)
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_ydata(), [p["explained"] for p in summary["path"]])
    point = next(point for point in summary["path"] if point["chosen"])
    assert chosen_mark(ax) == pytest.approx((point["alpha"], point["explained"]))


def test_a_score_with_its_sign_turned_is_said_to_be():
    summary = make_summary(3)
    summary["quality"] |= {"metric": "r2", "larger_is_better": True}
    assert plot_path(summary).get_ylabel() == "minus r2, cross-validated"


@pytest.mark.parametrize(
    ("metric", "label"), [("mean log loss", "CV mean log loss"), (LONG, "CV error")]
)
def test_words_of_the_path_are_short_where_there_is_little_room(metric, label):
    summary = make_summary(3)
    summary["quality"]["metric"] = metric
    ax = plt.figure(figsize=(4, 2)).add_subplot()
    assert plot_path(summary, ax).get_ylabel() == label


def test_a_refit_that_was_not_scored_at_an_alpha_is_a_gap():
    summary = make_summary(3)
    del summary["path"][3]["cv"]["sparse"]
    summary["path"][4]["cv"]["sparse"]["se"] = None
    line = error_lines(plot_path(summary))[1]
    assert np.flatnonzero(np.isnan(line.get_ydata())).tolist() == [3]


def test_a_model_without_a_path_says_what_to_do():
    with pytest.raises(ValueError, match=r"no path over alpha.*fit HKLRegressorCV"):
        plot_path(CASES["loaded"]())


# Certificate.


def test_the_gap_falls_to_the_tolerance():
    ax = plot_certificate(ELEVEN)
    gaps = [step["gap"] for step in ELEVEN["search"]]
    line, tolerance = ax.lines[:2]
    np.testing.assert_allclose(line.get_ydata()[1:], gaps[1:])
    assert np.isnan(line.get_ydata()[0])
    np.testing.assert_allclose(line.get_xdata(), [step["explored"] for step in ELEVEN["search"]])
    assert set(tolerance.get_ydata()) == {ELEVEN["certificate"]["tol"]}
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel() == "kernels looked at"
    assert f"{100 * gaps[-1]:.2g} %" in texts(ax)


def test_a_gap_of_zero_has_a_place_on_the_axis():
    summary = make_summary(3)
    summary["search"][-1]["gap"] = 0.0
    ax = plot_certificate(summary)
    assert np.isfinite(ax.lines[0].get_ydata()[1:]).all()
    assert ax.lines[0].get_ydata()[-1] < summary["certificate"]["tol"]
    assert "0 %" in texts(ax)


def test_objective_and_bound():
    ax = plot_certificate(ELEVEN, what="objective")
    objective, bound = ax.lines[:2]
    np.testing.assert_allclose(objective.get_ydata(), [s["objective"] for s in ELEVEN["search"]])
    np.testing.assert_allclose(bound.get_ydata(), [s["bound"] for s in ELEVEN["search"]])
    assert {"objective", "proven bound", "tolerance (1.0 %)"} <= set(texts(ax))


def test_a_proof_of_one_step_is_drawn_as_objective_and_bound():
    summary = make_summary(3)
    for step in summary["search"][:-1]:
        step |= {"gap": None, "bound": None}
    ax = plot_certificate(summary)
    assert ax.get_ylabel() == "objective"
    assert any(text.startswith("gap ") for text in texts(ax))
    assert plot_certificate(summary, what="gap").get_ylabel() == "relative gap"


def test_work_is_what_grew():
    summary = make_summary(3)
    for step in summary["search"]:
        step["explored"] = 90
    assert plot_certificate(summary).get_xlabel() == "kernels in the problem"
    for step in summary["search"]:
        step["kernels"] = 5
    assert plot_certificate(summary).get_xlabel() == "step of the search"


def test_a_search_without_a_proof():
    summary = make_summary(3)
    for step in summary["search"]:
        step |= {"gap": None, "bound": None}
    ax = plot_certificate(summary)
    assert "proven bound" not in texts(ax)
    assert "nothing is proven" in texts(ax)
    assert not any("tolerance" in text for text in texts(ax))
    assert not ax.patches
    with pytest.raises(ValueError, match="No gap was computed in this search"):
        plot_certificate(summary, what="gap")
    with pytest.raises(ValueError, match="what must be one of"):
        plot_certificate(summary, what="proof")
    with pytest.raises(ValueError, match="no record of its search"):
        plot_certificate(CASES["loaded"]())


# Stability.

STABLE = SimpleNamespace(
    terms={"term": ["a", "b * c", "_d"], "frequency": [0.3, 1.0, 0.6]},
    variables={"variable": ["a", "b", "c", "d"], "frequency": [0.3, 1.0, 1.0, 0.0]},
    threshold=0.6,
    n_subsamples=50,
)


def test_frequencies_are_sorted_and_coloured_at_the_threshold():
    ax = plot_stability(STABLE)
    assert tick_names(ax) == ["b * c", "_d", "a"]
    bars = ax.containers[0]
    assert [bar.get_width() for bar in bars] == [1.0, 0.6, 0.3]
    colours = [hexadecimal(bar.get_facecolor()) for bar in bars]
    assert colours == [BLUE.upper(), BLUE.upper(), FAINT.upper()]
    assert set(ax.lines[0].get_xdata()) == {0.6}
    assert ax.get_xlabel() == "share of 50 subsamples; threshold 60 %"


def test_frequencies_of_variables_leave_out_what_was_never_selected():
    ax = plot_stability(STABLE, by="variable", max_items=2)
    assert tick_names(ax) == ["b", "c"]
    assert ax.get_xlabel().endswith("; 1 rarer ones are not shown")


def test_stability_takes_nothing_else():
    with pytest.raises(TypeError, match=r"hikernel.stability_selection returns, got dict"):
        plot_stability({})
    nothing = SimpleNamespace(**{**vars(STABLE), "terms": {"term": [], "frequency": []}})
    with pytest.raises(ValueError, match="No subsample selected anything"):
        plot_stability(nothing)


# One prediction.


def waterfall(ax):
    """Names, starts and changes of the bars."""
    bars = ax.containers[0]
    starts = [bar.get_x() for bar in bars]
    return tick_names(ax)[1:-1], starts, [bar.get_width() for bar in bars]


def reasons(**contributions):
    return [
        SimpleNamespace(effect=name, values="", contributions=(change,))
        for name, change in contributions.items()
    ]


@pytest.mark.parametrize(
    "explanation",
    [
        {"x0": 0.5, "x3": -1.0, "x0 * x1": 0.25},
        {"intercept": 1.5, "x0": 0.5, "x3": -1.0, "x0 * x1": 0.25},
        [("x0", 0.5), ("x3", -1.0), ("x0 * x1", 0.25)],
        pd.Series({"intercept": 1.5, "x0": 0.5, "x3": -1.0, "x0 * x1": 0.25}),
        SimpleNamespace(reasons=reasons(x0=0.5, x3=-1.0, **{"x0 * x1": 0.25})),
        SimpleNamespace(
            reasons=reasons(x0=0.5, x3=-1.0, **{"x0 * x1": 0.25}),
            intercept=(1.5,),
            prediction=1.25,
        ),
    ],
)
def test_a_prediction_goes_from_the_intercept_to_the_sum(explanation):
    ax = plot_prediction(ELEVEN, explanation)
    names, starts, changes = waterfall(ax)
    assert names == ["x3", "x0", "x0 * x1"]
    assert changes == pytest.approx([-1.0, 0.5, 0.25])
    assert starts == pytest.approx([1.5, 0.5, 1.0])
    assert tick_names(ax)[0] == "intercept"
    assert tick_names(ax)[-1] == "price"
    assert "1.25" in texts(ax)
    assert ax.get_title(loc="left").endswith("1.25")


def test_values_stand_beside_names_and_the_prediction_in_the_title():
    explanation = SimpleNamespace(
        reasons=[
            SimpleNamespace(effect="bmi", values="bmi = 31.2", contributions=(0.5,)),
            SimpleNamespace(effect="a * b", values="a = 1, b is missing", contributions=(0.4,)),
            SimpleNamespace(effect="age", values="age is missing", contributions=(0.3,)),
        ],
        intercept=(0.0,),
        prediction="yes",
        probabilities={"no": 0.17, "yes": 0.83},
    )
    ax = plot_prediction(make_summary(3, classes=["no", "yes"]), explanation)
    assert waterfall(ax)[0] == ["bmi = 31.2", "a = 1, b is missing", "age is missing"]
    assert ax.get_title(loc="left") == "prediction: yes (probability 0.83)"
    assert ax.get_xlabel() == "log odds of yes"
    triples = plot_prediction(ELEVEN, [("bmi", 31.2, 0.5), ("age", "", 0.1)])
    assert waterfall(triples)[0] == ["bmi = 31.2", "age"]


def test_an_explanation_of_some_classes_is_drawn_for_these():
    summary = make_summary(3, classes=["a", "b", "c"])
    summary["intercept"] = [0.0, 5.0, -1.0]
    two = [SimpleNamespace(effect="x0", values="", contributions=(2.0, 1.0))]
    explanation = SimpleNamespace(reasons=two, classes=("c", "a"), prediction="b")
    ax = plot_prediction(summary, explanation)
    assert (ax.get_xlabel(), waterfall(ax)[1:]) == ("score of c", ([-1.0], [2.0]))
    ax = plot_prediction(summary, explanation, output="a")
    assert (ax.get_xlabel(), waterfall(ax)[1:]) == ("score of a", ([0.0], [1.0]))
    with pytest.raises(ValueError, match="not about 'b'; make one with classes='b'"):
        plot_prediction(summary, explanation, output="b")


def test_small_effects_of_a_prediction_are_one_bar():
    many = {f"x{i}": 0.9**i for i in range(30)}
    ax = plot_prediction(ELEVEN, many, max_effects=5)
    names, _, changes = waterfall(ax)
    assert names == ["x0", "x1", "x2", "x3", "x4", "25 other effects"]
    assert sum(changes) == pytest.approx(sum(many.values()))


def test_the_class_of_a_prediction_is_the_one_with_the_largest_score():
    summary = make_summary(3, classes=["a", "b", "c"])
    explanation = {"x0": [0.1, 2.0, 0.3], "x1": [1.0, -0.5, 0.0]}
    ax = plot_prediction(summary, explanation)
    assert waterfall(ax)[2] == pytest.approx([2.0, -0.5])
    assert ax.get_xlabel() == "score of b"
    assert waterfall(plot_prediction(summary, explanation, output="a"))[2] == pytest.approx(
        [1.0, 0.1]
    )


@pytest.mark.parametrize(
    ("explanation", "error", "message"),
    [
        (3.0, TypeError, "An explanation is what.*got float"),
        ("x0", TypeError, "An explanation is what.*got str"),
        ([("x0", 1, 2, 3)], TypeError, r"\(name, contribution\) or \(name, value, contribution\)"),
        ({"x0": "much"}, ValueError, "one finite number for the contribution of 'x0', got 'much'"),
        ({"x0": [1.0, 2.0]}, ValueError, "one finite number for the contribution of 'x0'"),
        ({"x0": np.nan}, ValueError, "one finite number"),
        ({"intercept": None, "x0": [1.0]}, None, ""),
    ],
)
def test_an_explanation_is_checked(explanation, error, message):
    if error is None:
        plot_prediction(ELEVEN, explanation)
        return
    with pytest.raises(error, match=message):
        plot_prediction(ELEVEN, explanation)
    assert plt.get_fignums() == []


# At one look.


def test_the_overview_has_quality_effects_path_and_proof():
    said = texts(overview(ELEVEN))
    whole = " ".join(said)
    assert "HKLRegressorCV of price: 11 effects (800 rows, 11 columns)" in said
    assert "explains 69 %; a linear model 58 %" in whole
    assert "Panels: effect on price." in whole
    assert {"What matters", "The path over alpha", "refit: sparse"} <= set(said)
    assert "Proven: no choice" in whole.replace("\n", " ")
    for effect in ELEVEN["effects"][:6]:
        assert any(text.startswith(f"{effect['name']}  (") for text in said)
    assert not any(text.startswith(f"{ELEVEN['effects'][6]['name']}  (") for text in said)


def test_without_a_path_the_overview_shows_the_search():
    said = texts(overview(make_summary(11, path=False)))
    assert "The search" in said
    assert "The path over alpha" not in said


def test_a_model_of_a_graph_has_its_hull_in_the_overview():
    said = texts(overview(CASES["graph"]()))
    assert {"What matters", "What the convex problem selected"} <= set(said)


def test_a_constant_has_an_overview():
    summary = make_summary(1)
    summary |= {"effects": [], "variables": [], "terms": []}
    said = texts(overview(summary))
    assert "HKLRegressorCV of price: 0 effects (800 rows, 8 columns)" in said


def test_classes_share_a_legend_in_the_overview():
    said = texts(overview(make_summary(6, classes=FIVE)))
    for name in ("setosa", "a $ class", '""', "virginica_2"):
        assert said.count(name) == 1


EVERY_PLOT = {
    "overview": overview,
    "importance": plot_importance,
    "variables": lambda s: plot_importance(s, by="variable"),
    "hull": plot_hull,
    "path": plot_path,
    "gap": plot_certificate,
    "objective": lambda s: plot_certificate(s, what="objective"),
    "prediction": lambda s: plot_prediction(
        s,
        [
            (
                e["name"],
                "a value",
                [(-1.0) ** (i + k) * e["share"] for k in range(len(s["outputs"]))],
            )
            for i, e in enumerate(s["effects"])
        ],
    ),
    "stability": lambda s: plot_stability(
        SimpleNamespace(
            terms={
                "term": [node["term"] for node in s["hull"]],
                "frequency": [1.0 / (1.0 + 0.1 * k) for k in range(len(s["hull"]))],
            },
            variables={},
            threshold=0.6,
            n_subsamples=50,
        )
    ),
}
MISSING = {("graph", "variables")}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["sixty", "long", "hostile", "five classes", "graph"])
def test_nothing_overlaps_or_is_cut_off(case):
    summary = CASES[case]()
    for name, draw in EVERY_PLOT.items():
        if (case, name) not in MISSING:
            readable(draw(summary))
