"""Rules of the house that a reader cannot see: import direction, light imports, short files."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "hikernel"

# Imports go down this list only. Packages on one line do not import each other.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"experiments"},
    {"demo"},
    {"dask"},
    {"estimators"},
    {"export", "plots", "report"},
    {"consistency", "explain"},
    {"persistence"},
    {"selection"},
    {"search"},
    {"reduced"},
    {"columns"},
    {"bases"},
    {"graphs", "losses"},
    {"datasets"},
    {"engines"},
    {"checks"},
    {"errors", "_version"},
]
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer}

HEAVY = [
    "torch",
    "triton",
    "dask",
    "matplotlib",
    "bokeh",
    "polars",
    "cvxpy",
    "numba",
    "tqdm",
    "click",
]
MOST_FILES = 48
MOST_LINES = 400
MOST_BRANCHES = 4

MODULE = re.compile(r"hikernel(?=[.:])[\w.]*")
BY_NAME = {"import_module", "__import__", "find_spec", "resolve_name"}
# They load their own public names when they are first used, and nothing else.
LAZY = {PACKAGE / "__init__.py", PACKAGE / "experiments" / "__init__.py"}


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_of(node):
    return getattr(node, "id", getattr(node, "attr", None))


def imported_names(tree, path):
    """Every module that a file names: in statements, calls, and strings but docstrings."""
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{where}: relative import"
            yield node.module
            renamed = {alias.name for alias in node.names if alias.asname}
            assert not renamed & BY_NAME, f"{where} gives another name to {renamed & BY_NAME}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert node.value not in BY_NAME, f"{where} looks up {node.value}"
            if id(node) not in docstrings and MODULE.match(node.value):
                yield MODULE.match(node.value)[0].rstrip(".")
        elif isinstance(node, ast.Name | ast.Attribute):
            handed_on = name_of(node) in BY_NAME and id(node) not in called
            assert not handed_on, f"{where} hands {name_of(node)} on"
        elif isinstance(node, ast.Call) and name_of(node.func) in BY_NAME and path not in LAZY:
            given = getattr(node.args[0] if node.args else None, "value", None)
            assert isinstance(given, str), f"{where} makes up the name of what it imports"
            assert not given.startswith("."), f"{where}: relative import"
            yield given


def imported_layers(source, path):
    for name in imported_names(ast.parse(source), path):
        parts = name.split(".")
        if parts[0] == "hikernel":
            assert len(parts) > 1, f"{path} imports the top of the package"
            yield parts[1]


def check_direction(source, path):
    here = layer_of(path)
    assert here in RANK, f"{here} has no place in the layers yet"
    for target in imported_layers(source, path):
        assert target in RANK, f"{path} imports the unknown layer {target}"
        if target != here:
            assert RANK[target] > RANK[here], f"{path} imports {target}, which is above it"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_down(path):
    check_direction(path.read_text(), path)


@pytest.mark.parametrize(
    "line",
    [
        "import hikernel.estimators",
        "from hikernel.estimators import HKLRegressor",
        "def f():\n    from hikernel.estimators.saving import save",
        "import_module('hikernel.estimators.saving')",
        "HOME = 'hikernel.persistence'",
        "import_module('hikernel.' + name)",
        "importlib.import_module(f'hikernel.{name}')",
        "__import__(name)",
        "import_module('hikernel')",
        "import_module('..estimators', 'hikernel.selection')",
        "from importlib import import_module as get\nget(name)",
        "get = importlib.import_module\nget(name)",
        "get = getattr(importlib, 'import_module')",
        "COMMAND = 'hikernel.cli:main'",
        "COMMAND = 'hikernel:load'",
        "TEXT = 'hikernel.estimators.saving, and more'",
        "from hikernel import load",
        "from . import training",
        "import hikernel",
    ],
)
def test_an_import_upwards_would_be_seen(line):
    with pytest.raises(AssertionError):
        check_direction(line, PACKAGE / "selection" / "training.py")


def test_every_package_has_its_place_and_none_is_invented():
    here = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py"}
    here |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert here - {"__init__"} == set(RANK)
    assert sum(len(layer) for layer in LAYERS) == len(RANK)


def test_the_map_of_contributing_has_every_package_in_order():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## The house")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert set(listed) == set(RANK) - {"_version"}
    assert [RANK[name] for name in listed] == sorted(RANK[name] for name in listed)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_can_be_read_at_a_sitting(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_no_two_files_have_the_same_name():
    names = Counter(path.name for path in modules() if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def kinds_of_graphs():
    """Classes of graphs, designs and sources, by name."""
    import hikernel.columns as columns
    import hikernel.graphs as graphs

    found = {name for name in graphs.__all__ if isinstance(getattr(graphs, name), type)}
    return found | {name for name in columns.__all__ if name.startswith("Column")}


def asks(test, kinds):
    """Whether a condition asks what kind of graph there is."""
    for part in ast.walk(test):
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") in ("isinstance", "type"):
            words = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
            if words & kinds:
                return True
        compared = isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is | ast.IsNot)
        if compared and getattr(part.left, "attr", getattr(part.left, "id", "")) == "graph":
            return True
    return False


def test_hardly_anything_asks_for_the_kind_of_graph():
    """``isinstance(..., Grid)`` and its like, and ``graph is None``: a graph answers itself."""
    kinds = kinds_of_graphs() - {"RowSet", "TrainingRows", "ColumnTable"}
    branches = []
    for path in modules():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        # The branches of one chain of elif are one question.
        later = {id(node.orelse[0]) for node in nodes if isinstance(node, ast.If) and node.orelse}
        for node in nodes:
            test = getattr(node, "test", None)
            if test is not None and id(node) not in later and asks(test, kinds):
                branches.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert 0 < len(branches) <= MOST_BRANCHES, branches


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_default_fit_imports_no_torch():
    code = """
