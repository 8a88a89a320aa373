"""The fitted function as a sum of effects: monomials, named functions and tables of values.

`FormulaTerms` holds the numbers in full precision; `hikernel.explain.formula_text` writes them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray, Node
from hikernel.explain.cells import Axis, axis_of, level_in_cells
from hikernel.explain.effects import effect_groups
from hikernel.explain.formula_text import formula_text
from hikernel.explain.legend import LevelFactor, PowerFactor
from hikernel.selection import TermModel

__all__ = ["EffectTerms", "Factors", "FormulaTerms", "formula", "formula_terms"]

Factors = tuple[PowerFactor | LevelFactor, ...]
"""Factors of a product, by increasing variable; the empty product is the constant."""

_MOST_CELLS = 10**6
"""Number of cells above which a term is no table."""


@dataclass(frozen=True)
class EffectTerms:
    """One effect, f_u(x) = sum over tables and products P of table[cells of x] P(x) + the rest.

    It is zero where one of its variables is missing or is a category that was not seen in ``fit``.

    Attributes
    ----------
    name : str
        Name of the effect.
    variables : tuple of int
        The set u, as positions of columns.
    share : float
        Share of the variance of all terms.
    tables : dict of tuple of Axis to dict of Factors to ndarray of shape (cells, ..., k)
        Coefficients of the products, for the cells of each variable among the axes; without axes,
        of shape (k,). A factor is a power t(x)^i, with t the standardised variable, or a one-column
        level that is not expanded into powers. The empty product is the constant.
    rest : dict of Node to ndarray of shape (r_v, k)
        Coefficients of the terms with several feature columns that have no cells, or too many.
    """

    name: str
    variables: tuple[int, ...]
    share: float
    tables: dict[tuple[Axis, ...], dict[Factors, FloatArray]]
    rest: dict[Node, FloatArray]


@dataclass(frozen=True)
class FormulaTerms:
    """f(x) = intercept + sum of effects.

    Attributes
    ----------
    design : ColumnDesign
        Columns and fitted bases.
    intercept : ndarray of shape (k,)
        The intercept.
    effects : list of EffectTerms
        The effects, the largest share first. Bases without a constant level 0 may give one more, of
        no variable: the product of their bumps.
    single : bool
        Whether the model has one output, so that values have shape (n,) and not (n, k).
    """

    design: ColumnDesign
    intercept: FloatArray
    effects: list[EffectTerms]
    single: bool

    @property
    def n_outputs(self) -> int:
        """Number k of outputs."""
        return len(self.intercept)

    def text(
        self,
        digits: int = 4,
        outputs: Sequence[object] | None = None,
        max_terms: int | None = None,
    ) -> str:
        """Return the formula as text; see `formula`."""
        if outputs is not None and len(outputs) != self.n_outputs:
            raise ValueError(f"outputs must name {self.n_outputs} outputs, got {len(outputs)}.")
        labels = list(range(self.n_outputs)) if outputs is None else list(outputs)
        return formula_text(self, digits, None if self.single else labels, max_terms)


def formula_terms(model: TermModel, design: ColumnDesign) -> FormulaTerms:
    """Expand a model into effects, and these into products of powers and of named levels.

    Parameters
    ----------
    model : TermModel
        The model.
    design : ColumnDesign
        Columns and fitted bases of the model.

    Notes
    -----
    A term of order d whose levels have degree q_i gives up to prod (q_i + 1) monomials. All of
    them stay in the effect of the term, also those of fewer variables: the effect is zero where
    a value is missing, its powers are not, and its values are those of ``effects(X)``.
    """
    kept = model.kept()
    n_outputs = model.coef.shape[1] if model.coef.ndim > 1 else 1
    intercept = np.array(model.intercept, dtype=np.float64).reshape(n_outputs)
    blocks = [block.reshape(len(block), n_outputs) for block in kept.blocks]
    bumps = [(m, 0) for m, basis in enumerate(design.bases) if not basis.constant_level]
    effects = []
    for group in effect_groups(model, design):
        terms = {kept.nodes[i]: blocks[i] for i in group.members}
        effects.append(_effect(design, group.name, group.share, terms, bumps))
    if () in kept.nodes:
        i = kept.nodes.index(())
        if bumps:
            share = float(model.shares[kept.positions[i]])
            effects.append(_effect(design, "bumps", share, {(): blocks[i]}, bumps))
        else:
            intercept = intercept + blocks[i][0]
    return FormulaTerms(design, intercept, effects, model.coef.ndim == 1)


def formula(
    model: TermModel,
    design: ColumnDesign,
    digits: int = 4,
    outputs: Sequence[object] | None = None,
    max_terms: int | None = None,
) -> str:
    """Return the fitted function as text: a line per effect, the largest first, and a legend.

    Parameters
    ----------
    model : TermModel
        The model.
    design : ColumnDesign
        Columns and fitted bases of the model.
    digits : int, default 4
        Significant digits of the coefficients. Centres have this many digits relative to their
        scale, so that a year keeps its last digits.
    outputs : sequence, optional
        Labels of the outputs in f[label], for a model with several; 0, 1, ... by default.
    max_terms : int, optional
        Largest number of effects to write. The text says how many are left out.

    Returns
    -------
    str
        f is the intercept plus one summand per effect, with the values of ``effects(X)`` and the
        share of the effect beside it. Polynomial, asinh and Hermite bases are expanded in powers of
        the standardised variables z(age) = (age - centre) / scale. Functions of categories,
        booleans, steps and ranks are tables of their values in the units of f, f(job). All this is
        exact up to the rounding to ``digits``, except for functions of the rank with many values,
        which are given at nine of them. Levels that are not polynomials, or whose powers would
        cancel too many digits, get a name and a line in the legend; p2(age), for example, is level
        2 of age. Terms with several feature columns that are no tables are given at a few points or
        only named. Models with several outputs have a table with a column per output.

    Examples
    --------
    >>> import pandas as pd
    >>> from hikernel import HKLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(0, 5, 200), "job": rng.choice(["cook", "vet"], 200)})
    >>> y = 1.0 + 0.5 * X["age"] ** 2 + (X["job"] == "vet")
    >>> print(HKLRegressor(1e-7, degree=2).fit(X, y).formula(digits=3))
    f = 4.92                                    share
        + 3.11*z(age) + 1.04*z(age)^2 - 1.04   97.4 %
        + f(job)                                2.6 %
    <BLANKLINE>
    where
      f(job): 'vet': 0.45, 'cook': -0.55, any other: 0
      z(age) = (age - 2.16) / 1.44, 0 <= age <= 4
      beyond its range a variable counts as the nearer end of it
      an effect is 0 where one of its variables is a category that is not listed
    """
    return formula_terms(model, design).text(digits, outputs, max_terms)


def _effect(
    design: ColumnDesign,
    name: str,
    share: float,
    terms: dict[Node, FloatArray],
    bumps: list[tuple[int, int]],
) -> EffectTerms:
    """Return the sum of the terms of one set of variables, expanded."""
    tables: dict[tuple[Axis, ...], dict[Factors, FloatArray]] = {}
    rest: dict[Node, FloatArray] = {}
    for node, block in terms.items():
        present = {m for m, _ in node}
        pairs = sorted([*node, *(pair for pair in bumps if pair[0] not in present)])
        axes = [axis_of(design, m, level) for m, level in pairs]
        widths = [design.bases[m].widths[level] for m, level in pairs]
        values = [
            None if axis is None else level_in_cells(design, axis, level)
            for axis, (_, level) in zip(axes, pairs, strict=True)
        ]
        wide = any(axis is None and width > 1 for axis, width in zip(axes, widths, strict=True))
        if wide or math.prod(len(v) for v in values if v is not None) > _MOST_CELLS:
            rest[node] = block
            continue
        tensor = block.reshape(*widths, -1)
        for i, at_cells in enumerate(values):
            if at_cells is not None:
                tensor = np.moveaxis(np.tensordot(at_cells, tensor, (1, i)), 0, i)
        tensor = np.squeeze(tensor, axis=tuple(i for i, axis in enumerate(axes) if axis is None))
        sums = tables.setdefault(tuple(axis for axis in axes if axis is not None), {})
        numbers = [pair for pair, axis in zip(pairs, axes, strict=True) if axis is None]
        for combination in itertools.product(*(_written_out(design, *pair) for pair in numbers)):
            factors = tuple(factor for factor, _ in combination if factor is not None)
            coefs = tensor * math.prod(number for _, number in combination)
            sums[factors] = sums[factors] + coefs if factors in sums else coefs
    variables = tuple(m for m, _ in next(iter(terms)))
    return EffectTerms(name, variables, share, tables, rest)


def _written_out(
    design: ColumnDesign, m: int, level: int
) -> list[tuple[PowerFactor | LevelFactor | None, float]]:
    """Return a one-column level as a sum of number times factor; factor None stands for one."""
    coefficients = design.bases[m].level_polynomial(level)
    if coefficients is None:
        return [(LevelFactor(m, level), 1.0)]
    return [
        (PowerFactor(m, power) if power else None, float(number))
        for power, number in enumerate(coefficients)
        if number != 0.0
    ]
