"""What the commands say on standard error, and what they print: notes, warnings, errors, JSON."""

from __future__ import annotations

import dis
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

__all__ = [
    "DEBUG",
    "BadInput",
    "Console",
    "WorkFailed",
    "is_debugging",
    "json_option",
    "listed",
    "one_line",
    "print_json",
    "quiet_option",
    "sentences_of_library",
]

F = TypeVar("F", bound=Any)

_RAISE = dis.opmap["RAISE_VARARGS"]
_CHECKS = (
    "hikernel.checks",
    "hikernel.columns",
    "hikernel.estimators",
    "hikernel.export",
    "hikernel.losses",
    "hikernel.bases",
    "hikernel.selection.folds",
    "hikernel.selection.scores",
    "hikernel.selection.training",
    "sklearn.utils",
    "sklearn.model_selection",
)
"""Modules that check what the user gave, with their submodules."""


class BadInput(click.ClickException):
    """What the user gave cannot be used; the message says what to do."""

    exit_code = 2


class WorkFailed(click.ClickException):
    """The input was right, and the work failed nevertheless."""

    exit_code = 1


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["debug"] = True


def is_debugging(ctx: click.Context) -> bool:
    """Return whether tracebacks are asked for."""
    return bool(ctx.meta.get("debug", False))


DEBUG = click.Option(
    ["--debug"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_debug,
    help="Show the traceback of an error.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Nothing on standard error but errors."
)


@dataclass
class Console:
    """Says notes and warnings on standard error, and keeps them for JSON documents.

    Attributes
    ----------
    quiet : bool
        Whether to keep them only.
    notes, warnings : list of str
        What was said.
    """

    quiet: bool = False
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say what is done, one line."""
        self.notes.append(one_line(text))
        self._say(self.notes[-1])

    def warn(self, text: str) -> None:
        """Say what may be wrong, one line."""
        self.warnings.append(one_line(text))
        self._say(f"Warning: {self.warnings[-1]}")

    def _say(self, line: str) -> None:
        if not self.quiet:
            click.echo(line, err=True)

    @contextmanager
    def library_warnings(self) -> Iterator[None]:
        """Say what the library warns of within the context, when it ends.

        Warnings for programmers (of deprecations, of NumPy's rounding) are left out.
        """
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
        finally:
            found = [w for w in caught if issubclass(w.category, UserWarning)]
            for text in dict.fromkeys(str(w.message) for w in found):
                self.warn(text)


@contextmanager
def sentences_of_library() -> Iterator[None]:
    """Take what the library says about its arguments for bad input of the user.

    Only errors that a check raises on purpose are taken so; others are failures, and go on.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        if _is_of_check(error):
            raise BadInput(str(error)) from error
        raise


def _is_of_check(error: Exception) -> bool:
    """Return whether a statement ``raise`` in a module that checks arguments raised an error."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    module = str(last.tb_frame.f_globals.get("__name__", ""))
    raised = last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE
    return raised and any(f"{module}.".startswith(f"{name}.") for name in _CHECKS)


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return names in quotes with commas between, no more than ``most`` of them."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", and {len(names) - most} more" if len(names) > most else "")


def print_json(document: dict[str, Any]) -> None:
    """Print a JSON document in ASCII, which every terminal and file can hold."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))
