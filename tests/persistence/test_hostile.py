"""Damaged and hostile files: one kind of error, one sentence, and nothing runs."""

import copy
import io
import os
import pickle
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from persistence.files import (
    bytes_of,
    classifier,
    data,
    members_of,
    quick,
    regressor,
    sealed,
    zipped,
)

from hikernel import HKLRegressor
from hikernel.errors import ModelFileError
from hikernel.estimators.saving import load
from hikernel.persistence.container import FORMAT_VERSION

RAN = []


def attack():
    RAN.append("code of the file")


class Bomb:
    def __reduce__(self):
        return attack, ()


@pytest.fixture
def refused(tmp_path):
    """Write bytes, load them, and return the message."""

    def check(content, match, **options):
        path = tmp_path / "model.hik"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path, **options)
        assert RAN == []
        text = str(caught.value)
        assert text.startswith(f"{str(path)!r} cannot be loaded: ")
        assert text.endswith(".")
        assert len(text) < 500

    return check


@pytest.fixture
def members():
    return copy.deepcopy(members_of(bytes_of(regressor())))


def part(members, *names):
    """The place of a part in state.json: (container, key)."""
    node, key = members["state.json"], None
    for name in names:
        holder = node if key is None else node[key]
        if isinstance(holder, dict) and "dict" in holder:
            pairs = holder["dict"]
            node, key = next(pair for pair in pairs if pair[0] == name), 1
        elif isinstance(holder, dict) and "object" in holder:
            node, key = holder["object"][1], name
        elif isinstance(holder, dict) and "tuple" in holder:
            node, key = holder["tuple"], name
        else:
            node, key = holder, name
    return node, key


def changed(members, names, value):
    node, key = part(members, *names)
    node[key] = value(node[key]) if callable(value) else value
    return sealed(members)


def test_what_is_changed_here_loads_unchanged(members, tmp_path):
    (tmp_path / "model.hik").write_bytes(sealed(members))
    assert load(tmp_path / "model.hik").nodes_ == regressor().nodes_


# No archives.


def test_pickles_are_never_opened(refused):
    for protocol in range(2, 6):
        refused(pickle.dumps(Bomb(), protocol), "pickle.*joblib.load")
    refused(pickle.dumps(Bomb(), 0), "no hikernel model")


def test_other_files(refused):
    refused(b"", "it is empty")
    refused(b"x", "no hikernel model")
    refused(b"a,b\n1,2\n", "no hikernel model")
    refused(os.urandom(1) * 100_000, "no hikernel model|pickle")
    refused(b"PK\x03\x04", "end is missing")
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3))
    refused(buffer.getvalue(), "without manifest.json")
    refused(zipped({}), "no hikernel model")


