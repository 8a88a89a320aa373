"""The reasons for one prediction: what each effect contributes, with the values of the row.

An `Explanation` is data: it becomes a data frame, a dict for JSON, or text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.columns.kinds import UNSEEN
from hikernel.columns.reading import RawTable
from hikernel.engines.protocol import FloatArray
from hikernel.explain.cells import quoted, shown_names
from hikernel.explain.effects import effect_groups, effect_values
from hikernel.explain.text_layout import side_by_side, table_lines
from hikernel.graphs import Design
from hikernel.selection import TermModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanation", "Reason", "reasons", "values_of_row"]

_SHOWN = 15
"""Largest number of effects in the text of an explanation."""


@dataclass(frozen=True)
class Reason:
    """One effect at one row.

    Attributes
    ----------
    effect : str
        Name of the effect, or of the node of a graph.
    values : str
        The values of its variables in the row, such as "carat = 1.2, cut = 'Good'"; empty for a
        graph, which has no columns.
    contributions : tuple of float
        What it adds to f, one number per explained class (a single one if there is one f).
    """

    effect: str
    values: str
    contributions: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Explanation:
    """The reasons for one prediction: f(x) = intercept + the contributions of the effects.

    Made by ``explain`` of a fitted estimator. ``print`` shows it in words and numbers, ``frame``
    returns the reasons as a data frame, and ``to_dict`` everything as plain data for JSON.

    Attributes
    ----------
    prediction : object
        The predicted number or label.
    probabilities : dict or None
        The probability of each class, by label; None where there are none.
    classes : tuple or None
        The classes that are explained, if the model has an f for each of its classes; else None.
    f : tuple of float
        f(x), one number per explained class.
    intercept : tuple of float
        What f is without any effect.
    reasons : tuple of Reason
        The effects, the largest contribution first.
    link : str
        How the prediction follows from f; empty if it is f.
    target : str or None
        The name of what is predicted, if it is known.
    is_label : bool
        Whether the prediction is the label of a class, and not a number.
    """

    prediction: Any
    probabilities: dict[Any, float] | None
    classes: tuple[Any, ...] | None
    f: tuple[float, ...]
    intercept: tuple[float, ...]
    reasons: tuple[Reason, ...]
    link: str = ""
    target: str | None = None
    is_label: bool = False

    def frame(self) -> pd.DataFrame:
        """Return one row per reason: effect, values, contribution, after one for the intercept.

        With several classes there is a column of contributions for each. They sum to f.
        """
        import pandas as pd

        heads = ["contribution"] if self.classes is None else [str(c) for c in self.classes]
        numbers = np.array([self.intercept, *(reason.contributions for reason in self.reasons)])
        frame = pd.DataFrame(numbers, columns=heads)
        frame.insert(0, "effect", ["intercept", *(reason.effect for reason in self.reasons)])
        frame.insert(1, "values", ["", *(reason.values for reason in self.reasons)])
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, which ``json.dumps`` takes; labels are text."""

        def by_class(numbers: Sequence[float]) -> Any:
            if self.classes is None:
                return numbers[0]
            return {str(c): number for c, number in zip(self.classes, numbers, strict=True)}

        plain = isinstance(self.prediction, (str, int, float))
        chances = self.probabilities
        return {
            "target": self.target,
            "prediction": self.prediction if plain else str(self.prediction),
            "probabilities": None if chances is None else {str(c): p for c, p in chances.items()},
            "f": by_class(self.f),
            "intercept": by_class(self.intercept),
            "effects": [
                {
                    "effect": reason.effect,
                    "values": reason.values,
                    "contribution": by_class(reason.contributions),
                }
                for reason in self.reasons
            ],
            "link": self.link,
        }

    def __repr__(self) -> str:
        shown, rest = self.reasons[:_SHOWN], self.reasons[_SHOWN:]
        rows = [("intercept", self.intercept, "")]
        rows += [(r.effect, r.contributions, r.values) for r in shown]
        if rest:
            total = tuple(sum(part) for part in zip(*(r.contributions for r in rest), strict=True))
            rows.append((f"{len(rest)} more effects", total, ""))
        rows.append(("f", self.f, ""))
        decimals = _decimals(rows)
        lines = [self._title(decimals), ""]
        if self.classes is None or len(self.classes) == 1:
            lines += _bill([(name, part[0], values) for name, part, values in rows], decimals)
        else:
            last = len(rows) - 1
            table = [
                (name, [_signed(x, decimals, first=i in (0, last)) for x in numbers])
                for i, (name, numbers, _) in enumerate(rows)
            ]
            heads = [quoted(c) for c in self.classes]
            numbered = table_lines("", heads, table, "  ", width=10**6)
            notes = ["", *(values for _, _, values in rows)]
            lines += side_by_side(list(zip(numbered, notes, strict=True)))
        return "\n".join([*lines, *(["", self.link] if self.link else [])])

    def _title(self, decimals: int) -> str:
        """Return the prediction, and what is added up below."""
        what = f"Prediction{f' of {self.target}' if self.target else ''}"
        label = quoted(self.prediction)
        value = label if self.is_label else f"{self.prediction:.{decimals}f}"
        chances = ""
        if self.probabilities is not None:
            chance = self.probabilities[self.prediction]
            chances = f", probability {chance:.3f}" if chance < 0.9995 else ", probability > 0.999"
        name = "f" if self.classes is None else "f of each class"
        if self.classes is not None and len(self.classes) == 1:
            name = f"f[{quoted(self.classes[0])}]"
        count = len(self.reasons)
        effects = f"{count} effect{'' if count == 1 else 's'}, the largest first"
        return f"{what}: {value}{chances}\n{name} is the sum of the intercept and {effects}:"


