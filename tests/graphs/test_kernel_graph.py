"""KernelGraph: what its nodes may be, what is wrong with them, and the memory it plans."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from graphs.kernels import GRAM, HOLE, RNG, N, X, fitted, grams_of, linear
from scipy import sparse

from hikernel.engines import machine
from hikernel.errors import MemoryPlanError
from hikernel.graphs import KernelGraph


@pytest.mark.parametrize(
    "spec",
    [
        lambda X: X[:, :2],
        [0, 1],
        (0, 1),
        [True, True, False, False],
        pd.Index([0, 1]),
        range(2),
    ],
    ids=["function", "list", "tuple", "mask", "index", "range"],
)
def test_feature_maps_and_columns(spec):
    design = fitted(KernelGraph(features={"a": spec}), X)
    np.testing.assert_allclose(grams_of(design, "a")["a"], X[:, :2] @ X[:, :2].T)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_by_name(frame):
    table = frame({name: X[:, k] for k, name in enumerate("pqrs")})
    graph = KernelGraph(features={"one": "q", "two": ["p", "s"], "third": 2})
    grams = grams_of(fitted(graph, graph.read(table)), ["one", "two", "third"])
    np.testing.assert_allclose(grams["one"], np.outer(X[:, 1], X[:, 1]))
    np.testing.assert_allclose(grams["two"], X[:, [0, 3]] @ X[:, [0, 3]].T)
    np.testing.assert_allclose(grams["third"], np.outer(X[:, 2], X[:, 2]))


@pytest.mark.parametrize(
    "spec",
    [
        X,
        X.astype(np.float32).astype(float),
        X.tolist(),
        pd.DataFrame(X),
        np.arange(4 * N).reshape(N, 4),
        np.arange(N * 1.0),
        pd.Series(np.arange(N * 1.0)),
        RNG.random((N, 2)) > 0.5,
    ],
    ids=["floats", "rounded", "lists", "frame", "integers", "vector", "series", "booleans"],
)
def test_features_of_all_items_as_an_array(spec):
    graph = KernelGraph(features={"a": spec})
    rows = np.array([3, 1, 1, 7])
    block = np.asarray(spec, dtype=float).reshape(N, -1)[rows]
    found = grams_of(fitted(graph, graph.read(rows)), "a", 4)["a"]
    np.testing.assert_allclose(found, block @ block.T)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: A[:, None] == B[None],
        lambda A, B: (A[:, None] == B[None]).astype(np.uint8),
        lambda A, B: (A[:, None] == B[None]).astype(np.float32),
        lambda A, B: (A[:, None] == B[None]).astype(float).tolist(),
    ],
    ids=["booleans", "uint8", "float32", "lists"],
)
def test_kernel_functions_may_return_any_numbers(kernel):
    groups = np.arange(N) % 3
    design = fitted(KernelGraph(kernels={"same": kernel}), groups)
    expected = (groups[:, None] == groups).astype(float)
    # Rounding to float32 is made up for on the diagonal.
    np.testing.assert_allclose(grams_of(design, ["same"])["same"], expected, atol=1e-5)
    new = np.array([2, 0])
    np.testing.assert_allclose(
        design.predict(["same"], np.arange(N * 1.0), new),
        (new[:, None] == groups) @ np.arange(N * 1.0),
    )


def test_a_float32_matrix_becomes_a_kernel_in_any_type():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((200, 5))
    single = (factor @ factor.T).astype(np.float32)
    assert np.linalg.eigvalsh(single.astype(float))[0] < -1e-7  # rounding made it indefinite
    for dtype in (None, "float32", "float64"):
        graph = KernelGraph(grams={"a": single}, dtype=dtype)
        found = grams_of(fitted(graph, np.arange(200)), "a", 200)["a"]
        assert np.linalg.eigvalsh(found)[0] >= 0.0


def test_grams_are_read_where_they_lie():
    given = np.ascontiguousarray(GRAM)
    graph = KernelGraph(grams={"a": given})
    assert np.shares_memory(fitted(graph, np.arange(N)).store._grams["a"]._matrix, given)
    assert np.shares_memory(fitted(graph, np.arange(5)).store._grams["a"]._matrix, given)
    some = np.array([4, 0, 4])
    np.testing.assert_allclose(
        grams_of(fitted(graph, some), "a", 3)["a"], GRAM[np.ix_(some, some)], rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_how_grams_are_stored(dtype):
    graph = KernelGraph(
        grams={"a": GRAM.astype(np.float32)}, kernels={"b": lambda i, j: GRAM[i][:, j]}, dtype=dtype
    )
    store = fitted(graph, np.arange(N)).store
    assert store._grams["a"]._matrix.dtype == np.dtype(dtype or np.float32)
    assert store._grams["b"]._matrix.dtype == np.dtype(dtype or np.float64)
    tol = 1e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(grams_of(fitted(graph, np.arange(N)), "b")["b"], GRAM, atol=tol * 20)


def test_edges_of_any_form():
    features = {node: [k] for k, node in enumerate("abc")}
    digraph = nx.DiGraph([("a", "b"), ("a", "c")])
    forms = [digraph, digraph.edges, [("a", "b"), ("a", "c")], {"b": ["a"], "c": ["a"]}]
    for form in forms:
        dag = KernelGraph(form, features=features).dag
        assert dag.parents("c") == ["a"]
    assert KernelGraph(features=features).dag.sources == list(features)


INDEFINITE = np.eye(N)
INDEFINITE[2, 2] = -0.5
SKEW = GRAM.copy()
SKEW[1, 4] += 0.1


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (SKEW, r"'bad' is not symmetric: entries \(1, 4\) and \(4, 1\)"),
        (INDEFINITE, "'bad' is indefinite.*-0.5"),
        (-GRAM, "'bad' is indefinite"),
        (HOLE, "'bad' has entries that are not finite"),
        (INDEFINITE.astype(np.float32), "'bad' is indefinite"),
    ],
    ids=["skew", "indefinite", "negative", "nan", "float32"],
)
@pytest.mark.parametrize("way", ["gram", "kernel"])
def test_a_matrix_that_is_no_kernel_is_named(matrix, message, way):
    def make():
        if way == "gram":
            return KernelGraph(grams={"good": GRAM, "bad": matrix})
        kernels = {"bad": lambda i, j: matrix[np.ix_(i, j)]}
        return fitted(KernelGraph(grams={"good": GRAM}, kernels=kernels), np.arange(N))

    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("size", [1, 3, 12])
def test_an_asymmetric_entry_is_found_in_any_tile(monkeypatch, size):
    monkeypatch.setattr("hikernel.graphs.kernel_checks._TILE", size)
    for i, k in [(0, 11), (11, 0), (5, 4), (2, 3)]:
        skew = GRAM.copy()
        skew[i, k] -= 0.5
        message = f"entries .({min(i, k)}|{max(i, k)}), ({min(i, k)}|{max(i, k)}). and"
        with pytest.raises(ValueError, match=message):
            fitted(KernelGraph(grams={"a": skew}), np.arange(N))
    fitted(KernelGraph(grams={"a": GRAM}), np.arange(N))


@pytest.mark.parametrize("spoil", [-1e-3, -0.3], ids=["little", "much"])
def test_a_large_indefinite_gram_is_found_without_a_factorisation(spoil):
    n = 1600
    rng = np.random.default_rng(1)
    features = rng.standard_normal((n, 5))
    K = features @ features.T
    direction = rng.standard_normal(n)
    direction /= np.linalg.norm(direction)
    fitted(KernelGraph(grams={"fine": K}), np.arange(n))
    K += spoil * n * np.outer(direction, direction)
    with pytest.raises(ValueError, match="'large' is indefinite"):
        fitted(KernelGraph(grams={"large": K}), np.arange(n))
    fitted(KernelGraph(grams={"zero": np.zeros((n, n))}), np.arange(n))


def test_a_gram_that_rounding_makes_indefinite_passes():
    gaussian = np.exp(-0.5 * (X[:, :1] - X[:, 0]) ** 2)
    least = np.linalg.eigvalsh(gaussian.astype(np.float32))[0]
    assert least < 1e-6
    fitted(KernelGraph(grams={"a": gaussian.astype(np.float32), "b": gaussian}), np.arange(N))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no kernels"),
        ({"kernels": {"a": linear}, "features": {"a": [0]}}, "'a' has more than one kernel"),
        ({"grams": {"a": GRAM}, "features": {"a": X}}, "'a' has more than one kernel"),
        ({"kernels": {"a": GRAM}}, r"kernels\['a'\] must be a function"),
        ({"kernels": [linear]}, "kernels must be a mapping"),
        ({"grams": [GRAM]}, "grams must be a mapping"),
        ({"features": [X]}, "features must be a mapping"),
        ({"grams": {"a": X}}, "'a' must be square"),
        ({"grams": {"a": None}}, "'a' must be square"),
        ({"grams": {"a": [["x"]]}}, "'a' must be numbers"),
        ({"grams": {"a": sparse.csr_array(GRAM)}}, "'a' is a sparse matrix"),
        ({"grams": {"a": GRAM, "b": GRAM[:5, :5]}}, "'b' has 5 rows and that of 'a' 12"),
        ({"grams": {"a": GRAM}, "features": {"b": X[:7]}}, "'b' has 7 rows and that of 'a' 12"),
        ({"grams": {"a": GRAM + 0j}}, "'a' must be numbers: it is complex"),
        ({"features": {"a": X, "b": X[:7]}}, "'b' has 7 rows and that of 'a' 12"),
        ({"features": {"a": HOLE}}, "'a' have entries that are not finite"),
        ({"features": {"a": np.empty((N, 0))}}, "'a' must have shape"),
        ({"features": {"a": np.empty((N, 2, 2))}}, r"features\['a'\] must be a function"),
        ({"features": {"a": None}}, r"features\['a'\] must be a function.*NoneType"),
        ({"features": {"a": 1.5}}, r"features\['a'\] must be a function"),
        ({"features": {"a": []}}, r"features\['a'\] must be a function"),
        ({"features": {"a": [[1.0], [2.0, 3.0]]}}, r"features\['a'\] must be a function"),
        ({"features": {"a": [["x"], ["y"]]}}, "'a' must be numbers"),
        ({"features": {"a": X}, "dtype": "float16"}, "dtype must be"),
        ({"features": {"a": X}, "weights": {"b": 1.0}}, "weights lacks the node 'a'"),
        ({"features": {"a": X}, "weight_base": -2.0}, "weight_base"),
        ({"edges": [("z", "a")], "features": {"a": X}}, "'z' is .*but has no kernel"),
        ({"edges": {"a": ["z"]}, "features": {"a": X}}, "'z' is a parent of 'a' but has no kernel"),
        ({"edges": [("a", "a")], "features": {"a": X}}, "cycle: 'a' -> 'a'"),
        ({"edges": {"a": ["b"], "b": ["a"]}, "features": {"a": X, "b": X}}, "cycle: '"),
        ({"edges": nx.Graph([("a", "b")]), "features": {"a": X, "b": X}}, "no directions"),
    ],
)
def test_graphs_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        KernelGraph(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": {"a": [0, 9]}}, r"columns \[0, 9\] of node 'a' are not in X"),
        ({"features": {"a": ["p"]}}, "of node 'a' are not in X"),
        ({"features": {"a": lambda X: X[:5]}}, "features of 'a' must have shape .12, r."),
        ({"features": {"a": lambda X: X.astype(str)}, "weights": None}, None),
        ({"features": {"a": lambda X: [["x"]] * len(X)}}, "features of 'a' must be numbers"),
        ({"features": {"a": lambda X: X / 0.0}}, "features of 'a' have entries that are not"),
        ({"kernels": {"a": lambda A, B: A @ B.T @ B}}, "'a' must have shape .12, 12., got .12, 4"),
        ({"kernels": {"a": lambda A, B: "no"}}, "'a' must be numbers"),
        ({"kernels": {"a": lambda A, B: None}}, "'a' must have shape"),
    ],
)
def test_functions_that_fail_are_named(arguments, message):
    graph = KernelGraph(**arguments)
    with np.errstate(divide="ignore", invalid="ignore"):
        if message is None:  # numbers as text are numbers
            fitted(graph, X)
            return
        with pytest.raises(ValueError, match=message):
            fitted(graph, X)


@pytest.mark.parametrize("way", ["kernels", "features"])
def test_what_a_function_raises_gets_the_name_of_its_node(way):
    with pytest.raises(ZeroDivisionError) as error:
        fitted(
            KernelGraph(**{way: {"good": linear if way == "kernels" else [0], "bad": broken}}), X
        )
    assert error.value.__notes__ == ["The function of node 'bad' raised this."]


def broken(*rows):
    return 1 / 0


def test_names_of_nodes_tell_them_apart():
    graph = KernelGraph(features={1: X, "1": X, "intercept": X, ("a", 2): X})
    design = fitted(graph, np.arange(N))
    terms = design.terms([1, "1", "intercept", ("a", 2)])["term"]
    assert terms == ["1", "'1'", "'intercept'", "('a', 2)"]
    assert design.terms(["1"])["term"] == ["'1'"]


def test_the_plan_counts_what_is_kept_and_what_is_still_to_be_taken():
    kernels = dict.fromkeys(range(10), linear)
    plan = KernelGraph(kernels=kernels, dtype="float32").plan(1000)
    assert plan.kept == 10 * 4 * 1000**2
    assert plan.to_take == plan.kept + plan.working
    assert KernelGraph(kernels=kernels).plan(1000).kept == 2 * plan.kept
    given = KernelGraph(grams={"a": GRAM}).plan(N)
    assert given.kept == GRAM.nbytes
    assert given.to_take == given.working > 0
    columns = KernelGraph(features={"a": X}).plan(N)
    assert (columns.kept, columns.to_take) == (2 * X.nbytes, X.nbytes)
    assert "GiB" in str(plan)


def test_memory_is_planned_before_a_kernel_is_computed(monkeypatch):
    calls = []

    def counted(A, B):
        calls.append(len(A))
        return A @ B.T

    half = KernelGraph(kernels=dict.fromkeys(range(50), counted), dtype="float32")
    full = KernelGraph(kernels=dict.fromkeys(range(50), counted))
    free = (half.plan(N).to_take + full.plan(N).to_take) // 2
    monkeypatch.setattr(machine, "available_bytes", lambda: free)
    with pytest.raises(MemoryPlanError, match=r'Gram matrices of 50 .*on 12 rows.*"float32"'):
        fitted(full, X)
    assert calls == []
    fitted(half, X)
    assert len(calls) == 50


def test_memory_of_feature_columns_is_planned(monkeypatch):
    graph = KernelGraph(features=dict.fromkeys(range(20), X))
    monkeypatch.setattr(machine, "available_bytes", lambda: 20 * X.nbytes - 1)
    with pytest.raises(MemoryPlanError, match="arrays of features, on 12 rows"):
        fitted(graph, np.arange(N))


def test_a_clone_is_the_graph_itself():
    from sklearn.base import clone

    graph = KernelGraph(grams={"a": GRAM}, features={"b": X})
    assert clone(graph) is graph
    assert repr(graph) == "KernelGraph(2 nodes: 1 features, 1 grams)"


def test_whole_numbers_in_an_array_are_features_and_in_a_list_columns():
    counts = np.arange(N)
    design = fitted(KernelGraph(features={"a": counts}), np.arange(N))
    np.testing.assert_allclose(grams_of(design, "a")["a"], np.outer(counts, counts))
    frame = pd.DataFrame(X, columns=[3, 2, 1, 0])
    named = fitted(KernelGraph(features={"a": [3]}), frame)
    np.testing.assert_allclose(grams_of(named, "a")["a"], np.outer(X[:, 0], X[:, 0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_eigenvalue_that_rounding_takes_is_given_back(dtype):
    gaussian = np.exp(-0.05 * (X[:, :1] - X[:, 0]) ** 2)
    least = np.linalg.eigvalsh(gaussian)[0]
    gaussian -= (least + 0.5e-8 * np.trace(gaussian)) * np.eye(N)
    graph = KernelGraph(grams={"a": gaussian}, dtype=dtype)
    kernel = grams_of(fitted(graph, np.arange(N)), "a")["a"]
    assert np.linalg.eigvalsh(kernel)[0] > -1e-14
    np.testing.assert_allclose(kernel, gaussian, atol=1e-6)
    new = fitted(graph, np.arange(6)).predict(["a"], np.eye(6), np.arange(6, N))
    np.testing.assert_allclose(new, gaussian[6:, :6], atol=1e-6)
    part = grams_of(fitted(graph, np.arange(1, 9)), "a", 8)["a"]
    np.testing.assert_allclose(part, kernel[1:9, 1:9], rtol=1e-12)
