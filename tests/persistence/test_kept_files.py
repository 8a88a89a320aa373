"""Files that were written once still load, and their models predict what they predicted then.

A failure here is not mended by new files: the code has to read the old ones. Only a new kind of
model adds some (tools/keep_files.py).
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import hikernel
from hikernel.persistence import FORMAT_VERSION
from hikernel.persistence.registry import CLASSES

KEPT = Path(__file__).parent / "kept"
FILES = sorted(KEPT.glob("*/*.hik"))


def rows_of(said):
    if said["kind"] == "table":
        table = pd.DataFrame(said["columns"])
        return table.assign(**{name: pd.to_datetime(table[name]) for name in said["dates"]})
    rows = np.array(said["rows"], dtype=float)
    return sp.csr_array(rows) if said["kind"] == "sparse" else rows


def again(model, name, rows):
    if name == "std":
        method = model.decision_function if hasattr(model, "classes_") else model.predict
        return method(rows, return_std=True)[1]
    methods = {"interval": "predict_interval", "survival": "predict_survival_function"}
    return getattr(model, methods.get(name, name))(rows)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_file_loads_and_predicts_the_same(path):
    said = json.loads(path.with_suffix(".json").read_text())
    model = hikernel.load(path)
    rows = rows_of(said["rows"])
    assert said["predictions"]
    for name, wanted in said["predictions"].items():
        found = np.asarray(again(model, name, rows))
        if found.dtype.kind in "fc":
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10, err_msg=name)
        else:
            assert found.tolist() == wanted, name
    assert model.certificate_.explain()
    assert model.summary()["effects"] is not None


def test_there_are_files_of_this_format():
    here = KEPT / f"format-{FORMAT_VERSION}"
    assert here in {path.parent for path in FILES}, "run tools/keep_files.py and commit the files"
    assert sum(path.stat().st_size for path in here.iterdir()) < 500_000


def classes_in(tree):
    """The names of all registered classes that the JSON of a file has."""
    if isinstance(tree, dict):
        for kind, content in tree.items():
            if kind in ("object", "enum"):
                yield content[0]
            yield from classes_in(content)
    elif isinstance(tree, list):
        for item in tree:
            yield from classes_in(item)


def test_every_class_that_a_file_may_hold_is_kept():
    found = set()
    for path in FILES:
        with zipfile.ZipFile(path) as archive:
            found |= set(classes_in(json.loads(archive.read("state.json"))))
    assert set(CLASSES) <= found, "run tools/keep_files.py and commit the new files"
