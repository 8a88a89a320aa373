"""Dates as parts: against the accessors of pandas, from every library, in every zone."""

import datetime
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hikernel.columns import ColumnTable, choose_bases
from hikernel.columns.dates import date_text, goes_around, part_values
from hikernel.columns.interactions import read_interactions
from hikernel.columns.kinds import WEEKDAYS
from hikernel.columns.monotone import monotone_signs

TIMES = pd.Series(
    pd.to_datetime(
        ["2008-02-29 23:59", "2010-12-31 08:00", None, "2011-01-01 00:00", "2012-12-31 12:15"]
    )
)


def fit(X, **settings):
    return ColumnTable.fit_transform(X, **settings)


def matrix_of(X, **settings):
    return fit(X, **settings)[1]


def years(n=400, freq="37h"):
    return pd.Series(pd.date_range("2010-01-04 06:00", periods=n, freq=freq))


@pytest.mark.parametrize("first", ["1903-03-01", "1969-12-30", "2019-12-25"])
def test_parts_are_those_of_pandas(first):
    times = pd.Series(pd.date_range(first, periods=3000, freq="1517min"))
    table, matrix = fit(pd.DataFrame({"sold": times}))
    frame = pd.DataFrame(matrix, columns=table.names)
    since = times - times.min().normalize()
    expected = {
        f"sold (days since {first})": since / pd.Timedelta(days=1),
        "sold (year)": times.dt.year,
        "sold (day of year)": times.dt.day_of_year,
        "sold (weekday)": times.dt.day_of_week,
        "sold (hour)": times.dt.hour + times.dt.minute / 60,
    }
    assert list(frame) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(frame[name], values, atol=1e-6, err_msg=name)
    # Equal times of day must be ties, whatever the day.
    assert frame["sold (hour)"].nunique() == times.dt.time.nunique()
    assert table.categories[table.names.index("sold (weekday)")] == WEEKDAYS
    assert table.n_features_in == 1


def same_dates():
    """The same column in every form that a table has for it."""
    stamps = TIMES.dt.floor("D")
    days = [None if pd.isna(day) else day.date() for day in stamps]
    midnights = [None if pd.isna(day) else day.to_pydatetime() for day in stamps]
    yield "pandas", pd.DataFrame({"d": stamps})
    yield "pandas dates", pd.DataFrame({"d": days})
    yield "pandas objects", pd.DataFrame({"d": pd.Series(midnights, dtype=object)})
    yield "pandas arrow", pd.DataFrame({"d": pd.array(days, dtype="date32[pyarrow]")})
    yield "polars", pl.DataFrame({"d": days})
    yield "polars datetimes", pl.DataFrame({"d": midnights})
    yield "pyarrow", pa.table({"d": days})
    yield "pyarrow datetimes", pa.table({"d": midnights})
    for unit in ("D", "h", "s", "ms", "us", "ns"):
        yield unit, pd.DataFrame({"d": stamps}).to_numpy().astype(f"datetime64[{unit}]")


def test_every_library_gives_the_same_matrix():
    expected = matrix_of(pd.DataFrame({"d": TIMES.dt.floor("D")}))
    assert np.isnan(expected[2, :-1]).all()
    for name, X in same_dates():
        table, matrix = fit(X)
        np.testing.assert_array_equal(matrix, expected, err_msg=name)
        np.testing.assert_array_equal(table.transform(X), expected, err_msg=name)
        assert table.names[-1].endswith(" is missing"), name


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        (pd.date_range("2011-03-01", periods=300), ["days", "weekday"]),
        (pd.date_range("2011-03-01", periods=7), ["days"]),
        (pd.date_range("2011-03-01", periods=20, freq="h"), ["days"]),
        (pd.date_range("2011-03-01", periods=60, freq="h"), ["days", "hour"]),
        (pd.date_range("2011-01-01", periods=60, freq="MS"), ["days", "year", "day of year"]),
        (pd.date_range("2011-01-01", periods=60, freq="ME"), ["days", "year", "day of year"]),
        (pd.date_range("2011-01-01", periods=20, freq="YS"), ["year"]),
        (pd.date_range("2011-01-03", periods=60, freq="7D"), ["days", "year", "day of year"]),
        (pd.date_range("2011-01-03 08:00", periods=60, freq="D"), ["days", "weekday"]),
        (pd.DatetimeIndex([None, None, None]), ["days"]),
        (pd.DatetimeIndex(["2011-01-03"] * 3), ["days"]),
    ],
)
def test_no_part_is_a_copy_of_another(times, parts):
    table, _ = fit(pd.DataFrame({"d": times}))
    assert list(table.dates[0].parts) == parts


