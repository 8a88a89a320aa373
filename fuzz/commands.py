"""The command line on strange files and options: a result, or one line and an exit status."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import json
import os
import re
import tempfile
import warnings

import numpy as np
import pandas as pd

import hikernel
from fuzz.tables import NAMES, WORDS, some
from fuzz.verdict import Outcome, check_words, require
from hikernel.cli import main

__all__ = ["run"]

CELLS = (
    "1",
    "2.5",
    "-3",
    "",
    "NA",
    "nan",
    "inf",
    "-inf",
    "1e300",
    "1e-320",
    "1e999",
    "1,5",
    "'",
    '"a"',
    "2020-01-01",
    "2020-13-45",
    "01/02/2020",
    "12:30",
    "true",
    "FALSE",
    "=1+1",
    "0x10",
    "１２",
    "1_000",
    "99999999999999999999999",
    "\t",
    "a b",
    *WORDS,
)
OPTIONS = (
    ["--loss", "poisson"],
    ["--loss", "hinge"],
    ["--task", "classification"],
    ["--task", "regression"],
    ["--max-order", "1"],
    ["--basis", "spline"],
    ["--basis", "b=steps"],
    ["--basis", "magic"],
    ["--categorical", "a"],
    ["--ordered", "a"],
    ["--ordered", "c=x,y"],
    ["--drop", "a"],
    ["--drop", "nowhere"],
    ["--weight", "b"],
    ["--offset", "b"],
    ["--exposure", "b"],
    ["--drop-missing-target"],
    ["--rule", "best"],
    ["--delimiter", ";"],
    ["--delimiter", "ab"],
    ["--decimal", ","],
    ["--encoding", "latin-1"],
    ["--encoding", "nonsense"],
    ["--missing", "?"],
    ["--keep-na"],
    ["--json"],
    ["-q"],
    ["--monotone", "a=1"],
    ["--monotone", "a=up"],
    ["--allow", "a,b"],
    ["--forbid", "a,*"],
    ["--allow", "a"],
    ["--seed", "-1"],
    ["--n-jobs", "0"],
    ["--time-budget", "0.2"],
    ["--time-budget", "nan"],
    ["--target", "b"],
    ["--nothing"],
)
READING = ("--delimiter", "--decimal", "--encoding", "--missing")
_SENTENCE = re.compile(r"^hikernel( [a-z]+)?: .{8,}")


def run(rng):
    """Run one case: write a file, run a command on it, look at what it says."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder, _in_folder(folder):
        path = _write_table(rng)
        command = some(rng, ("fit", "fit", "predict", "predict", "predict", "explain", "export"))
        if command == "fit":
            arguments = ["fit", path, "--target", "y", "--out", "model.hik", "--refit", "none"]
            arguments += ["--certify", "none", "--time-budget", "0.3"]
            for _ in range(int(rng.integers(0, 3))):
                arguments += some(rng, OPTIONS)
        else:
            with open("model.hik", "wb") as stream:
                stream.write(_model())
            arguments = {
                "predict": [
                    "predict",
                    "model.hik",
                    path,
                    *some(rng, ([], ["--json"], ["--out", "o.csv"])),
                ],
                "explain": ["explain", "model.hik", *some(rng, ([], ["--rows", path], ["--json"]))],
                "export": [
                    "export",
                    "model.hik",
                    some(rng, ("m.py", "m.sql", "m.json", "m.txt", path)),
                ],
            }[command]
        code, out, err = _called(arguments)
        _check(code, out, err, arguments, outcome)
        if command == "fit" and code == 0 and os.path.exists("model.hik"):
            again = ["predict", "model.hik", path, *_reading(arguments)]
            code, out, err = _called(again)
            _check(code, out, err, again, Outcome())
            require(code == 0, f"the fitted table cannot be predicted: {err[-300:]}")
    return outcome


def _reading(arguments):
    """Return those of the arguments that say how a file is read."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    kept = [[name, value] for name, value in pairs if name in READING]
    return [
        *itertools.chain.from_iterable(kept),
        *(["--keep-na"] if "--keep-na" in arguments else []),
    ]


def _called(arguments):
    """Return exit status, standard output and standard error of a command."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")
        code = main(arguments)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def _check(code, out, err, arguments, outcome):
    """Raise a FuzzError unless a command did its work or said in a sentence why not."""
    shown = f"{' '.join(arguments)}: {err[-400:]}"
    require("Traceback" not in err and "please report it" not in err, f"a failure: {shown}")
    require("Warning: " not in err.replace("\nWarning: ", "\n") or ".py:" not in err, shown)
    require(code in (0, 1, 2), f"status {code} of {shown}")
    if code == 0:
        if "--json" in arguments:
            json.loads(out, parse_constant=_no_constant)
        return
    last = err.strip().splitlines()[-1]
    require(_SENTENCE.match(last), f"no sentence: {shown}")
    check_words(last)
    outcome.kind, outcome.sentence = "refused", last


