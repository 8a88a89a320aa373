"""How the benchmark of peers turns tables into numbers, counts effects and fills its page."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 5.0],
            "colour": ["red", "blue", None, "red"],
            "flag": ["no", "yes", "no", "yes"],
            "same": [3.0] * 4,
        }
    )


def test_numbers_have_means_for_gaps_marks_and_indicators(module, frame):
    numbers = module("encoding").Numbers().fit(frame)
    assert numbers.owners == ["size", "size", "colour", "colour", "colour", "flag"]
    Z = numbers.transform(frame)
    known = frame["size"].dropna()
    np.testing.assert_allclose(Z[[0, 1, 3], 0], (known - known.mean()) / known.std(ddof=0))
    np.testing.assert_array_equal(Z[2, :2], [0.0, 1.0])
    np.testing.assert_array_equal(Z[:, 2:5].sum(axis=1), 1.0)
    new = numbers.transform(frame.assign(colour="green"))
    np.testing.assert_array_equal(new[:, 2:5], 0.0)


def test_products_of_one_effect_are_together(module, frame):
    products = module("encoding").Polynomial().fit(frame)
    sets = [frozenset(part) for part in products.sets]
    first = [sets[j] for j in products.starts]
    assert len(first) == len(set(first)) == len(set(sets))
    assert {"size", "flag"} in sets
    assert not any("same" in part for part in sets)
    used = np.array([part == {"size"} for part in sets])
    assert products.effects(used) == [frozenset({"size"})]


def test_parts_of_true_effects_are_neither_found_nor_extra(module):
    Problem = module("problems").Problem
    peers, encoding = module("bench_peers"), module("encoding")
    rows = np.zeros((1, 1))
    data = Problem(rows, rows, rows, rows, False, [frozenset("ab"), frozenset("c")])
    effects = [frozenset("ab"), frozenset("a"), frozenset("d"), frozenset("ac")]
    fitted = encoding.Fitted(lambda X: X, 4, effects)
    assert peers.recovery(data, fitted) == {"true": 2, "found": 1, "extra": 2}


def test_the_likelihood_has_its_gradient(module):
    rng = np.random.default_rng(0)
    process = module("kernel_peers").GaussianProcess()
    process.rows, process.target = rng.normal(size=(20, 3)), rng.normal(size=20)
    error = check_grad(
        lambda x: process.negative_likelihood(x)[0],
        lambda x: process.negative_likelihood(x)[1],
        rng.normal(size=5),
    )
    assert error < 1e-4


# Newer Pythons warn of a fork beside threads, which the test runner has; the child uses none.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fit_that_takes_too_long_is_ended_and_said_so(module, monkeypatch):
    peers = module("bench_peers")

    def forever(X, y, classes, seed):
        while True:
            pass

    monkeypatch.setitem(peers.METHODS, "linear", forever)
    args = peers.argparse.Namespace(data=None, tables=None, limit=1)
    row = peers.one_fit(args, "lines", 0, "linear")
    assert row["failure"] == "more than 1 s"
    assert row["rows"] == 1000
