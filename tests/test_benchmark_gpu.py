"""The benchmark of the torch engine runs on a CPU with few rows."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("gpu")


@pytest.mark.slow
def test_every_task_but_the_fits_runs_with_few_rows(gpu):
    found = gpu.rates("cpu", 64)
    assert all(found[name] > 0.0 for name in ("float64", "float32", "copy"))
    chosen = gpu.tasks("torch:cpu", 0.0, 0.0)
    assert set(chosen) == {"frontier", "whole", "many", "scores", "path", "cv"}
    for name in ("frontier", "whole", "many", "scores"):
        result = chosen[name]()
        assert result.seconds > 0.0
        assert "n = 64" in result.line(found["float64"])


def test_the_line_compares_with_the_least_time(gpu):
    assert gpu.Result("a task", 2.0, 3e12).line(6e12).split()[-4:] == ["2.00", "3", "0.5", "25.0%"]
    assert gpu.Result("a fit", 2.0, None, "two alphas").line(6e12).split()[-3:] == [
        "2.00",
        "two",
        "alphas",
    ]


def test_levels_are_listed_by_size_up_to_a_number(gpu):
    sizes = [len(nodes) for nodes in gpu.supports(40, range(1, 4))]
    assert sizes == [32, 8]
    X, y = gpu.known_data(4000, 12)
    np.testing.assert_allclose(np.var(X, axis=0), 1.0, rtol=0.1)
    assert np.corrcoef(X[:, 0], y)[0, 1] > 0.3
