"""A problem at one lambda, and the searches on it with their settings as keywords."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

from hikernel.search import (
    GridObjective,
    Objective,
    SearchSettings,
    SearchStart,
    explicit_search,
    lookahead_search,
    objective,
    paper_search,
)
from hikernel.search.effort import PROOF_WORK
from hikernel.search.lookahead import _Lookahead
from hikernel.search.tail_proof import TailProof


@dataclass(frozen=True)
class ProblemAt:
    """An objective at one lambda."""

    objective: Objective
    lam: float

    def __getattr__(self, name):
        return getattr(self.objective, name)

    def solved(self, nodes, *, tol=1e-3, solve_tol=1e-6):
        """Solve on a hull to any precision, and measure."""
        with mock.patch.object(objective, "_SOLVE_SHARE", solve_tol / tol):
            return self.objective.solve(self.objective.reduced(nodes), self.lam, tol=tol)

    def tail(self, solved, *, tol=1e-3, max_explored=10**6, max_work=PROOF_WORK):
        """Bound everything outside a solved hull, exactly."""
        searcher = _Lookahead(self.objective, self.lam, SearchSettings(tol=tol), None)
        return TailProof(
            self.objective,
            solved,
            mode="exact",
            shared_bound=searcher._shared_bound,
            max_explored=max_explored,
            max_work=max_work,
            seed=0,
            attempt=1,
        ).run()


def grid_problem(engine, grid, y, lam, *rest, **more):
    return ProblemAt(GridObjective(engine, grid, y, *rest, **more), lam)


def graph_problem(engine, graph, y, lam, *rest, **more):
    return ProblemAt(Objective(engine, graph, y, *rest, **more), lam)


def _search(run):
    def searched(problem, *, callback=None, start=None, **settings):
        begin = None if start is None else SearchStart(*start)
        found = SearchSettings(**settings)
        return run(problem.objective, problem.lam, found, callback=callback, start=begin)

    return searched


lookahead, paper, explicit = map(_search, (lookahead_search, paper_search, explicit_search))
