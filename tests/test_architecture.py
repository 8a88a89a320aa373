"""Rules of the house that a reader cannot see: import direction, light imports, short files."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "hikernel"

# Imports go down this list only (packages on one line may import each other's siblings in the
# order given). Modules that stand alone are their own layer.
LAYERS = [
    {"cli"},
    {"experiments"},
    {"report"},
    {"persistence"},
    {"estimators"},
    {"frames"},
    {"explain"},
    {"selection"},
    {"search"},
    {"consistency"},
    {"reduced"},
    {"bases"},
    {"graphs", "losses"},
    {"engines"},
    {"errors", "_version"},
]
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer}

HEAVY = ["torch", "dask", "matplotlib", "plotly", "polars", "cvxpy", "numba", "tqdm"]


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path):
    for statement in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: relative import"
            names = [statement.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hikernel":
                assert len(parts) > 1, f"{path} imports the top of the package"
                yield parts[1]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_down(path):
    here = layer_of(path)
    assert here in RANK, f"{here} has no place in the layers yet"
    for target in imported_layers(path):
        assert target in RANK, f"{path} imports the unknown layer {target}"
        if target != here:
            assert RANK[target] > RANK[here], f"{path} imports {target}, which is above it"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_can_be_read_at_a_sitting(path):
    assert len(path.read_text().splitlines()) <= 400


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_heavy_packages_are_not_imported():
    loaded = run("import hikernel, sys; print(*sorted(sys.modules))").split()
    assert [
        name for name in [*HEAVY, "narwhals", "pandas", "sklearn", "scipy"] if name in loaded
    ] == []
    # scikit-learn brings pandas where it is installed; nothing else may come with an estimator.
    loaded = run("from hikernel import HKLRegressor; import sys; print(*sys.modules)").split()
    assert [name for name in HEAVY if name in loaded] == []
    # Files are somebody's business only when one is saved or loaded.
    assert "hikernel.persistence" not in loaded


def test_public_names_are_found_and_others_are_not():
    import hikernel

    assert set(hikernel.__all__) <= set(dir(hikernel))
    for name in hikernel.__all__:
        assert getattr(hikernel, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'HKLNothing'"):
        hikernel.HKLNothing  # noqa: B018


def test_the_import_takes_less_than_a_second():
    code = "import time; t = time.perf_counter(); import hikernel; print(time.perf_counter() - t)"
    run(code)  # compiles the byte code
    assert min(float(run(code)) for _ in range(3)) < 1.0
