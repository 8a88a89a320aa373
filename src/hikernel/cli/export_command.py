"""``hikernel export``: a model as Python, SQL or JSON, for programs that know no hikernel."""

from __future__ import annotations

from typing import Any

import click

from hikernel.cli.console import Console, quiet_option, sentences_of_library
from hikernel.cli.destination import check_destination, force_option, write_new
from hikernel.cli.model_file import open_model

__all__ = ["export"]

_EXAMPLES = """\b
hikernel export model.hik --out model.py
hikernel export model.hik --out model.sql --table houses --key id"""


@click.command("export", epilog=_EXAMPLES)
@click.argument("model")
@click.option(
    "--out",
    metavar="FILE",
    help="The file, ending in .py, .sql or .json; standard output by default.",
)
@click.option(
    "--format",
    type=click.Choice(["python", "sql", "json"]),
    help="The format, where no name of a file tells it.",
)
@click.option("--table", metavar="NAME", help="SQL: the table to read; 'data' by default.")
@click.option(
    "--key",
    "keys",
    metavar="COLUMN",
    multiple=True,
    help="SQL: a column of the table that the result has, too.",
)
@click.option(
    "--dialect",
    type=click.Choice(["sqlite", "duckdb", "postgresql", "ansi"]),
    help="SQL: the engine; sqlite by default.",
)
@force_option
@quiet_option
def export(
    model: str,
    out: str | None,
    format: str | None,
    table: str | None,
    keys: tuple[str, ...],
    dialect: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Write the MODEL of a file as Python that needs NumPy alone, as SQL, or as JSON.

    It predicts what the model predicts, up to rounding, also for missing values and categories
    that were not there before.
    """
    from hikernel.export.exported_file import check_format

    given = {"table": table, "keys": keys, "dialect": dialect}
    options: dict[str, Any] = {name: value for name, value in given.items() if value}
    with sentences_of_library():
        name = check_format(out, format)
        target = None if out is None else check_destination(out, force=force, inputs=[model])
        fitted = open_model(model)
        if target is None:
            click.echo(fitted.export(format=name, **options), nl=False)
            return
        write_new(target, lambda path: fitted.export(path, format=name, **options), force=force)
    Console(quiet).note(f"Model: {out}")
