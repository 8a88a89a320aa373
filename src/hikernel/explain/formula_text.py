"""The text of a formula: a summand per effect, its tables, and a legend.

One output gives a sum, f = 1.5 + 0.3*z(age) + f(job); several give a table with a column each.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hikernel.bases.rank import FittedRankPolynomial
from hikernel.checks import check_optional_integer
from hikernel.engines.protocol import FloatArray
from hikernel.explain.cells import OTHER, Axis, named_cells, quoted
from hikernel.explain.legend import LevelFactor, NameBook, PowerFactor, meaning_of, without_bumps
from hikernel.explain.text_layout import (
    LINE,
    fold,
    in_columns,
    percent,
    side_by_side,
    table_lines,
)

if TYPE_CHECKING:
    from hikernel.explain.formula import EffectTerms, Factors, FormulaTerms

__all__ = ["formula_text"]

_SHARES = 12
"""Room for the shares at the right of a sum."""
_ROUNDING = 1e-12
"""Constants below this part of the largest coefficient of an effect are rounding errors."""
_MOST_NUMBERS = 10_000
"""Largest number of numbers in a table."""
_CURVE_POINTS = 201
"""Number of points at which a curve that is no polynomial is evaluated."""


def formula_text(
    terms: FormulaTerms, digits: int, outputs: Sequence[object] | None, max_terms: int | None
) -> str:
    """Return a formula as text.

    Parameters
    ----------
    terms : FormulaTerms
        The numbers.
    digits : int
        Significant digits.
    outputs : sequence or None
        Labels of the outputs; None for a single output.
    max_terms : int or None
        Largest number of effects to write; None for all.
    """
    check_optional_integer("max_terms", max_terms, 1, "all effects")
    writer = _Writer(terms, digits, max_terms)
    lines = writer.sum() if outputs is None else writer.table(outputs)
    legend = [*writer.blocks, *writer.definitions(), *writer.rules()]
    return "\n".join([*lines, *(["", "where", *legend] if legend else [])])


class _Writer:
    """Writes one formula, and collects what its legend has to explain."""

    def __init__(self, terms: FormulaTerms, digits: int, max_terms: int | None) -> None:
        self.book = NameBook(terms.design, digits)
        self.design = terms.design
        self.intercept = terms.intercept
        self.written = terms.effects[:max_terms]
        self.left_out = terms.effects[len(self.written) :]
        self.blocks: list[str] = []
        self._heads = False

    def sum(self) -> list[str]:
        """Return the lines of the formula of a single output."""
        lines = [(f"f = {self.book.number(float(self.intercept[0]))}", "share")]
        for effect in self.written:
            start, *more = fold("    ", self._summands(effect), "      ", LINE - _SHARES)
            lines += [(start, percent(effect.share)), *((line, "") for line in more)]
        if self.left_out:
            lines.append((f"    + {self._rest_of_effects()}", percent(self._share_left_out)))
        if len(lines) == 1:
            return [lines[0][0]]
        right = max(len(share) for _, share in lines)
        return side_by_side([(line, share and f"{share:>{right}}") for line, share in lines])

    def table(self, outputs: Sequence[object]) -> list[str]:
        """Return the lines of the formulas of several outputs: a column each."""
        heads = ["share", *(quoted(label) for label in outputs)]
        rows = [("1", ["", *self._numbers(self.intercept)])]
        for effect in self.written:
            found = self._rows(effect, outputs)
            share = percent(effect.share)
            for i, (label, numbers) in enumerate(found):
                rows.append((f"  {label}" if i else label, ["" if i else share, *numbers]))
        if self.left_out:
            blanks = [""] * len(outputs)
            rows.append((self._rest_of_effects(), [percent(self._share_left_out), *blanks]))
        conditions = any(axes for effect in self.written for axes in effect.tables)
        return [
            "f[k] is the sum of column k, each number times what stands at the left of its row"
            + (";" if conditions else ""),
            *(["a row with a condition counts where it holds"] if conditions else []),
            "",
            *table_lines("", heads, rows),
        ]

    def definitions(self) -> list[str]:
        """Return the lines that explain the factors of the products."""
        lines = self.book.definitions(self._factors())
        return [part for line in lines for part in _folded(f"  {line}")]

    def rules(self) -> list[str]:
        """Return the lines that hold for the whole formula."""
        lines = []
        if self._heads:
            lines.append("  a number in a table counts times the head of its column")
        if any(self.book.has_range(factor) for factor in self._factors()):
            lines.append("  beyond its range a variable counts as the nearer end of it")
        used = {m for effect in self.written for m in effect.variables}
        table = self.design.table
        sources = {table.input_of(m) for m in used if m < table.n_values}
        zero = ["missing"] if sources & set(table.indicators) else []
        axes = {axis for effect in self.written for key in effect.tables for axis in key}
        if any(axis.kind == "category" for axis in axes):
            zero.append("a category that is not listed")
        if zero:
            lines.append(f"  an effect is 0 where one of its variables is {' or '.join(zero)}")
        bumps = [m for m, basis in enumerate(self.design.bases) if not basis.constant_level]
        if bumps and self.written:
            some = ", ".join(self.book.name(m) for m in bumps)
            among = "" if len(bumps) == len(self.design.bases) else f" among {some}"
            lines.append(
                "  every product is also multiplied by the bump, level 0, of each variable that it "
                f"does not name{among}"
            )
        return lines

    @property
    def _share_left_out(self) -> float:
        return sum(effect.share for effect in self.left_out)

    def _rest_of_effects(self) -> str:
        count = len(self.left_out)
        return f"{count} more effect{'s' if count > 1 else ''}, left out"

    def _factors(self) -> list[PowerFactor | LevelFactor]:
        """Return the factors of all products that are written as such, in reading order."""
        return [
            factor
            for effect in self.written
            if not self._is_curve(effect)
            for sums in effect.tables.values()
            for product in _in_order(sums)
            for factor in product
        ]

    def _names(self, effect: EffectTerms) -> str:
        return ", ".join(self.book.name(m) for m in effect.variables)

    def _numbers(self, values: FloatArray) -> list[str]:
        return [self.book.number(float(value)) for value in values]

    # ----------------------------------------------------------------- one output

    def _is_curve(self, effect: EffectTerms) -> bool:
        """Return whether the smooth part of an effect is a function of the rank of one variable.

        With several outputs its levels are rows of the table.
        """
        if len(effect.variables) != 1 or len(self.intercept) > 1:
            return False
        (m,) = effect.variables
        return isinstance(self.design.bases[m].branch(1)[0], FittedRankPolynomial)

    def _summands(self, effect: EffectTerms) -> list[str]:
        """Return the pieces of the sum that an effect contributes; explain the functions in it."""
        plain = effect.tables.get((), {})
        axes = [key for key in effect.tables if key]
        names = self._names(effect)
        if not axes and not effect.rest and not (plain and self._is_curve(effect)):
            return self._monomials(plain)
        if len(effect.variables) > 1 or effect.rest:
            self._explain(f"f({names})", effect)
            return [f"+ f({names})"]
        # One variable: a smooth part or categories, and steps. Alone, each is all of f(x).
        alone = len(effect.tables) == 1
        pieces = []
        if plain and self._is_curve(effect):
            name = f"{'f' if alone else 'q'}({names})"
            self.blocks += _folded(f"  {name}: {self._rank_curve(effect)}")
            pieces = [f"+ {name}"]
        elif plain:
            pieces = self._monomials(plain)
        for key in axes:
            name = f"{'f' if alone or key[0].kind != 'steps' else 's'}({names})"
            total = np.sum([*effect.tables[key].values()], axis=0)[..., 0]
            self.blocks += self._cells(name, key[0], total)
            pieces.append(f"+ {name}")
        return pieces

    def _monomials(self, sums: dict[Factors, FloatArray]) -> list[str]:
        """Return the signed products of a sum."""
        pieces = []
        for product in _in_order(sums):
            coef = float(sums[product][0])
            number = self.book.number(abs(coef))
            sign = "-" if coef < 0.0 else "+"
            pieces.append(
                f"{sign} {number}*{self._what(product)}" if product else f"{sign} {number}"
            )
        return pieces

    def _what(self, product: Factors) -> str:
        """Return a product as text; empty for the constant."""
        return self.book.product(product) or ("bumps" if product else "")

    def _rank_curve(self, effect: EffectTerms) -> str:
        """Return the values of an effect of one variable at the knots of its ranks."""
        (m,) = effect.variables
        basis, _ = self.design.bases[m].branch(1)
        assert isinstance(basis, FittedRankPolynomial)
        heights = np.zeros(len(basis.knots))
        for product, coefs in effect.tables[()].items():
            values = np.ones(len(basis.knots))
            for factor in without_bumps(product):
                if isinstance(factor, PowerFactor):
                    values = values * basis.argument(basis.points) ** factor.power
                else:
                    values = values * basis.heights[:, factor.level - 1]
            heights += float(coefs[0]) * values
        curve = self.book.curve(m, basis.points, heights)
        return f"{curve}; linear between, constant beyond"

    def _cells(self, name: str, axis: Axis, values: FloatArray) -> list[str]:
        """Return the lines of a function of one variable that is a value per cell."""
        labels, values = named_cells(self.design, axis, values)
        numbers = self._numbers(values)
        order: Sequence[int] = range(len(labels))
        ordered = axis.variable in self.design.table.ordered
        if axis.kind == "category" and not ordered and any(x[:1] in "'\"" for x in labels):
            order = sorted(order, key=lambda i: -values[i])  # names have no order of their own
        items = [(labels[i], numbers[i]) for i in order]
        if axis.kind == "category":
            items.append((OTHER, "0"))
        if axis.kind == "steps":
            ends = [f"up to {label.rpartition(' to ')[2]}" for label in labels[:-1]]
            pieces = zip(numbers, [*ends, "above"], strict=True)
            return _folded(f"  {name}: {', '.join(map(' '.join, pieces))}")
        lines = in_columns(items, f"  {name}: ")
        return lines if len(lines) == 1 else [f"  {name}:", *in_columns(items, "    ")]

    def _explain(self, name: str, effect: EffectTerms) -> None:
        """Explain an effect of several variables, or of one with a curve, in the legend."""
        parts: list[list[str]] = []
        for axes, sums in sorted(effect.tables.items(), key=lambda item: len(item[0])):
            if not axes:
                parts.append(fold("    ", self._monomials(sums), "      "))
            else:
                parts.append(self._table(axes, sums))
        if effect.rest:
            parts.append(self._rest(effect, 0))
        title = f"  {name}" if len(parts) == 1 else f"  {name}, the sum of"
        self.blocks += [title, *parts[0]]
        for part in parts[1:]:
            self.blocks += ["    and", *part]

    def _table(self, axes: tuple[Axis, ...], sums: dict[Factors, FloatArray]) -> list[str]:
        """Return a function of several variables as a table: a row per cell of the first axes.

        The columns are the products of numbers, or the cells of the second axis if there are none.
        """
        products = _in_order(sums)
        values = np.stack([sums[product][..., 0] for product in products], axis=-1)
        labels, values = self._all_cells(axes, values)
        if values.size > _MOST_NUMBERS:
            return [f"    {_too_many(values.size)}"]
        if len(axes) == 2 and not any(map(without_bumps, products)):
            grid = np.sum(values, axis=-1)
            first, second = axes
            if first.kind == "steps" or len(labels[0]) < len(labels[1]):
                first, second, grid, labels = second, first, grid.T, labels[::-1]
            names = [self.book.name(axis.variable) for axis in (first, second)]
            heads, rows = labels[1], list(zip(labels[0], grid, strict=True))
            corner = " \\ ".join(names)
        else:
            self._heads = True
            heads = [self._what(product) or "1" for product in products]
            rows = [
                (", ".join(cell), values[index])
                for index, cell in zip(
                    np.ndindex(values.shape[:-1]), itertools.product(*labels), strict=True
                )
            ]
            corner = ", ".join(self.book.name(axis.variable) for axis in axes)
        lines = [(label, self._numbers(row)) for label, row in rows]
        if any(axis.kind == "category" for axis in axes):
            lines.append((OTHER, ["0"] * len(heads)))
        return table_lines(corner, heads, lines, "    ")

    def _all_cells(
        self, axes: tuple[Axis, ...], values: FloatArray, *, conditions: bool = False
    ) -> tuple[list[list[str]], FloatArray]:
        """Return the labels of the cells of every axis, and the values without equal pieces."""
        labels = []
        for i, axis in enumerate(axes):
            name = self.book.name(axis.variable) if conditions else None
            found, moved = named_cells(self.design, axis, np.moveaxis(values, i, 0), name)
            labels.append(found)
            values = np.moveaxis(moved, 0, i)
        return labels, values

    def _rest(self, effect: EffectTerms, k: int) -> list[str]:
        """Return what is said of terms with several columns: a curve, or only what they are."""
        branches = {
            self.design.bases[m].branch(level)[0]
            for node in effect.rest
            for m, level in node
            if self.design.bases[m].widths[level] > 1
        }
        kinds = "; ".join(sorted({meaning_of(branch) for branch in branches})) or "bumps"
        if len(effect.variables) > 1 or not effect.variables:
            columns = sum(len(block) for block in effect.rest.values())
            return [f"    not written out: {columns} columns ({kinds}); effects(X) has the values"]
        (m,) = effect.variables
        x = np.linspace(*self.design.bases[m].bulk, _CURVE_POINTS)
        levels = self.design.bases[m].transform(x)
        y = sum(levels[node[0][1]] @ block[:, k] for node, block in effect.rest.items())
        text = f"{self.book.curve(m, x, np.asarray(y))}; a curve between ({kinds})"
        return _folded(f"    {text}")

    # ------------------------------------------------------------- several outputs

    def _rows(self, effect: EffectTerms, outputs: Sequence[object]) -> list[tuple[str, list[str]]]:
        """Return the rows of an effect: its conditions and products, and a number per output."""
        rows = []
        for axes, sums in effect.tables.items():
            products = _in_order(sums)
            values = np.stack([sums[product] for product in products], axis=-2)
            labels, values = self._all_cells(axes, values, conditions=True)
            if values.size > _MOST_NUMBERS:
                names = self._names(effect)
                rows.append((f"t[k]({names})", ["1"] * len(outputs)))
                self.blocks += [f"  t[k]({names})", f"    {_too_many(values.size)}"]
                continue
            for index, cell in zip(
                np.ndindex(values.shape[:-2]), itertools.product(*labels), strict=True
            ):
                for product, numbers in zip(products, values[index], strict=True):
                    what = self._what(product)
                    label = ", ".join(cell) + (": " if cell and what else "") + what
                    rows.append((label or "1", self._numbers(numbers)))
        if effect.rest:
            names = self._names(effect)
            rows.append((f"h[k]({names})", ["1"] * len(outputs)))
            # The curve of one variable is told for every output, more variables are only named.
            shown = [quoted(label) for label in outputs] if len(effect.variables) == 1 else ["k"]
            for k, suffix in enumerate(shown):
                self.blocks += [f"  h[{suffix}]({names})", *self._rest(effect, k)]
        return rows


def _too_many(count: int) -> str:
    return f"a table of {count:,} numbers, not written out; effects(X) has the values"


def _folded(line: str) -> list[str]:
    """Return a line of the legend, folded after commas if it is long."""
    return fold("", line.replace(", ", ",\n").split("\n"), "      ")


def _in_order(sums: dict[Factors, FloatArray]) -> list[Factors]:
    """Return the products in reading order: those of all variables first, the constant last.

    A constant that is only rounding error beside the other coefficients is left out.
    """
    sizes = {product: float(np.max(np.abs(coefs))) for product, coefs in sums.items()}
    least = _ROUNDING * max(sizes.values())
    kept = [product for product in sums if product or sizes[product] > least or len(sums) == 1]
    return sorted(
        kept, key=lambda p: (-len(p), [f.variable for f in p], [factor.key for factor in p])
    )
