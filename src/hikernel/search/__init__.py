"""Search over the graph: find the hull, and bound its distance from the global optimum.

``objective`` defines the problem on the whole graph. ``growth`` holds what the searches
``lookahead``, ``paper`` and ``explicit`` share. ``tail`` bounds the nodes outside the hull.
``certificate`` records what is proven. To add a search, write one file and add one line to
``SEARCHES``. Each graph lists the searches that work on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from hikernel.search.certificate import Certificate, StopReason
from hikernel.search.explicit import explicit_search
from hikernel.search.growth import (
    SearchResult,
    SearchSettings,
    SearchStart,
    SearchStep,
    StepCallback,
)
from hikernel.search.lookahead import lookahead_search
from hikernel.search.objective import GridObjective, Objective
from hikernel.search.paper import paper_search

__all__ = [
    "SEARCHES",
    "Certificate",
    "GridObjective",
    "Objective",
    "SearchResult",
    "SearchRule",
    "SearchSettings",
    "SearchStart",
    "SearchStep",
    "StepCallback",
    "StopReason",
    "explicit_search",
    "lookahead_search",
    "paper_search",
]


Problem = TypeVar("Problem", bound=Objective)
Problem_contra = TypeVar("Problem_contra", bound=Objective, contravariant=True)


class Search(Protocol[Problem_contra]):
    """The signature of a search: from an objective, lambda and settings to a certified model."""

    def __call__(
        self,
        objective: Problem_contra,
        lam: float,
        settings: SearchSettings,
        *,
        callback: StepCallback | None = None,
        start: SearchStart | None = None,
    ) -> SearchResult:
        """Search the graph of an objective for one lambda, and return the model found."""
        ...


@dataclass(frozen=True)
class SearchRule(Generic[Problem]):
    """A search, and the class of objective that it works on."""

    run: Search[Problem]
    objective_type: type[Problem]


SEARCHES: dict[str, SearchRule[Any]] = {
    "lookahead": SearchRule[GridObjective](lookahead_search, GridObjective),
    "paper": SearchRule[GridObjective](paper_search, GridObjective),
    "explicit": SearchRule[Objective](explicit_search, Objective),
}
"""Searches by name; ``graph.searches`` lists the names that work on a graph."""
