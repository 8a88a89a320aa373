"""What a walk over a graph found: the nodes that stand out, and a bound on all the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Exploration"]


@dataclass(frozen=True)
class Exploration:
    """Every node w of a graph, sorted by |a_w|^2 / d_w^2 into loud and quiet.

    Attributes
    ----------
    loud : dict of node to float
        The nodes with a score above the level asked for. Scores are rounded up, so that they may
        stand in a certificate: none is below its exact value, and a node in doubt is loud.
    quiet : float
        No other node of the whole graph, explored or pruned, has a larger score. At most the
        level, unless a budget ended the walk.
    n_explored : int
        How many nodes had their score computed.
    """

    loud: dict[Any, float]
    quiet: float
    n_explored: int
