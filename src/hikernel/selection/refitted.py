"""Refitted models, and what is known of a refit before it begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hikernel.engines.features import Blocks
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs import Design
from hikernel.selection.ridge import RidgeFit, RidgeStart
from hikernel.selection.training import TermModel, TrainingProblem, term_variances

__all__ = ["Fitted", "KnownFit", "assembled"]


@dataclass(frozen=True)
class Fitted:
    """The selected model, the model that predicts, and the design with which it predicts.

    Attributes
    ----------
    selected : TermModel
        The solution of the convex problem, which selected the terms.
    model : TermModel
        The model that predicts: ``selected`` itself without a refit.
    design : Design
        Its bases or kernels; those of a "variables" refit may have a higher degree.
    refit : str or None
        Name of the refit; None without one.
    mu : float
        Penalty mu of the refit (``ridge``); 0 without one.
    gap : float or None
        Proven bound on how far a refit under constraints is from its optimum, relative to its
        objective; None without constraints.
    scales : ndarray of shape (R,) or None
        Scales of the columns of ``model``, whose scaled coefficients the penalty squares; None
        without a refit, and for Gram matrices.
    fit : RidgeFit or None
        The ridge fit of "ridge", which is the first pass of "sparse"; None for other refits.
    position : int or None
        Position of the penalty that was chosen for all terms (``RidgeFit``).
    """

    selected: TermModel
    model: TermModel
    design: Design
    refit: str | None = None
    mu: float = 0.0
    gap: float | None = None
    scales: FloatArray | None = None
    fit: RidgeFit | None = None
    position: int | None = None


@dataclass(frozen=True)
class KnownFit:
    """What saves a refit time.

    Attributes
    ----------
    position : int or None
        Position of the penalty that the same refit chose for a similar model.
    whole : RidgeFit or None
        The ridge fit of all terms.
    """

    position: int | None = None
    whole: RidgeFit | None = None

    def start(
        self,
        engine: Engine,
        nodes: list[Vertex],
        scales: FloatArray,
        model: TermModel,
        unit: float,
    ) -> RidgeStart:
        """Return the start of a fit on scaled features of some nodes: the model itself.

        ``unit`` is the scale of y. A node that the model has not starts from zero, and so does one
        with another number of columns.
        """
        of = dict(zip(model.nodes, Blocks(model.widths).split(model.coef), strict=True))
        blocks = []
        for node in nodes:
            zero = np.zeros((engine.width(node), *model.coef.shape[1:]))
            own = of.get(node, zero)
            blocks.append(own if own.shape == zero.shape else zero)
        coef = np.concatenate([model.coef[:0], *blocks]) / unit
        return RidgeStart((coef.T / scales).T, self.position)


def assembled(
    problem: TrainingProblem,
    design: Design,
    engine: Engine,
    nodes: list[Vertex],
    scales: FloatArray,
    fit: RidgeFit,
    model: TermModel,
) -> Fitted:
    """Return the refitted terms as a model in the units of y."""
    coef = (scales * fit.coef.T).T
    blocks = Blocks([engine.width(node) for node in nodes])
    operator = engine.kernel_operator(nodes)
    squares = blocks.squares(coef) if operator is None else operator.squares(coef)
    variances = term_variances(engine, nodes, blocks.split(coef))
    total = float(np.sum(variances))
    known = {node: i for i, node in enumerate(model.nodes)}
    position = np.array([known.get(node, -1) for node in nodes])
    return Fitted(
        model,
        replace(
            model,
            nodes=nodes,
            widths=blocks.widths,
            coef=problem.scale * coef,
            intercept=np.asarray(problem.center + problem.scale * fit.intercept),
            # Terms that the convex problem did not select have no weight in it.
            eta=np.where(position >= 0, model.eta[position], 0.0),
            zeta=np.where(position >= 0, model.zeta[position], 0.0),
            norms=problem.scale * np.sqrt(squares),
            shares=variances / total if total > 0.0 else variances,
        ),
        design,
        mu=fit.mu,
        gap=fit.gap,
        scales=scales,
    )
