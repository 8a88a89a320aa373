"""The page on the command line: every command that it shows runs, in its order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_commands_of_the_page_run(folder, houses, run):
    pytest.importorskip("bokeh")
    houses.head(5).assign(id=range(5)).to_csv("new.csv", index=False)
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).splitlines()
    assert len(lines) == 9
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "hikernel"
        result = run(*words)
        assert result.exit_code == 0, result.stderr
    assert (folder / "predictions.csv").read_text().startswith("id,prediction\n0,")
    assert "<html" in (folder / "report.html").read_text()
    assert "<html" in (folder / "page.html").read_text()
    assert "def predict(" in (folder / "model.py").read_text()
    assert 'FROM "houses"' in (folder / "model.sql").read_text()


def test_the_options_of_the_page_are_there(run):
    text = PAGE.read_text()
    commands = ("fit", "predict", "explain", "report", "export")
    known = {word for name in commands for word in helped(run, name)}
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - {"--help"}
    assert len(shown) > 20
    assert shown <= known


def helped(run, command):
    return re.findall(r"(?<![\w-])--[a-z][a-z-]*", run(command, "--help").stdout)
