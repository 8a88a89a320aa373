"""What terms and effects contribute to f(x), and both as data frames.

An effect is the sum of all terms of one set of variables. The terms are used as they are in the
model: a term may have a nonzero mean, and two effects may share variables.
`hikernel.explain.decomposition` regroups them into orthogonal parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.checks import check_choice
from hikernel.engines.protocol import FloatArray, Node, Vertex
from hikernel.graphs import Design
from hikernel.selection import TermModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "EffectGroup",
    "effect_groups",
    "effect_values",
    "effects_frame",
    "effects_summary",
    "labelled_frame",
    "require_finite",
    "term_effects",
    "terms_frame",
]

_SHAPE_POINTS = 41
"""Number of values at which the effect of one variable is evaluated to find its shape."""
_SHAPE_BEND = 0.05
"""Share of the range of a curve below which a bend does not count."""


@dataclass(frozen=True)
class EffectGroup:
    """The terms of one effect.

    Attributes
    ----------
    name : str
        Name of the effect.
    node : node
        One of its terms; on a grid it tells the variables.
    members : list of int
        Positions of its terms in ``model.kept()``.
    share : float
        Sum of the shares of its terms.
    """

    name: str
    node: Vertex
    members: list[int]
    share: float


def effect_groups(model: TermModel, design: Design) -> list[EffectGroup]:
    """Return the effects of a model with their terms, the largest share first.

    On a graph without variables every term is an effect. The term of no variable is in none.
    """
    kept = model.kept()
    shares = model.shares[kept.positions]
    found = design.variables(kept.nodes)
    if found is None:
        names = design.terms(kept.nodes)["term"]
        groups = [
            EffectGroup(name, node, [i], float(shares[i]))
            for i, (name, node) in enumerate(zip(names, kept.nodes, strict=True))
        ]
    else:
        members: dict[tuple[str, ...], list[int]] = {}
        for i, variables in enumerate(found):
            if variables:
                members.setdefault(variables, []).append(i)
        groups = [
            EffectGroup(
                design.effect_name(kept.nodes[index[0]]),
                kept.nodes[index[0]],
                index,
                float(np.sum(shares[index])),
            )
            for index in members.values()
        ]
    return sorted(groups, key=lambda group: -group.share)  # stable


def term_effects(model: TermModel, design: Design, rows: Any) -> FloatArray:
    """Return <coef_t, Phi_t(x)> for every row x and every term t with nonzero coefficients.

    Parameters
    ----------
    model : TermModel
        The model.
    design : Design
        The fitted bases of the model, or the kernels of its graph.
    rows : ndarray of shape (n, p), or rows of the graph
        Encoded rows, as for ``model.predict``.

    Returns
    -------
    ndarray of shape (n, m), or (n, m, k) for several outputs
        Terms are in the order of ``model.kept().nodes``. With the intercept they sum to
        ``model.predict(design, rows)``. The sums agree within a few units in the last place of the
        largest partial sum, but not always to the last bit: the matrix product in ``predict`` adds
        the same products in another order.

    Raises
    ------
    ValueError
        If a row is so far from the training data that a term overflows.
    """
    kept = model.kept()
    nothing = design.predict([], model.coef[:0], rows)[:, None][:, :0]
    values = design.effects(kept.nodes, kept.blocks, rows)
    out = np.concatenate([nothing, *(value[:, None] for value in values)], axis=1)
    require_finite(out)
    return out


def effect_values(model: TermModel, design: Design, rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return the intercept and the values of the effects, in the order of `effect_groups`, at rows.

    Parameters
    ----------
    model, design, rows
        As for `term_effects`.

    Returns
    -------
    tuple of ndarray
        The intercept, shape (n,) or (n, k), and the effects, shape (n, n_effects) or
        (n, n_effects, k). Together they sum to f(x). The term of no variable, which only bases
        without a constant level 0 have, counts for the intercept.
    """
    terms = term_effects(model, design, rows)
    groups = effect_groups(model, design)
    effects = np.zeros((len(terms), len(groups), *terms.shape[2:]))
    left = set(range(terms.shape[1]))
    for i, group in enumerate(groups):
        effects[:, i] = np.sum(terms[:, group.members], axis=1)
        left -= set(group.members)
    return model.intercept + np.sum(terms[:, sorted(left)], axis=1), effects


def effects_frame(
    model: TermModel,
    design: Design,
    rows: Any,
    outputs: Sequence[object] | None = None,
    index: pd.Index[Any] | None = None,
    by: str = "effect",
) -> pd.DataFrame:
    """Return the intercept and what every effect or term contributes, for the given rows.

    Parameters
    ----------
    model, design, rows
        As for `term_effects`.
    outputs : sequence, optional
        Labels of the k outputs, for a model with several outputs; 0 to k - 1 by default.
    index : pandas.Index, optional
        Index of the returned rows.
    by : {"effect", "term"}, default "effect"
        Whether there is a column per effect, as in `effects_summary`, or per term, as in
        `terms_frame`.

    Returns
    -------
    DataFrame
        One row per row of ``rows``. The columns are "intercept" and the names of the effects or
        terms, in the order of their table; for several outputs, the pairs (output, "intercept")
        and (output, name). Each row sums to f(x) (per output). A variable whose name could be read
        as a term, such as "b * c", is written in quotes.
    """
    check_choice("by", by, ["effect", "term"])
    if by == "effect":
        intercept, effects = effect_values(model, design, rows)
        names = [group.name for group in effect_groups(model, design)]
    else:
        effects = term_effects(model, design, rows)
        intercept = np.broadcast_to(model.intercept, (len(effects), *effects.shape[2:]))
        kept = model.kept()
        order = np.argsort(-model.shares[kept.positions], kind="stable")
        effects = effects[:, order]
        found = design.terms(kept.nodes)["term"]
        names = [found[i] for i in order]
    values = np.concatenate([intercept[:, None], effects], axis=1)
    return labelled_frame(values, ["intercept", *names], by, outputs, index)


