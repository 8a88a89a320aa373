"""An engine over blocks of rows beside the one in memory: every method, however rows are cut."""

from __future__ import annotations

import inspect
import pickle
import tempfile

import numpy as np
import pytest
from engines.blocks import in_blocks
from engines.cases import make_engine

from hikernel.engines import NumpyEngine, group_work, row_block_engine, row_blocks
from hikernel.engines.row_blocks import (
    FileBlocks,
    HeldBlocks,
    StreamedBlocks,
    split_rows_of_blocks,
)
from hikernel.errors import MemoryPlanError

CASES = {
    "single": {"widths": ((1, 1, 1, 1), (1, 1, 1), (1, 1))},
    "wide": {},
    "no constant": {"constant": (False, True, False)},
}


def calls(engine, grid, outputs):
    """Every method of an engine, with what it returns."""
    rng = np.random.default_rng(3)
    shape = (engine.n_rows,) if outputs == 1 else (engine.n_rows, outputs)
    vector, weights = rng.standard_normal(shape), rng.uniform(size=engine.n_rows)
    nodes = [(), *(((m, j),) for m, j in engine.level_pairs), ((0, 1), (1, 2)), ((0, 1), (2, 1))]
    columns = sum(engine.width(node) for node in nodes)
    coef = rng.standard_normal((columns, *shape[1:]))
    means, scales = engine.means(nodes), grid.tail_scales()
    blocks = np.split(coef, np.cumsum([engine.width(node) for node in nodes])[:-1])
    yield "means", means
    yield "weighted means", engine.means(nodes, weights)
    yield "features", engine.features(nodes)
    yield "gram", engine.gram(nodes, nodes[1:], means, means[engine.width(()) :], weights)
    yield "own gram", engine.gram(nodes, nodes, means, means)
    yield "diagonal", engine.gram_diagonal(nodes, means)
    yield "variances", engine.variances(nodes, blocks)
    yield "apply", engine.apply(nodes, coef)
    yield "correlate", engine.correlate(nodes, vector)
    yield "absolute", engine.correlate(nodes, vector, absolute=True)
    yield "bounds", engine.score_bounds(nodes, vector)
    for rounded_up in (False, True):
        yield "squares", engine.score_squares(nodes, vector, rounded_up=rounded_up)
        yield "extensions", engine.extension_squares(nodes[:4], vector, rounded_up=rounded_up)
    yield "level squares", engine.level_squares(weights)
    tops = [((m, 1),) for m in range(3)]
    if not engine_of(engine).everywhere:
        yield "limited sums", engine.tail_sums(tops, vector, scales, 2)
        yield "limited draws", engine.tail_draws(tops, vector, scales, 2, 20, 1)
        yield "limited diagonal", engine.tail_diagonal(tops, vector, scales, 2)
    yield "sums", engine.tail_sums(tops, vector, scales)
    yield "draws", engine.tail_draws(tops, vector, scales, None, 20, 1)
    yield "diagonal", engine.tail_diagonal(tops, vector, scales, None)


def engine_of(engine):
    return getattr(engine, "_layout", engine).node_features


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cuts", [(), (100,), (1, 40, 41, 222)])
def test_every_method_is_that_of_the_engine_in_memory(case, cuts, outputs, monkeypatch):
    monkeypatch.setattr(row_block_engine, "_LEAST_GROUP", 16)
    monkeypatch.setattr(row_block_engine, "_GROUP_NUMBERS", 1)
    monkeypatch.setattr(row_block_engine, "_PREFIX_COLUMNS", 3)
    whole, *_, grid = make_engine(NumpyEngine, n=300, **CASES[case])
    cut, *_ = make_engine(in_blocks(cuts), n=300, **CASES[case])
    rows = np.flatnonzero(np.random.default_rng(5).random(300) < 0.6)
    pairs = [(whole, cut), (whole.subset(rows), cut.subset(rows))]
    nested = np.arange(3, len(rows), 2)
    pairs.append((pairs[1][0].subset(nested), pairs[1][1].subset(nested)))
    for one, other in pairs:
        np.testing.assert_allclose(other.row_weights, one.row_weights, rtol=1e-12)
        found = zip(calls(one, grid, outputs), calls(other, grid, outputs), strict=True)
        for (name, wanted), (_, got) in found:
            size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1e-300)
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10 * size, err_msg=name)


def test_a_block_without_selected_rows_is_left_out():
    whole, *_ = make_engine(NumpyEngine, n=60)
    cut, *_ = make_engine(in_blocks((20, 40)), n=60)
    rows = np.arange(45, 60)
    vector = np.ones(15)
    nodes = [((0, 1),), ((1, 2),)]
    expected = whole.subset(rows).correlate(nodes, vector)
    np.testing.assert_allclose(cut.subset(rows).correlate(nodes, vector), expected, rtol=1e-12)


def test_rows_are_taken_in_their_order_and_once():
    for rows in ([2, 1], [1, 1], [-1, 2]):
        with pytest.raises(ValueError, match="increasing row numbers"):
            split_rows_of_blocks([3], [None], np.array(rows))
    assert (
        split_rows_of_blocks([2, 2], [None, None], np.array([True, True, False, True]))[0] is None
    )


def test_sums_over_pairs_of_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(row_block_engine, "_GATHERED", 100)
    engine, *_, grid = make_engine(in_blocks((9,)), n=60)
    with pytest.raises(ValueError, match=r'certify="exact" sums over all pairs of 60 rows'):
        engine.tail_sums([()], np.ones(60), grid.tail_scales())


def test_what_is_computed_on_groups_can_be_sent_elsewhere():
    for name in group_work.__all__:
        found = getattr(group_work, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert pickle.loads(pickle.dumps(found)) is found


def test_a_file_has_the_numbers_of_the_matrices_and_is_gone_with_its_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    matrices = [rng.standard_normal((n, 3)) for n in (5, 1, 700)]
    blocks = StreamedBlocks(lambda: iter(matrices)).kept("copies", lambda matrix: matrix)
    assert isinstance(blocks, FileBlocks)

    def read(block, start, stop):
        return np.column_stack([block[start:stop, m] for m in range(3)])

    cuts = [(0, 5), (0, 1), (100, 650)]
    for found, matrix, (start, stop) in zip(
        blocks.map("read", read, cuts), matrices, cuts, strict=True
    ):
        np.testing.assert_array_equal(found, matrix[start:stop])
    twice = blocks.kept("doubled", lambda block: 2.0 * read(block, 0, len(block)))
    sums = [part.sum() for part in twice.map("read", lambda block: block[0 : len(block), 1])]
    np.testing.assert_allclose(sums, [2.0 * matrix[:, 1].sum() for matrix in matrices])
    del blocks, twice
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noticed_before_the_file_is_written(monkeypatch):
    monkeypatch.setattr(
        row_blocks.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 10})
    )
    with pytest.raises(MemoryPlanError, match="TMPDIR"):
        HeldBlocks([np.ones((4, 4))]).kept("copies", lambda matrix: matrix)
