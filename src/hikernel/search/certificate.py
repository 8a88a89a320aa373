"""Certificates: how far from the global optimum a model can be, and why the search ended.

Certificates do not depend on the solvers. A certificate takes a primal point (beta, b), a dual
point alpha and bounds on the dual norm, and both objectives are recomputed from the rows. Any
feasible kappa gives a valid bound on Omega*, and any alpha with sum zero gives a valid dual value.
So no error of a solver can make the gap too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hikernel.engines.machine import is_interrupted
from hikernel.engines.protocol import FloatArray
from hikernel.errors import Reason
from hikernel.losses import DualCurve, Loss
from hikernel.reduced import Status

__all__ = ["Certificate", "DualPoint", "StopReason", "direction_words", "readable_count"]

_LEAST_SHOWN = 1e-12
"""Gaps below this are rounding error, and shown as this."""


class StopReason(Reason):
    """Why a search ended; the value is a sentence, with a remedy where one is needed."""

    NO_VIOLATION = "No kernel outside the hull violates the optimality conditions."
    WHOLE_TAIL = "All kernels outside the hull are bounded at once, by one sum over them."
    BOUNDED = "Every kernel outside the hull is bounded."
    OWN_SCORES = "Every kernel outside the hull is bounded by its own score."
    NOT_BOUNDED = (
        "The kernels outside the hull were not bounded, either because that was switched off or "
        "because there are too many rows for the default; "
        'certify="exact" does it at a cost quadratic in the rows, certify="statistical" linear.'
    )
    MAX_KERNELS = "The search stopped at max_kernels; raise it or alpha, or limit max_order."
    MAX_COLUMNS = (
        "The search stopped at the number of feature columns that it may solve for; products of "
        "columns with many categories have too many. Limit max_order or interactions, merge rare "
        "categories, or raise alpha; raising max_kernels above that number also allows more."
    )
    MAX_MEMORY = (
        "The search or its proof stopped at the memory that it may take; raise max_memory or "
        "alpha, or limit max_order."
    )
    MAX_EXPLORED = (
        "The proof stopped at the number of kernels that it may look at; limit max_order "
        "(max_order=2), or raise alpha or proof_effort."
    )
    MAX_WORK = (
        "The proof stopped at the work that it may do, which is counted and not timed; limit "
        "max_order (max_order=2), or raise alpha or proof_effort."
    )
    SEARCH_TIME = (
        "The time budget cut the search short, so that the model, and not only its proof, would "
        "be another one with more time; raise time_budget or alpha, or limit max_order."
    )
    PROOF_TIME = (
        "The time budget cut the proof short; the model itself is complete. Raise time_budget, or "
        "limit max_order (max_order=2)."
    )
    SEARCH_INTERRUPT = (
        "An interrupt cut the search short, so that the model, and not only its proof, would be "
        "another one without it."
    )
    PROOF_INTERRUPT = "An interrupt cut the proof short; the model itself is complete."
    UNFINISHED = "The search has not ended yet."

    @classmethod
    def of_cut_search(cls) -> StopReason:
        """Return why a search is cut short now: by an interrupt, or by the time budget."""
        return cls.SEARCH_INTERRUPT if is_interrupted() else cls.SEARCH_TIME

    @classmethod
    def of_cut_proof(cls) -> StopReason:
        """Return why a proof is cut short now: by an interrupt, or by the time budget."""
        return cls.PROOF_INTERRUPT if is_interrupted() else cls.PROOF_TIME

    @property
    def is_cut_search(self) -> bool:
        """Whether the user ended the search, so that the model is not what it would be."""
        return self in (StopReason.SEARCH_TIME, StopReason.SEARCH_INTERRUPT)


@dataclass(frozen=True)
class Certificate:
    """What is proven about a fitted model.

    Attributes
    ----------
    objective : float
        Value of the convex problem at the model, (1/n) sum loss + (alpha/2) Omega^2 with y in
        units of its spread, times that spread to the power of the degree of the loss.
    dual_bound : float
        No model of the whole graph has an objective below this.
    tol : float
        Relative gap that was requested.
    kind : {"exact", "statistical", "none"}
        "exact": the dual bound covers every kernel of the graph, computed without sampling.
        "statistical": it is made to cover every kernel with probability ``confidence``, over the
        random draws of the bound (not over the data). The probability rests on an estimate; how
        often such bounds hold has been measured, and rows can be made up for which they do not.
        "none": the kernels outside the hull were not bounded; only the trivial bound 0 holds.
    reason : StopReason or Status
        Why the search stopped; ``reason.sentence`` is the explanation. It is a Status if the solver
        did not reach its tolerance.
    n_vertices : int
        Number of kernels in the graph, a Python int.
    n_explored : int
        Number of kernels whose own score was computed.
    n_kernels : int
        Size of the hull J on which the bound was computed (the model may keep fewer nodes).
    confidence : float
        Probability with which the dual bound is made to hold: 1 unless it is statistical.
    refit : str or None
        The refit that makes the predictions; None if the model of the convex problem does.
    monotone : tuple of (str, int)
        Columns in which the refit makes f rise (1) or fall (-1). The convex problem has no such
        constraints; its graph has no interactions of these columns.
    refit_gap : float or None
        Proven bound on how far the refit is from the optimum of its own problem under these
        constraints, relative to its objective there; None if it has no term of these columns.
    restricted : bool
        Whether the graph has only the interactions that the user allows.
    counted : bool
        Whether ``n_vertices`` is exact; otherwise it is an upper bound.
    """

    objective: float
    dual_bound: float
    tol: float
    kind: str
    reason: StopReason | Status
    n_vertices: int
    n_explored: int
    n_kernels: int
    confidence: float = 1.0
    refit: str | None = None
    monotone: tuple[tuple[str, int], ...] = ()
    refit_gap: float | None = None
    restricted: bool = False
    counted: bool = True

    @property
    def graph_size(self) -> str:
        """The number of kernels in the graph, readable."""
        count = readable_count(self.n_vertices)
        return count if self.counted else f"at most {count}"

    @property
    def gap(self) -> float:
        """Bound on objective minus optimum."""
        return max(0.0, self.objective - self.dual_bound)

    @property
    def relative_gap(self) -> float:
        """Gap as a fraction of the objective."""
        return self.gap / self.objective if self.objective > 0.0 else 0.0

    @property
    def certified(self) -> bool:
        """Whether the model is proven optimal to ``tol``."""
        proven = self.kind != "none" and math.isfinite(self.objective) and self.objective >= 0.0
        return bool(proven and self.relative_gap <= self.tol)

    def scaled(self, factor: float) -> Certificate:
        """Return the certificate with objective and dual bound multiplied by ``factor``."""
        return replace(self, objective=self.objective * factor, dual_bound=self.dual_bound * factor)

    def explain(self) -> str:
        """Return the certificate as plain sentences."""
        graph = f"The graph has {self.graph_size} kernels"
        if self.restricted:
            graph = f"The graph of the allowed interactions has {self.graph_size} kernels"
        looked = f"{self.n_explored} were looked at, {self.n_kernels} entered the problem"
        why = self.reason.sentence
        if self.kind == "none":
            proof = (
                "The kernels outside the problem were not bounded, so nothing is proven beyond "
                f"the trivial bound. {why}"
            )
        elif self.relative_gap > 0.5:
            proof = (
                f"Next to nothing is proven: the bound lies {100 * self.relative_gap:.3g} % below "
                f"this model's objective (asked for: {100 * self.tol:.2g} %). {why}"
            )
        elif self.certified:
            how = "Proven"
            if self.kind == "statistical":
                how = f"With {100 * self.confidence:.3g} % confidence in a randomised bound"
            proof = (
                f"{how}: no choice among all of them has an objective more than "
                f"{100 * self.relative_gap:.2g} % below this model's."
            )
        else:
            proof = (
                f"Proven only that no choice has an objective more than "
                f"{100 * self.relative_gap:.2g} % below this model's "
                f"(asked for: {100 * self.tol:.2g} %). {why}"
            )
        if self.monotone:
            proof += f" {self._explain_refit()}"
        elif self.refit is not None:
            proof += (
                " This is about the convex problem, which selected the terms; predictions come "
                f"from a refit ({self.refit}), about which nothing is proven."
            )
        return f"{graph}; {looked}. {proof}"

    def _explain_refit(self) -> str:
        """Return what is known of a refit under constraints."""
        names = " and ".join(name for name, _ in self.monotone)
        problem = (
            "This is about the convex problem, which selected the terms: without constraints on "
            f"directions, but on a graph without interactions of {names}. Predictions come from a "
            f"refit ({self.refit}), in which f {direction_words(self.monotone)}, everywhere and "
            "whatever the other columns are"
        )
        if self.refit_gap is None:
            return f"{problem}; it has no term of these columns."
        if not math.isfinite(self.refit_gap):
            return f"{problem}; nothing is proven about its coefficients."
        return (
            f"{problem}. Its coefficients are optimal under these constraints, for its penalty, to "
            f"a proven relative gap of at most {max(self.refit_gap, _LEAST_SHOWN):.1g}."
        )

    def __str__(self) -> str:
        return self.explain()


def direction_words(monotone: Sequence[tuple[str, int]]) -> str:
    """Return the directions of columns in words.

    >>> direction_words([("size", 1), ("rooms", 1), ("age", -1)])
    'rises with size and rooms and falls with age'
    """
    parts = []
    for verb, sign in (("rises", 1), ("falls", -1)):
        names = [name for name, direction in monotone if direction == sign]
        if names:
            parts.append(f"{verb} with {' and '.join(names)}")
    return " and ".join(parts)


def readable_count(n: int) -> str:
    """Return a readable string for a count, which may have hundreds of digits."""
    return f"{n:,}" if n < 10**7 else f"about 10^{math.log10(n):.0f}"


@dataclass(frozen=True)
class DualPoint:
    """A dual point, with everything that the dual objective needs except the dual norm.

    Attributes
    ----------
    dual_coef : ndarray of shape (n,) or (n, k)
        alpha_i = omega_i r_i / lambda, with sum zero in every output.
    curve : DualCurve
        The loss part of the dual objective along multiples of alpha. The best multiple is always
        used.
    lam : float
        lambda.
    """

    dual_coef: FloatArray
    curve: DualCurve
    lam: float

    @classmethod
    def of(
        cls,
        loss: Loss,
        y: FloatArray,
        residuals: FloatArray,
        row_weights: FloatArray,
        lam: float,
    ) -> DualPoint:
        """Make the point from residuals with weighted sum zero, in the dual domain of the loss."""
        dual_coef = (row_weights * residuals.T).T / lam
        return cls(dual_coef, loss.dual_curve(y, residuals, row_weights), lam)

    def value(self, dual_norm: float) -> float:
        """Return the dual objective for a bound ``dual_norm`` on Omega*(alpha)^2; at least 0."""
        return self.curve.value(self.lam * dual_norm)

    def dual_norm_for(self, value: float) -> float:
        """Return the largest Omega*^2 at which the dual objective still reaches ``value``."""
        return self.curve.penalty_for(value) / self.lam