def test_durations_are_days():
    hours = [1.5, None, 48.0]
    expected = np.array([1.5 / 24, np.nan, 2.0])
    spans = pd.Series(pd.to_timedelta(hours, unit="h"))
    plain = [None if pd.isna(span) else span.to_pytimedelta() for span in spans]
    for X in (
        pd.DataFrame({"wait": spans}),
        pd.DataFrame({"wait": pd.Series(plain, dtype=object)}),
        pl.DataFrame({"wait": plain}),
        pa.table({"wait": plain}),
    ):
        table, matrix = fit(X)
        assert table.names == ("wait (days)", "wait is missing")
        np.testing.assert_allclose(matrix[:, 0], expected)


def test_names_of_parts_are_unique_and_inputs_keep_theirs():
    X = pd.DataFrame({"d": years(), "d (year)": np.arange(400.0), "e": years(freq="5h")})
    table, matrix = fit(X)
    assert table.input_names == ("d", "d (year)", "e") == table.feature_names_in
    assert table.names[3] == "d (year) (2)"
    assert len(set(table.names)) == len(table.names) == matrix.shape[1]
    assert [table.input_of(m) for m in range(len(table.names))] == [0, 1, 2, 0, 0, 0, 0, 2, 2]
    assert table.part(1) is None


def test_a_part_may_be_a_category_and_so_may_a_date():
    X = pd.DataFrame({"d": years()})
    table, matrix = fit(X, categorical=["d (year)"])
    assert table.categories[1] == (2010, 2011)
    assert set(matrix[:, 1]) == {0.0, 1.0}
    whole, _ = fit(X, categorical=["d"])
    assert whole.dates == ()
    assert len(whole.categories[0]) == 400
    with pytest.raises(ValueError, match=r"categorical names the column 'd \(month\)'"):
        fit(X, categorical=["d (month)"])
    with pytest.raises(ValueError, match="if it is a part of a date, it has an order already"):
        fit(X, ordered=["d (year)"])


class TestZones:
    UTC = pd.date_range("2011-03-25 22:30", periods=60, freq="3h", tz="UTC")

    def test_the_clock_of_the_zone_counts(self):
        berlin = self.UTC.tz_convert("Europe/Berlin")
        frame = pd.DataFrame({"t": berlin})
        table, matrix = fit(frame)
        # The clock goes forward in the night to March 27.
        np.testing.assert_array_equal(
            matrix, matrix_of(pd.DataFrame({"t": berlin.tz_localize(None)}))
        )
        assert table.dates[0].zone == "Europe/Berlin"
        # Another zone, or library, with the same instants gives the same rows.
        objects = [t.to_pydatetime().astimezone(ZoneInfo("Asia/Tokyo")) for t in berlin]
        for same in (
            pd.DataFrame({"t": self.UTC}),
            pd.DataFrame({"t": self.UTC.tz_convert("America/New_York")}),
            pd.DataFrame({"t": pd.Series(objects, dtype=object)}),
            pl.from_pandas(frame),
            pa.Table.from_pandas(frame),
        ):
            np.testing.assert_array_equal(table.transform(same), matrix)

    def test_with_and_without_a_zone_cannot_be_compared(self):
        plain, aware = (
            pd.DataFrame({"t": self.UTC.tz_localize(None)}),
            pd.DataFrame({"t": self.UTC}),
        )
        with pytest.raises(ValueError, match="has the time zone UTC, but had no time zone in fit"):
            fit(plain)[0].transform(aware)
        with pytest.raises(ValueError, match="has no time zone, but had the time zone UTC in fit"):
            fit(aware)[0].transform(plain)

    def test_mixed_zones(self):
        mixed = [self.UTC[0].to_pydatetime(), datetime.datetime(2011, 1, 1)]
        with pytest.raises(ValueError, match=r"Column 't' mixes time zones \(UTC, none\)"):
            fit(pd.DataFrame({"t": pd.Series(mixed, dtype=object)}))


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ([3.5], r"Column 'd' is a column of dates, but holds 3.5; pass dates as in fit"),
        (
            ["2011-01-01"],
            r"holds '2011-01-01'; pass dates as in fit, for example by pandas.to",
        ),
        (pd.to_timedelta([3], unit="D"), "is a column of dates, but holds durations"),
        ([datetime.date(2011, 1, 1), "x"], "mixes dates with other values"),
        ([datetime.time(3)], "is a column of dates, but holds datetime.time"),
    ],
)
def test_other_values_at_predict(new, message):
    table, _ = fit(pd.DataFrame({"d": years()}))
    with pytest.raises(ValueError, match=message):
        table.transform(pd.DataFrame({"d": new}))


