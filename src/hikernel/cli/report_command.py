"""``hikernel report`` and ``hikernel demo``: the commands that end in a page for a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from hikernel.cli.console import BadInput, Console, quiet_option
from hikernel.cli.destination import check_destination, force_option, write_new
from hikernel.cli.model_file import open_model

__all__ = ["demo", "report", "require_report"]

_NEEDED = "bokeh: pip install 'hikernel[report]'"
_DEMO = "hikernel-demo.html"
"""The demo's own file, which it overwrites."""


def require_report() -> None:
    """Raise BadInput if reports cannot be written."""
    if not _can_report():
        raise BadInput(f"A report needs {_NEEDED}.")


def _can_report() -> bool:
    return find_spec("bokeh") is not None


_EXAMPLE = "\b\nhikernel report model.hik --out report.html"


@click.command("report", epilog=_EXAMPLE)
@click.argument("model")
@click.option(
    "--out", metavar="FILE", help="The page; the name of the model with .html by default."
)
@force_option
@quiet_option
def report(model: str, out: str | None, force: bool, quiet: bool) -> None:
    """Write a page on the MODEL of a file, to open in a browser.

    The page is one file that needs no network.
    """
    name = str(Path(model).with_suffix(".html")) if out is None else out
    target = check_destination(name, force=force, inputs=[model])
    require_report()
    write_new(target, open_model(model).report, force=force)
    Console(quiet).note(f"Report: {name}")


@click.command("demo")
@click.option("--report", "out", metavar="FILE", help=f"The page to write; {_DEMO} by default.")
@force_option
def demo(out: str | None, force: bool) -> None:
    """Fit a model on generated data with a known truth, and look at it.

    Prints the terms found, the errors beside peers and the certificate, and writes a page.
    """
    if out is not None:
        require_report()
    target = None
    if _can_report():
        target = check_destination(out or _DEMO, force=force or out is None)
    from hikernel.demo import run_demo

    model: Any = run_demo()
    if target is None:
        click.echo(f"No report was written, which needs {_NEEDED}.")
        return
    write_new(target, model.report, force=True)
    click.echo(f"Report: {out or _DEMO} (open it in a browser)")
