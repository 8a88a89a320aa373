"""Tables from files: CSV and TSV, compressed or not, Parquet and Feather.

The ending of a name tells what it is; "-" is CSV from standard input. The delimiter of a CSV file
is found from its first lines.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import stat
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from hikernel.cli.console import BadInput, Console, listed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableOptions", "read_table_file", "table_options"]

F = TypeVar("F", bound=Callable[..., Any])

_TEXT = {".csv": None, ".txt": None, ".data": None, ".tsv": "\t", ".tab": "\t"}
"""Endings of text files, with their delimiter if the ending tells."""
_BINARY = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
_COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_DELIMITERS = (",", ";", "\t", "|")
_HEAD = 2**20
"""Number of bytes in which the delimiter is looked for."""
_ROWS = 50
_ALIKE = 0.9
"""Number of first rows that are looked at, and share of them that have as many fields as the header
with the right delimiter."""
_RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


@dataclass(frozen=True)
class TableOptions:
    """How a text file is read; None or empty: as it looks.

    Attributes
    ----------
    delimiter : str or None
        Between fields.
    decimal : str or None
        The decimal mark.
    encoding : str or None
        Of the characters, UTF-8 by default.
    missing : tuple of str
        Further texts that stand for missing values.
    keep_na : bool
        Whether words such as NA and None are text; empty fields are missing always.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    keep_na: bool = False

    @property
    def given(self) -> list[str]:
        """The options that were given, as the user writes them."""
        return [f"--{name.replace('_', '-')}" for name, value in vars(self).items() if value]


def table_options(command: F) -> F:
    """Add the options of text files to a command, which gets them as ``reading``."""

    @click.option(
        "--delimiter", metavar="CHAR", help='Of a CSV file, such as ";" or tab; found by default.'
    )
    @click.option("--decimal", metavar="CHAR", help='Decimal mark of a CSV file, such as ",".')
    @click.option("--encoding", metavar="NAME", help="Of a CSV file; UTF-8 by default.")
    @click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="A text that marks missing values, such as ?; empty fields always do.",
    )
    @click.option(
        "--keep-na",
        is_flag=True,
        help="Words such as NA, None and null are text, and not missing values.",
    )
    @wraps(command)
    def with_reading(
        *args: Any,
        delimiter: str | None,
        decimal: str | None,
        encoding: str | None,
        missing: tuple[str, ...],
        keep_na: bool,
        **options: Any,
    ) -> Any:
        delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
        for name, value in (("delimiter", delimiter), ("decimal", decimal)):
            if value is not None and len(value) != 1:
                raise BadInput(f"--{name} takes one character, not {value!r}.")
        reading = TableOptions(delimiter, decimal, encoding, missing, keep_na)
        return command(*args, reading=reading, **options)

    return with_reading  # type: ignore[return-value]


def read_table_file(
    path: str, options: TableOptions, console: Console, text: Collection[str] = ()
) -> pd.DataFrame:
    """Return the table in a file; raise BadInput, in a sentence, if there is none.

    Parameters
    ----------
    path : str
        The file, or "-" for CSV from standard input.
    options : TableOptions
        How to read a text file.
    console : Console
        Says which words of columns of text were taken for missing values.
    text : collection of str
        Columns of a text file that are text, also where they look like numbers.
    """
    try:
        if path == "-":
            whole = io.BytesIO(sys.stdin.buffer.read())
            frame = _read_text(whole, "standard input", None, options, console, text)
        elif stat.S_ISFIFO(Path(path).stat().st_mode):
            whole = io.BytesIO(Path(path).read_bytes())
            frame = _read_text(whole, path, None, options, console, text)
        else:
            frame = _read_named(path, options, console, text)
    except FileNotFoundError:
        raise BadInput(f"There is no file '{path}'.") from None
    except IsADirectoryError:
        raise BadInput(f"'{path}' is a folder; name a file in it.") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"'{path}' cannot be read: {reason}.") from error
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(path, list(frame.columns))
    if len(frame) == 0:
        raise BadInput(f"'{path}' has no rows, only a header.")
    return frame


def _read_named(
    path: str, options: TableOptions, console: Console, text: Collection[str]
) -> pd.DataFrame:
    """Read a file by the ending of its name."""
    endings = [ending.lower() for ending in Path(path).suffixes[-2:]]
    opener = _COMPRESSED.get(endings[-1]) if endings else None
    if opener is not None:
        endings.pop()
    ending = endings[-1] if endings else ""
    if ending in _TEXT:
        with (opener or open)(path, "rb") as stream:
            return _read_text(stream, path, _TEXT[ending], options, console, text)
    if ending in _BINARY and opener is None:
        if options.given:
            raise BadInput(f"{options.given[0]} is for CSV, and '{path}' is {_BINARY[ending]}.")
        return _read_binary(path, _BINARY[ending])
    Path(path).stat()  # that there is no such file is the more useful thing to say
    raise BadInput(
        f"The ending of '{path}' does not tell what it is; it must be .csv, .tsv (with .gz, .bz2 "
        "or .xz), .parquet or .feather."
    )