def test_dates_among_other_values():
    with pytest.raises(ValueError, match="Column 'd' mixes dates with other values"):
        fit(pd.DataFrame({"d": [datetime.date(2011, 1, 1), 3.0]}))
    assert fit(pd.DataFrame({"d": [datetime.date(2011, 1, 1), 3.0]}), categorical=["d"])


def test_missing_and_future_dates_at_predict():
    table, _ = fit(pd.DataFrame({"d": years()}))
    row = table.transform(pd.DataFrame({"d": [None, pd.Timestamp("2030-06-01")]}))
    assert np.isnan(row[0]).all()
    assert row[1, table.names.index("d (year)")] == 2030.0
    assert np.isnan(table.transform(pd.DataFrame({"d": [None]}, dtype=object))).all()


def test_text_that_looks_like_dates_gets_a_hint():
    text = years(60).astype(str)
    with pytest.warns(UserWarning, match=r"Column 'd' holds text that looks like dates.*to_datet"):
        table, _ = fit(pd.DataFrame({"d": text}))
    assert len(table.categories[0]) == 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(pd.DataFrame({"d": text}), categorical=["d"])
        fit(pd.DataFrame({"d": text[:20]}))


class TestBases:
    def test_by_part(self):
        X = pd.DataFrame({"d": years(3000, "7h")})
        table, matrix = fit(X)
        chosen = choose_bases("auto", 4, table, matrix, np.ones(len(X)))
        assert [choice.name for choice in chosen] == [
            *("orthonormal", "steps", "periodic", "categorical", "periodic")
        ]
        both = choose_bases("auto+steps", 4, table, matrix, np.ones(len(X)))
        assert both[2].name == both[4].name == "periodic+steps"
        given = {"d": "spline", "d (hour)": "orthonormal"}
        own = choose_bases(given, 4, table, matrix, np.ones(len(X)))
        assert [own[0].name, own[2].name, own[4].name] == ["spline", "periodic", "orthonormal"]

    def test_half_a_circle_is_a_number(self):
        days = pd.date_range("2010-06-01", periods=1500)
        summer = pd.DataFrame({"d": days[days.month.isin([6, 7, 8])]})
        table, matrix = fit(summer)
        chosen = choose_bases("auto", 4, table, matrix, np.ones(len(summer)))
        named = dict(zip(table.names, chosen, strict=True))
        assert named["d (day of year)"].name == "orthonormal"
        assert goes_around(np.array([0.0, 6.0, 12.0, 18.0]), 24.0)
        assert not goes_around(np.array([0.0, 6.0, 12.0]), 24.0)
        assert not goes_around(np.array([np.nan]), 24.0)


def test_text_of_dates():
    assert date_text(14975.0) == "2011-01-01"
    assert date_text(14975.5 + 1 / 86400) == "2011-01-01 12:00:01"
    assert part_values("hour", np.array([14975.0 + 8 / 24]), 0.0) == 8.0


def test_weekdays_of_the_user_are_categories_like_any_other():
    days = pd.Categorical(["Monday", "Friday"] * 3, WEEKDAYS, ordered=True)
    table, _ = fit(pd.DataFrame({"day": days}))
    assert table.categories == (("Monday", "Friday"),)
    assert table.ordered == (0,)


class TestRules:
    """Rules of ``interactions`` and ``monotone`` about dates and their parts."""

    TABLE = fit(pd.DataFrame({"d": years(), "x": np.arange(400.0), "z": np.arange(400.0) % 7}))[0]

    def pairs(self, spec):
        found = read_interactions(spec, self.TABLE, None)
        names = self.TABLE.names
        every = [(a, b) for a in range(len(names)) for b in range(a)]
        return {
            frozenset((names[a], names[b]))
            for (a, b), good in zip(every, found.permits(every), strict=True)
            if good
        }

    def test_a_date_stands_for_all_its_parts(self):
        parts = [name for name in self.TABLE.names if name.startswith("d (")]
        assert len(parts) == 5
        within = {frozenset((a, b)) for a in parts for b in parts if a != b}
        beside = {frozenset((part, "x")) for part in parts}
        assert self.pairs([("d", "x")]) == within | beside
        assert self.pairs({"forbid": [("d", "*")]}) == {frozenset(("x", "z"))}
        far = {frozenset((part, "z")) for part in parts}
        assert self.pairs({"forbid": [("d", "z")]}) == within | beside | {frozenset(("x", "z"))}
        assert not far & self.pairs({"forbid": [("z", "d")]})
        assert self.pairs("none") == set()

    def test_a_part_by_its_name(self):
        allowed = {frozenset(("d (weekday)", "d (hour)"))}
        assert self.pairs([("d (weekday)", "d (hour)")]) == allowed
        with pytest.raises(ValueError, match="names the column 'e', which X does not have"):
            self.pairs([("e", "x")])

    def test_directions(self):
        first = self.TABLE.names[0]
        assert monotone_signs({first: 1, "x": -1}, None, self.TABLE, None) == {0: 1, 1: -1}
        with pytest.raises(ValueError, match=r"'d' of dates.*such as 'd \(days since 2010-01-04"):
            monotone_signs({"d": 1}, None, self.TABLE, None)
        with pytest.raises(ValueError, match="a week has no direction"):
            monotone_signs({"d (weekday)": 1}, None, self.TABLE, None)


