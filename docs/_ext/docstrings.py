"""Docstrings as pages.

Docstrings here are plain text for a terminal: ``|x|`` is a magnitude, ``alpha_`` an attribute, and
a formula is an indented block. For reStructuredText a bar starts a substitution, a trailing
underscore a link, and an indented block is a quotation. The rest means the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_LITERAL = re.compile(r"(``.*?``|:[\w:]+:`[^`]*`|`[^`]*`)")
_ATTRIBUTE = re.compile(r"(?<![\w*`\\.])([A-Za-z]\w*_)(?![\w`*{(])")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def with_literal_formulas(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with a directive above an indented block that follows a blank line."""
    last, blank = "", True
    for line in lines:
        if line.strip():
            if blank and last and _indent(line) > 0 == _indent(last) and not last.endswith("::"):
                yield from (".. code-block:: text", "")
            last = line
        blank = not line.strip()
        yield line


def _escaped(text: str) -> str:
    parts = _LITERAL.split(text)
    for i in range(0, len(parts), 2):
        parts[i] = _ATTRIBUTE.sub(r"``\1``", parts[i].replace("|", r"\|"))
    return "".join(parts)


def escaped(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with bars and trailing underscores escaped outside of literal text."""
    literal_above: int | None = None
    example = False
    for line in lines:
        if not line.strip():
            example = False
        elif literal_above is not None and _indent(line) <= literal_above:
            literal_above = None
        example = example or line.lstrip().startswith(">>>")
        if example or literal_above is not None or line.lstrip().startswith(".. "):
            yield line
            if literal_above is None and line.lstrip().startswith(".. code-block::"):
                literal_above = _indent(line)
        else:
            yield _escaped(line)
            if line.rstrip().endswith("::"):
                literal_above = _indent(line)


def before_napoleon(*event: Any) -> None:
    """Mark formulas, while sections still look as they do in the source."""
    lines: list[str] = event[-1]
    lines[:] = with_literal_formulas(lines)


def after_napoleon(*event: Any) -> None:
    """Escape what reStructuredText would read otherwise."""
    lines: list[str] = event[-1]
    lines[:] = escaped(lines)


def skip(_: Any, kind: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives to every estimator and documents itself."""
    home = getattr(thing, "__module__", None) or ""
    return True if home.startswith("sklearn.") and callable(thing) else None


def setup(app: Any) -> dict[str, Any]:
    """Run around napoleon, which turns sections into lists at priority 500."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
