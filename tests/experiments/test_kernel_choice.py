"""The widths and weights of the tables are those that the rule finds."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "docs" / "reproduction" / "kernel_choice.jsonl"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("kernel_choice")


def row(method, seed, *errors, data="boston"):
    return {"data": data, "seed": seed, "method": method, "test": list(errors), "seconds": 1.0}


def test_the_settings_are_what_was_measured(script, capsys):
    assert script.report(script.read(MEASURED), script.SEEDS) == []
    shown = capsys.readouterr().out
    # Every set is there, twice, and no choice is an end without the next value beside it.
    for name in (*script.REGRESSION, *script.CLASSIFICATION):
        assert shown.count(f"\n{name} ") == 2
        for kind in script.CANDIDATES:
            errors = script.least_errors(script.read(MEASURED), name, kind, script.SEEDS)
            further = script.at_end(errors, kind)
            assert further is None or further in errors


def test_only_the_splits_of_the_choice_count_and_all_of_them(script):
    rows = [row("rbf 0.05", 10, 5.0, 4.0), row("rbf 0.05", 11, 5.0, 8.0)]
    rows += [row("rbf 0.5", 10, 1.0, 9.0), row("rbf 0.5", 0, 0.0, 0.0)]
    rows += [row("rbf 0.02", 11, 7.0, 6.0), row("rbf 0.02", 10, 3.0, 6.0), row("pol4 4", 10, 0.0)]
    # One lambda for all splits; 0.5 lacks seed 11.
    found = script.least_errors(rows, "boston", "rbf", (10, 11))
    assert found == {0.02: 5.0, 0.05: 5.0}
    assert script.least_errors(rows, "abalone", "rbf", (10, 11)) == {}


def test_the_usual_value_wins_between_equals(script):
    assert script.choose({0.02: 5.0, 0.05: 5.0, 0.15: 6.0}, 0.05) == 0.05
    assert script.choose({0.02: 4.9, 0.05: 5.0, 0.15: 6.0}, 0.05) == 0.02


def test_an_end_of_the_list_is_followed_further(script):
    assert script.at_end({0.02: 4.0, 0.05: 5.0, 0.15: 6.0, 0.5: 7.0}, "rbf") == 0.007
    assert script.at_end({0.02: 4.0, 0.05: 3.0, 0.15: 6.0, 0.5: 7.0}, "rbf") is None
    assert script.at_end({4.0: 9.0, 6.0: 8.0, 9.0: 7.0}, "pol4") == 13.5


def test_a_difference_is_reported(script, capsys):
    rows = [
        row(f"pol4 {value:g}", seed, 1.0 if value == 4.0 else 2.0, data="abalone")
        for value in script.CANDIDATES["pol4"]
        for seed in script.SEEDS
    ]
    assert script.report(rows, script.SEEDS) == ["abalone pol4"]
    assert "abalone" in capsys.readouterr().out
