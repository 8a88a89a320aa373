"""Search over the graph: which hull, and how far from the optimum it can be.

``objective`` is the problem on the whole graph, ``growth`` what the searches share, ``lookahead``,
``paper`` and ``explicit`` are the searches, ``tail`` bounds what lies outside, ``certificate`` says
what is proven. A new search is one file and one line in ``SEARCHES``; graphs name those that work
on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

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


class Search(Protocol):
    """A search: lambda and settings in, a model with its certificate out."""

    def __call__(
        self,
        objective: Any,
        lam: float,
        settings: SearchSettings,
        *,
        callback: StepCallback | None = None,
        start: SearchStart | None = None,
    ) -> SearchResult:
        """Search the graph of an objective."""
        ...


@dataclass(frozen=True)
class SearchRule:
    """A search, and the form of the problem that it works on."""

    run: Search
    objective: type[Objective]


SEARCHES: dict[str, SearchRule] = {
    "lookahead": SearchRule(lookahead_search, GridObjective),
    "paper": SearchRule(paper_search, GridObjective),
    "explicit": SearchRule(explicit_search, Objective),
}
"""Searches by name; ``graph.searches`` lists those that work on a graph."""
