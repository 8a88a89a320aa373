"""Check the wheel and the sdist in a folder: what is in them, and that each works when installed.

Each is installed in an empty environment outside the checkout, the wheel alone and with the extras
for pictures and pages. Ends with an error at the first thing that is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "hikernel"

SMOKE = """
import sys
from importlib.util import find_spec
import numpy as np, pandas as pd
import hikernel
from hikernel import HKLClassifier, HKLRegressor

assert hikernel.__file__.startswith(sys.prefix), hikernel.__file__
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1, 1, (150, 4)), columns=list("abcd"))
X["town"] = rng.choice(["Oslo", "Rome"], 150)
y = X["a"] + 2 * X["b"] * X["c"] + 0.1 * rng.standard_normal(150)
model = HKLRegressor().fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
assert "b * c" in set(model.effects_["effect"]), model.effects_
assert model.certificate_.certified
model.save("model.hik")
again = hikernel.load("model.hik")
assert np.array_equal(again.predict(X), model.predict(X))
labels = HKLClassifier().fit(X, y > 0)
assert labels.score(X, y > 0) > 0.9
for name in ("model.py", "model.sql", "model.json"):
    model.export(name)
if find_spec("bokeh") and find_spec("matplotlib"):
    model.report("page.html")
    model.plot().savefig("model.png")
    assert "hikernel" in open("page.html", encoding="utf-8").read()
X.assign(y=y).to_csv("table.csv", index=False)
"""

COMMANDS = [
    ["fit", "table.csv", "--target", "y", "--out", "fitted.hik"],
    ["predict", "fitted.hik", "table.csv", "--out", "predicted.csv"],
    ["explain", "fitted.hik", "table.csv", "--row", "1"],
]


def sources() -> set[str]:
    """Return the files of the package that version control knows, relative to src/."""
    listed = subprocess.run(
        ["git", "ls-files", "src/hikernel"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.removeprefix("src/") for name in listed.stdout.split()}


def check_wheel(path: Path) -> None:
    """Raise unless a wheel has exactly the package and its metadata."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        notes = {Path(name).name for name in archive.namelist() if ".dist-info/" in name}
    compare(path, names, sources())
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= notes, notes


def check_sdist(path: Path) -> None:
    """Raise unless an sdist has what builds the package, and nothing else."""
    with tarfile.open(path) as archive:
        files = [member.name.split("/", 1)[1] for member in archive if member.isfile()]
    made = {"PKG-INFO", "setup.cfg"}
    beside = {
        "pyproject.toml",
        "MANIFEST.in",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
    }
    names = {name for name in files if not name.startswith("src/hikernel.egg-info/")}
    compare(path, names, {f"src/{name}" for name in sources()} | beside | made)


def compare(path: Path, found: set[str], wanted: set[str]) -> None:
    """Raise unless a file has the members that it should."""
    assert found == wanted, (
        f"{path.name} lacks {sorted(wanted - found)} and has {sorted(found - wanted)} too many"
    )
    print(f"{path.name}: {len(found)} files, as it should be")


def try_out(requirement: str, folder: Path) -> None:
    """Install in an empty environment and use it, from a folder that is not the checkout."""
    print(f"{Path(requirement).name}: install and use", flush=True)
    home = folder / "environment"
    venv.create(home, with_pip=True, clear=True)
    python = home / "bin" / "python"
    work = folder / "work"
    work.mkdir()
    # What points to the checkout must not help.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=work, env=clean, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)[:200]}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", requirement)
    run(*pip, "check")
    run(str(python), "-W", "error::SyntaxWarning", "-c", SMOKE)
    command = str(home / "bin" / "hikernel")
    version = run(command, "--version").split()[-1]
    assert f"hikernel-{version}" in requirement, version
    for words in COMMANDS:
        assert run(command, *words) or words[0] == "predict"
    assert (work / "predicted.csv").stat().st_size > 0
    assert "true" in run(command, "demo")


def main(folder: Path) -> None:
    """Check the one wheel and the one sdist of a folder."""
    (wheel,) = folder.resolve().glob("*.whl")
    (sdist,) = folder.resolve().glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    for requirement in (str(wheel), f"{wheel}[plot,report]", str(sdist)):
        with tempfile.TemporaryDirectory() as place:
            try_out(requirement, Path(place))
    print("Both can be installed and used.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