def test_missing_files_are_the_business_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.hik")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_truncated_files(refused):
    content = bytes_of(regressor())
    for size in (1, 30, 1000, len(content) // 2, len(content) - 1):
        refused(content[:size], "damaged|no hikernel model")
    refused(content + b"more", "damaged")
    refused(b"more" + content, "no hikernel model")


# Archives that are not as written.


def test_checksums(refused, members):
    content = bytes_of(regressor())
    raw = {name: zipfile.ZipFile(io.BytesIO(content)).read(name) for name in members}
    for name in members:
        if name != "manifest.json":
            other = {**raw, name: raw[name][:-1] + bytes([raw[name][-1] ^ 1])}
            refused(zipped(other), f"{name} is damaged: the checksum is wrong")
            refused(zipped({k: v for k, v in raw.items() if k != name}), f"missing.*{name}")
    refused(zipped({k: v for k, v in raw.items() if k != "manifest.json"}), "manifest.json")


def test_other_members(refused, members):
    refused(sealed({**members, "../../etc/passwd": b"x"}), "unknown member")
    refused(sealed({**members, "arrays/evil.py": b"x"}), "unknown member")
    refused(sealed({**members, "arrays/object.npy": b"x"}), "data type 'object'")
    refused(sealed({**members, "arrays/float32.npy": npy(np.zeros(2, "f4"))}), "nothing refers to")
    twice = zipped({"manifest.json": b"{}", "manifest.jsoX": b"{}"})
    refused(twice.replace(b"manifest.jsoX", b"manifest.json"), "twice")


def test_compression_and_encryption(refused, members):
    refused(sealed(members, zipfile.ZIP_DEFLATED), "compressed or encrypted")
    refused(sealed(members, zipfile.ZIP_LZMA), "compressed or encrypted")
    content = bytearray(sealed(members))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    refused(bytes(content), "compressed or encrypted")


def test_bombs(refused, members):
    bomb = zipped({"manifest.json": bytes(10**8)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10**6
    many = zipped({f"arrays/a{i}.npy": b"" for i in range(1000)})
    large = {**members, "arrays/float64.npy": npy(np.zeros(1), count=2**50)}
    begin = time.perf_counter()
    tracemalloc.start()
    try:
        refused(bomb, "compressed")
        refused(many, "too long")
        refused(sealed(large), "size that it declares")
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**7
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - begin < 5.0
    refused(bytes_of(regressor()), "pass a larger max_bytes", max_bytes=1000)


def test_declared_sizes_beyond_the_file(refused, members):
    content = bytearray(sealed(members))
    place = content.index(b"PK\x01\x02") + 20
    content[place : place + 8] = b"\xf0\xff\xff\x7f" * 2  # both sizes, 2 GiB
    refused(bytes(content), "overlap|too large")


def test_json_that_is_none(refused, members):
    deep = b"[" * 10**6
    for text in (b"", b"{", b"\xff\xfe", deep, b'{"a": 1, "a": 2}', b"NaN", b"[1e999]", b"[]"):
        refused(sealed({**members, "state.json": text}), "cannot be loaded")
        content = bytes_of(regressor())
        raw = {name: zipfile.ZipFile(io.BytesIO(content)).read(name) for name in members}
        refused(zipped({**raw, "manifest.json": text}), "cannot be loaded")
    refused(sealed({**members, "state.json": b"[" + b"1" * 10_000 + b"]"}), "damaged")


# Manifests.


def test_versions(refused, members):
    manifest = members["manifest.json"]
    newer = {**manifest, "format_version": FORMAT_VERSION + 1, "hikernel": "9.1", "new": 1}
    refused(
        sealed({**members, "manifest.json": newer}), "written by hikernel '9.1'.*upgrade hikernel"
    )
    older = {**manifest, "format_version": FORMAT_VERSION - 1}
    refused(sealed({**members, "manifest.json": older}), "before the first release.*fit the model")
    for value in (0, -1, True, 1.0, "1", None):
        wrong = {**manifest, "format_version": value}
        refused(sealed({**members, "manifest.json": wrong}), "impossible version")
    for key in ("format", "kind", "hikernel"):
        refused(sealed({**members, "manifest.json": {**manifest, key: 3}}), "manifest")
    refused(sealed({**members, "manifest.json": {**manifest, "extra": 3}}), "other entries")


def test_other_classes(refused, members):
    manifest = members["manifest.json"]
    for kind in ("os.system", "Standardizer", "HKLRegressorOfTomorrow", ""):
        refused(sealed({**members, "manifest.json": {**manifest, "kind": kind}}), "does not know")
    refused(sealed({**members, "manifest.json": {**manifest, "kind": "HKLClassifier"}}), "param")
    evil = {"object": ["subprocess.Popen", {"args": ["touch", "evil"]}]}
    refused(changed(members, ["loss"], evil), "class 'subprocess.Popen'")


# Arrays.


def npy(array, count=None, descr=None):
    """A .npy member, if need be with a header that lies."""
    buffer = io.BytesIO()
    header = {
        "descr": descr or array.dtype.str,
        "fortran_order": False,
        "shape": (len(array) if count is None else count,),
    }
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + array.tobytes()


def test_object_arrays(refused, members):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    refused(sealed({**members, "arrays/float64.npy": buffer.getvalue()}), "Python objects")
    structured = npy(np.zeros(3), descr=[("a", "O")])
    refused(sealed({**members, "arrays/float64.npy": structured}), "Python objects")


def test_other_arrays(refused, members):
    old = members["arrays/float64.npy"]
    wrong = [
        (b"", "header"),
        (b"\x93NUMPY\x09\x00" + old[8:], "header"),
        (old[:-8], "size that it declares"),
        (old + bytes(8), "size that it declares"),
        (npy(np.zeros(3, "f4")), "type float32 and not float64"),
        (npy(np.zeros(3, ">f8")), "type >f8 and not float64"),
        (npy(np.zeros(3)), "data of an array"),
        (npy(np.frombuffer(old[128:]).repeat(2)), "nothing refers to"),
    ]
    for content, match in wrong:
        refused(sealed({**members, "arrays/float64.npy": content}), match)


def test_text_that_is_no_text(refused, tmp_path):
    from hikernel.persistence import load_state, save_state

    save_state(tmp_path / "s", {"a": np.array(["a"]), "b": np.array([True])}, "k")
    found = members_of((tmp_path / "s").read_bytes())
    for name, bad in [("str32", np.array([2**31], "<u4")), ("bool", np.array([7], "u1"))]:
        content = npy(bad, descr="<U1" if name == "str32" else "|b1")
        (tmp_path / "s").write_bytes(sealed({**found, f"arrays/{name}.npy": content}))
        with pytest.raises(ModelFileError, match=r"Unicode|neither true nor false"):
            load_state(tmp_path / "s")


# Models whose parts do not go together.

NODE = {"tuple": [{"tuple": [0, 1]}]}


@pytest.mark.parametrize(
    ("names", "value", "match"),
    [
        (["columns", "n_features_in"], 4, "names of its columns"),
        (["columns", "n_features_in"], "3", "wrong type"),
        (["columns", "feature_names_in"], {"tuple": ["a"]}, "names of its columns"),
        (["columns", "feature_names_in"], {"tuple": [1, 2, 3]}, "wrong type"),
        (["columns", "names"], {"tuple": ["a", "b", "b"]}, "kinds of its columns"),
        (["columns", "kinds"], {"tuple": ["number", "number", "date"]}, "wrong type"),
        (["columns", "kinds"], {"tuple": ["number", "number", "category"]}, "its categories"),
        (["notes"], {"tuple": []}, "notes on its bases"),
        (["classes"], {"objects": [[2], ["a", "b"]]}, "not one of a regressor"),
        (["loss"], {"object": ["LogLoss", {}]}, "not one of a regressor"),
        (["loss"], {"object": ["Huber", {"delta": {"float": "7ff8000000000000"}}]}, "Huber cannot"),
        (["params"], {"dict": []}, "parameters of HKLRegressor"),
        (["params", "loss"], 3, "parameter loss"),
        (["params", "alpha"], {"tuple": [1]}, "parameter alpha"),
        (["params", "basis"], {"dict": [["a", 3]]}, "parameter basis"),
        (["selected", "nodes", 1], {"tuple": [{"tuple": [3, 1]}]}, "not in the graph"),
        (["selected", "nodes", 1], {"tuple": [{"tuple": [-1, 1]}]}, "not in the graph"),
        (["selected", "nodes", 1], {"tuple": [{"tuple": [0, 99]}]}, "not in the graph"),
        (["selected", "nodes", 1], {"tuple": [{"tuple": [0, 0]}]}, "not in the graph"),
        (["selected", "nodes", 1], {"tuple": [{"tuple": [0, 1, 2]}]}, "nodes of TermModel"),
        (["selected", "nodes", 1], [[0, 1]], "nodes of TermModel is of the wrong type"),
        (["selected", "nodes"], lambda nodes: [*nodes[:-1], nodes[0]], "twice"),
        (["selected", "nodes"], lambda nodes: nodes[:-1], "one integer per term"),
        (["selected", "lam"], -1.0, "lambda is -1.0"),
        (["selected", "lam"], {"float": "7ff8000000000000"}, "lambda is nan"),
        (["selected", "intercept"], 0.0, "intercept of TermModel is of the wrong type"),
        (
            ["selected", "intercept"],
            {"scalar": ["float64", "000000000000f87f"]},
            "intercept holds NaN",
        ),
        (["selected", "status"], "CONVERGED", "status of TermModel"),
        (["selected", "status"], {"enum": ["Status", "GREAT"]}, "not a known choice"),
        (["selected", "history"], [1], "history of TermModel"),
        (["selected", "certificate", "kind"], "absolute", "impossible certificate"),
        (["selected", "certificate", "confidence"], 2.0, "impossible certificate"),
        (["selected", "certificate", "n_explored"], -1, "impossible certificate"),
        (["selected", "certificate", "n_kernels"], 1.0, "n_kernels of Certificate"),
        (["graph", "max_order"], 0, "Grid cannot have these values"),
        (["graph", "max_order"], 1, "not in the graph"),
        (["graph", "root_weight"], 0.0, "Grid cannot have these values"),
        (["bases"], lambda old: {"tuple": [NODE, *old["tuple"]]}, "bases is of the wrong type"),
        (["bases", 0, "scaler", "exponent"], 2**40, "out of range"),
        (["bases", 0, "scaler", "std"], {"float": "7ff0000000000000"}, "not finite"),
        (["bases", 0, "scaler", "exponent"], 1100, "column 0 cannot be evaluated"),
        (["columns", "names"], {"tuple": ["a", "b", "\ud800"]}, "half a character"),
        (["selected", "lam"], {"int": "0x" + "f" * 300}, "lam of TermModel"),
        (["selected", "certificate", "tol"], {"int": "0x" + "f" * 300}, "tol of Certificate"),
        (["graph", "max_order"], {"int": "-0x" + "f" * 2000}, "Grid cannot have these values"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else None,
)
def test_parts_that_do_not_fit(refused, members, names, value, match):
    refused(changed(members, names, value), match)


def test_hulls_without_a_parent(refused, members):
    """The term that goes was the parent of others; what was found by its place would fail."""
    terms = regressor().nodes_
    graph = regressor().graph_
    place = next(i for i, v in enumerate(terms) if v and any(v in graph.parents(w) for w in terms))
    node, key = part(members, "selected", "nodes")
    level = graph.max_level(0)
    assert ((0, level),) not in terms
    node[key][place] = {"tuple": [{"tuple": [0, level]}]}
    refused(sealed(members), "a parent of one of its terms is missing")


def test_shapes_that_do_not_fit(refused, members):
    """A shape is changed, and the data of another array make up for it."""
    node, key = part(members, "selected", "coef")
    size = node[key]["array"][1][0]
    node[key]["array"][1] = [1, size]
    refused(sealed(members), "coef has shape")
    node[key]["array"][1] = [size - 1]
    node, key = part(members, "selected", "dual_coef")
    node[key]["array"][1][0] += 1
    refused(sealed(members), "coef has shape")
    node[key]["array"][1] = "ab"
    refused(sealed(members), "describes an array")


def test_numbers_that_are_none(refused, members):
    pool = np.frombuffer(members["arrays/float64.npy"][128:]).copy()
    for place in (0, len(pool) - 1):
        bad = pool.copy()
        bad[place] = np.nan
        refused(sealed({**members, "arrays/float64.npy": npy(bad)}), "finite|NaN")


def test_bases_that_take_all_memory(refused):
    found = members_of(bytes_of(regressor("hermite")))
    where = ["bases", 0, "degree"]
    refused(changed(found, where, 10**15), "degree in the basis of column 0 is out of range")
    refused(changed(found, where, 10**5), "more levels than the graph")
    refused(changed(found, where, 10), "other levels than the graph")
    found = members_of(bytes_of(regressor("anova")))
    refused(changed(found, ["bases", 0, "low_rank", "kernel"], "gaussian"), "wrong type")
    node, key = part(found, "bases", 0, "low_rank", "kernel")
    node[key] = {"object": ["GaussianKernel", {"b": -1e300}]}
    refused(sealed(found), "column 0 cannot be evaluated")


def test_degrees_of_a_refit_that_take_all_time(refused):
    model = quick(HKLRegressor(0.01, basis="polynomial", refit="variables", degree=2), *data())
    found = members_of(bytes_of(model))
    begin = time.perf_counter()
    refused(changed(found, ["bases", 0, "degree"], 10**5), "more levels than the graph")
    assert time.perf_counter() - begin < 1.0


def test_json_of_millions_of_tiny_values(refused, members):
    for value in (b"[]", b'{"":0}'):
        text = b"[" + b",".join([value] * 2**22) + b"]"
        tiny = sealed({**members, "state.json": text})
        tracemalloc.start()
        try:
            refused(tiny, "JSON holds more than")
            assert tracemalloc.get_traced_memory()[1] < 4 * len(tiny)
        finally:
            tracemalloc.stop()
    refused(sealed({**members, "manifest.json": {"format": "x" * 10**6}}), "too large")


def test_classes_that_do_not_fit(refused):
    found = members_of(bytes_of(classifier()))
    two = {"objects": [[2], ["a", "b"]]}
    refused(changed(copy.deepcopy(found), ["classes"], two), "not one for 2 classes")
    same = {"objects": [[3], ["a", "b", "a"]]}
    refused(changed(copy.deepcopy(found), ["classes"], same), "class is there twice")
    refused(changed(copy.deepcopy(found), ["classes"], None), "labels")
    four = {"objects": [[4], ["a", "b", "c", "d"]]}
    refused(changed(found, ["classes"], four), "coef has shape")
