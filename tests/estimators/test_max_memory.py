"""A fit keeps to ``max_memory``, or says before it starts that it cannot, and what to change."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.engines import machine
from hikernel.errors import ConvergenceWarning, MemoryPlanError
from hikernel.estimators import memory_plan, planned_memory
from hikernel.estimators.memory_plan import FitShape, as_bytes
from hikernel.search import StopReason
from hikernel.search.effort import ColumnLimits
from hikernel.selection import PathEnd, TrainingProblem, refit

MIB = 2**20


def data(n=10_000, p=8, seed=0):
    """Products of neighbouring columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sum(X[:, 1:] * X[:, :-1], axis=1) + X[:, 0] + 0.5 * rng.standard_normal(n)


# -- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (None, None),
        (12345, 12345),
        (np.int64(10**9), 10**9),
        (2e9, 2 * 10**9),
        ("512B", 512),
        ("4GB", 4 * 10**9),
        (" 1.5 GiB ", 3 * 2**29),
        ("300 MB", 3 * 10**8),
        ("8KiB", 8192),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes_are_numbers_or_text_with_a_unit(given, size):
    assert as_bytes("max_memory", given) == size


@pytest.mark.parametrize(
    "given", ["4", "4 gigabytes", "-1GB", "GB", "", 0, -5, True, np.nan, np.inf, "1e9B", [1], "0GB"]
)
def test_other_sizes_are_refused(given):
    with pytest.raises(ValueError, match=r'max_memory must be a number of bytes.*"4GB".*got'):
        HKLRegressor(0.1, max_memory=given).fit(*data(60, 3))


# -- the system refuses what is above the limit ---------------------------------------------------


def within(n_rows, make, limits):
    """What the next test runs: fits to which the system gives no more than ``max_memory``."""
    X, y = data(n_rows, 6)
    warnings.simplefilter("ignore")
    free = make().fit(X, y)  # loads what is loaded when it is first needed, too
    for limit in limits:
        model = make().set_params(max_memory=limit)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + as_bytes("max_memory", limit)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        began = time.process_time()
        try:
            model.fit(X, y)
            said = f"fitted, {np.array_equal(model.predict(X), free.predict(X))}"
        except MemoryPlanError as error:
            said = f"{error} [{'early' if time.process_time() - began < 1.0 else 'late'}]"
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(f"{limit}: {said}")


def cross_validated():
    return HKLRegressorCV(cv=2, n_alphas=5, basis={}, certify="none", refit="ridge")


