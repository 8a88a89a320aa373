"""Names of the functions in a formula, and the legend that explains them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hikernel.bases.anova import FittedAnova
from hikernel.bases.asinh import FittedAsinhPolynomial
from hikernel.bases.basis import FittedBasis
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.gaussian import FittedGaussian
from hikernel.bases.kernel_pca import FittedKernelPCA
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial
from hikernel.bases.rank import FittedRankPolynomial
from hikernel.bases.spline import FittedSpline
from hikernel.bases.steps import FittedSteps, written
from hikernel.checks import check_integer
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray, Node

__all__ = ["LevelFactor", "NameBook", "PowerFactor", "step_branch"]

_EQUAL = 1e-9
"""Neighbouring pieces of a step function that differ by less, relative to the largest, join."""

#: Largest number of categories in the table of a function of categories.
_MOST_CATEGORIES = 20

#: Largest number of points in the table of a function of the rank.
_MOST_KNOTS = 9

#: Letter and meaning of the levels of each basis, for levels that are not expanded into powers.
_LEVELS: dict[type[FittedBasis], tuple[str, str]] = {
    FittedSpline: ("s", "smooth part of a cubic spline"),
    FittedGaussian: ("g", "Mehler function of the Gaussian kernel"),
    FittedKernelPCA: ("k", "principal direction of the kernel"),
    FittedAnova: ("a", "the whole Gaussian kernel"),
    FittedCategorical: ("c", "centred indicators of categories"),
    FittedOrthonormalPolynomial: ("p", "polynomial orthonormal on the training rows"),
    FittedAsinhPolynomial: ("r", "polynomial in asinh, orthonormal on the training rows"),
    FittedRankPolynomial: ("q", "polynomial in the rank among the training rows, bounded"),
    FittedSteps: ("u", "steps at the quantiles of the training rows"),
}


@dataclass(frozen=True)
class PowerFactor:
    """The factor t(x)^power, where t(x) is the argument of the polynomials of a variable."""

    variable: int
    power: int

    @property
    def key(self) -> tuple[int, int, int]:
        """Sort key that gives the order of factors in a formula."""
        return (self.variable, 0, self.power)


@dataclass(frozen=True)
class LevelFactor:
    """A level with one feature column that is not expanded into powers."""

    variable: int
    level: int

    @property
    def key(self) -> tuple[int, int, int]:
        """Sort key that gives the order of factors in a formula."""
        return (self.variable, 1, self.level)


class NameBook:
    """Writes numbers, factors and the legend of one formula.

    Parameters
    ----------
    design : ColumnDesign
        The columns: their names, bases, categories and missing values.
    digits : int
        Significant digits.
    numbers : mapping of Node to int
        The terms with several feature columns, and the numbers in their names.
    indices : sequence of str, optional
        Suffix of each output, such as "[0]"; empty for a single output.
    """

    def __init__(
        self,
        design: ColumnDesign,
        digits: int,
        numbers: Mapping[Node, int],
        indices: Sequence[str] = ("",),
    ) -> None:
        check_integer("digits", digits, 1)
        self._bases = design.bases
        self._names = design.names
        self._digits = digits
        self._numbers = numbers
        self._categories = {
            m: {float(code): str(label) for code, label in enumerate(labels)}
            for m, labels in enumerate(design.table.categories)
            if labels is not None
        }
        self._indices = indices
        self._missing = design.table.indicators
        self._bumps = [m for m, basis in enumerate(design.bases) if not basis.constant_level]

    def number(self, value: float) -> str:
        """Return a number, rounded to ``digits`` significant digits."""
        return f"{value:.{self._digits}g}"

    def product(self, factors: Iterable[PowerFactor | LevelFactor]) -> str:
        """Return a product such as z(age)^2*z(income); factors of level 0 (bumps) are left out."""
        shown = [f for f in factors if not (isinstance(f, LevelFactor) and f.level == 0)]
        return "*".join(map(self.factor, shown)) if shown else "bumps"

    def factor(self, factor: PowerFactor | LevelFactor) -> str:
        """Return the text of one factor, such as z(age)^2."""
        name = self._names[factor.variable]
        if isinstance(factor, LevelFactor):
            basis, level = self._branch(factor)
            return f"{_letter(basis)}{level}({name})"
        base = f"z({name})"
        return base if factor.power == 1 else f"{base}^{factor.power}"

    def _branch(self, factor: LevelFactor) -> tuple[FittedBasis, int]:
        """Return the basis of a level, and the number of the level there."""
        basis = self._bases[factor.variable]
        return basis.branch(factor.level) if factor.level > 0 else (basis, 0)

    def steps(self, variable: int, output: int) -> str:
        """Return the text of all steps of one variable together, such as s(age)."""
        return f"s{self._indices[output]}({self._names[variable]})"

    def wide(self, node: Node, output: int) -> str:
        """Return the text of a term with several feature columns, for one output.

        A function of one variable with a table (of categories or steps) times one-column levels is
        written as a product, h1(town)*p1(age); any other term as one function of its variables,
        h1(town, region).
        """
        head = f"h{self._numbers[node] + 1}{self._indices[output]}"
        tabled = self._tabled(node)
        if tabled is None:
            return f"{head}({', '.join(self._names[m] for m, _ in node)})"
        table = f"{head}({self._names[tabled.variable]})"
        return "*".join([table, *map(self.factor, self._companions(node))])

    def legend(
        self,
        factors: Iterable[PowerFactor | LevelFactor],
        wide: Mapping[Node, FloatArray],
        steps: Mapping[int, FloatArray],
    ) -> list[str]:
        """Return the lines of the legend, which explain every function in the formula."""
        companions = {factor for node in wide for factor in self._companions(node)}
        lines: dict[str, None] = {}
        ranges = False
        for factor in sorted({*factors, *companions}, key=lambda factor: factor.key):
            if isinstance(factor, LevelFactor) and factor.level == 0:
                continue
            if isinstance(factor, PowerFactor) or self._polynomial(factor) is not None:
                ranges |= self._bases[factor.variable].domain is not None
                lines[self._argument_line(factor.variable)] = None
            if isinstance(factor, LevelFactor):
                lines[f"  {self.factor(factor)}{self._level_meaning(factor)}"] = None
        for m, heights in steps.items():
            for k, column in enumerate(heights.T):
                if np.any(column):
                    line = f"  {self.steps(m, k)}: {self._pieces(m, column)}{self._zero(m)}"
                    lines[line] = None
        for node, block in wide.items():
            lines.update(dict.fromkeys(self._wide_lines(node, block)))
        if ranges:
            lines["  beyond its range a variable counts as the nearer end of it"] = None
        if self._bumps:
            some = ", ".join(self._names[m] for m in self._bumps)
            among = "" if len(self._bumps) == len(self._bases) else f" among {some}"
            lines[
                "  every product is also multiplied by the bump, level 0, of each variable that it "
                f"does not name{among}"
            ] = None
        return list(lines)

    def _level_meaning(self, factor: LevelFactor) -> str:
        """Return the text after the name of a level: its polynomial, its values, or its kind."""
        m = factor.variable
        basis, level = self._branch(factor)
        if isinstance(basis, FittedCategorical) and not self._bumps:
            return f": {self._table(factor, np.ones(1))}"
        zero = self._zero(m)
        if isinstance(basis, FittedSteps):
            return f": {self._table(factor, np.ones(1))}{zero}"
        coefficients = self._polynomial(factor)
        if coefficients is not None:
            return f" = {self._sum_of_powers(m, coefficients)}{zero}"
        if isinstance(basis, FittedRankPolynomial):
            return f": {self._knots(basis, level)}{zero}"
        return f": level {level}, {_meaning(basis)}{zero}"

    def _zero(self, m: int) -> str:
        return f", and 0 where {self._names[m]} is missing" if m in self._missing else ""

    def _polynomial(self, factor: LevelFactor) -> FloatArray | None:
        return self._bases[factor.variable].level_polynomial(factor.level)

    def _sum_of_powers(self, m: int, coefficients: FloatArray) -> str:
        """Return c_0 + c_1*z(name) + ... without zero coefficients."""
        out = ""
        for power, coefficient in enumerate(coefficients):
            if coefficient != 0.0:
                sign = "-" if coefficient < 0.0 else "+"
                number = self.number(abs(float(coefficient)))
                what = self.factor(PowerFactor(m, power)) if power else ""
                shown = [number] if number != "1" or not what else []
                out += f" {sign} {'*'.join([*shown, *([what] if what else [])])}"
        return f"-{out[3:]}" if out.startswith(" -") else out[3:]

    def _knots(self, basis: FittedRankPolynomial, level: int) -> str:
        """Return the values of a function of the rank at its most informative knots, as text."""
        heights = basis.heights[:, level - 1]
        chosen = _main_knots(basis.knots, heights, _MOST_KNOTS)
        scale = basis.scaler.scale
        shown = [
            f"{self.number(float(heights[i]))} at {self._beside(float(basis.points[i]), scale)}"
            for i in chosen
        ]
        about = "about " if len(chosen) < len(heights) else ""
        return f"{about}{', '.join(shown)}; linear between, constant beyond"

    def _wide_lines(self, node: Node, block: FloatArray) -> list[str]:
        """Return the legend of a term with several columns: a table per output, or its kind."""
        name = f"h{self._numbers[node] + 1}"
        tabled = self._tabled(node)
        if tabled is not None:
            return [
                f"  {name}{index}({self._names[tabled.variable]}): {self._table(tabled, column)}"
                for index, column in zip(self._indices, block.T, strict=True)
                if np.any(column)
            ]
        wide = [LevelFactor(m, level) for m, level in node if self._wide(m, level)]
        kinds = sorted({_meaning(self._branch(factor)[0]) for factor in wide})
        return [
            f"  {name}: the term {self._term(node)}, {len(block)} columns with "
            f"coefficients of norm one ({'; '.join(kinds) or 'bumps'})"
        ]

    def _term(self, node: Node) -> str:
        names = [self._bases[m].level_name(level, self._names[m]) for m, level in node]
        return " * ".join(names) or "1"

    def _tabled(self, node: Node) -> LevelFactor | None:
        """Return the only level of a term with several columns, if it is of categories or steps."""
        several = [LevelFactor(m, level) for m, level in node if self._wide(m, level)]
        if len(several) != 1 or self._bumps:
            return None
        basis, _ = self._branch(several[0])
        return several[0] if isinstance(basis, (FittedCategorical, FittedSteps)) else None

    def _companions(self, node: Node) -> list[LevelFactor]:
        """Return the one-column levels that multiply the function with a table in a term."""
        tabled = self._tabled(node)
        if tabled is None:
            return []
        return [LevelFactor(m, level) for m, level in node if m != tabled.variable]

    def _pieces(self, m: int, heights: FloatArray) -> str:
        """Return a function of the pieces between the cuts of a variable; equal neighbours join."""
        cuts = step_branch(self._bases[m]).cuts
        size = float(np.max(np.abs(heights)))
        ends = [i for i in range(len(cuts)) if abs(heights[i + 1] - heights[i]) > _EQUAL * size]
        shown = [f"{self.number(float(heights[i]))} up to {written(cuts[i])}" for i in ends]
        return f"{', '.join(shown)}, {self.number(float(heights[-1]))} above"

    def _table(self, factor: LevelFactor, coefs: FloatArray) -> str:
        """Return the values of a function with a table, its coefficients scaled to norm one."""
        m = factor.variable
        basis, level = self._branch(factor)
        if isinstance(basis, FittedSteps):
            return self._pieces(m, basis.level_heights(level) @ (coefs / np.linalg.norm(coefs)))
        assert isinstance(basis, FittedCategorical)
        values = basis.transform(basis.codes)[1] @ (coefs / np.linalg.norm(coefs))
        labels = self._categories.get(m, {})
        shown = [
            f"{self.number(float(value))} for {labels.get(float(code), f'{code:g}')}"
            for code, value in zip(basis.codes, values, strict=True)
        ][:_MOST_CATEGORIES]
        more = len(values) - len(shown)
        rest = f"{more} more categories, " if more else ""
        return f"{', '.join(shown)}, {rest}0 for others"

    def _wide(self, m: int, level: int) -> bool:
        return self._bases[m].widths[level] > 1

    def _argument_line(self, m: int) -> str:
        """Return the line of the legend that defines z(name)."""
        name, (basis, _) = self._names[m], self._bases[m].branch(1)
        center, scale = basis.scaler.center, basis.scaler.scale
        if isinstance(basis, FittedAsinhPolynomial):
            center, scale, outer = basis.median, basis.unit, basis.polynomial.scaler
            inner = self._ratio(name, center, scale)
            meaning = self._ratio(f"asinh({inner})", outer.center, outer.scale)
        else:
            meaning = self._ratio(name, center, scale)
        if basis.domain is None:
            return f"  z({name}) = {meaning}"
        low, high = (self._beside(end, max(scale, abs(end - center))) for end in basis.domain)
        return f"  z({name}) = {meaning}, {low} <= {name} <= {high}"

    def _ratio(self, what: str, center: float, scale: float) -> str:
        """Return (what - centre) / scale as text, the centre as precise as its scale requires."""
        written = self._beside(abs(center), scale)
        if written == "0":
            return f"{what} / {self.number(scale)}"
        return f"({what} {'+' if center < 0 else '-'} {written}) / {self.number(scale)}"

    def _beside(self, value: float, scale: float) -> str:
        """Return a number with ``digits`` digits relative to a scale; "0" if only rounding."""
        if abs(value) < 1e-12 * scale:
            return "0"
        size = math.ceil(math.log10(max(abs(value), scale) / scale)) if scale > 0.0 else 0
        return f"{value:.{min(17, self._digits + size)}g}"


def step_branch(basis: FittedBasis) -> FittedSteps:
    """Return the steps of a column; raise if it has none."""
    for level in range(1, basis.max_level + 1):
        branch, _ = basis.branch(level)
        if isinstance(branch, FittedSteps):
            return branch
    raise ValueError("The basis has no steps.")


def _letter(basis: FittedBasis) -> str:
    return _LEVELS.get(type(basis), ("phi", ""))[0]


def _meaning(basis: FittedBasis) -> str:
    name = type(basis).__name__.removeprefix("Fitted")
    return _LEVELS.get(type(basis), ("", f"of the basis {name}"))[1]


def _main_knots(x: FloatArray, heights: FloatArray, most: int) -> list[int]:
    """Return the positions of at most ``most`` knots for a good piecewise linear approximation.

    Starts from both ends, and adds one by one the knot with the largest interpolation error.
    Quantiles would be enough for a smooth column, but hide the jump at a value of most rows.
    """
    chosen = [0, len(x) - 1]
    while len(chosen) < min(most, len(x)):
        error = np.abs(np.interp(x, x[chosen], heights[chosen]) - heights)
        error[chosen] = -1.0
        chosen = sorted([*chosen, int(np.argmax(error))])
    return chosen
