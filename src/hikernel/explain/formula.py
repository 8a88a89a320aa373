"""The fitted function as text: monomials for levels that are polynomials, else named functions.

`FormulaTerms` holds the numbers in full precision; the text rounds them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hikernel.bases.steps import FittedSteps
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray, Node
from hikernel.explain.legend import LevelFactor, NameBook, PowerFactor
from hikernel.selection import TermModel

__all__ = ["Factors", "FormulaTerms", "formula", "formula_terms"]

Factors = tuple[PowerFactor | LevelFactor, ...]
"""Factors of a product, by increasing variable; the empty product is the constant."""

_LINE = 96


@dataclass(frozen=True)
class FormulaTerms:
    """f(x) as a sum of products, of step functions and of terms with several columns.

    f(x) = sum over products P of coefs[P] P(x) + sum over variables of steps(x)
    + sum over wide terms v of <beta_v, Phi_v(x)>.

    Attributes
    ----------
    design : ColumnDesign
        Columns and fitted bases.
    products : dict of Factors to ndarray of shape (k,)
        Coefficients of the products. A factor is a power t(x)^i, with t the standardised variable,
        or a one-column level that is not expanded into powers. The empty product is the constant.
    wide : dict of Node to ndarray of shape (r_v, k)
        Coefficients of the terms with several feature columns, which are not expanded.
    single : bool
        Whether the model has one output, so that values have shape (n,) and not (n, k).
    steps : dict of int to ndarray of shape (pieces, k)
        For each variable with steps of its own, their sum: a value for every piece between cuts.
    """

    design: ColumnDesign
    products: dict[Factors, FloatArray]
    wide: dict[Node, FloatArray]
    single: bool
    steps: dict[int, FloatArray]

    @property
    def n_outputs(self) -> int:
        """Number k of outputs."""
        return len(self.products[()])

    def text(self, digits: int = 4, outputs: Sequence[object] | None = None) -> str:
        """Return the formula as text; see `formula`."""
        indices = self._indices(outputs)
        numbers = {node: i for i, node in enumerate(self.wide)}
        book = NameBook(self.design, digits, numbers, indices)
        formulas = [self._side(f"f{index}", k, book) for k, index in enumerate(indices)]
        legend = book.legend(self._factors(), self.wide, self.steps)
        return "\n".join([*formulas, *(["", "where", *legend] if legend else [])])

    def _indices(self, outputs: Sequence[object] | None) -> list[str]:
        """Return a suffix for the name of each output: "[0]", "[1]", ...; empty for one output."""
        if outputs is not None and len(outputs) != self.n_outputs:
            raise ValueError(f"outputs must name {self.n_outputs} outputs, got {len(outputs)}.")
        if self.single:
            return [""]
        return [f"[{label}]" for label in (range(self.n_outputs) if outputs is None else outputs)]

    def _factors(self) -> list[PowerFactor | LevelFactor]:
        return sorted(
            {factor for product in self._written() for factor in product},
            key=lambda factor: factor.key,
        )

    def _written(self) -> list[Factors]:
        """Return the products that appear in the text, sorted by `_reading_order`."""
        written = [
            product for product, coefs in self.products.items() if not product or np.any(coefs)
        ]
        return sorted(written, key=_reading_order)

    def _side(self, label: str, k: int, book: NameBook) -> str:
        """Return "label = constant + ..." for one output, wrapped into lines."""
        pieces = [book.number(float(self.products[()][k]))]
        for product in self._written():
            coef = float(self.products[product][k])
            if product and coef != 0.0:
                pieces.append(_signed(coef, book.product(product), book))
        for m, heights in self.steps.items():
            if np.any(heights[:, k]):
                pieces.append(f"+ {book.steps(m, k)}")
        for node, block in self.wide.items():
            norm = float(np.linalg.norm(block[:, k]))
            if norm > 0.0:
                pieces.append(_signed(norm, book.wide(node, k), book))
        return _fold(f"{label} = ", pieces)


def formula_terms(model: TermModel, design: ColumnDesign) -> FormulaTerms:
    """Expand a model into products of powers and of named levels.

    Parameters
    ----------
    model : TermModel
        The model.
    design : ColumnDesign
        Columns and fitted bases of the model. Levels of variables with missing values in ``fit``
        are not expanded: at a missing value a level is zero, but its powers are not.

    Notes
    -----
    A term of order d whose levels have degree q_i gives up to prod (q_i + 1) monomials. All of
    them belong to ancestors of the term, so that there are no more monomials than terms in the
    hull.
    """
    kept = model.kept()
    missing = design.table.indicators
    n_outputs = model.coef.shape[1] if model.coef.ndim > 1 else 1
    products: dict[Factors, FloatArray] = {
        (): np.array(model.intercept, dtype=np.float64).reshape(n_outputs)
    }
    wide = {}
    steps: dict[int, FloatArray] = {}
    everywhere = [(m, 0) for m, basis in enumerate(design.bases) if not basis.constant_level]
    for node, block in zip(kept.nodes, kept.blocks, strict=True):
        block = block.reshape(len(block), n_outputs)
        if len(node) == 1 and not everywhere:
            ((m, level),) = node
            branch, own = design.bases[m].branch(level)
            if isinstance(branch, FittedSteps):
                heights = branch.level_heights(own) @ block
                steps[m] = steps[m] + heights if m in steps else heights
                continue
        present = {m for m, _ in node}
        pairs = sorted([*node, *(pair for pair in everywhere if pair[0] not in present)])
        if math.prod(design.bases[m].widths[level] for m, level in pairs) > 1:
            wide[node] = block
            continue
        choices = [_written_out(design, m, level, m in missing) for m, level in pairs]
        for combination in itertools.product(*choices):
            factors = tuple(factor for factor, _ in combination if factor is not None)
            coefs = block[0] * math.prod(number for _, number in combination)
            products[factors] = products.get(factors, np.zeros(n_outputs)) + coefs
    single = model.coef.ndim == 1
    return FormulaTerms(design, products, wide, single, dict(sorted(steps.items())))


def formula(
    model: TermModel,
    design: ColumnDesign,
    digits: int = 4,
    outputs: Sequence[object] | None = None,
) -> str:
    """Return the fitted function as text, with a legend.

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

    Returns
    -------
    str
        For polynomial, orthonormal and Hermite bases, f is expanded in powers of the standardised
        variables z(age) = (age - centre) / scale. This is exact up to the rounding to ``digits``.
        Levels that are not polynomials, or whose powers would cancel too many digits, get a name
        and a line in the legend; p2(age), for example, is level 2 of age. The legend gives a table
        of values for functions of the rank and of a category. A function of a category with
        several feature columns is scaled to norm one, and its norm is the coefficient. All steps of
        one variable are one function, s(age), in the units of f. Other terms
        with several feature columns are only named. `formula_terms` has all numbers in full
        precision.

    Examples
    --------
    >>> import pandas as pd
    >>> from hikernel import HKLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.integers(0, 5, size=(200, 2)), columns=["age", "dose"])
    >>> model = HKLRegressor(1e-8, degree=2).fit(X, 1.0 + 0.5 * X["age"] ** 2)
    >>> print(model.formula(digits=3))
    f = 3.13 + 2.91*z(age) + 0.99*z(age)^2
    <BLANKLINE>
    where
      z(age) = (age - 2.065) / 1.41, 0 <= age <= 4
      beyond its range a variable counts as the nearer end of it
    """
    return formula_terms(model, design).text(digits, outputs)


def _written_out(
    design: ColumnDesign, m: int, level: int, whole: bool
) -> list[tuple[PowerFactor | LevelFactor | None, float]]:
    """Return a one-column level as a sum of number times factor; factor None stands for one.

    If ``whole``, the level is not expanded into powers.
    """
    coefficients = None if whole else design.bases[m].level_polynomial(level)
    if coefficients is None:
        return [(LevelFactor(m, level), 1.0)]
    return [
        (PowerFactor(m, power) if power else None, float(number))
        for power, number in enumerate(coefficients)
        if number != 0.0
    ]


def _reading_order(product: Factors) -> tuple[object, ...]:
    """Return a sort key: constant, main effects by variable and degree, then pairs, and so on."""
    return (len(product), [f.variable for f in product], [f.key for f in product])


def _signed(coef: float, what: str, book: NameBook) -> str:
    number = book.number(abs(coef))
    return f"{'-' if coef < 0 else '+'} {number}*{what}"


def _fold(start: str, pieces: Iterable[str]) -> str:
    """Join pieces with spaces, in lines of limited length that continue below the equals sign."""
    lines, line = [], start
    for i, piece in enumerate(pieces):
        if i and len(line) + 1 + len(piece) > _LINE:
            lines.append(line)
            line = " " * (len(start) - 2) + piece
        else:
            line += f" {piece}" if i else piece
    return "\n".join([*lines, line])
