"""Runs and their command: failures, progress, and mistakes that end in a sentence."""

from __future__ import annotations

import pytest

from hikernel.cli import main
from hikernel.experiments import command, paper_data, runner
from hikernel.experiments.fingerprint import fingerprint
from hikernel.experiments.store import Job, Result, Store

pytestmark = pytest.mark.slow


def result(job, seconds=1.0):
    known = {"settings": fingerprint(job), "source": "file"}
    return Result(job, 80, 3, [1.0], [30.0], [1.0], [], seconds, **known)


def test_jobs_are_done_side_by_side(folder):
    jobs = [Job("boston", "pol4", "L2", seed) for seed in range(2)]
    store = Store(folder / "table1.jsonl")
    assert runner.run_jobs(jobs, store, folder, n_jobs=2, say=lambda line: None).computed == 2
    assert set(store.results()) == set(jobs)


def test_a_job_that_fails_is_listed_and_the_others_go_on(folder, monkeypatch, capsys):
    def fails_once(job, *rest):
        if job.seed == 1:
            raise ZeroDivisionError("no luck")
        return result(job)

    monkeypatch.setattr(runner, "run_job", fails_once)
    words = ["reproduce", "table1", "--data", str(folder), "--results", str(folder / "r")]
    words += ["--datasets", "boston", "--methods", "L2", "--kernels", "pol4"]
    assert main([*words, "--seeds", "0", "1", "2"]) == 1
    shown = capsys.readouterr()
    assert "30.0 ± 0.0† [2]" in shown.out
    lines = shown.err.splitlines()
    assert "boston pol4 L2 seed 1: failed. ZeroDivisionError: no luck" in lines[-4]
    assert "[3/3" in lines[-3]
    assert lines[-2] == "1 jobs failed; the same command tries them again:"
    assert lines[-1].startswith("  boston pol4 L2 seed 1: ZeroDivisionError: no luck (test_runner")
    # The failure was not saved.
    done = Store(folder / "r" / "table1.jsonl").results()
    assert {job.seed for job in done} == {0, 2}
    monkeypatch.setattr(runner, "run_job", lambda job, *rest: result(job))
    assert main([*words, "--seeds", "0", "1", "2"]) == 0


def test_a_mistake_of_ours_is_no_mistake_of_the_user(folder, monkeypatch, capsys):
    def broken(*args, **settings):
        raise ValueError("a bug")

    monkeypatch.setattr(command, "summarise", broken)
    monkeypatch.setattr(runner, "run_job", lambda job, *rest: result(job))
    words = ["reproduce", "table1", "--data", str(folder), "--datasets", "boston"]
    assert main([*words, "--results", str(folder / "r")]) == 1
    assert "hikernel reproduce: Unexpected ValueError: a bug" in capsys.readouterr().err


def test_a_run_estimates_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_job", lambda job, *rest: result(job))
    store, lines = Store(tmp_path / "table1.jsonl"), []
    known = Job("boston", "pol4", "HKL", 0)
    runner.run_jobs([known], store, None, say=lines.append)
    assert lines[1] == "[0/1, time unknown] 1 at a time"
    # Another kernel and set: by the method alone, and not by the mean of everything.
    store.add(result(Job("boston", "pol4", "L2", 0), 5000.0))
    lines.clear()
    others = [Job("abalone", "rbf", "HKL", seed) for seed in range(30)]
    runner.run_jobs(others, store, None, say=lines.append)
    assert lines[1] == "[0/30, about 30 s left] 1 at a time"
    assert lines[2].startswith("[1/30, 0 s passed, about 29 s left] abalone rbf HKL seed 0: 30.00")


def test_clocks():
    shown = [runner._clock(seconds) for seconds in (3, 59.4, 59.9, 600, 3599, 5400)]
    assert shown == ["3 s", "59 s", "1 min", "10 min", "1:00 h", "1:30 h"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table1", "--datasets", "bostn"], "'bostn' is no data set of this experiment: abalone,"),
        (["table2", "--methods", "MKL"], "'MKL' is no method of this experiment: L2, greedy, HKL."),
        (["table1", "--data", "/nowhere"], "/nowhere is not a folder"),
        (["table1", "--datasets", "boston"], "No folder of data was named"),
        (["page"], "has no results; run hikernel reproduce all first"),
        (["page", "--seeds", "1"], "--seeds does nothing with page: page writes what is saved."),
        (["all", "--datasets", "boston"], "--datasets does nothing with all: all is every"),
        (["all", "--methods", "HKL"], "name table1, table2 or figure2"),
        (["figure2", "--kernels", "rbf"], "--kernels does nothing with figure2"),
        (["figure2", "--data", "/nowhere"], "--data does nothing with figure2"),
        (["figure2", "--openml"], "--openml does nothing with figure2"),
        (["table1", "--page", "a.md"], "--page does nothing with table1: only page and all"),
        (["table1", "--seeds", "0", "-1"], "--seeds takes numbers from 0 on, not -1."),
        (["table1", "--n-jobs", "0"], "--n-jobs takes a number of processes"),
        (["table2", "--methods", "L2", "--kernels", "default"], "leave no job"),
        (["table1", "--methods", "MKL", "--kernels", "mehler"], "MKL needs a kernel with a const"),
    ],
)
def test_mistakes_end_in_a_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(paper_data.FOLDER_VARIABLE, raising=False)
    assert main(["reproduce", *words, "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("hikernel reproduce: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("what", ["figure2", "all"])
def test_a_missing_plotting_library_is_known_before_the_work(what, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    monkeypatch.setattr(command, "run_jobs", lambda *args, **settings: pytest.fail("work"))
    assert main(["reproduce", what, "--results", str(tmp_path)]) == 2
    assert "needs matplotlib: pip install 'hikernel[plot]'" in capsys.readouterr().err


def test_an_interrupt_says_that_nothing_is_lost(folder, monkeypatch, capsys):
    def interrupted(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_jobs", interrupted)
    words = ["reproduce", "table1", "--data", str(folder), "--datasets", "boston"]
    assert main([*words, "--results", str(folder / "r")]) == 130
    assert "goes on where this one was" in capsys.readouterr().err
