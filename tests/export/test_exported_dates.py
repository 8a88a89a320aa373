"""Dates in exported models: every part of them, on the clock of a time zone, missing ones."""

import datetime

import numpy as np
import pandas as pd
import pytest
from export.tables import assert_close, plain, run_python, run_sqlite
from oracles.portable import evaluate

from hikernel import HKLRegressor
from hikernel.explain.portable import NotPortableError

PARTS = {"days", "year", "day of year", "weekday", "hour"}


def hires(n=300, seed=0, zone=None):
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.integers(0, 4 * 365 * 86400, n))
    when = pd.Series(pd.Timestamp("1968-11-04") + pd.to_timedelta(seconds, unit="s"))
    shown = when.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else when
    X = pd.DataFrame({"when": shown, "rented": pd.to_timedelta(rng.uniform(1, 40, n), unit="h")})
    clock = shown.dt
    y = 0.2 * (clock.year % 2) + 2 * np.sin(2 * np.pi * clock.day_of_year / 365.25)
    y = y + 1.5 * (clock.day_of_week >= 5) + np.cos(2 * np.pi * (clock.hour - 8) / 12)
    y = y + np.cos(1e-7 * seconds) + X["rented"] / pd.Timedelta(days=1)
    X.loc[rng.choice(n, n // 10, replace=False), "when"] = pd.NaT
    return X, np.where(X["when"].isna(), 4.0, y)


@pytest.fixture(scope="module")
def model():
    X, y = hires()
    found = HKLRegressor(1e-3, max_order=2, certify="none").fit(X, y)
    parts = {one["part"] for one in found.summary()["function"]["variables"]}
    assert parts == PARTS | {"length", None}
    return found


@pytest.fixture(scope="module")
def rows():
    X, _ = hires(40, seed=3)
    times = ["2031-12-31 23:59:59.5", "1969-12-31 23:59:59.999", "2000-02-29", "1970-01-01"]
    X["when"] = X["when"].astype("datetime64[us]")
    X.loc[: len(times) - 1, "when"] = [pd.Timestamp(time) for time in times]
    X.loc[[5, 6], "rented"] = pd.NaT
    return X


def as_text(rows):
    """The rows as SQLite holds them: times as text, lengths in days."""
    when = rows["when"].dt.strftime("%Y-%m-%d %H:%M:%S.%f").str[:23].astype(object)
    return pd.DataFrame(
        {
            "when": when.where(rows["when"].notna(), None),
            "rented": rows["rented"] / pd.Timedelta(days=1),
        }
    )


def test_python(model, rows):
    module = run_python(model.export(format="python"))
    expected = model.predict(rows)
    assert_close(module["predict"](rows), expected)
    objects = {
        "when": [None if pd.isna(v) else v.to_pydatetime() for v in rows["when"]],
        "rented": [None if pd.isna(v) else v.to_pytimedelta() for v in rows["rented"]],
    }
    assert_close(module["predict"](objects), expected)
    assert_close(module["predict"]([*zip(*objects.values(), strict=True)]), expected)
    days = rows.assign(when=rows["when"].dt.normalize())
    dates = [None if pd.isna(v) else v.date() for v in days["when"]]
    assert_close(module["predict"](objects | {"when": dates}), model.predict(days))
    assert module["COLUMNS"] == ["when", "rented"]


def test_sqlite(model, rows):
    result = run_sqlite(model.export(format="sql", keys=["key"]), as_text(rows))
    assert_close(result["prediction"], model.predict(rows))


@pytest.mark.parametrize("dialect", ["duckdb", "postgresql"])
def test_duckdb(model, rows, dialect):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("frame", rows.assign(key=np.arange(len(rows))))
        connection.execute("CREATE TABLE data AS SELECT * FROM frame")
        result = connection.execute(model.export(format="sql", keys=["key"], dialect=dialect)).df()
    assert_close(result.sort_values("key")["prediction"].to_numpy(), model.predict(rows))


def test_json(model, rows):
    function = model.summary()["function"]
    epoch, day = pd.Timestamp("1970-01-01"), pd.Timedelta(days=1)
    days = rows.assign(when=(rows["when"] - epoch) / day, rented=rows["rented"] / day)
    found = [evaluate(function, row)[0] for row in plain(days)]
    assert_close(found, model.predict(rows))


def test_times_with_a_zone():
    X, y = hires(zone="Europe/Oslo")
    model = HKLRegressor(1e-2, max_order=1, certify="none").fit(X, y)
    rows = X.head(30)
    module = run_python(model.export(format="python"))
    assert_close(module["predict"](rows), model.predict(rows))
    moved = rows.assign(when=rows["when"].dt.tz_convert("Asia/Tokyo"))
    assert_close(module["predict"](moved), model.predict(rows))
    query = model.export(format="sql", keys=["key"])
    assert "(on the clock of Europe/Oslo)" in query
    local = rows.assign(when=rows["when"].dt.tz_localize(None))
    assert_close(run_sqlite(query, as_text(local))["prediction"], model.predict(rows))
    with pytest.raises(ValueError, match="times with a time zone"):
        module["predict"](local)
    naive = {"when": [datetime.datetime(1970, 1, 1)], "rented": [datetime.timedelta(1)]}
    with pytest.raises(ValueError, match="had the time zone Europe/Oslo"):
        module["predict"](naive)


def test_what_is_no_date_is_said(model, rows):
    module = run_python(model.export(format="python"))
    with pytest.raises(ValueError, match="holds '1970-01-01', and must hold dates"):
        module["predict"](rows.assign(when="1970-01-01"))
    with pytest.raises(ValueError, match=r"holds .*1\.5.*, no timedelta"):
        module["predict"](rows.assign(rented=1.5))
    with pytest.raises(ValueError, match="had no time zone"):
        module["predict"](rows.assign(when=pd.Timestamp("1970-01-01", tz="UTC")))
    with pytest.raises(NotPortableError, match="uses dates, which ANSI SQL does not take apart"):
        model.export(format="sql", dialect="ansi")


def test_dates_that_are_categories():
    times = pd.Series(pd.to_datetime(["2020-01-01", "2020-02-01 12:30"] * 20, format="ISO8601"))
    y = np.tile([1.0, 2.0], 20)
    for column in (times, times.dt.tz_localize("Europe/Berlin"), times - times[0]):
        rows = pd.DataFrame({"d": column})
        model = HKLRegressor(1e-3, categorical=["d"]).fit(rows, y)
        assert np.ptp(model.predict(rows)) > 0.5
        module = run_python(model.export(format="python"))
        for form in (rows, rows.astype(object)):
            assert_close(module["predict"](form), model.predict(rows))
