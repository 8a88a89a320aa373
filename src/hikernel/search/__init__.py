"""Search over the graph: which hull, and how far from the optimum it can be."""

from hikernel.search.certificate import Certificate
from hikernel.search.explicit import explicit_search
from hikernel.search.lookahead import lookahead_search
from hikernel.search.paper import paper_search
from hikernel.search.problem import Budget, HullProblem, SearchProblem
from hikernel.search.state import SearchResult, SearchStep

__all__ = [
    "Budget",
    "Certificate",
    "HullProblem",
    "SearchProblem",
    "SearchResult",
    "SearchStep",
    "explicit_search",
    "lookahead_search",
    "paper_search",
]
