"""Strings, point clouds and labelled graphs as graphs for estimators: rows, mistakes, pickles."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hikernel import HKLClassifier, HKLRegressor
from hikernel.datasets import make_clouds, make_molecules, make_motifs
from hikernel.graphs import SubstringGraph, pyramid_match, weisfeiler_lehman

MOTIFS = make_motifs(60, 30, {"ACG": 1.0}, noise=0.1, seed=0)
CLOUDS = make_clouds(40, 1, seed=0)
MOLECULES = make_molecules(40, seed=0)

CASES = {
    "strings": (SubstringGraph(4), MOTIFS),
    "clouds": (pyramid_match(2), CLOUDS),
    "molecules": (weisfeiler_lehman(2), MOLECULES),
}


def as_column(rows):
    """Rows of any kind as an array of objects of shape (n, 1)."""
    out = np.empty((len(rows), 1), dtype=object)
    out[:, 0] = [None] * len(rows)
    for i, row in enumerate(rows):
        out[i, 0] = row
    return out


@pytest.mark.parametrize("name", CASES)
def test_a_fitted_model_survives_pickling(name):
    graph, data = CASES[name]
    model = HKLRegressor(0.01, graph=graph).fit(data.X, data.y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))
    assert repr(graph) == repr(pickle.loads(pickle.dumps(graph)))


@pytest.mark.parametrize("name", CASES)
def test_rows_in_lists_series_and_columns(name):
    graph, data = CASES[name]
    column = as_column(data.X)
    expected = HKLRegressor(0.01, graph=graph).fit(data.X, data.y).predict(data.X)
    for rows in (column, pd.DataFrame({"a": column[:, 0]}), pd.Series(column[:, 0])):
        model = HKLRegressor(0.01, graph=graph).fit(rows, data.y)
        np.testing.assert_allclose(model.predict(rows), expected)
    table = pd.DataFrame({"a": column[:, 0], "b": 1})
    with pytest.raises(ValueError, match=r"got a table of shape \((60|40), 2\)"):
        model.predict(table)


def test_strings_in_a_frame_of_polars():
    table = pl.DataFrame({"s": list(MOTIFS.X)})
    model = HKLRegressor(0.01, graph=SubstringGraph(3)).fit(table, MOTIFS.y)
    np.testing.assert_allclose(model.predict(table["s"]), model.predict(list(MOTIFS.X)))


def test_effects_keep_the_index_of_a_series():
    rows = pd.Series(list(MOTIFS.X), index=range(100, 160))
    model = HKLRegressor(0.01, graph=SubstringGraph(3)).fit(rows, MOTIFS.y)
    effects = model.effects(rows)
    assert list(effects.index) == list(rows.index)
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(rows), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SubstringGraph(0), "max_length must be at least 1"),
        (lambda: SubstringGraph(2.5), "max_length must be a whole number"),
        (lambda: SubstringGraph(3, binary="no"), "binary must be True or False"),
        (lambda: SubstringGraph(3, weight_base="2"), "weight_base must be a number above 0"),
        (lambda: SubstringGraph(200), "weights of depth 199 leave the range"),
        (lambda: pyramid_match(3, weight_base=None), "weight_base must be a number above 0"),
        (lambda: weisfeiler_lehman(3, weight_base=-1.0), "weight_base must be a number above 0"),
        (lambda: SubstringGraph(3).read(["a", 1]), "row 1 is 1 of type int"),
        (lambda: SubstringGraph(3).read("text"), "sequence of rows"),
        (lambda: HKLRegressor(graph=SubstringGraph).fit(["a", "b"], [0, 1]), "got the class Sub"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_classes_of_strings():
    labels = np.where(MOTIFS.signal > np.median(MOTIFS.signal), "many", "few")
    model = HKLClassifier(0.01, graph=SubstringGraph(3, weight_base=1.0)).fit(MOTIFS.X, labels)
    assert "ACG" in set(model.hull_["term"])
    assert model.score(MOTIFS.X, labels) > 0.9
    assert model.certificate_.certified
