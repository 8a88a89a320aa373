"""Search over the graph: which hull, and how far from the optimum it can be."""

from hikernel.search.certificate import Certificate
from hikernel.search.paper import paper_search
from hikernel.search.problem import SearchProblem, SearchResult, SearchStep

__all__ = ["Certificate", "SearchProblem", "SearchResult", "SearchStep", "paper_search"]
