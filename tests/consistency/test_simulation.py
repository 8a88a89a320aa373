"""The simulation of the documentation in small: its claims can fail here."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
_spec = spec_from_file_location("benchmark_consistency", ROOT / "benchmarks" / "consistency.py")
simulation = module_from_spec(_spec)
_spec.loader.exec_module(simulation)

REPETITIONS = 10


def hull_rates(rho, n):
    return np.mean([simulation.hull_draw(rho, n, seed) for seed in range(REPETITIONS)], axis=0)


def depth_rates(truth, n):
    terms = simulation.DEPTH_TRUTHS[truth]
    depth = 2 if truth == "one interaction" else 1
    found = [simulation.depth_draw(terms, n, seed) for seed in range(REPETITIONS)]
    rates = np.mean(np.array(found) == depth, axis=0)
    return dict(zip(simulation.BASES, rates, strict=True))


def test_the_hull_where_the_sufficient_condition_holds():
    assert simulation.hull_conditions(0.25).closed_form.holds
    few, many = hull_rates(0.25, 32), hull_rates(0.25, 4096)
    assert few[0] < 0.5 < 0.85 < many[0]
    assert few[1] < 0.7 < many[1] == 1.0


def test_the_hull_where_the_necessary_condition_is_violated():
    assert simulation.hull_conditions(0.65).necessary.holds is False
    assert np.all(hull_rates(0.65, 4096) <= [0.0, 0.1])


def test_the_depth_with_fixed_and_with_growing_weights():
    additive, interaction = (depth_rates(truth, 2048) for truth in simulation.DEPTH_TRUTHS)
    # A small base takes the additive truth for deeper than it is, a large one misses the
    # interaction; the growing one is right about both.
    assert additive["2"] < 0.2
    assert interaction["6"] < 0.2
    assert min(additive["sqrt(log n)"], interaction["sqrt(log n)"]) > 0.85
    # Not so with few rows, where it is still small.
    assert depth_rates("additive", 64)["sqrt(log n)"] < 0.4


def test_the_points_stand_for_the_population():
    # The conditions by hand: A of x2 is rho (gamma_0 + gamma_1) with Sigma_WW the identity and
    # q_0 = q_1 = 1/sqrt(3) + 2/sqrt(2), over d = 2.
    value = 0.25 * 2 * (1 / np.sqrt(3) + 2 / np.sqrt(2)) / 2
    assert simulation.hull_conditions(0.25).necessary.value == pytest.approx(value)
    # Half the sum of the four has covariance LINK with x0 x1, and q = 1/sqrt(6) + base each.
    value = simulation.LINK * 2 * (1 / np.sqrt(6) + 2) / 4
    report = simulation.depth_conditions(simulation.ADDITIVE, 2.0)
    assert report.necessary.value == pytest.approx(value)
    assert report.necessary.worst == simulation.X0_X1


def test_the_stored_results_are_those_of_this_simulation():
    results = json.loads((ROOT / "docs" / "figures" / "consistency.json").read_text())
    assert results["replications"] >= 100
    for rho, known in results["hull_conditions"].items():
        assert known == simulation.values(simulation.hull_conditions(float(rho)))
    ends = {(r["rho"], r["n"]): r for r in results["hull"] if r["n"] in (32, 32768)}
    assert ends[0.25, 32]["at_rate"] < 0.5 < 0.95 < ends[0.25, 32768]["at_rate"]
    assert ends[0.65, 32768]["on_path"] < 0.05
