"""Which format a file has, which options it takes, and the file itself: whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hikernel.export.document import json_document
from hikernel.export.python_text import python_source
from hikernel.export.sql_query import sql_source
from hikernel.persistence.whole_file import check_place, write_whole

__all__ = ["FORMATS", "check_format", "export_model"]

_DEPTH = 2
"""How deep dicts are spread over lines in JSON."""

FORMATS: dict[str, tuple[str, Callable[..., str]]] = {
    "python": (".py", python_source),
    "sql": (".sql", sql_source),
    "json": (".json", lambda summary: _json_text(json_document(summary)) + "\n"),
}
"""For every format the extension of its files, and what writes its text."""


def export_model(
    make_summary: Callable[[], Mapping[str, Any]],
    path: str | os.PathLike[str] | None,
    format: str | None,
    options: Mapping[str, Any],
) -> str | None:
    """Write an exported model to a file, or return its text.

    Parameters
    ----------
    make_summary : callable
        Returns the dict of ``summary()``; called when everything else is known to be right.
    path : str, path-like or None
        The file.
    format : {"python", "sql", "json"} or None
        By default that of the extension of the file.
    options : mapping
        Options of `sql_source`.

    Returns
    -------
    str or None
        The text if there is no path.

    Raises
    ------
    TypeError, ValueError
        If the path, the format or an option is wrong, or the model cannot be exported.
    OSError
        If the file cannot be written.
    """
    name = check_format(path, format)
    if options and name != "sql":
        raise ValueError(
            f"{', '.join(options)}: only SQL takes options, and the format is {name!r}; leave them "
            'out, or pass format="sql".'
        )
    extension, write = FORMATS[name]
    target = None if path is None else check_place(path, f"model{extension}")
    text = write(make_summary(), **options)
    if target is None:
        return text
    _write(target, text)
    return None


def check_format(path: str | os.PathLike[str] | None, format: str | None) -> str:
    """Return the format, given or that of the extension of a file."""
    known = ", ".join(f'"{name}"' for name in FORMATS)
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must be the name of a file such as 'model.py', got {type(path).__name__}."
        )
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {known}, got {format!r}.")
        return format
    if path is None:
        raise ValueError(f"Without a file, format must be one of {known}.")
    extension = Path(os.fsdecode(path)).suffix.lower()
    for name, (known_extension, _) in FORMATS.items():
        if extension == known_extension:
            return name
    raise ValueError(
        f"The name '{os.fsdecode(path)}' does not tell the format; let it end in "
        f"{', '.join(ending for ending, _ in FORMATS.values())}, or pass format, one of {known}."
    )


def _json_text(value: Any, indent: str = "") -> str:
    """Return JSON with an entry of a dict, and of a list of dicts, in a line: diffs stay short."""
    deep = isinstance(value, dict) and len(indent) < _DEPTH
    if deep:
        items = [
            f"{json.dumps(key)}: {_json_text(one, indent + ' ')}" for key, one in value.items()
        ]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        items = [json.dumps(one, allow_nan=False) for one in value]
    else:
        return json.dumps(value, allow_nan=False)
    opening, closing = "{}" if deep else "[]"
    inside = f",\n{indent} ".join(items)
    return f"{opening}\n{indent} {inside}\n{indent}{closing}"


def _write(target: Path, text: str) -> None:
    content = text.encode("utf-8")
    try:
        write_whole(target, lambda stream: stream.write(content))
    except OSError as error:
        sentence = (
            f"The model cannot be written to '{target}' ({error.strerror or error}); "
            "choose another file or folder."
        )
        raise OSError(error.errno, sentence) from error