UNDER_LIMITS = {
    "one alpha": ("lambda: HKLRegressor(1e-2, max_order=2)", ["1MB", "30MB", "56MB", "90MB"]),
    "cv": ("cross_validated", ["8MB", "50MB", "80MB"]),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
@pytest.mark.parametrize("name", UNDER_LIMITS)
def test_a_fit_takes_no_more_than_its_limit_or_does_not_start(name):
    make, limits = UNDER_LIMITS[name]
    code = (
        "import test_max_memory as t; from hikernel import HKLRegressor; "
        f"cross_validated = t.cross_validated; t.within(5000, {make}, {limits})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(said) == limits
    for limit in limits[-2:]:
        assert said[limit].startswith("fitted, True"), said[limit]
    for limit in limits[:-2]:
        assert "max_memory" in said[limit]
        assert "fewer rows" in said[limit]
        assert said[limit].endswith("[early]")


# -- what there is room for -----------------------------------------------------------------------


def test_a_fit_that_cannot_fit_says_so_before_it_starts(monkeypatch):
    X, y = data(3000)
    monkeypatch.setattr(TrainingProblem, "solve", None)
    with pytest.raises(
        MemoryPlanError, match=r"3,000 rows and 8 columns takes at least [\d.]+ MiB"
    ):
        HKLRegressor(0.1, max_memory="4MB").fit(X, y)
    with pytest.raises(MemoryPlanError, match=r"cross-validation; 32 features.*fewer folds"):
        HKLRegressorCV(cv=40, max_memory="30MB").fit(X, y)
    with pytest.raises(MemoryPlanError, match="for the table alone, and there are"):
        HKLRegressor(0.1, max_memory=MIB).fit(*data(10**5, 8))
    with pytest.raises(MemoryPlanError, match="takes at least"):
        hkl_path(X, y, max_memory="4MB")


def test_large_tables_are_planned_without_a_limit(monkeypatch):
    monkeypatch.setattr(planned_memory, "_LARGE_TABLE", 1000)
    monkeypatch.setattr(memory_plan, "available_bytes", lambda **_: 4 * MIB)
    with pytest.raises(MemoryPlanError, match=r"\(proof; 32 features.*4.0 MiB are available"):
        HKLRegressor(0.1).fit(*data(3000))


@pytest.mark.slow
def test_a_proof_that_is_not_made_needs_no_memory(monkeypatch):
    X, y = data(3000)
    with pytest.raises(MemoryPlanError, match=r"\(proof;"):
        HKLRegressor(0.1, max_memory="20MB").fit(X, y)
    HKLRegressor(0.1, max_memory="20MB", certify="none").fit(X, y)
    monkeypatch.setattr(memory_plan, "AUTO_SKETCH_WORK", 0)  # "auto" proves nothing for more
    HKLRegressor(0.1, max_memory="20MB").fit(X, y)


@pytest.mark.slow
def test_hulls_have_as_many_columns_as_there_is_room_for():
    X, y = data(1000, 12)

    def fitted(limit):
        return HKLRegressor(1e-7, certify="none", max_memory=limit).fit(X, y)

    def largest(model):
        return max(certificate.n_kernels for certificate in model.history_)

    with pytest.warns(ConvergenceWarning, match="stopped at the memory that it may take; raise"):
        model = fitted("10MB")
    assert model.certificate_.reason is StopReason.MAX_MEMORY
    assert memory_plan._LEAST_COLUMNS <= largest(model) < 200
    # The limit is one of sizes, which are the same at every load and on every machine.
    with pytest.warns(ConvergenceWarning):
        again, more = fitted("10MB"), fitted("14MB")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert largest(more) > largest(model)


def test_the_rule_of_the_paper_keeps_to_the_limit_too():
    X, y = data(1000, 12)
    settings = {"search": "paper", "certify": "none", "max_memory": "8MB"}
    with pytest.warns(ConvergenceWarning, match="stopped at the memory that it may take"):
        model = HKLRegressor(1e-5, **settings).fit(X, y)
    assert model.certificate_.reason is StopReason.MAX_MEMORY
    assert max(certificate.n_kernels for certificate in model.history_) <= 150


def test_a_path_ends_where_the_room_does():
    X, y = data(1000, 12)
    path = hkl_path(X, y, alphas=[0.1, 1e-7], max_memory="10MB")
    assert path.reason is PathEnd.MAX_MEMORY
    assert "raise max_memory" in path.reason.sentence


@pytest.mark.parametrize("make", [lambda: HKLRegressor(0.01), cross_validated])
def test_a_limit_that_is_ample_changes_nothing(make):
    X, y = data(300, 4)
    plain = make().fit(X, y)
    limited = make().set_params(max_memory="8GB").fit(X, y)
    np.testing.assert_array_equal(limited.predict(X), plain.predict(X))
    assert limited.certificate_ == plain.certificate_
    assert machine._memory.get() is None


def test_a_refit_has_no_more_columns_than_fit():
    X, y = data(1000, 12)
    model = HKLRegressor(1e-3, certify="none", refit="ridge").fit(X, y)
    problem = model._problem_on(model._source(X), model._read_data(X, y, None))
    selected = problem.solve(1e-3, model._check_parameters())
    for name in ("ridge", "sparse", "unpenalised"):
        assert refit(name, problem, selected) is not None
        for room, fits in ((selected.n_terms, True), (selected.n_terms - 1, False)):
            limited = replace(problem, room=ColumnLimits(refit=room))
            assert (refit(name, limited, selected) is not None) == fits
    few = refit("variables", replace(problem, room=ColumnLimits(refit=100)), selected)
    assert few is None or len(few.model.coef) <= 100


def test_the_only_refit_applies_to_every_hull_that_there_is_room_for():
    shape = FitShape(n_rows=20_000, n_columns=10, n_features=40, n_levels=40)
    limits = shape.limits(150 * MIB, 2000)
    assert memory_plan._LEAST_COLUMNS < limits.hull <= limits.refit < 1000
    assert replace(shape, refits=False).limits(150 * MIB, 2000).hull > limits.hull


def test_steps_that_there_is_no_memory_for_are_told():
    X, y = data(3000)
    limit = "22MB"
    with pytest.warns(UserWarning, match=r"Steps beside .* were not tried\. .* max_memory"):
        model = HKLRegressorCV(cv=2, n_alphas=3, certify="none", max_memory=limit).fit(X, y)
    assert "steps" not in "".join(model.bases_["basis"])


# -- the plan against what is taken ---------------------------------------------------------------

MEASURED = {
    "one alpha": (lambda: HKLRegressor(1e-2), 2500, 8),
    "a refit of many terms": (
        lambda: HKLRegressor(1e-4, certify="none", refit="ridge"),
        8000,
        12,
    ),
    "cv": (cross_validated, 6000, 12),
    "classes": (
        lambda: HKLClassifierCV(cv=2, n_alphas=5, basis={}, certify="none", refit="ridge"),
        2000,
        6,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_no_more_is_taken_than_planned(name, monkeypatch):
    make, n, p = MEASURED[name]
    X, y = data(n, p)
    y = np.digitize(y, [-1.0, 1.0]) if name == "classes" else y
    shapes = []
    honest = FitShape.limits

    def noted(self, *given):
        shapes.append(self)
        return honest(self, *given)

    monkeypatch.setattr(FitShape, "limits", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().fit(X[:90], y[:90])
        tracemalloc.start()
        try:
            model = make().set_params(max_memory="64GB").fit(X, y)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    points = model.path_.points if hasattr(model, "path_") else []
    hull = max([c.n_kernels for c in model.history_] + [len(q.model.nodes) for q in points])
    planned = shapes[0].peak(ColumnLimits(hull, hull))
    assert 0.25 * planned < taken < planned


def test_more_memory_never_allows_less():
    shape = FitShape(20_000, 20, 80, 80, fold_rows=(16_000,) * 5)
    found = [shape.limits(size * 2**20, 2000) for size in range(250, 3000, 50)]
    assert found == sorted(found)
    assert found[-1] == ColumnLimits()
    for limits, size in zip(found, range(250, 3000, 50), strict=True):
        most = ColumnLimits(min(limits.hull, 2080), min(limits.refit, 1000))
        assert shape.peak(most) <= size * 2**20


def test_threads_may_refuse_a_fit_but_change_no_model(monkeypatch):
    shape = FitShape(20_000, 20, 80, 80)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(memory_plan, "n_threads", lambda threads=threads: threads)
        found.append(shape.limits(300 * MIB, 2000))
    assert found[0] == found[1]
    assert found[0].hull < 2000
    monkeypatch.setattr(memory_plan, "n_threads", lambda: 64)
    with pytest.raises(MemoryPlanError, match=r"\(proof; 80 features"):
        shape.limits(300 * MIB, 2000)
