"""The group of commands: help, versions, exit statuses, and errors as one sentence."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hikernel import HKLRegressor
from hikernel._version import __version__
from hikernel.cli import application, fit_command, main, report_command


def test_the_version(run):
    assert run("--version").stdout == f"hikernel {__version__}\n"
    assert main(["--version"]) == 0


@pytest.mark.parametrize("command", ["", *application.COMMANDS])
def test_help_has_a_word_on_everything(command, run):
    result = run(*command.split(), "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"Usage: hikernel {command}" in result.stdout
    assert "--debug" in result.stdout
    if not command:
        for name, (_, line) in application.COMMANDS.items():
            assert f"  {name}" in result.stdout
            assert line in result.stdout


def test_help_is_fast():
    code = (
        "import sys; from hikernel.cli import main; main(['--help']); main(['fit', '--help']); "
        "main(['predict', '--help']); main(['demo', '--help']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "click" in loaded
    assert {"numpy", "pandas", "sklearn", "scipy", "bokeh", "tqdm"} & set(loaded) == set()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "hikernel: Missing command. (hikernel --help tells more.)"),
        (["fti"], "hikernel: No such command 'fti'."),
        (["--nonsense"], "hikernel: No such option"),
        (["fit"], "hikernel fit: Missing argument 'DATA'. (hikernel fit --help tells more.)"),
        (["fit", "a.csv"], "hikernel fit: Missing option '--target'."),
        (["fit", "a.csv", "--target", "y", "--rule", "x"], "hikernel fit: Invalid value for"),
        (["fit", "a.csv", "--target", "y", "--max-order", "0"], "hikernel fit: Invalid value for"),
        (["fit", "a.csv", "--target", "y", "--time-budget", "0"], "hikernel fit: Invalid value"),
        (["predict", "a.hik"], "hikernel predict: Missing argument 'DATA'."),
        (["explain", "a.hik", "b.csv", "--row", "0"], "hikernel explain: Invalid value for"),
        (["reproduce", "table3"], "hikernel reproduce: Invalid value for"),
    ],
)
def test_wrong_usage_is_a_line_and_status_two(words, line, run):
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert main(words) == 2


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyError("x"), 1, "hikernel demo: Unexpected KeyError: 'x' (--debug shows where;"),
        (MemoryError("Too many rows."), 1, "hikernel demo: Too many rows."),
        (MemoryError(), 1, "hikernel demo: There is not enough memory."),
        (OSError(28, "No space left", "a.hik"), 1, "hikernel demo: No space left: 'a.hik'."),
        (OSError("odd"), 1, "hikernel demo: odd."),
        (ImportError("It needs\nbokeh."), 2, "hikernel demo: It needs bokeh."),
        (KeyboardInterrupt(), 130, "hikernel demo: Stopped."),
    ],
)
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_errors_of_the_work(error, code, line, debug, folder, run, monkeypatch):
    def fails():
        raise error

    monkeypatch.setitem(sys.modules, "hikernel.demo", SimpleNamespace(run_demo=fails))
    for words in (["demo", *debug], [*debug, "demo"]):
        result = run(*words)
        assert result.exit_code == code
        lines = result.stderr.strip().split("\n")
        assert lines[-1].startswith(line)
        assert ("Traceback (most recent call last):" in lines) == bool(debug)
        assert len(lines) == 1 or debug
    assert main(["demo"]) == code


def test_the_choices_of_fit_are_those_of_the_library():
    from hikernel.bases import BASES
    from hikernel.columns.basis_choice import AUTO, WITH_JUMPS, WITH_STEPS
    from hikernel.estimators.comparison import RULES
    from hikernel.losses import CLASSIFICATION, REGRESSION
    from hikernel.selection import REFITS

    known = {"regression": list(REGRESSION), "classification": list(CLASSIFICATION)}
    assert known == fit_command.LOSSES
    assert sorted(fit_command.BASES) == sorted([AUTO, WITH_JUMPS, WITH_STEPS, *BASES])
    assert sorted(fit_command.REFITS) == sorted(["auto", "none", *REFITS])
    options = {option.name: option for option in fit_command.fit.params}
    assert set(options["rule"].type.choices) == set(RULES)


def test_the_demo_needs_bokeh_for_its_page_only(folder, run, monkeypatch):
    monkeypatch.setattr(report_command, "find_spec", lambda name: None)
    demo = SimpleNamespace(run_demo=lambda: print("shown"))
    monkeypatch.setitem(sys.modules, "hikernel.demo", demo)
    result = run("demo")
    assert result.exit_code == 0
    assert result.stdout == (
        "shown\nNo report was written, which needs bokeh: pip install 'hikernel[report]'.\n"
    )
    asked = run("demo", "--report", "a.html")
    assert asked.exit_code == 2
    assert asked.stdout == ""
    assert "A report needs bokeh: pip install 'hikernel[report]'." in asked.stderr


def test_the_demo_overwrites_its_own_file_only(folder, run, monkeypatch):
    pytest.importorskip("bokeh")

    def write(path):
        path.write_text("page")

    demo = SimpleNamespace(run_demo=lambda: SimpleNamespace(report=write))
    monkeypatch.setitem(sys.modules, "hikernel.demo", demo)
    for _ in range(2):
        assert run("demo").stdout == "Report: hikernel-demo.html (open it in a browser)\n"
    assert (folder / "hikernel-demo.html").read_text() == "page"
    assert run("demo", "--report", "other.html").exit_code == 0
    again = run("demo", "--report", "other.html")
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert run("demo", "--report", "other.html", "--force").exit_code == 0


def test_a_failure_of_the_library_is_no_bad_input(models, run, monkeypatch):
    words = ["predict", "price.hik", "new.csv"]

    def raises(*args):
        raise ValueError("a slip")

    def adds(*args):  # NumPy raises, and the last frame is that of the function
        return np.zeros(2) + np.zeros(3)

    for namespace, function, code in (
        ("hikernel.columns.table", raises, 2),
        ("hikernel.search.growth", raises, 1),
        ("hikernel.columns.table", adds, 1),
    ):
        place = {"__name__": namespace, "np": np, "ValueError": ValueError}
        slip = type(function)(function.__code__, place)
        monkeypatch.setattr(HKLRegressor, "predict", lambda *args, slip=slip: slip())
        result = run(*words)
        assert result.exit_code == code, result.stderr
        assert ("Unexpected ValueError" in result.stderr) == (code == 1)
