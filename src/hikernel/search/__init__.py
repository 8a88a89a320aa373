"""Search over the graph: which hull, and how far from the optimum it can be."""

from hikernel.search.certificate import Certificate
from hikernel.search.lookahead import lookahead_search
from hikernel.search.paper import paper_search
from hikernel.search.problem import Budget, SearchProblem
from hikernel.search.state import SearchResult, SearchStep

__all__ = [
    "Budget",
    "Certificate",
    "SearchProblem",
    "SearchResult",
    "SearchStep",
    "lookahead_search",
    "paper_search",
]