def reasons(
    model: TermModel, design: Design, rows: Any, values: Sequence[str] | None, outputs: list[int]
) -> tuple[tuple[float, ...], tuple[Reason, ...]]:
    """Return the intercept and the reasons for one row, the largest contribution first.

    Parameters
    ----------
    model, design : TermModel, Design
        The model.
    rows : Any
        One row, as for ``model.predict``.
    values : sequence of str or None
        The values of the columns in this row as text; None if there are no columns.
    outputs : list of int
        Positions of the outputs to explain.
    """
    intercept, effects = effect_values(model, design, rows)
    found = effects[0].reshape(effects.shape[1], max(1, model.intercept.size))[:, outputs]
    parts = [
        Reason(
            group.name,
            "" if values is None else ", ".join(values[m] for m, _ in group.node),
            tuple(map(float, contributions)),
        )
        for group, contributions in zip(effect_groups(model, design), found, strict=True)
    ]
    parts.sort(key=lambda reason: -max(map(abs, reason.contributions)))
    start = np.ravel(intercept[0])[outputs]
    return tuple(map(float, start)), tuple(parts)


def values_of_row(
    design: ColumnDesign, read: Callable[[], RawTable], matrix: FloatArray
) -> list[str]:
    """Return the value of every column of the matrix in its only row, such as "cut = 'Good'".

    ``read`` returns the row as the user gave it, which tells categories that were not seen in
    ``fit``.
    """
    table = design.table
    names, inputs = shown_names(design.names), shown_names(table.input_names)
    out = []
    for m, (name, value) in enumerate(zip(names, matrix[0], strict=True)):
        known = table.categories[m]
        if m >= table.n_values:
            out.append(f"{inputs[table.input_of(m)]} is {'' if value else 'not '}missing")
        elif table.part(m) is not None:
            out.append(_date_of_row(design, read(), m, inputs[table.input_of(m)], float(value)))
        elif math.isnan(value) and not (m in table.ordered and _is_given(read(), m)):
            out.append(f"{name} is missing")
        elif known is None:
            boolean = table.kinds[m] == "boolean"
            out.append(f"{name} = {bool(value) if boolean else _plain(float(value))}")
        elif value == UNSEEN or math.isnan(value):  # an ordered one has no place, as if missing
            out.append(f"{name} = {quoted(read().columns[m].values[0])} (not seen in fit)")
        else:
            out.append(f"{name} = {quoted(known[int(value)])}")
    return out


def _date_of_row(design: ColumnDesign, raw: RawTable, m: int, name: str, value: float) -> str:
    """Return a part of a date of the only row with the date, "sold = 2011-03-04 (year 2011)"."""
    from hikernel.columns.dates import date_text, days_of

    found = design.table.part(m)
    assert found is not None
    date, part = found
    days = float(days_of(date, raw.columns[date.column])[0])
    if math.isnan(days):
        return f"{name} is missing"
    if part == "length":
        return f"{name} = {_plain(days)} days"
    known = design.table.categories[m]
    if part == "days":
        words = f"{_plain(days - date.start)} days since {date_text(date.start)}"
    elif known is None:
        words = f"{part} {_plain(value)}"
    elif value == UNSEEN:
        words = f"{part} not seen in fit"
    else:
        words = str(known[int(value)]) if part == "weekday" else f"{part} {known[int(value)]}"
    return f"{name} = {date_text(days)} ({words})"


def _is_given(raw: RawTable, m: int) -> bool:
    """Return whether the only row has a value in a column."""
    import pandas as pd

    return not bool(pd.isna(raw.columns[m].values[0]))


def _plain(value: float) -> str:
    """Return a number as one would write it: whole ones in full, others to six digits.

    >>> _plain(20150003.0), _plain(0.123456789), _plain(-2.5)
    ('20150003', '0.123457', '-2.5')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _decimals(rows: Sequence[tuple[str, Sequence[float], str]]) -> int:
    """Return how many decimals show four digits of the largest number, three of an effect."""
    every = [abs(number) for _, numbers, _ in rows for number in numbers]
    effects = [abs(number) for _, numbers, _ in rows[1:-1] for number in numbers]
    wanted = [
        digits - 1 - math.floor(math.log10(max(numbers)))
        for digits, numbers in ((4, every), (3, effects))
        if max(numbers, default=0.0) > 0.0
    ]
    return min(12, max([0, *wanted]))


def _signed(number: float, decimals: int, *, first: bool) -> str:
    """Return a number for a sum: with its sign unless it is the first summand or the total.

    >>> _signed(-7e-17, 4, first=True), _signed(-0.3, 2, first=False)
    ('0.0000', '-0.30')
    """
    rounded = round(number, decimals) or 0.0  # rounding errors are no negative zero
    return f"{rounded:{'' if first else '+'}.{decimals}f}"


def _bill(rows: Sequence[tuple[str, float, str]], decimals: int) -> list[str]:
    """Return lines that add up: number, name and reason of every summand, then the total."""
    numbers = [
        _signed(number, decimals, first=i in (0, len(rows) - 1))
        for i, (_, number, _) in enumerate(rows)
    ]
    right = max(map(len, numbers))
    left = max(len(name) for name, _, _ in rows)
    lines = []
    for number, (name, value, values) in zip(numbers, rows, strict=True):
        verb = "raises" if value > 0.0 else "lowers" if value < 0.0 else "does not change"
        reason = f"{verb} f: {values}" if values else ""
        lines.append(f"  {number:>{right}}   {name:<{left}}   {reason}".rstrip())
    return [*lines[:-1], f"  {'-' * right}", lines[-1]]
