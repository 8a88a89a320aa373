"""Saved results: what they remember, and what makes them stale."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hikernel.experiments import runner, settings
from hikernel.experiments.fingerprint import choices, fingerprint
from hikernel.experiments.page import read_results
from hikernel.experiments.paper_data import load, source_of
from hikernel.experiments.settings import KERNELS
from hikernel.experiments.store import Job, Result, Store
from hikernel.experiments.tables import Cell, summarise
from hikernel.selection import PathEnd

JOB = Job("boston", "pol4", "L2", 0)


def result(job=JOB, test=(30.0, 20.0), grid=None, terms=(), **fields):
    grid = [0.1**k for k in range(len(test))] if grid is None else list(grid)
    return Result(job, 506, 13, grid, list(test), list(test), list(terms), 1.0, **fields)


# -- fingerprints -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "name", "value"),
    [
        (Job("boston", "pol4", "HKL", 0), "MAX_KERNELS", 1000),
        (Job("boston", "pol4", "HKL", 0), "CV_FOLDS", 5),
        (Job("boston", "rbf", "L2", 0), "L2_GRID", np.array([1.0])),
        (Job("boston", "rbf", "L2", 0), "RBF_WIDTH", 0.5),
        (Job("boston", "rbf", "L2", 0), "RBF_WIDTHS", {"boston": 0.5}),
        (Job("boston", "pol4", "HKL", 0), "WEIGHT_BASES", {"boston": 2.0}),
        (Job("boston", "mehler", "HKL", 0), "MEHLER_WIDTH", 0.5),
        (Job("boston", "rbf", "MKL", 0), "MKL_GRID", np.array([1.0])),
        (Job("boston", "rbf", "greedy", 0), "GREEDY_RIDGE", 1.0),
        (Job("boston", "rbf", "greedy", 0), "GREEDY_KERNELS", 5),
        (Job("boston", "rbf", "lasso-alpha", 0), "LASSO_GRID", np.array([1.0])),
        (Job("boston", "rbf", "lasso-alpha", 0), "LASSO_STEPS", 1),
        (Job("spambase", "rbf", "HKL", 0), "CLIP", {}),
        (Job("spambase", "rbf", "HKL", 0), "LOG_OFFSET", {"spambase": 1.0}),
        (Job("mushrooms", "pol4", "HKL", 0), "INDICATORS", frozenset()),
        (Job("magic04", "pol4", "HKL", 0), "CLASSIFICATION_ROWS", 512),
        (Job("twonorm", "pol4", "HKL", 0), "NORM_SEED", 1),
        (
            Job("synthetic-plain-8", "pol4", "HKL", 0),
            "FIGURE",
            replace(settings.FIGURE, noise=0.2),
        ),
    ],
)
def test_every_choice_behind_a_job_changes_its_fingerprint(monkeypatch, job, name, value):
    before, other = fingerprint(job), fingerprint(Job("abalone", "pol4", "HKL", 0))
    assert fingerprint(replace(job, seed=7)) == before
    monkeypatch.setattr(settings, name, value)
    assert fingerprint(job) != before
    if name not in ("MAX_KERNELS", "CV_FOLDS"):
        assert fingerprint(Job("abalone", "pol4", "HKL", 0)) == other


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("HKL", {"alphas": np.array([1.0])}),
        ("HKL", {"weight_base": 9.0}),
        ("L2", {"share": 0.5}),
        ("lasso-alpha", {"decay": 0.5}),
        ("greedy", {"levels": 2}),
    ],
)
def test_every_field_of_a_kernel_counts(monkeypatch, method, change):
    job = Job("abalone", "pol4", method, 0)
    before = fingerprint(job)
    monkeypatch.setitem(KERNELS, "pol4", replace(KERNELS["pol4"], **change))
    assert fingerprint(job) != before


def test_more_draws_of_the_figure_keep_those_there_are(monkeypatch):
    job = Job("synthetic-plain-8", "pol4", "HKL", 0)
    before = fingerprint(job)
    more = replace(settings.FIGURE, replications=80, variables=(4,))
    monkeypatch.setattr(settings, "FIGURE", more)
    assert fingerprint(job) == before
    # Text without addresses in memory, so that another process finds the same.
    assert " at 0x" not in json.dumps(choices(Job("boston", "rbf", "HKL", 0)))


# -- what counts as done ------------------------------------------------------------------------


def test_lines_without_settings_are_not_done(tmp_path):
    store = Store(tmp_path / "table1.jsonl")
    store.add(result())
    assert store.missing([JOB]) == store.outdated() == [JOB]


def test_results_of_other_settings_are_not_done(tmp_path):
    store = Store(tmp_path / "table1.jsonl")
    store.add(result(settings=fingerprint(JOB)))
    assert store.missing([JOB]) == []
    store.add(result(replace(JOB, seed=1), settings="0123456789ab"))
    store.add(result(replace(JOB, kernel="gone"), settings="0123456789ab"))
    assert store.missing([JOB, replace(JOB, seed=1)]) == [replace(JOB, seed=1)]
    assert store.outdated() == [replace(JOB, seed=1), replace(JOB, kernel="gone")]
    assert [r.job for r in read_results(tmp_path)["table1"]] == [JOB]
    # A later line of other settings does not hide the one that holds.
    store.add(result(test=(1.0, 1.0), settings="0123456789ab"))
    assert store.results()[JOB].test == [30.0, 20.0]


def test_results_from_other_data_are_not_done(tmp_path):
    store = Store(tmp_path / "table1.jsonl")
    store.add(result(source="openml", settings=fingerprint(JOB)))
    assert store.missing([JOB]) == []
    assert store.missing([JOB], {"boston": ""}) == []
    assert store.missing([JOB], {"boston": "openml"}) == []
    assert store.missing([JOB], {"boston": "file"}) == [JOB]


def test_sources_are_known_before_and_after_loading(tmp_path):
    (tmp_path / "boston.csv.gz").write_bytes(b"")
    assert source_of("boston", tmp_path) == "file"
    assert source_of("abalone", tmp_path) == ""
    assert source_of("abalone", tmp_path, openml=True) == "openml"
    assert source_of("bank-32fm", openml=True) == ""
    assert source_of("twonorm") == load("twonorm").source == "formula"
    assert source_of("synthetic-plain-4") == load("synthetic-plain-4").source == "generated"


def test_a_run_says_what_it_sets_aside_and_what_it_cannot_read(tmp_path, monkeypatch):
    monkeypatch.setattr(
        runner, "run_job", lambda job, *rest: result(job, settings=fingerprint(job))
    )
    store, lines = Store(tmp_path / "table1.jsonl"), []
    store.add(result(settings="0123456789ab"))
    store.file.write_text("nonsense\n[]\n\n" + store.file.read_text() + "cut o")
    assert store.unreadable() == [1, 2]
    assert runner.run_jobs([JOB], store, None, say=lines.append).computed == 1
    assert lines[0] == "1 jobs, 0 of them done before."
    assert lines[1].startswith("1 results in ")
    assert "other settings or other data" in lines[1]
    assert lines[2].startswith("Line 1 of")
    assert runner.run_jobs([JOB], store, None, say=lines.append).computed == 0


def test_unequal_grids_cannot_be_averaged():
    one, two = result(), result(replace(JOB, seed=1), grid=[1.0, 0.2])
    for other in (two, result(replace(JOB, seed=1), test=(1.0, 2.0, 3.0))):
        with pytest.raises(ValueError, match=r"L2 seed 0 and .* seed 1 have different grids"):
            Cell.of([one, other])
        with pytest.raises(ValueError, match="have different grids"):
            summarise([one, other])


# -- ends of paths ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reach", "path_end", "end"),
    [
        ((2, 2, 4), PathEnd.MAX_KERNELS, "Q"),
        ((2, 4, 4), PathEnd.MAX_KERNELS, ""),
        ((2, 2, 2), PathEnd.SATURATED, "last"),
        ((4, 4, 4), PathEnd.ALL_SOLVED, ""),
    ],
)
def test_the_end_of_most_paths_is_named(reach, path_end, end):
    cells = [
        result(replace(JOB, seed=i), test=(9.0, 4.0, 5.0, 5.0), reached=r, end=path_end.name)
        for i, r in enumerate(reach)
    ]
    assert Cell.of(cells).end == end


def test_the_last_of_the_grid_is_an_end():
    assert Cell.of([result(test=(9.0, 4.0, 3.0), reached=3)]).end == "last"