import sys
import numpy as np
from hikernel import HKLRegressor
X = np.random.default_rng(0).uniform(size=(200, 3))
HKLRegressor(0.01).fit(X, X[:, 0]).predict(X)
print("torch" in sys.modules)
"""
    assert run(code) == "False\n"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_imported_in_its_engine_only(path):
    names = {name.split(".")[0] for name in imported_names(ast.parse(path.read_text()), path)}
    own = path.parent.name == "engines" and path.name.startswith(("torch_", "triton_"))
    assert own or not names & {"torch", "triton"}


@pytest.mark.slow
def test_nothing_that_users_import_brings_the_experiments():
    code = """
import sys
import hikernel
for name in dir(hikernel):
    getattr(hikernel, name)
import hikernel.demo
print(*sys.modules)
"""
    assert [name for name in run(code).split() if name.startswith("hikernel.experiments")] == []


COUNT = """
import sys, threading
import numpy as np, pandas as pd
from hikernel import HKLRegressor
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1, 1, size=(200, 5)), columns=list("abcde"))
y = X["a"] + 2 * X["b"] * X["c"] + 0.1 * rng.standard_normal(200)
if {categories}:
    X["town"] = rng.choice(["Oslo", "Bergen", "Rome"], 200)
    y = y + (X["town"] == "Oslo")
files = set()
def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and "/hikernel/" in name:
        files.add(name)
model = HKLRegressor()
threading.setprofile(note)
sys.setprofile(note)
model.fit(X, y)
sys.setprofile(None)
print(len(files))
"""


@pytest.mark.slow
def test_a_default_fit_opens_few_files():
    counts = [int(run(COUNT.format(categories=categories))) for categories in (False, True)]
    assert max(counts) <= MOST_FILES
    said = re.search(
        r"runs through (\d+) files of the package for columns of numbers and (\d+) with categories",
        " ".join((ROOT / "CONTRIBUTING.md").read_text().split()),
    )
    assert [int(number) for number in said.groups()] == counts


def test_public_names_are_found_and_others_are_not():
    import hikernel

    assert set(hikernel.__all__) <= set(dir(hikernel))
    for name in dir(hikernel):
        assert getattr(hikernel, name) is not None
    assert hikernel.datasets.make_polynomial is not None
    with pytest.raises(AttributeError, match="no attribute 'HKLNothing'"):
        hikernel.HKLNothing  # noqa: B018


def test_modules_are_attributes_after_the_import_alone():
    assert "numpy" in run("import hikernel; print(hikernel.engines.ENGINES)")


def test_the_import_takes_less_than_a_second():
    code = "import time; t = time.perf_counter(); import hikernel; print(time.perf_counter() - t)"
    run(code)  # compiles the byte code
    assert min(float(run(code)) for _ in range(3)) < 1.0


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "examples").rglob("*.py")]),
    ids=lambda path: path.name,
)
def test_scripts_import_what_is_there(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "hikernel":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
