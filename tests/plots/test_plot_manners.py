"""How pictures behave: settings, open figures, given axes, bad input, no matplotlib."""

from __future__ import annotations

import inspect
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from plots.hand_made import make_summary
from plots.test_model_plots import EVERY_PLOT, STABLE

import hikernel
from hikernel import plots
from hikernel.plots import overview, plot_effect, plot_effects, plot_importance, plot_stability

SUMMARY = make_summary(11)
ON_AXES = {
    "effect": lambda ax: plots.plot_effect(SUMMARY, 0, ax=ax),
    "bars": lambda ax: plots.plot_effect(SUMMARY, "x3", ax=ax),
    "surface": lambda ax: plots.plot_effect(SUMMARY, "x0 * x1", ax=ax),
    "importance": lambda ax: plots.plot_importance(SUMMARY, ax=ax),
    "hull": lambda ax: plots.plot_hull(SUMMARY, ax),
    "path": lambda ax: plots.plot_path(SUMMARY, ax),
    "certificate": lambda ax: plots.plot_certificate(SUMMARY, ax),
    "prediction": lambda ax: plots.plot_prediction(SUMMARY, {"x0": 1.0}, ax),
    "stability": lambda ax: plot_stability(STABLE, ax),
}


@pytest.mark.parametrize("name", ON_AXES)
def test_axes_are_used_and_no_other_figure_is_made(name):
    figure, axes = plt.subplots(2, 2)
    assert ON_AXES[name](axes[0, 1]) is axes[0, 1]
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@pytest.mark.parametrize("name", ON_AXES)
def test_without_axes_one_figure_is_made(name):
    ax = ON_AXES[name](None)
    assert plt.get_fignums() == [ax.figure.number]


@pytest.mark.parametrize("name", ON_AXES)
def test_axes_of_a_figure_that_pyplot_does_not_know(name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    half = figure.subfigures(1, 2)[1]
    ON_AXES[name](half.subplots())
    figure.canvas.draw()
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ON_AXES)
def test_something_else_than_axes_is_a_sentence(name):
    with pytest.raises(TypeError, match="ax must be one Axes of matplotlib, got ndarray"):
        ON_AXES[name](np.array([1, 2]))


@pytest.mark.parametrize("draw", [overview, plot_effects])
def test_figures_are_returned(draw):
    figure = draw(SUMMARY)
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("name", EVERY_PLOT)
def test_a_picture_changes_nothing_but_itself(name, monkeypatch):
    """No setting, no call of show, and the summary stays what it was."""
    summary = make_summary(11)
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("show was called"))
    before = dict(mpl.rcParams)
    EVERY_PLOT[name](summary)
    assert dict(mpl.rcParams) == before
    assert summary == make_summary(11)


def test_any_object_with_a_summary_is_a_model():
    class Model:
        def summary(self):
            return SUMMARY

    assert plot_effect(Model(), 0).get_title(loc="left") == "x0  (22 %)"


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (3, TypeError, "drawn from a fitted model or from the dict.*got int"),
        ({}, ValueError, "not the summary of a model, which has 'effects', 'outputs', 'data'"),
        ({**SUMMARY, "schema": 2}, ValueError, "has schema 2, and this version .* schema 1"),
    ],
)
def test_what_is_no_model_is_a_sentence(model, error, message):
    with pytest.raises(error, match=message):
        plot_importance(model)


def test_a_notebook_shows_a_figure_once(monkeypatch):
    figure = overview(SUMMARY)
    with pytest.raises(NotImplementedError):  # the usual display takes over
        figure._ipython_display_()
    monkeypatch.setattr(mpl, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    figure._ipython_display_()  # the backend shows it at the end of the cell
    plt.close(figure)
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()


def test_every_function_is_public_and_documented():
    assert hikernel.plots is plots
    for name in plots.__all__:
        assert name in ("overview", name)
        text = inspect.getdoc(getattr(plots, name))
        assert all(part in text for part in ("Parameters\n---", "Returns\n---", "Raises\n---"))


WITHOUT = """
import sys
import hikernel
hikernel.plots
assert not any(name.split(".")[0] == "matplotlib" for name in sys.modules), "imported too early"
sys.modules["matplotlib"] = None
sys.modules["matplotlib.pyplot"] = None
try:
    hikernel.plots.plot_importance({summary!r})
except ImportError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_matplotlib_the_extra_is_named():
    summary = {
        "outputs": ["y"],
        "data": {},
        "effects": [{"name": "x", "order": 1, "share": 1.0}],
    }
    code = WITHOUT.format(summary=summary)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "Pictures need matplotlib: pip install 'hikernel[plot]'.\n"
