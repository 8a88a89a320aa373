"""A few hundred cases of every topic of ``make fuzz``, and whether it notices faults."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fuzz import model_files
from fuzz.__main__ import one_case
from fuzz.certificates import _compare
from fuzz.verdict import FuzzError, Outcome, attempt

CASES = {"estimators": 60, "graphs": 100, "commands": 60, "files": 250, "certificates": 10}


@pytest.mark.slow
@pytest.mark.parametrize("topic", CASES)
def test_a_few_cases(topic):
    kinds = set()
    for number in range(CASES[topic]):
        kind, fault, _, _ = one_case(topic, 7, number)
        assert fault is None, f"python -m fuzz {topic} --seed 7 --first {number} --cases 1: {fault}"
        kinds.add(kind)
    assert len(kinds) > 1  # not all of them are refused


def test_an_error_that_is_no_sentence_is_a_fault(monkeypatch):
    def broken(path):
        raise KeyError("state")

    monkeypatch.setattr(model_files.hikernel, "load", broken)
    kind, fault, _, _ = one_case("files", 7, 0)
    assert kind == "FAULT"
    assert "KeyError" in fault


@pytest.mark.parametrize(
    "error", [KeyError("a"), ValueError("short"), IndexError("index 3 is out of bounds for axis 0")]
)
def test_what_a_user_may_not_see(error):
    with pytest.raises(FuzzError), attempt(Outcome()):
        raise error


def test_a_bound_above_an_objective_is_a_fault():
    class Step:
        objective, dual_bound, kind = 0.3, 0.2001, "exact"

    class Result:
        history, certificate = [], Step

    class Problem:
        from hikernel.losses import SquaredError

        loss, y, lam, objective = SquaredError(), np.array([1.0, -1.0]), 0.1, None

        class engine:  # noqa: N801
            row_weights = np.array([0.5, 0.5])

    _compare(Problem, Result, 0.25)
    with pytest.raises(FuzzError, match=r"is above 0\.2 by 0\.0001"):
        _compare(Problem, Result, 0.2)
