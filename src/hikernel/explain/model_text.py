"""A fitted model in about ten lines: what it is, how good, its effects, what is proven.

`ModelText` holds the words; it prints as plain text and, for notebooks, as HTML in which
everything that comes from data is escaped.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from hikernel.explain.cells import quoted
from hikernel.explain.text_layout import LINE, percent
from hikernel.search import Certificate
from hikernel.search.certificate import direction_words, readable_count

__all__ = ["ModelText", "certificate_words", "title_words"]

_EFFECTS = 5
"""Number of effects that are shown, if there are more than one beyond it."""
_NAME = 60
"""Length of the name of an effect, beyond which its middle is left out."""
_CLASSES = 4
"""Largest number of classes that are named."""
_OPTIMAL = 1e-6
"""Relative gap of a refit under constraints up to which it is called optimal without a number."""


@dataclass(frozen=True)
class ModelText:
    """What is said of a fitted model.

    Attributes
    ----------
    estimator : str
        Name of the estimator.
    title : str
        Task, target, rows and columns.
    score : str
        How good the model is.
    effects : sequence of (str, float, str)
        Name, share and shape of every effect, the largest first.
    n_terms : int
        Number of terms.
    certificate : str
        What is proven.
    """

    estimator: str
    title: str
    score: str
    effects: Sequence[tuple[str, float, str]]
    n_terms: int
    certificate: str

    def text(self) -> str:
        """Return the words as plain text."""
        rows = self._rows()
        left = max((len(name) for name, _, _ in rows), default=0)
        lines = [f"  {name:<{left}}  {share:>7}  {shape}".rstrip() for name, share, shape in rows]
        return "\n".join(
            [
                *_wrapped(f"{self.estimator}: {self.title}"),
                *_wrapped(f"Score: {self.score}"),
                f"Effects: {self._count()}",
                *lines,
                *_wrapped(f"Certificate: {self.certificate}"),
            ]
        )

    def html(self) -> str:
        """Return the words as HTML."""
        rows = "".join(
            f'<tr><td style="text-align:left">{_escaped(name)}</td>'
            f'<td style="text-align:right">{_escaped(share)}</td>'
            f'<td style="text-align:left">{_escaped(shape)}</td></tr>'
            for name, share, shape in self._rows()
        )
        return (
            '<div class="hikernel-model">'
            f"<div><b>{_escaped(self.estimator)}</b>: {_escaped(self.title)}</div>"
            f"<div><b>Score</b>: {_escaped(self.score)}</div>"
            f"<div><b>Effects</b>: {_escaped(self._count())}</div>"
            f"<table>{rows}</table>"
            f"<div><b>Certificate</b>: {_escaped(self.certificate)}</div>"
            "</div>"
        )

    def _count(self) -> str:
        if not self.effects:
            return "none, the model is constant"
        terms = _counted(self.n_terms, "term")
        return (
            f"{len(self.effects)}, made of {terms} (share of the variances of all terms, shape "
            "where most rows lie)"
        )

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return name, share and shape of the largest effects, and how many more there are."""
        all_of_them = len(self.effects) <= _EFFECTS + 1
        shown = self.effects if all_of_them else self.effects[:_EFFECTS]
        rows = [(_shortened(name), percent(share), shape) for name, share, shape in shown]
        rest = self.effects[len(shown) :]
        if rest:
            rows.append((f"and {len(rest)} more", percent(sum(share for _, share, _ in rest)), ""))
        return rows


def title_words(
    task: str,
    target: str | None,
    classes: Sequence[object] | None,
    n_rows: int,
    n_columns: int | None,
    n_vertices: int,
) -> str:
    """Return task, target and size of the data in a few words.

    Parameters
    ----------
    task : str
        "regression" or "classification".
    target : str or None
        Name of y, if it is known.
    classes : sequence or None
        The classes.
    n_rows : int
        Number of rows; 0 if a file does not tell.
    n_columns : int or None
        Number of columns; None for a model on a graph.
    n_vertices : int
        Number of kernels.
    """
    what = f"{task} of {_printable(target)}" if target else task
    if classes is not None:
        named = ", ".join(quoted(label) for label in classes)
        what += f" ({named if len(classes) <= _CLASSES else _counted(len(classes), 'class')})"
    rows = f"{n_rows:,} rows" if n_rows else ""
    columns = "" if n_columns is None else _counted(n_columns, "column")
    data = " x ".join(part for part in (rows, columns) if part)
    if n_columns is None:
        graph = f"a graph of {readable_count(n_vertices)} kernels"
        data = f"{data}, {graph}" if data else graph
    return f"{what}, {data}"


def certificate_words(certificate: Certificate) -> str:
    """Return what is proven, in one or two short sentences."""
    count = certificate.graph_size
    gap = f"{100.0 * certificate.relative_gap:.2g} %"
    among = f"among {count} {'allowed ' if certificate.restricted else ''}kernels"
    if certificate.kind == "none":
        words = f"nothing is proven, as other choices {among} were not bounded."
    elif certificate.relative_gap > 0.5:
        words = f"next to nothing is proven; other choices {among} may be better."
    else:
        how = "it is proven that" if certificate.certified else "it is only proven that"
        if certificate.kind == "statistical":
            how = f"with {100.0 * certificate.confidence:.3g} % confidence"
        asked = "" if certificate.certified else f" (asked for: {100.0 * certificate.tol:.2g} %)"
        words = f"{how} no other choice {among} has an objective more than {gap} lower{asked}."
    if certificate.refit is None:
        return words
    if certificate.monotone and certificate.refit_gap is not None:
        how = f"f {direction_words(certificate.monotone)} in the refit ({certificate.refit})"
        what = "that constraint" if len(certificate.monotone) == 1 else "these constraints"
        if not math.isfinite(certificate.refit_gap):
            return f"{words} {how} of the terms found, which has no proof."
        to = ""
        if certificate.refit_gap > _OPTIMAL:
            to = f" to a relative gap of {certificate.refit_gap:.1g}"
        return f"{words} {how} of the terms found, which is optimal under {what}{to}."
    return f"{words} The refit ({certificate.refit}) of the terms found has no proof."


def _counted(n: int, what: str) -> str:
    plural = {"class": "classes"}.get(what, f"{what}s")
    return f"{n:,} {what if n == 1 else plural}"


def _printable(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _shortened(name: str) -> str:
    """Return a name of limited length, without its middle if it is too long."""
    half = (_NAME - 3) // 2
    return name if len(name) <= _NAME else f"{name[:half]}...{name[-half:]}"


def _wrapped(line: str) -> list[str]:
    whole = line.replace(" %", "\u00a0%")  # a number stays beside its unit
    lines = textwrap.wrap(whole, LINE, subsequent_indent="  ", break_on_hyphens=False)
    return [part.replace("\u00a0%", " %") for part in lines]


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
