"""The values of the conditions, their margins to 1, the worst nodes, and a verdict as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["BORDER", "Condition", "ConsistencyReport", "Verdict"]

Verdict = Literal["recovered", "not recovered", "undecided"]

BORDER = 1e-9
"""Values closer to 1 than this are undecided: rounding decides on which side they fall."""


@dataclass(frozen=True)
class Condition:
    """A number to compare with 1, known between two bounds.

    Attributes
    ----------
    lower, upper : float
        Bounds on the value; equal where the value has a closed form.
    worst : node or None
        The node that contributes most; None where no node is outside the hull.
    """

    lower: float
    upper: float
    worst: Any = None

    @property
    def value(self) -> float:
        """The upper bound, the number that must not exceed 1."""
        return self.upper

    @property
    def holds(self) -> bool | None:
        """Whether the value is below 1; None where the bounds or rounding leave it undecided."""
        if self.upper < 1.0 - BORDER:
            return True
        return False if self.lower > 1.0 + BORDER else None

    @property
    def margin(self) -> float:
        """Distance to 1: positive if the condition holds, negative if it fails, 0 if undecided."""
        if self.holds is None:
            return 0.0
        return 1.0 - (self.upper if self.holds else self.lower)

    def _sentence(self, name: Callable[[Any], str]) -> str:
        if self.upper - self.lower <= 1e-5 * self.upper:
            text = f"{self.upper:.4g}"
        else:
            text = f"between {self.lower:.4g} and {self.upper:.4g}"
        if self.holds is None:
            text += ", on the border of 1: open"
        elif self.holds:
            text += f", below 1 by {self.margin:.3g}: holds"
        else:
            text += f", above 1 by {-self.margin:.3g}: fails"
        return text if self.worst is None else f"{text} (worst node: {name(self.worst)})"


@dataclass(frozen=True)
class ConsistencyReport:
    """The conditions of the paper for one graph, covariance, beta and hull W.

    With the vector A of ``consistency_conditions``, the values satisfy

        necessary <= sufficient = Omega*(A) <= closed_form.

    Attributes
    ----------
    necessary : Condition
        max over the sources t of W^c of |A_t| / d_t, the square root of what the paper prints.
        The hull is recovered only if this is at most 1.
    sufficient : Condition
        The dual norm Omega*(A) over W^c, between proven bounds. The hull is recovered if it is
        below 1, and not recovered if it is above 1.
    closed_form : Condition
        The square root of the paper's sufficient condition, an upper bound on the dual norm.
        The hull is recovered if it is below 1; a value above 1 decides nothing.
    n_nodes, n_hull : int
        Number of nodes considered and of nodes in W.
    n_dependent : int
        Dimension of the null space of Sigma_WW, without features of variance zero.
    n_samples : int or None
        Number of rows of an estimate; None for a population.
    n_graph : int or None
        Number of nodes of the whole graph, if only a part that contains all sources of W^c was
        considered; None if the nodes considered are the whole graph. The dual norm over the part
        is at most that over the graph: a value above 1 holds for the graph as well, a value below
        1 for the part only.
    name : callable
        Returns the name of a node for ``explain()``; ``str`` by default.
    """

    necessary: Condition
    sufficient: Condition
    closed_form: Condition
    n_nodes: int
    n_hull: int
    n_dependent: int = 0
    n_samples: int | None = None
    n_graph: int | None = None
    name: Callable[[Any], str] = field(default=str, repr=False, compare=False)

    @property
    def is_partial(self) -> bool:
        """Whether some nodes of the graph were not considered."""
        return self.n_graph is not None and self.n_graph > self.n_nodes

    @property
    def is_estimate(self) -> bool:
        """Whether covariance, hull and coefficients are estimates rather than the truth."""
        return self.n_samples is not None

    @property
    def verdict(self) -> Verdict:
        """Whether the hull is recovered as n grows, in the population described by the input.

        If ``is_partial``, "recovered" refers to the graph of the nodes considered only.
        """
        if self.sufficient.holds is None:
            return "undecided"
        return "recovered" if self.sufficient.holds else "not recovered"

    def explain(self, name: Callable[[Any], str] | None = None) -> str:
        """Return the report as text, several lines.

        Parameters
        ----------
        name : callable, optional
            Returns the name of a node; by default the attribute ``name`` of the report.
        """
        name = self.name if name is None else name
        lines = []
        if self.is_estimate:
            lines.append(
                f"An estimate from {self.n_samples} rows: covariances, hull and coefficients are "
                "taken as if they were the true ones."
            )
        lines.append(f"The hull has {self.n_hull} of {self.n_nodes} nodes.")
        if self.is_partial:
            lines.append(
                f"These {self.n_nodes} of the graph's {self.n_graph:,} nodes were considered. All "
                "that could enter next are among them, so that the necessary condition is that of "
                "the whole graph."
            )
        if self.n_dependent:
            lines.append(
                f"The features of the hull are linearly dependent in {self.n_dependent} "
                "direction(s): the paper assumes none. The least-squares solution was used; the "
                "coefficients are then one choice among several with the same predictions."
            )
        lines += [
            f"Necessary condition: {self.necessary._sentence(name)}.",
            f"Sufficient condition (dual norm): {self.sufficient._sentence(name)}.",
            f"Closed form of the paper, which implies it: {self.closed_form._sentence(name)}.",
            self._conclusion(name),
        ]
        return "\n".join(lines)

    def _conclusion(self, name: Callable[[Any], str]) -> str:
        if self.n_hull == self.n_nodes:
            return "No node is outside the hull: there is nothing to be included by mistake."
        if self.verdict == "recovered":
            text = (
                "The hull is recovered with probability tending to 1 as n grows, if lambda -> 0 "
                "and lambda sqrt(n) -> infinity"
            )
            return (
                f"{text}, as far as the nodes considered show." if self.is_partial else f"{text}."
            )
        if self.verdict == "undecided":
            return "The value is too close to 1, or known too roughly, to tell."
        text = (
            "The hull is not recovered consistently, whatever the choice of lambda: the nodes "
            f"outside are too correlated with it, above all {name(self.sufficient.worst)}."
        )
        if self.necessary.holds:
            text += " (No single source shows it; several nodes together do.)"
        return text
