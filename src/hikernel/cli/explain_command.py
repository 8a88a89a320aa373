"""``hikernel explain``: a model in words and as a formula, or the reasons for predictions."""

from __future__ import annotations

from typing import Any

import click

from hikernel.cli.console import (
    BadInput,
    Console,
    json_option,
    print_json,
    quiet_option,
    sentences_of_library,
)
from hikernel.cli.model_file import open_model, read_rows, rows_of_model
from hikernel.cli.table_file import TableOptions, table_options

__all__ = ["explain"]


@click.command(
    "explain", epilog="\b\nhikernel explain model.hik\nhikernel explain model.hik new.csv --row 3"
)
@click.argument("model")
@click.argument("data", required=False)
@click.option(
    "--row",
    "numbers",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Row of DATA to explain; the first below the header is 1, the default.",
)
@click.option(
    "--max-terms", type=click.IntRange(1), metavar="N", help="Most effects of the formula."
)
@table_options
@json_option
@quiet_option
def explain(
    model: str,
    data: str | None,
    numbers: tuple[int, ...],
    max_terms: int | None,
    reading: TableOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what the MODEL of a file does, or why it predicts what it predicts.

    Without DATA: effects, score, certificate and the formula. With DATA: the reasons for the
    prediction of one row, or of several.
    """
    if data is None and (numbers or reading.given):
        option = "--row" if numbers else reading.given[0]
        raise BadInput(f"{option} needs the table of that row: hikernel explain MODEL DATA.")
    if data is not None and max_terms is not None:
        raise BadInput("--max-terms is about the formula, which is shown without DATA only.")
    console = Console(quiet)
    fitted = open_model(model)
    if data is None:
        formula = fitted.formula(**({} if max_terms is None else {"max_terms": max_terms}))
        if as_json:
            print_json({"model": model, "summary": fitted.summary(), "formula": formula})
        else:
            click.echo(f"{fitted}\n\n{formula}")
        return
    frame = read_rows(data, fitted, reading, console)
    numbers = numbers or (1,)
    if max(numbers) > len(frame):
        raise BadInput(f"There is no row {max(numbers)}; '{data}' has {len(frame)} rows.")
    rows = rows_of_model(frame, fitted, console)
    reasons = [_reasons(fitted, rows, number, console) for number in numbers]
    if as_json:
        found = [
            {"row": number} | why.to_dict() for number, why in zip(numbers, reasons, strict=True)
        ]
        print_json({"model": model, "data": data, "rows": found})
        return
    texts = [f"Row {number} of {data}\n{why}" for number, why in zip(numbers, reasons, strict=True)]
    click.echo("\n\n".join(texts))


def _reasons(model: Any, rows: Any, number: int, console: Console) -> Any:
    """Return the reasons for the prediction of one row."""
    one = rows[number - 1 : number]
    with console.library_warnings(), sentences_of_library():
        return model.explain(one)