def labelled_frame(
    values: FloatArray,
    names: Sequence[str],
    what: str,
    outputs: Sequence[object] | None,
    index: pd.Index[Any] | None,
) -> pd.DataFrame:
    """Return values of shape (n, m) or (n, m, k) as a frame with a column per name.

    For k outputs the columns are the pairs (output, name). ``what`` is the name of the names.
    """
    import pandas as pd

    if values.ndim == 2:
        return pd.DataFrame(values, index=index, columns=pd.Index(list(names), name=what))
    labels = range(values.shape[2]) if outputs is None else outputs
    columns = pd.MultiIndex.from_tuples(
        [(label, name) for label in labels for name in names], names=["output", what]
    )
    flat = np.swapaxes(values, 1, 2).reshape(len(values), len(columns))
    return pd.DataFrame(flat, index=index, columns=columns)


def terms_frame(model: TermModel, design: Design) -> pd.DataFrame:
    """Return the terms with nonzero coefficients, the largest share first.

    Returns
    -------
    DataFrame
        One row per term, with columns term, variables (tuple of names), order, degree, width, norm
        and share: the variance of the term on the training rows, divided by the sum over all
        terms. For a graph without variables, depth replaces variables, order and degree.
    """
    import pandas as pd

    kept = model.kept()
    frame = pd.DataFrame(
        design.terms(kept.nodes)
        | {
            "width": model.widths[kept.positions],
            "norm": model.norms[kept.positions],
            "share": model.shares[kept.positions],
        }
    )
    variables = design.variables(kept.nodes)
    if variables is not None:
        frame.insert(1, "variables", variables)
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def effects_summary(model: TermModel, design: Design) -> pd.DataFrame:
    """Return the effects of a model, the largest share first.

    An effect is the sum of all terms of one set of variables. On a graph without variables every
    term is an effect.

    Returns
    -------
    DataFrame
        One row per effect, with columns effect (its name), variables (tuple of names), order,
        n_terms, share (the sum of the shares of its terms) and shape. The shape of one variable is
        "increasing", "decreasing", "peak", "valley" or "waves" over the bulk of its values, or
        "by category"; that of several is "product" for a single product and "surface" otherwise.
        Where the outputs of several classes have different shapes, it is "by class".
    """
    import pandas as pd

    kept = model.kept()
    groups = effect_groups(model, design)
    frame = pd.DataFrame(
        {
            "effect": [group.name for group in groups],
            "n_terms": [len(group.members) for group in groups],
            "share": [group.share for group in groups],
        }
    )
    variables = design.variables([group.node for group in groups])
    if variables is None:
        return frame
    frame.insert(1, "variables", variables)
    frame.insert(2, "order", [len(names) for names in variables])
    frame["shape"] = [
        _shape(design, {kept.nodes[i]: kept.blocks[i] for i in group.members}) for group in groups
    ]
    return frame


def _shape(design: Design, blocks: Mapping[Node, FloatArray]) -> str:
    """Return the shape of an effect in a word, from its terms and their coefficients."""
    nodes = list(blocks)
    if len(nodes[0]) > 1:
        return "product" if len(nodes) == 1 else "surface"
    levels = design.one_variable(nodes[0][0][0], _SHAPE_POINTS)
    if levels is None:
        return "by category"
    values = sum(levels[node[0][1]] @ block for node, block in blocks.items())
    words = {_word(curve) for curve in np.atleast_2d(np.asarray(values).T)}
    return words.pop() if len(words) == 1 else "by class"


def _word(curve: FloatArray) -> str:
    """Return the shape of a curve, ignoring bends of less than 5 % of its range."""
    steps = [0.0]
    turn = curve[0]
    least = _SHAPE_BEND * float(np.ptp(curve))
    for value in curve[1:]:
        change = value - turn
        if change * steps[-1] > 0.0:
            turn = value  # it goes on in the same direction
        elif abs(change) > least:
            steps.append(change)
            turn = value
    signs = [step > 0.0 for step in steps[1:]]
    known = {
        (True,): "increasing",
        (False,): "decreasing",
        (True, False): "peak",
        (False, True): "valley",
    }
    return known.get(tuple(signs), "waves" if signs else "flat")


def require_finite(values: FloatArray) -> None:
    """Raise if ``values`` is not finite everywhere, with the first such row (first axis)."""
    if not np.all(np.isfinite(values)):
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ValueError(
            f"Row {row} of X lies so far outside the training data that an effect overflows; "
            "check its units, or clip X to the range of the training data."
        )
