"""Dates in text files, from a fit to predictions of new rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hikernel import load
from hikernel.cli.console import BadInput
from hikernel.cli.date_text import as_dates

TABLE = pd.DataFrame({"day": pd.date_range("2019-01-01", periods=120, freq="9D")})
TABLE["hires"] = np.sin(2 * np.pi * TABLE["day"].dt.day_of_year / 365.25) + np.arange(120) / 200


def test_a_model_of_dates_reads_them_from_text(tmp_path, monkeypatch, run, quick):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("hires.csv", index=False)
    done = run("fit", "hires.csv", "--target", "hires", "--out", "m.hik")
    assert done.exit_code == 0, done.output
    assert "Column 'day' holds dates" in done.stderr
    assert "day (day of year)" in done.stdout
    TABLE[["day"]].head(7).to_csv("new.csv", index=False)
    done = run("predict", "m.hik", "new.csv", "-q")
    said = [float(line) for line in done.stdout.splitlines()[1:]]
    np.testing.assert_allclose(said, load("m.hik").predict(TABLE[["day"]].head(7)))
    TABLE[["day"]].head(7).to_parquet("new.parquet")
    assert run("predict", "m.hik", "new.parquet", "-q").stdout == done.stdout
    pd.DataFrame({"day": ["2019-01-01", "soon"]}).to_csv("bad.csv", index=False)
    bad = run("predict", "m.hik", "bad.csv")
    assert bad.exit_code == 2
    assert "Column 'day' holds dates, but not all of them can be read" in bad.stderr
    pd.DataFrame({"day": ["2019-01-01 08:00+02:00"]}).to_csv("zone.csv", index=False)
    bad = run("predict", "m.hik", "zone.csv")
    assert bad.exit_code == 2
    assert "but had no time zone in fit" in bad.stderr


def test_times_with_a_distance_from_utc():
    column = pd.Series(["2019-03-31 00:30+01:00", "2019-07-01T12:00:00Z", None], name="t")
    dates = as_dates(column, "Europe/Berlin")
    assert [str(date) for date in dates[:2]] == [
        "2019-03-31 00:30:00+01:00",
        "2019-07-01 14:00:00+02:00",
    ]
    assert str(as_dates(column).dtype).endswith("UTC]")
    with pytest.raises(BadInput, match="all with a time zone or none"):
        as_dates(pd.Series(["2019-13-01"], name="t"))


def test_text_that_only_looks_like_dates_may_be_kept(tmp_path, monkeypatch, run, quick):
    monkeypatch.chdir(tmp_path)
    parts = TABLE.assign(day=[f"1234-{i % 5:02d}-77" for i in range(120)])
    parts.to_csv("parts.csv", index=False)
    bad = run("fit", "parts.csv", "--target", "hires", "--out", "m.hik")
    assert bad.exit_code == 2
    assert "--categorical day" in " ".join(bad.stderr.split())
    done = run("fit", "parts.csv", "--target", "hires", "--categorical", "day", "--out", "m.hik")
    assert done.exit_code == 0, done.output
