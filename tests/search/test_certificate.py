"""The certificate's own arithmetic and words."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes, node_features, omega
from oracles.problems import small_problem

from hikernel.bases import OrthonormalPolynomial
from hikernel.losses import SquaredError
from hikernel.reduced import Status
from hikernel.search import Certificate, StopReason
from hikernel.search.certificate import DualPoint
from hikernel.selection import PathEnd


def certificate(**changes):
    fields = {
        "objective": 2.0,
        "dual_bound": 1.9,
        "tol": 0.1,
        "kind": "exact",
        "reason": StopReason.MAX_KERNELS,
        "n_vertices": 5**60,
        "n_explored": 70,
        "n_kernels": 7,
    }
    return Certificate(**{**fields, **changes})


def test_gap_and_verdict():
    proven = certificate()
    assert proven.gap == pytest.approx(0.1)
    assert proven.relative_gap == pytest.approx(0.05)
    assert proven.certified
    assert not certificate(tol=0.01).certified
    assert not certificate(kind="none", dual_bound=1.99).certified
    assert certificate(objective=0.0, dual_bound=0.0).relative_gap == 0.0
    assert certificate(objective=1.0, dual_bound=1.0 + 1e-15).gap == 0.0


def test_units_change_nothing_but_the_objective():
    scaled = certificate().scaled(4.0)
    assert scaled.objective == 8.0
    assert scaled.relative_gap == pytest.approx(certificate().relative_gap)


def test_words_say_what_is_proven_and_what_is_not():
    assert "10^42 kernels" in str(certificate())
    assert "no choice among all of them" in certificate().explain()
    assert "5 %" in certificate().explain()
    assert "Proven only" in certificate(tol=0.01).explain()
    assert "raise it or alpha, or limit max_order." in certificate(tol=0.01).explain()
    assert "nothing is proven" in certificate(kind="none").explain()
    assert "Next to nothing is proven" in certificate(dual_bound=0.1).explain()
    assert "1,024 kernels" in certificate(n_vertices=1024).explain()


def test_the_dual_value_is_the_conjugate_form_at_the_best_multiple():
    rng = np.random.default_rng(0)
    y, r = rng.standard_normal(30) + 5.0, rng.standard_normal(30)
    omega = rng.uniform(0.5, 1, 30)
    omega /= omega.sum()
    lam, norm2 = 0.1, 0.7
    r -= omega @ r
    point = DualPoint.of(SquaredError(), y, r, omega, lam)
    assert np.sum(point.dual_coef) == pytest.approx(0.0, abs=1e-12)

    def dual(s):
        b = -lam * s * point.dual_coef / omega
        conjugate = omega @ SquaredError().conjugate(y, b)
        return -conjugate - 0.5 * lam * s**2 * norm2

    values = [dual(s) for s in np.linspace(0, 2, 4001)]
    assert point.value(norm2) == pytest.approx(max(0.0, *values), rel=1e-6)


def test_dual_norm_for_inverts_value():
    y = np.array([1.0, -1.0, 2.0, -2.0])
    point = DualPoint.of(SquaredError(), y, 0.5 * y, np.full(4, 0.25), 0.1)
    assert point.value(point.dual_norm_for(0.4)) == pytest.approx(0.4)


def test_the_objective_of_a_solved_hull_is_written_out_from_the_rows():
    small = small_problem(OrthonormalPolynomial(2), 0, weighted=True, alpha=0.01)
    nodes = all_nodes(small.grid)
    solved = small.search.solved(nodes)
    coef = solved.solution.coef
    features = np.hstack([node_features(small.levels, v) for v in nodes])
    f = features @ coef
    b = np.average(small.y - f, weights=small.weights)
    loss = 0.5 * np.average((small.y - f - b) ** 2, weights=small.weights)
    norm = omega(small.grid, nodes, np.abs(coef))
    assert float(solved.intercept) == pytest.approx(b, abs=1e-12)
    assert solved.objective == pytest.approx(loss + 0.5 * 0.01 * norm**2, rel=1e-12)


@pytest.mark.parametrize("objective", [float("nan"), float("inf"), -0.4])
def test_numbers_that_cannot_be_are_not_certified(objective):
    odd = Certificate(objective, -0.5, 1e-3, "exact", StopReason.BOUNDED, 1, 1, 1)
    assert not odd.certified


@pytest.mark.parametrize("reason", [*StopReason, *PathEnd, *Status])
def test_every_reason_is_a_sentence(reason):
    assert reason.sentence == str(reason)
    assert reason.sentence[0].isupper()
    assert reason.sentence.endswith(".")
    assert type(reason)[reason.name] is reason
