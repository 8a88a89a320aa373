"""The evaluator of the page agrees with ``predict`` to 1e-9, for every basis and every link."""

import json
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles.portable_bases import BASES, UNBOUNDED
from report.models import MODELS, answers, as_inputs, rows_to_ask, table

import hikernel.report
from hikernel import HKLClassifier, HKLRegressor

SCRIPT = Path(hikernel.report.__file__).parent / "evaluate.js"
RUN = f"""
require({json.dumps(str(SCRIPT))});
const {{ summary, rows }} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const out = rows.map((row) => {{
  const found = HK.evaluate.evaluate(summary.function, row, summary.effects.length);
  return {{ ...found, ...HK.evaluate.predict(summary.link, found.f, summary.classes) }};
}});
console.log(JSON.stringify(out));
"""


def in_node(model, rows):
    """What evaluate.js says about rows of a table."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; evaluate.js is tested in Chromium only")
    summary = model.summary()
    asked = {"summary": summary, "rows": as_inputs(summary["function"], rows)}
    done = subprocess.run(
        [node, "-e", RUN], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BASES)
def test_every_basis(name):
    X, y = table()
    rows = rows_to_ask()
    if name in UNBOUNDED:
        rows["size"] = rows["size"].clip(upper=90.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HKLRegressor(3e-3, basis=BASES[name], certify="none", max_kernels=60).fit(X, y)
        expected = model.predict(rows)
    assert model.terms_["order"].max() >= 1
    found = [one["value"] for one in in_node(model, rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_every_link(name):
    model = MODELS[name]()
    rows = rows_to_ask()
    found = in_node(model, rows)
    said = [one.get("probabilities") or [one["value"]] for one in found]
    np.testing.assert_allclose(said, answers(model, rows), rtol=1e-9, atol=1e-300)
    if hasattr(model, "classes_"):
        assert [one["label"] for one in found] == [str(label) for label in model.predict(rows)]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_hinge_gives_labels(n_classes):
    X, y = table()
    labels = np.digitize(y, y.quantile(np.arange(1, n_classes) / n_classes)) + 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HKLClassifier(1e-2, loss="squared_hinge", certify="none").fit(X, labels)
    rows = rows_to_ask()
    found = in_node(model, rows)
    assert [one["label"] for one in found] == [str(label) for label in model.predict(rows)]
    assert "probabilities" not in found[0]


@pytest.mark.parametrize("name", MODELS)
def test_effects_add_up_to_f(name):
    model = MODELS[name]()
    intercept = np.atleast_1d(model.summary()["intercept"])
    for one in in_node(model, rows_to_ask()):
        total = intercept + np.sum(one["effects"], axis=0) + one["rest"]
        np.testing.assert_allclose(total, one["f"], rtol=1e-9, atol=1e-9)
        assert np.all(np.equal(one["rest"], 0.0))  # every term belongs to an effect
