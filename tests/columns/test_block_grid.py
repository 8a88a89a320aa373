"""Tables in blocks: the encoding, the bases and the weights of the same table in memory."""

from __future__ import annotations

import datetime
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hikernel.columns import ColumnGrid, ColumnTable
from hikernel.columns import block_table as tables
from hikernel.columns.block_grid import BlockGrid
from hikernel.columns.block_rows import BlockRows
from hikernel.columns.block_table import BlockTable, as_block_table
from hikernel.columns.reading import lies_in_blocks
from hikernel.columns.table_scan import TableScan, scanned
from hikernel.engines.row_blocks import HeldBlocks, StreamedBlocks


class Parts(BlockTable):
    """A frame that was cut into parts."""

    def __init__(self, frame, cuts):
        ends = [0, *cuts, len(frame)]
        self.parts = [frame.iloc[a:b] for a, b in pairwise(ends)]
        self.names, self.n_columns = tuple(frame.columns), frame.shape[1]

    def blocks(self):
        return HeldBlocks(self.parts)

    def column(self, name):
        return np.concatenate([part[name].to_numpy() for part in self.parts])

    def select(self, names):
        return Parts(pd.concat(self.parts)[list(names)], [])


def mixed(n=400):
    rng = np.random.default_rng(0)
    days = pd.date_range("2019-03-01", periods=n, freq="29h")
    size = pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True)
    frame = pd.DataFrame(
        {
            "number": rng.standard_normal(n),
            "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.exponential(size=n)),
            "late gap": [*rng.random(n - 1), np.nan],
            "whole": rng.integers(0, 5, n),
            "yes": rng.random(n) < 0.3,
            "town": rng.choice(["Oslo", "Bergen", "Rome", None], n).astype(object),
            "size": size,
            "sold": days,
            "zoned": days.tz_localize("UTC").tz_convert("Europe/Oslo"),
            "lasted": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "empty": np.full(n, np.nan),
        }
    )
    frame.loc[5, "sold"] = pd.NaT
    return frame


@pytest.mark.parametrize("cuts", [[], [1, 30, 30, 200], [150, 399]])
def test_the_encoding_is_that_of_the_whole_table(cuts):
    frame = mixed()
    whole, matrix = ColumnTable.fit_transform(frame, categorical=["whole", "sold (weekday)"])
    rows = BlockRows.read(Parts(frame, cuts), ["whole", "sold (weekday)"], None)
    assert rows.table == whole
    np.testing.assert_array_equal(rows.sample()[1], matrix)
    assert rows.missing() == tuple(np.isnan(matrix).sum(axis=0))
    few = np.flatnonzero(np.arange(len(frame)) % 3 == 1)
    np.testing.assert_array_equal(rows[few].sample()[1], matrix[few])
    assert len(rows[few][2:9]) == 7


def test_objects_that_are_dates_or_numbers():
    frame = pd.DataFrame(
        {
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(50)],
            "mixed": pd.Series([k if k % 2 else float(k) for k in range(50)], dtype=object),
        }
    )
    whole, matrix = ColumnTable.fit_transform(frame)
    rows = BlockRows.read(Parts(frame, [10, 20]), None, None)
    assert rows.table == whole
    np.testing.assert_array_equal(rows.sample()[1], matrix)


@pytest.mark.parametrize("basis", ["auto", "auto+steps", {"number": "spline", "gaps": "gaussian"}])
def test_bases_and_weights_are_those_in_memory(basis):
    frame = mixed()
    grid = ColumnGrid(basis=basis)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, len(frame))
    whole = grid.fit(grid.read(frame), weights)
    source = Parts(frame, [7, 200])
    blocks = grid.suited_to(source)
    assert isinstance(blocks, BlockGrid)
    cut = blocks.fit(blocks.read(source), weights)
    assert [name for name, _ in cut.notes] == [name for name, _ in whole.notes]
    wanted, found = (np.concatenate(design.grid.level_weights) for design in (whole, cut))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    matrix = grid.read(frame).matrix
    for m, (one, other) in enumerate(zip(whole.bases, cut.bases, strict=True)):
        for a, b in zip(one.transform(matrix[:, m]), other.transform(matrix[:, m]), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9)


