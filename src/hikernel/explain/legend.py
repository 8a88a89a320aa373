"""Names of the one-variable functions in a formula, and the lines that explain them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hikernel.bases.anova import FittedAnova
from hikernel.bases.asinh import FittedAsinhPolynomial
from hikernel.bases.basis import FittedBasis
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.gaussian import FittedGaussian
from hikernel.bases.kernel_pca import FittedKernelPCA
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial
from hikernel.bases.periodic import FittedPeriodic
from hikernel.bases.rank import FittedRankPolynomial
from hikernel.bases.spline import FittedSpline
from hikernel.bases.steps import FittedSteps
from hikernel.checks import check_integer
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray
from hikernel.explain.cells import shown_names
from hikernel.explain.text_layout import significant

__all__ = ["LevelFactor", "NameBook", "PowerFactor", "meaning_of", "without_bumps"]

#: Largest number of points in the table of a curve.
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
    FittedPeriodic: ("w", "wave of a period, centred"),
    FittedRankPolynomial: ("q", "polynomial in the rank among the training rows, bounded"),
    FittedSteps: ("u", "steps, constant between cuts"),
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
    """Writes numbers, names, factors, and the lines that explain them.

    Parameters
    ----------
    design : ColumnDesign
        The columns: their names and bases.
    digits : int
        Significant digits.
    """

    def __init__(self, design: ColumnDesign, digits: int) -> None:
        check_integer("digits", digits, 1)
        self._bases = design.bases
        self._names = shown_names(design.names)
        self._digits = digits

    def number(self, value: float) -> str:
        """Return a number, rounded to ``digits`` significant digits."""
        return significant(value, self._digits)

    def name(self, variable: int) -> str:
        """Return the name of a variable, in quotes if it could be mistaken for something else."""
        return self._names[variable]

    def product(self, factors: Iterable[PowerFactor | LevelFactor]) -> str:
        """Return a product such as z(age)^2*z(income); factors of level 0 (bumps) are left out."""
        return "*".join(map(self.factor, without_bumps(factors)))

    def factor(self, factor: PowerFactor | LevelFactor) -> str:
        """Return the text of one factor, such as z(age)^2."""
        name = self._names[factor.variable]
        if isinstance(factor, LevelFactor):
            basis, level = self._branch(factor)
            return f"{_letter(basis)}{level}({name})"
        base = f"z({name})"
        return base if factor.power == 1 else f"{base}^{factor.power}"

    def definitions(self, factors: Iterable[PowerFactor | LevelFactor]) -> list[str]:
        """Return a line for every function among the factors, in the order of their first use."""
        lines: dict[str, None] = {}
        for factor in without_bumps(factors):
            if isinstance(factor, PowerFactor):
                lines[self._argument_line(factor.variable)] = None
            else:
                lines[f"{self.factor(factor)}: {self._level_meaning(factor)}"] = None
        return list(lines)

    def has_range(self, factor: PowerFactor | LevelFactor) -> bool:
        """Return whether the line of a factor tells the range of its variable."""
        power = isinstance(factor, PowerFactor)
        return power and self._bases[factor.variable].domain is not None

    def curve(self, m: int, points: FloatArray, heights: FloatArray) -> str:
        """Return a function of one variable by its values at its most informative points.

        "about" comes first if not all points are told.
        """
        chosen = _main_knots(points, heights, _MOST_KNOTS)
        scale = self._bases[m].branch(1)[0].scaler.scale
        shown = [
            f"{self.number(float(heights[i]))} at {self._beside(float(points[i]), scale)}"
            for i in chosen
        ]
        return f"{'about ' if len(chosen) < len(points) else ''}{', '.join(shown)}"

    def _branch(self, factor: LevelFactor) -> tuple[FittedBasis, int]:
        """Return the basis of a level, and the number of the level there."""
        basis = self._bases[factor.variable]
        return basis.branch(factor.level) if factor.level > 0 else (basis, 0)

    def _level_meaning(self, factor: LevelFactor) -> str:
        """Return what a level is: its values at its knots, or its kind."""
        basis, level = self._branch(factor)
        if isinstance(basis, FittedRankPolynomial):
            values = self.curve(factor.variable, basis.points, basis.heights[:, level - 1])
            return f"{values}; linear between, constant beyond"
        return f"level {level}, {meaning_of(basis)}"

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
            return f"z({name}) = {meaning}"
        low, high = (self._beside(end, max(scale, abs(end - center))) for end in basis.domain)
        return f"z({name}) = {meaning}, {low} <= {name} <= {high}"

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
        return significant(value, min(17, self._digits + size))


def without_bumps(
    factors: Iterable[PowerFactor | LevelFactor],
) -> list[PowerFactor | LevelFactor]:
    """Return the factors but those of level 0, which a formula does not name."""
    return [f for f in factors if not (isinstance(f, LevelFactor) and f.level == 0)]


def _letter(basis: FittedBasis) -> str:
    return _LEVELS.get(type(basis), ("phi", ""))[0]


def meaning_of(basis: FittedBasis) -> str:
    """Return what the levels of a basis are, in a few words."""
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
