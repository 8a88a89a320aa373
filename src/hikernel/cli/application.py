"""The group of commands, and what becomes of errors: one sentence and an exit status.

0: done. 1: the work failed. 2: wrong usage or bad input. 130: interrupted. A reader that closes the
pipe early (``| head``) has what it wants, which is 0.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from hikernel._version import __version__
from hikernel.cli.console import DEBUG, is_debugging, one_line

__all__ = ["application", "main"]

PROGRAM = "hikernel"


def _fit() -> click.Command:
    from hikernel.cli.fit_command import fit

    return fit


def _predict() -> click.Command:
    from hikernel.cli.predict_command import predict

    return predict


def _explain() -> click.Command:
    from hikernel.cli.explain_command import explain

    return explain


def _report() -> click.Command:
    from hikernel.cli.report_command import report

    return report


def _export() -> click.Command:
    from hikernel.cli.export_command import export

    return export


def _reproduce() -> click.Command:
    from hikernel.experiments.command import reproduce

    return reproduce


def _demo() -> click.Command:
    from hikernel.cli.report_command import demo

    return demo


COMMANDS: dict[str, tuple[Callable[[], click.Command], str]] = {
    "fit": (_fit, "Fit a model to a table and say what it found."),
    "predict": (_predict, "Predict the rows of a table."),
    "explain": (_explain, "Say what a model does, or why it predicts what it predicts."),
    "report": (_report, "Write a page on a model, to open in a browser."),
    "export": (_export, "Write a model as Python, SQL or JSON."),
    "reproduce": (_reproduce, "Compute the tables and the figure of the paper again."),
    "demo": (_demo, "Fit a model on generated data with a known truth."),
}
"""What loads each command, and its line in the help: only the one that runs is loaded."""


class _Application(click.Group):
    """A group that loads its commands late, and turns errors into a line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = COMMANDS[cmd_name][0]()
        if DEBUG not in command.params:  # it may stand before or after the name of the command
            command.params.append(DEBUG)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_pipe()
            return 0
        except click.exceptions.Exit:
            raise
        except (Exception, KeyboardInterrupt, click.Abort) as error:
            name = f"{ctx.info_name} {ctx.invoked_subcommand or ''}".strip()
            return _tell(error, name, debug=is_debugging(ctx))
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; return its exit status, or exit with it in standalone mode."""
        try:
            code = super().main(args, PROGRAM, complete_var, standalone_mode=False, **extra)
        except (click.ClickException, click.Abort) as error:  # before a command was found
            code = _tell(error, PROGRAM, debug=False)
        if standalone_mode:
            sys.exit(code or 0)
        return code or 0


def _leave_pipe() -> None:
    """Let nothing be written to a pipe that nobody reads, also at the exit of the interpreter."""
    with suppress(OSError, ValueError):  # standard output may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: BaseException, command: str, *, debug: bool) -> int:
    """Write an error as one line, after its traceback if asked for; return the exit status."""
    if debug:
        traceback.print_exception(error)
    code, sentence = _explained(error)
    click.echo(f"{command}: {one_line(sentence)}", err=True)
    return code


def _explained(error: BaseException) -> tuple[int, str]:
    """Return the exit status and the sentence of an error."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return 130, "Stopped."
    if isinstance(error, click.UsageError):
        path = PROGRAM if error.ctx is None else error.ctx.command_path
        return 2, f"{error.format_message()} ({path} --help tells more.)"
    if isinstance(error, click.ClickException):
        return error.exit_code, error.format_message()
    if isinstance(error, MemoryError):
        return 1, str(error) or "There is not enough memory."
    if isinstance(error, OSError):
        return 1, f"{error.strerror or error}{f': {error.filename!r}' if error.filename else ''}."
    from hikernel.errors import UsageError  # imported late: it brings scikit-learn

    if isinstance(error, (UsageError, ImportError)):
        return 2, str(error)
    what = f"{type(error).__name__}: {error}"
    return 1, f"Unexpected {what} (--debug shows where; please report it.)"


@click.group(
    cls=_Application,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
def application() -> None:
    """Sparse, readable, provably optimal nonlinear models.

    hikernel COMMAND --help tells more about a command.
    """


application.params.append(DEBUG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names have letters of all alphabets
    code = application.main(args=arguments, standalone_mode=False)
    return int(code)