def _no_constant(word):
    require(False, f"{word} in JSON")


@functools.cache
def _model():
    """The bytes of a small model with columns of numbers, words and dates."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(30),
            "b": rng.integers(0, 4, 30),
            "c": rng.choice(["x", "y"], 30),
            "day": pd.date_range("2020-01-01", periods=30).astype(str),
        }
    )
    frame.loc[3, "a"] = np.nan
    y = frame["b"] + (frame["c"] == "x") + 0.1 * rng.standard_normal(30)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        frame["day"] = pd.to_datetime(frame["day"])
        model = hikernel.HKLRegressor(0.01, max_kernels=20, certify="none").fit(frame, y)
        path = os.path.join(folder, "model.hik")
        model.save(path)
        with open(path, "rb") as stream:
            return stream.read()


@contextlib.contextmanager
def _in_folder(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _write_table(rng):
    """Write a table to a file, in one of many formats and with many faults; return its name."""
    n = int(some(rng, (0, 1, 2, 6, 8, 10, 12, 15) if rng.random() < 0.3 else (10, 12, 15)))
    header = ["a", "b", "c", "day", "y"]
    strange = rng.random() < 0.5
    rows = [
        [
            f"{rng.standard_normal():.3g}",
            str(rng.integers(0, 4)),
            some(rng, "xy"),
            f"2020-01-{1 + i:02d}",
            f"{rng.gamma(2.0):.3g}",
        ]
        for i in range(n)
    ]
    if strange:
        for _ in range(int(rng.integers(1, 6))):
            if n:
                rows[int(rng.integers(n))][int(rng.integers(5))] = str(some(rng, CELLS))
        how = rng.random()
        if how < 0.3:
            header[int(rng.integers(5))] = (
                some(rng, (*NAMES, "a", "y")).encode("utf-8", "replace").decode()
            )
        elif how < 0.4 and n:
            rows[int(rng.integers(n))].append("more")
        elif how < 0.5:
            header = header[: int(rng.integers(0, 5))]
        elif how < 0.6:
            column = int(rng.integers(5))
            for row in rows:
                row[column] = str(some(rng, CELLS))
    if strange and rng.random() < 0.25:
        return _write_binary(rng, header, rows)
    separator = some(rng, (",", ",", ",", ";", "\t", "|"))
    text = some(rng, ("\n", "\n", "\r\n", "\r")).join(
        separator.join(row) for row in [header, *rows]
    )
    data = text.encode(some(rng, (*["utf-8"] * 8, "utf-8-sig", "utf-16", "latin-1")), "replace")
    name = some(rng, (*["t.csv"] * 8, *["t.txt"] * 4, "t.tsv", "t.dat", "t.csv.gz", "t", "ü.csv"))
    if name.endswith(".gz") and rng.random() < 0.8:
        data = gzip.compress(data)
    if strange and rng.random() < 0.2:
        data = _damaged(rng, data)
    with open(name, "wb") as stream:
        stream.write(data)
    return name if rng.random() > 0.02 else some(rng, ("nowhere.csv", ".", "", "t.csv/x"))


def _write_binary(rng, header, rows):
    width = max([len(header), *map(len, rows)])
    rows = [row + [None] * (width - len(row)) for row in rows]
    names = [*header, *map(str, range(width))][:width]
    frame = pd.DataFrame(rows, columns=pd.Index(names).astype(str)).reset_index(drop=True)
    frame = frame.loc[:, ~frame.columns.duplicated()]
    for column in frame.columns:
        numbers = pd.to_numeric(frame[column], errors="coerce")
        if rng.random() < 0.6:
            frame[column] = numbers
    name = some(rng, ("t.parquet", "t.feather"))
    (frame.to_parquet if name == "t.parquet" else frame.to_feather)(name)
    if rng.random() < 0.5:
        with open(name, "rb") as stream:
            data = stream.read()
        with open(name, "wb") as stream:
            stream.write(_damaged(rng, data))
    return name


def _damaged(rng, data):
    """Return bytes that are cut, changed, or repeated."""
    if not data:
        return b"\x00"
    how = rng.random()
    if how < 0.3:
        return data[: int(rng.integers(len(data)))]
    if how < 0.4:
        return data + data
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)