def test_a_date_as_a_category_is_the_same_in_every_unit_and_type():
    times = pd.Series(pd.to_datetime(["2020-01-01", "2020-02-01 12:30"] * 3, format="ISO8601"))
    table, matrix = fit(pd.DataFrame({"d": times}), categorical=["d"])
    assert table.categories == (("2020-01-01", "2020-02-01 12:30:00"),)
    objects = times.astype(object)
    forms = [
        pd.DataFrame({"d": times.astype("datetime64[s]")}),
        pd.DataFrame({"d": times.astype("datetime64[ns]")}),
        pd.DataFrame({"d": times.astype("category")}),
        pd.DataFrame({"d": objects}),
        pl.DataFrame({"d": [time.to_pydatetime() for time in objects]}),
        pa.table({"d": pa.array(times)}),
    ]
    for form in forms:
        np.testing.assert_array_equal(table.transform(form), matrix)
    days = times[::2].dt.date.astype(object)
    assert set(table.transform(pl.DataFrame({"d": list(days)}))[:, 0]) == {0.0}
    zoned = times.dt.tz_localize("Europe/Berlin")
    there, matrix = fit(pd.DataFrame({"d": zoned}), categorical=["d"])
    assert there.categories[0][0] == "2019-12-31 23:00:00+00:00"
    for form in (zoned.dt.tz_convert("Asia/Tokyo"), zoned.astype(object)):
        np.testing.assert_array_equal(there.transform(pd.DataFrame({"d": form})), matrix)
    assert set(there.transform(pd.DataFrame({"d": times}))[:, 0]) == {-1.0}


def test_dates_and_durations_as_categories_have_an_order():
    times = pd.Series(pd.to_datetime(["2021-01-01", "2019-05-01", "2020-02-01"] * 2))
    table, _ = fit(pd.DataFrame({"d": times}), ordered=["d"])
    assert table.categories == (("2019-05-01", "2020-02-01", "2021-01-01"),)
    declared = pd.Categorical(times, categories=times[:3], ordered=True)
    table, _ = fit(pd.DataFrame({"d": declared}))
    assert table.categories == (("2021-01-01", "2019-05-01", "2020-02-01"),)
    lengths = times - times.min()
    table, matrix = fit(pd.DataFrame({"d": lengths}), categorical=["d"])
    assert table.categories == ((0, 276, 611),)
    for form in (lengths.astype("timedelta64[s]"), lengths.astype("timedelta64[ns]")):
        np.testing.assert_array_equal(table.transform(pd.DataFrame({"d": form})), matrix)


def test_the_first_and_last_nanosecond_are_not_mixed_up():
    ends = pd.Series([pd.Timestamp.min, pd.Timestamp("1970-01-01"), pd.Timestamp.max])
    table, matrix = fit(pd.DataFrame({"d": ends}))
    assert table.names[0] == "d (days since 1677-09-21)"
    np.testing.assert_array_equal(matrix[:, table.names.index("d (year)")], [1677, 1970, 2262])


def test_durations_in_years_are_refused():
    with pytest.raises(ValueError, match="months or years, which differ in length"):
        fit(np.arange(5).astype("timedelta64[Y]")[:, None])


def test_the_end_of_a_day_is_not_the_next_one():
    days = pd.Series(pd.date_range("2019-12-20", periods=500, freq="D"))
    ends = days + pd.Timedelta(days=1) - pd.Timedelta(1, unit="ns")
    table, matrix = fit(pd.DataFrame({"d": ends}))
    names = list(table.names)
    assert names[0] == "d (days since 2019-12-20)"
    for part, expected in (
        ("year", days.dt.year),
        ("day of year", days.dt.day_of_year),
        ("weekday", days.dt.day_of_week),
    ):
        np.testing.assert_array_equal(matrix[:, names.index(f"d ({part})")], expected)
    assert date_text(18262.0 - 1e-9) == "2019-12-31 23:59:59"
    assert date_text(-0.5 / 86400) == "1969-12-31 23:59:59"