def test_infinity_and_other_columns_are_refused_wherever_they_are():
    frame = mixed()[["number", "town"]]
    frame.loc[390, "number"] = np.inf
    with pytest.raises(ValueError, match=r"'number' contains infinity"):
        BlockRows.read(Parts(frame, [100]), None, None)
    source = Parts(mixed()[["number", "town"]], [100])
    source.parts[1] = source.parts[1].rename(columns={"town": "city"})
    with pytest.raises(ValueError, match="city"):
        BlockRows.read(source, None, None)
    source.parts[1] = source.parts[1].rename(columns={"city": "town"}).assign(more=1)
    source.parts[0].columns = source.parts[1].columns[:2]
    with pytest.raises(ValueError, match=r"more|columns"):
        BlockRows.read(source, None, None)


def test_rows_that_change_from_pass_to_pass_are_refused():
    class Moving(Parts):
        def blocks(self):
            sizes = iter([5, 4])
            return StreamedBlocks(lambda: iter([pd.DataFrame({"a": np.ones(next(sizes))})]))

    with pytest.raises(ValueError, match="other rows when it was read a second time"):
        BlockRows.read(Moving(mixed()[["number"]], []), None, None)


def test_categories_in_different_orders_are_refused():
    one = pd.Categorical(["S", "L"], ["S", "L"], ordered=True)
    other = pd.Categorical(["S", "L"], ["L", "S"], ordered=True)
    scan = TableScan()
    parts = [pd.DataFrame({"size": pd.Series(c)}) for c in (one, other)]
    with pytest.raises(ValueError, match="different orders"):
        scanned(scan(part) for part in parts)


def test_identifiers_are_refused_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr("hikernel.columns.table_scan._MOST_DISTINCT", 30)
    frame = pd.DataFrame({"id": [f"a{k}" for k in range(60)]})
    with pytest.raises(ValueError, match=r"'id' has more than 30 distinct values"):
        scanned(map(TableScan(), Parts(frame, [20, 40]).parts))


def test_what_lies_in_blocks(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    dataset = ds.dataset(pa.Table.from_pandas(frame))
    lazy = pl.from_pandas(frame).lazy()
    array = np.memmap(tmp_path / "X.bin", np.float32, "w+", shape=(60, 3))
    assert not any(map(lies_in_blocks, [frame, pl.from_pandas(frame), np.ones((2, 2)), array]))
    monkeypatch.setattr("hikernel.columns.reading._LARGE", 100)
    for X in (dataset, lazy, array):
        assert lies_in_blocks(X)
        assert lies_in_blocks(as_block_table(X))
    joblib = np.memmap(tmp_path / "joblib_memmapping_folder", np.float32, "w+", shape=(60, 3))
    assert not lies_in_blocks(joblib)
    with pytest.raises(ValueError, match="array"):
        as_block_table(array).split(y="a")
    with pytest.raises(ValueError, match=r"y names the column 'c'.*\(its columns: a, b\)"):
        as_block_table(lazy).split(y="c")
    with pytest.raises(ValueError, match="no column left"):
        as_block_table(lazy).select(["a"]).split(y="a")
    for X in (dataset, lazy):
        rest, found = as_block_table(X).split(y="b", sample_weight=None)
        assert rest.names == ("a",)
        assert list(found["y"]) == ["x", "y"]


@pytest.mark.parametrize("batches", [True, False])
def test_a_lazy_frame_is_read_in_parts(batches, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_NUMBERS", 20)
    if not batches:  # as in older versions
        collect = pl.LazyFrame.collect
        monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)
        monkeypatch.setattr(pl.LazyFrame, "collect", lambda frame: collect(frame))
    lazy = pl.DataFrame({"a": range(100), "b": range(100)}).lazy().filter(pl.col("a") > 9)
    parts = list(as_block_table(lazy).blocks().map("read", lambda part: part["a"].to_list()))
    assert max(map(len, parts)) <= 10
    assert list(chain(*parts)) == list(range(10, 100))
    assert as_block_table(lazy).column("b").tolist() == list(range(10, 100))