def _read_binary(path: str, kind: str) -> pd.DataFrame:
    import pandas as pd

    if find_spec("pyarrow") is None:
        raise BadInput(f"{kind} files need pyarrow: pip install 'hikernel[parquet]'.")
    with open(path, "rb"):  # so that a missing file is not an error of pyarrow
        pass
    try:
        _check_arrow(path, kind)
        frame = pd.read_parquet(path) if kind == "Parquet" else pd.read_feather(path)
    except MemoryError as error:
        raise BadInput(
            f"'{path}' cannot be read as {kind}: it claims more data than there is memory for; it "
            "may be damaged."
        ) from error
    except Exception as error:  # the parsers raise many types on damaged data
        reason = error if isinstance(error, (ValueError, OSError)) else "it is damaged"
        raise BadInput(f"'{path}' cannot be read as {kind}: {reason}") from error
    # What was an index with a name in pandas is a column for everybody else.
    return frame.reset_index() if any(frame.index.names) else frame


def _check_arrow(path: str, kind: str) -> None:
    """Raise if the text or the offsets of a file are damaged, which pandas would follow blindly."""
    from pyarrow import feather, parquet

    read = parquet.read_table if kind == "Parquet" else feather.read_table
    read(path, memory_map=False).validate(full=True)


def _read_text(
    stream: IO[bytes],
    name: str,
    delimiter: str | None,
    options: TableOptions,
    console: Console,
    text: Collection[str],
) -> pd.DataFrame:
    import pandas as pd

    encoding = options.encoding or "utf-8-sig"
    head = stream.read(_HEAD)
    stream.seek(0)
    try:
        first = head.decode(encoding, errors="ignore")
        delimiter = options.delimiter or delimiter or _find_delimiter(first)
        _refuse_repeated(name, _first_rows(first, delimiter, 1)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                stream,
                sep=delimiter,
                decimal=options.decimal or ".",
                encoding=encoding,
                na_values=["", *options.missing],
                keep_default_na=not options.keep_na,
                dtype=dict.fromkeys(text, str),
                index_col=False,
                low_memory=False,
            )
        if not options.keep_na:
            stream.seek(0)
            _note_lost_words(frame, stream, delimiter, encoding, options.missing, console)
    except LookupError:
        raise BadInput(f"{encoding!r} is no encoding; try --encoding latin-1.") from None
    except UnicodeError as error:
        raise BadInput(
            f"'{name}' is not {options.encoding or 'UTF-8'} ({error}); name its encoding, such as "
            "--encoding latin-1 or --encoding utf-16."
        ) from error
    except pd.errors.EmptyDataError:
        raise BadInput(f"'{name}' is empty.") from None
    except pd.errors.ParserWarning:
        raise BadInput(
            f"The rows of '{name}' have more fields than its header; give every column a name."
        ) from None
    except (pd.errors.ParserError, csv.Error) as error:
        raise BadInput(f"'{name}' cannot be read: {_ragged(str(error), delimiter)}") from error
    return frame


def _note_lost_words(
    frame: pd.DataFrame,
    stream: IO[bytes],
    delimiter: str,
    encoding: str,
    missing: Collection[str],
    console: Console,
) -> None:
    """Say which words of columns of text are missing values without being asked for."""
    import pandas as pd

    gaps = [
        place
        for place, (_, column) in enumerate(frame.items())
        if not pd.api.types.is_numeric_dtype(column) and column.hasnans
    ]
    if not gaps:
        return
    raw = pd.read_csv(
        stream, sep=delimiter, encoding=encoding, dtype=str, keep_default_na=False, index_col=False
    )
    for place in gaps:
        words = raw.iloc[:, place][frame.iloc[:, place].isna().to_numpy()]
        found = Counter(word for word in words if word and word not in missing)
        if found:
            counts = ", ".join(f"{word!r} ({count})" for word, count in found.most_common())
            console.note(
                f"Column {str(frame.columns[place])!r}: taken for missing values: {counts}; "
                "--keep-na keeps such words as text."
            )


def _ragged(message: str, delimiter: str | None) -> str:
    found = _RAGGED.search(message)
    if found is None:
        return message
    wanted, line, fields = found.groups()
    return (
        f"line {line} has {fields} fields and the header {wanted}, with the delimiter "
        f"{delimiter!r}; put fields that contain it in quotes, or name another --delimiter."
    )


def _first_rows(text: str, delimiter: str, most: int) -> list[list[str]]:
    """Return the first rows of a text that are not empty, at least one."""
    rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row)
    return list(itertools.islice(rows, most)) or [[]]


def _find_delimiter(text: str) -> str:
    """Return the delimiter that divides the first lines into the most fields, equally many."""
    found = []
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in _first_rows(text, delimiter, _ROWS)]
        alike = Counter(widths)[widths[0]] / len(widths)
        found.append((widths[0] > 1 and alike >= _ALIKE, widths[0]))
    return _DELIMITERS[found.index(max(found))]


def _refuse_repeated(name: str, columns: list[str]) -> None:
    repeated = [column for column, count in Counter(columns).items() if count > 1 and column]
    if repeated:
        raise BadInput(f"'{name}' has more than one column {listed(repeated)}; rename them.")
