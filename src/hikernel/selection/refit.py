"""Refits: estimate again after selection.

Selection and shrinkage are different tasks. The lambda that selects the right terms shrinks them
too much. So the selected terms, or the selected variables, are fitted again with their own penalty.
The certificate is about the convex problem that selected them.

- "ridge": the selected terms, in the metric of their zeta.
- "sparse": the same in two passes. Effects (sets of variables) whose terms have only a small share
  of the explained variance are dropped, and the rest is fitted again: as many as raise the
  leave-one-out error by at most 1/200.
- "unpenalised": the selected terms without a penalty, if they are few and well conditioned.
- "variables": the selected terms and all products of the selected variables up to a total degree,
  which is two more than ``degree``. Columns of term w are scaled by 1 / d_w. HKL has found the few
  variables that matter, so a richer model in these is cheap. If there are too many products, the
  total degree is lowered. The refit does not apply if even degree 3 gives too many products, as it
  generally does from 12 variables on. At most ``max_order`` variables interact, as in the graph. It
  has the second pass of "sparse".

Penalties are chosen by leave-one-out (``ridge``). A model without terms stays as it is, a constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
from scipy import linalg

from hikernel.engines.features import Blocks
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.node_kernels import KernelOperator
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs import Design, Grid
from hikernel.losses import SquaredError
from hikernel.selection.products import LEAST_DEGREE, MOST_FEATURES, are_too_many, products
from hikernel.selection.refitted import Fitted, KnownFit, assembled
from hikernel.selection.ridge import RidgeFit, RidgeStart, fit_ridge
from hikernel.selection.term_features import ScaledFeatures, column_variances, scaled_features
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = [
    "REFITS",
    "Fitted",
    "comparable_refits",
    "n_effects",
    "refit",
    "refit_is_possible",
    "too_many_kernel_rows",
    "variables_key",
]

_LEAST_SHARE = 1e-3
"""Share of the explained variance above which a variable counts as selected."""
_MOST_HULL_FEATURES = 1000
"""Largest number of columns times outputs of a refit, which is the size of its Hessian."""
_TINY = float(np.finfo(float).tiny)
_SMALLEST_SQUARE = 1e-13
"""Eigenvalues of a kernel below this fraction of the largest are dropped."""
_DROPPED_SHARES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
"""Shares of the explained variance below which effects are dropped in a second pass, the first that
does not raise the leave-one-out error by more than ``_DROPPED_ERROR``."""
_DROPPED_ERROR = 0.005
_ROWS_PER_FEATURE = 3
"""Least number of rows per column and output for an unpenalised refit."""


def refit_is_possible(problem: TrainingProblem) -> bool:
    """Return whether the loss supports refits; all smooth losses do."""
    return problem.loss.smooth


def comparable_refits(problem: TrainingProblem) -> list[str | None]:
    """Return the refits that cross-validation compares; columns with a direction need one."""
    if not refit_is_possible(problem) or too_many_kernel_rows(problem):
        return [None]
    more = [] if problem.design.variables([]) is None else ["sparse", "variables"]
    refits: list[str | None] = ["ridge", *(more[:1] if problem.engine.in_blocks else more)]
    return refits if problem.design.monotone_columns() else [None, *refits]


def too_many_kernel_rows(problem: TrainingProblem) -> bool:
    """Return whether nodes are given by Gram matrices with too many rows for a refit."""
    return problem.engine.has_kernels and problem.engine.n_rows > _most_columns(problem)


def refit(
    name: str | None,
    problem: TrainingProblem,
    model: TermModel,
    ridge: Fitted | None = None,
    position: int | None = None,
) -> Fitted | None:
    """Return the refitted model, or None if the refit does not apply to the model.

    A refit does not apply if the loss has no refits, or if the terms have too many columns. An
    unpenalised refit also needs at least three rows per column and output, and does not apply to
    Gram matrices. "variables" needs nodes with variables.

    Parameters
    ----------
    name : {None, "ridge", "sparse", "unpenalised", "variables"}
        The refit; None returns the model itself.
    problem : TrainingProblem
        The rows, target and loss to fit.
    model : TermModel
        The solution of the convex problem, which selects the terms.
    ridge : Fitted, optional
        The refit "ridge" of the same model, if there is one, which saves "sparse" its first pass.
    position : int, optional
        Position of the penalty that this refit chose for a similar model, to begin with.
    """
    if name is None:
        return Fitted(model, model, problem.design)
    if not refit_is_possible(problem):
        return None
    if model.n_terms == 0:
        return Fitted(model, model, problem.design, refit=name, scales=np.ones(len(model.coef)))
    with one_blas_thread():
        whole = None if ridge is None else ridge.fit
        found = REFITS[name](problem, model, KnownFit(position, whole))
    if found is None:
        return None
    certificate = replace(
        model.certificate,
        refit=name,
        monotone=problem.design.monotone_columns(),
        refit_gap=found.gap,
    )
    return replace(found, model=replace(found.model, certificate=certificate), refit=name)


def _ridge(problem: TrainingProblem, model: TermModel, known: KnownFit) -> Fitted | None:
    kept = model.norms > 0.0
    nodes = list(itertools.compress(model.nodes, kept))
    operator = problem.engine.kernel_operator(nodes)
    if operator is not None:
        return _kernel_ridge(problem, model, nodes, operator)
    blocks = Blocks(model.widths[kept])
    if blocks.n_columns > _most_columns(problem):
        return None
    scales = blocks.spread(np.sqrt(model.zeta[kept] / np.max(model.zeta[kept])))
    features = scaled_features(problem.engine, nodes, scales)
    start = known.start(problem.engine, nodes, scales, model, problem.scale)
    fit = _fit(problem, problem.design, nodes, features, scales, start=start)
    out = assembled(problem, problem.design, problem.engine, nodes, scales, fit, model)
    return replace(out, fit=fit, position=fit.position)


def _sparse(problem: TrainingProblem, model: TermModel, known: KnownFit) -> Fitted | None:
    kept = model.norms > 0.0
    nodes = list(itertools.compress(model.nodes, kept))
    blocks = Blocks(model.widths[kept])
    many = blocks.n_columns > _most_columns(problem)
    if many or problem.engine.kernel_operator(nodes) is not None:
        return None
    scales = blocks.spread(np.sqrt(model.zeta[kept] / np.max(model.zeta[kept])))
    return _in_two_passes(problem, problem.design, problem.engine, nodes, scales, model, known)


def _in_two_passes(
    problem: TrainingProblem,
    design: Design,
    engine: Engine,
    nodes: list[Vertex],
    scales: FloatArray,
    model: TermModel,
    known: KnownFit,
) -> Fitted:
    """Fit ridge on scaled features of some nodes, drop effects of small share, and fit again."""
    blocks, omega = Blocks([engine.width(node) for node in nodes]), problem.engine.row_weights
    features = scaled_features(engine, nodes, scales)
    squares = column_variances(features, omega)
    whole = known.whole
    if whole is None:
        start = known.start(engine, nodes, scales, model, problem.scale)
        whole = _fit(problem, design, nodes, features.copy(order="A"), scales, start=start)
    fitted = assembled(problem, design, engine, nodes, scales, whole, model)
    fitted = replace(fitted, position=whole.position)
    shares = _effect_shares(fitted)
    # The penalty of the first pass, relative to the features, saves Newton's method for the others.
    exact = isinstance(problem.loss, SquaredError) and problem.y.ndim == 1
    relative = None if exact else whole.mu / max(float(np.mean(squares)), _TINY)
    tried = 0
    # The error of a joint loss may be negative: its model gains more than one per event.
    most = whole.score + _DROPPED_ERROR * abs(whole.score)
    for least in _DROPPED_SHARES:
        index = np.flatnonzero(shares >= least)
        if len(index) == len(nodes):
            break
        if len(index) == tried:  # none, or those of the share before
            continue
        tried, columns = len(index), blocks.columns(index)
        few = [nodes[i] for i in index]
        start = whole.part(columns)
        part = _fit(
            problem, design, few, features[:, columns], scales[columns], relative, start, most
        )
        if part.score <= most:
            out = assembled(problem, design, engine, few, scales[columns], part, model)
            return replace(out, position=whole.position)
    return fitted


def _effect_shares(fitted: Fitted) -> FloatArray:
    """Return for every node the share of its effect: of all nodes with the same variables."""
    names = fitted.design.variables(fitted.model.nodes)
    if names is None:
        return fitted.model.shares
    total: dict[tuple[str, ...], float] = {}
    for name, share in zip(names, fitted.model.shares, strict=True):
        total[name] = total.get(name, 0.0) + float(share)
    return np.array([total[name] for name in names])


def _kernel_ridge(
    problem: TrainingProblem, model: TermModel, nodes: list[Vertex], operator: KernelOperator
) -> Fitted | None:
    """Return the "ridge" refit if a node is given by its Gram matrix.

    Let sum_w zeta_w K_w = F F'. A ridge fit on F with coefficients B is the function F B = (F F') c
    with F' c = B. Its part in node w is zeta_w K_w c.
    """
    zeta = model.zeta[[model.nodes.index(node) for node in nodes]]
    zeta = zeta / np.max(zeta)
    if operator.n_rows > _most_columns(problem):
        return None
    squares, vectors = linalg.eigh(operator.weighted_sum(zeta), check_finite=False)
    large = squares > _SMALLEST_SQUARE * max(float(squares[-1]), np.finfo(float).tiny)
    roots, vectors = np.sqrt(squares[large]), vectors[:, large]
    fit = fit_ridge(vectors * roots, problem.y, problem.engine.row_weights, problem.loss)
    dual = vectors @ (fit.coef.T / roots).T
    scales = operator.blocks.spread(zeta)
    spread = replace(fit, coef=operator.coordinates(dual))
    out = assembled(problem, problem.design, problem.engine, nodes, scales, spread, model)
    return replace(out, scales=None)


def _unpenalised(problem: TrainingProblem, model: TermModel, known: KnownFit) -> Fitted | None:
    kept = model.norms > 0.0
    most = min(_MOST_HULL_FEATURES, problem.engine.n_rows // _ROWS_PER_FEATURE)
    width = int(np.sum(model.widths[kept]))
    if width > _most_columns(problem, most):
        return None
    nodes = list(itertools.compress(model.nodes, kept))
    if problem.engine.kernel_operator(nodes) is not None:
        return None
    features = scaled_features(problem.engine, nodes, np.ones(width))
    # Columns get unit variance, so that only truly collinear directions are lost to rounding.
    spread = np.sqrt(column_variances(features, problem.engine.row_weights))
    scales = 1.0 / np.where(spread > 0.0, spread, 1.0)
    fit = _fit(problem, problem.design, nodes, features * scales, scales, 0.0)
    return assembled(problem, problem.design, problem.engine, nodes, scales, fit, model)


def _variables(problem: TrainingProblem, model: TermModel, known: KnownFit) -> Fitted | None:
    if problem.design.variables([]) is None:
        return None
    chosen = selected_variables(model)
    if are_too_many(cast("Grid", problem.graph), chosen):
        return None
    rich = problem.design.richer(problem.rows, problem.engine.row_weights, chosen)
    if rich is None:
        return None
    levels = {(m, j) for m in chosen for j in range(1, rich.grid.max_level(m) + 1)}
    selected = [node for node in model.kept().nodes if levels.issuperset(node)]
    most = min(MOST_FEATURES, _most_columns(problem))
    nodes = products(rich, selected, most)
    if not nodes:
        return None
    blocks = Blocks([rich.engine.width(node) for node in nodes])
    scales = blocks.spread(1.0 / rich.grid.weights(nodes))
    return _in_two_passes(problem, rich.design, rich.engine, nodes, scales, model, known)


def _fit(
    problem: TrainingProblem,
    design: Design,
    nodes: list[Vertex],
    features: ScaledFeatures,
    scales: FloatArray,
    relative_mu: float | None = None,
    start: RidgeStart | None = None,
    most: float = np.inf,
) -> RidgeFit:
    """Fit ridge on scaled features of nodes, which are overwritten, as the design constrains it."""
    y, omega, loss = problem.y, problem.engine.row_weights, problem.loss
    directions = design.directions(nodes)
    if not directions or not isinstance(features, np.ndarray):
        return fit_ridge(features, y, omega, loss, relative_mu, start, most)
    from hikernel.selection.constrained import fit_constrained  # imported only when needed

    return fit_constrained(features, y, omega, loss, scales, directions, relative_mu)


def _most_columns(problem: TrainingProblem, most: int | None = None) -> int:
    """Return how many columns a refit may have, by the size of its Hessian and by memory."""
    most = _MOST_HULL_FEATURES if most is None else most
    return int(min(most // int(np.prod(problem.y.shape[1:])), problem.room.refit))


def selected_variables(model: TermModel) -> tuple[int, ...]:
    """Return the variables whose terms have more than 1/1000 of the explained variance."""
    share: dict[int, float] = {}
    for node, part in zip(model.nodes, model.shares, strict=True):
        for m, _ in node:
            share[m] = share.get(m, 0.0) + float(part)
    return tuple(sorted(m for m, part in share.items() if part > _LEAST_SHARE))


def n_effects(fitted: Fitted) -> int:
    """Return the number of effects of a model: sets of variables that have a term together.

    On graphs whose nodes have no variables every term is an effect.
    """
    nodes = [node for node in fitted.model.kept().nodes if node != ()]
    variables = fitted.design.variables(nodes)
    return len(nodes) if variables is None else len(set(variables))


def variables_key(model: TermModel, design: Design) -> object:
    """Return what the terms of the refit "variables" depend on, for models of one problem.

    These are the selected variables, and the selected terms that are not among the products of
    these variables even where few products fit.
    """
    deep = []
    for node in model.kept().nodes:
        levels = [level for _, level in design.for_any_rows(node)]
        if sum(levels) > LEAST_DEGREE or min(levels, default=1) < 0:  # steps are in no product
            deep.append(node)
    return selected_variables(model), frozenset(deep)


REFITS: dict[str, Callable[..., Fitted | None]] = {
    "ridge": _ridge,
    "sparse": _sparse,
    "unpenalised": _unpenalised,
    "variables": _variables,
}
"""Refits by name."""
