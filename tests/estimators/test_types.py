"""What a type checker sees: misspelled parameters, and what an estimator really has."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest

import hikernel.estimators.typed_bases as bases
from hikernel import HKLClassifier, HKLRegressor
from hikernel.estimators.parameters import ModelOptions, ModelParameters
from hikernel.estimators.path import PathOptions, _PathParameters

ROOT = Path(__file__).resolve().parents[2]

SNIPPET = """
import numpy as np
from hikernel import HKLClassifierCV, HKLRegressor, hkl_path

X = np.zeros((3, 2))
y = X[:, 0]
model = HKLRegressor(0.1, degree=3).set_params(tol=1e-2).fit(X, y)
model.score(X, y)
print(model.bases_, model.columns_, model.hull_, model.feature_names_in_, model.formula())
hkl_path(X, y, sample_weight=None, n_alphas=3, degree=2).table()
HKLRegressor(0.1, degre=3)  # wrong
HKLClassifierCV(n_alpas=3)  # wrong
hkl_path(X, y, n_alpas=3)  # wrong
hkl_path(X, y, n_alphas="3")  # wrong
model.frmula()  # wrong
"""


@pytest.mark.slow
def test_a_type_checker_sees_wrong_parameters_and_nothing_else(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api", reason="mypy is there only with the extra lint")
    script = tmp_path / "script.py"
    script.write_text(SNIPPET)
    # The settings and the cache are those of "make lint", so that the package is not checked twice.
    monkeypatch.chdir(ROOT)
    out, trouble, _ = api.run(["--config-file=pyproject.toml", str(script)])
    assert trouble == ""
    seen = {int(line) for line in re.findall(r"script\.py:(\d+): error", out)}
    wrong = {i for i, line in enumerate(SNIPPET.split("\n"), 1) if line.endswith("# wrong")}
    assert seen == wrong, out


@pytest.mark.parametrize(
    ("options", "parameters"),
    [(ModelOptions, ModelParameters), (PathOptions, _PathParameters)],
    ids=["model", "path"],
)
def test_the_typed_options_are_the_parameters(options, parameters):
    types = {field.name: field.type for field in dataclasses.fields(parameters)}
    assert {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()} == types


def test_what_the_checker_is_told_is_there():
    tree = ast.parse(Path(bases.__file__).read_text())
    told = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert len(told) > 5
    for cls in (HKLRegressor, HKLClassifier):
        assert [name for name in told if not callable(getattr(cls, name, None))] == []
