"""The recipes of CONTRIBUTING, followed to the letter in a copy of the project.

A recipe is a list of files with a block each: Python is a new file, a diff is an edit. The commands
below it must pass, and must have run something of the new part.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STEP = re.compile(r"^\d+\. `([^`]+)`.*?^   ```(\w+)\n(.*?)^   ```$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = ".venv/bin/python"

# What a user of the new part would type.
FITS = {
    "basis": 'HKLRegressor(0.01, basis="tanh").fit(X, y)',
    "loss": 'HKLRegressor(0.01, loss="expectile").fit(X, y)',
    "graph": "HKLRegressor(0.01, graph=graphs.HalvesGraph(2)).fit(X, y)",
    "engine": 'HKLRegressor(0.01, engine="counting").fit(X, y)',
}


def recipes():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.split("## Recipes\n", 1)[1].split("\n## ", 1)[0]
    parts = re.split(r"^### A new (\w+)$", section, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def edited(text, diff):
    """Apply a diff of whole lines; its hunks are separated by lines of three dots."""
    lines = text.splitlines()
    for hunk in re.split(r"^\.\.\.\n", diff, flags=re.MULTILINE):
        marked = hunk.splitlines()
        assert all(line[:1] in ("+", "-", " ") for line in marked), hunk
        before = [line[1:] for line in marked if line[0] != "+"]
        after = [line[1:] for line in marked if line[0] != "-"]
        assert before != after, f"this changes nothing:\n{hunk}"
        places = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
        assert len(places) == 1, f"these lines stand in {len(places)} places:\n{hunk}"
        lines[places[0] : places[0] + len(before)] = after
    return "\n".join(lines) + "\n"


def follow(recipe, project):
    """Write the files of a recipe and return their names."""
    named = re.findall(r"^\d+\. `([^`]+)`", recipe, flags=re.MULTILINE)
    steps = STEP.findall(recipe)
    assert [name for name, _, _ in steps] == named, "a step has no block, or one too many"
    for name, language, block in steps:
        target = project / name
        content = textwrap.dedent(block)
        if language == "python":
            assert not target.exists(), f"{name} is no new file"
            target.write_text(content)
        else:
            target.write_text(edited(target.read_text(), content))
    return named


def run(words, project):
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    done = subprocess.run(
        words, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def test_there_is_a_recipe_for_everything_one_can_add():
    assert set(recipes()) == set(FITS) == {"basis", "loss", "graph", "engine"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(FITS))
def test_the_recipe_works_to_the_letter(kind, tmp_path):
    for name in ("src", "tests", "docs", "README.md", "pyproject.toml"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    recipe = recipes()[kind]
    files = follow(recipe, tmp_path)
    where = run([sys.executable, "-c", "import hikernel; print(hikernel.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path), "the copy is not what is imported"
    commands = COMMANDS.search(recipe).group(1).splitlines()
    for command in commands:
        words = shlex.split(command)
        assert words[0] == PYTHON
        out = run([sys.executable, *words[1:], "-q", "-p", "no:cacheprovider"], tmp_path)
        passed = int(re.search(r"(\d+) passed", out).group(1))
        assert passed > 2, f"{command} tests next to nothing"
    fit = f"""
import numpy as np
from hikernel import HKLRegressor, graphs
X = np.random.default_rng(0).uniform(-1, 1, size=(100, 4))
y = X[:, 0] + X[:, 1] * X[:, 2]
model = {FITS[kind]}
assert model.certificate_.certified and model.score(X, y) > 0.3
"""
    if kind != "graph":
        # A level that the legend does not know is said to be "of the basis" of that name.
        fit += "assert 'of the basis' not in model.formula(), model.formula()\n"
    run([sys.executable, "-W", "error", "-c", fit], tmp_path)
    if kind in ("basis", "loss"):
        quoted = re.search(rf'{kind}=(".*?")', FITS[kind]).group(1)
        show = "import hikernel; print(hikernel.HKLRegressor.__doc__)"
        assert quoted in run([sys.executable, "-c", show], tmp_path)
        assert quoted in (tmp_path / "README.md").read_text()
    assert any(name.startswith("src/") for name in files)
