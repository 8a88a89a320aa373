"""Blocks and Gram matrices: every verb against matrices written down, all subsets and storages."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hikernel.engines import block_engine, machine, node_kernels
from hikernel.engines.block_engine import BlockEngine
from hikernel.engines.node_kernels import BlockKernel, DenseGram, KernelOperator
from hikernel.errors import MemoryPlanError

N = 17
WIDTHS = {"a": 2, "b": 1, "c": 3}


class Case:
    """An engine with what a naive oracle needs: features of blocks, full Gram matrices."""

    def __init__(self, kind, seed=0):
        rng = np.random.default_rng(seed)
        blocks = {node: rng.standard_normal((N, r)) + 0.5 for node, r in WIDTHS.items()}
        grams = {}
        for node in ("g", "h"):
            root = rng.standard_normal((N, N))
            grams[node] = root @ root.T / N
        if kind == "blocks":
            grams = {}
        elif kind == "grams":
            blocks = {}
        stored = np.float32 if kind == "float32" else np.float64
        grams = {node: gram.astype(stored) for node, gram in grams.items()}
        self.weights = rng.uniform(0.5, 2.0, N)
        self.engine = BlockEngine(
            blocks, {node: DenseGram(gram) for node, gram in grams.items()}, self.weights
        )
        self.blocks = blocks
        self.grams = {node: gram.astype(float) for node, gram in grams.items()}
        if kind == "subset":
            rows = np.array([3, 16, 0, 3, 8, 5, 11])
            self._take(rows)
        elif kind == "twice":
            self._take(np.arange(0, N, 2))
            self._take(np.array([5, 1, 1, 7]))

    def _take(self, rows):
        self.engine = self.engine.subset(rows)
        self.weights = self.weights[rows]
        self.blocks = {node: block[rows] for node, block in self.blocks.items()}
        self.grams = {node: gram[np.ix_(rows, rows)] for node, gram in self.grams.items()}

    @property
    def nodes(self):
        """In another order than they were given."""
        return [node for node in ("h", "b", "c", "g", "a") if node in self.blocks | self.grams]

    @property
    def omega(self):
        return self.weights / self.weights.sum()

    def kernel(self, node):
        if node in self.grams:
            return self.grams[node]
        return self.blocks[node] @ self.blocks[node].T

    def coordinates(self, node, vector):
        return vector if node in self.grams else self.blocks[node].T @ vector

    def function(self, node, coef):
        return (self.grams if node in self.grams else self.blocks)[node] @ coef


KINDS = ["blocks", "grams", "mixed", "float32", "subset", "twice"]


@pytest.fixture(params=KINDS)
def case(request):
    return Case(request.param)


@pytest.fixture(params=["one chunk", "many chunks"], autouse=True)
def chunked(request, monkeypatch):
    if request.param == "many chunks":
        monkeypatch.setattr(node_kernels, "_CHUNK_NUMBERS", 40)
        monkeypatch.setattr(block_engine, "_CHUNK_NUMBERS", 40)
        monkeypatch.setattr(node_kernels, "_COPIED_NUMBERS", 0)


def vectors(case, seed=1):
    rng = np.random.default_rng(seed)
    n = case.engine.n_rows
    return [rng.standard_normal(n), rng.standard_normal((n, 3))]


def test_rows_and_widths(case):
    engine = case.engine
    assert engine.n_rows == len(case.weights)
    np.testing.assert_allclose(engine.row_weights, case.omega)
    for node in case.nodes:
        assert engine.has_block(node) == (node in case.blocks)
        assert engine.width(node) == (len(case.weights) if node in case.grams else WIDTHS[node])


def test_correlate_and_apply(case):
    for vector in vectors(case):
        parts = [case.coordinates(node, vector) for node in case.nodes]
        found = case.engine.correlate(case.nodes, vector)
        np.testing.assert_allclose(found, np.concatenate(parts), atol=1e-12)
        values = sum(
            case.function(node, part) for node, part in zip(case.nodes, parts, strict=True)
        )
        np.testing.assert_allclose(
            case.engine.apply(case.nodes, found), values, rtol=1e-9, atol=1e-9
        )
    assert np.all(case.engine.apply([], np.zeros((0, 2))) == 0.0)


def test_absolute_correlations_bound_rounding(case):
    blocks = [node for node in case.nodes if node in case.blocks]
    for vector in vectors(case):
        expected = [np.abs(case.blocks[node]).T @ np.abs(vector) for node in blocks]
        if blocks:
            found = case.engine.correlate(blocks, vector, absolute=True)
            np.testing.assert_allclose(found, np.concatenate(expected))


def test_scores(case):
    for vector in vectors(case):
        expected = np.array([np.sum(vector * (case.kernel(v) @ vector)) for v in case.nodes])
        found = case.engine.score_squares(case.nodes, vector)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        above = case.engine.score_squares(case.nodes, vector, rounded_up=True)
        assert np.all(above >= found)
        np.testing.assert_allclose(above, expected, rtol=1e-9)
        one = case.nodes[-1:]
        np.testing.assert_allclose(case.engine.score_squares(one, vector), expected[-1:], rtol=1e-9)
    assert case.engine.score_squares([], vectors(case)[0]).shape == (0,)


def test_means_with_any_weights(case):
    n = case.engine.n_rows
    for weights in (None, np.random.default_rng(3).uniform(0, 5, n)):
        omega = case.omega if weights is None else weights / weights.sum()
        parts = [omega @ (case.grams | case.blocks)[node] for node in case.nodes]
        found = case.engine.means(case.nodes, weights)
        np.testing.assert_allclose(found, np.concatenate(parts), atol=1e-12)
    assert case.engine.means([]).shape == (0,)


def test_features_and_moments_of_blocks(case):
    blocks = [node for node in case.nodes if node in case.blocks]
    if not blocks:
        return
    engine = case.engine
    features = np.hstack([case.blocks[node] for node in blocks])
    np.testing.assert_array_equal(engine.features(blocks), features)
    means = engine.means(blocks)
    weights = np.random.default_rng(4).uniform(0, 2, engine.n_rows)
    for omega in (case.omega, weights):
        other = None if omega is case.omega else omega
        middle = means if other is None else engine.means(blocks, other)
        centred = features - middle
        expected = centred.T @ (omega[:, None] * centred)
        found = engine.gram(blocks, blocks, middle, middle, other)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        first, rest = blocks[:1], blocks[1:]
        cut = case.blocks[blocks[0]].shape[1]
        across = engine.gram(first, rest, middle[:cut], middle[cut:], other)
        np.testing.assert_allclose(across, expected[:cut, cut:], atol=1e-12)
    np.testing.assert_allclose(
        engine.gram_diagonal(blocks, means), case.omega @ (features - means) ** 2, atol=1e-12
    )


def test_grams_have_no_variance_of_columns(case):
    found = case.engine.gram_diagonal(case.nodes, case.engine.means(case.nodes))
    start = 0
    for node in case.nodes:
        width = case.engine.width(node)
        assert np.all(np.isinf(found[start : start + width])) == (node in case.grams)
        start += width


def test_operators(case):
    operator = case.engine.kernel_operator(case.nodes)
    assert (operator is None) == (not case.grams)
    if operator is None:
        return
    zeta = np.random.default_rng(5).uniform(0.1, 1, len(case.nodes))
    total = sum(z * case.kernel(node) for z, node in zip(zeta, case.nodes, strict=True))
    np.testing.assert_allclose(operator.weighted_sum(zeta), total, atol=1e-9)
    zeta[0] = 1e-30  # nothing beside the others
    assert np.all(np.isfinite(operator.weighted_sum(zeta)))
    vector = vectors(case)[0]
    applied = np.column_stack([case.kernel(node) @ vector for node in case.nodes])
    np.testing.assert_allclose(operator.apply(vector), applied, atol=1e-9)
    for v in vectors(case):
        u = v[::-1]
        left, right = operator.coordinates(v), operator.coordinates(u)
        np.testing.assert_allclose(left, case.engine.correlate(case.nodes, v))
        squares = [np.sum(v * (case.kernel(node) @ v)) for node in case.nodes]
        np.testing.assert_allclose(operator.squares(left), squares, rtol=1e-9)
        np.testing.assert_allclose(operator.score_squares(v), squares, rtol=1e-9)
        inner = sum(np.sum(v * (case.kernel(node) @ u)) for node in case.nodes)
        assert operator.inner(left, right) == pytest.approx(inner, rel=1e-9)
        values = sum(case.kernel(node) @ v for node in case.nodes)
        np.testing.assert_allclose(operator.expand(left), values, atol=1e-8)
    some = operator.restrict([1, 0])
    np.testing.assert_array_equal(some.blocks.widths, operator.blocks.widths[[1, 0]])
    np.testing.assert_allclose(some.apply(vector), applied[:, [1, 0]], atol=1e-9)
    diagonal = sum(np.diagonal(case.kernel(node)) for node in case.nodes)
    assert operator.mean_diagonal(case.omega) == pytest.approx(float(case.omega @ diagonal))


def test_predictions_on_some_rows_from_others(case):
    n = case.engine.n_rows
    rows, support = np.array([2, 0, 2]), np.array([1, 3])
    rng = np.random.default_rng(6)
    for outputs in ((), (2,)):
        parts = [
            rng.standard_normal((2 if node in case.grams else WIDTHS[node], *outputs))
            for node in case.nodes
        ]
        expected = sum(
            case.grams[node][np.ix_(rows, support)] @ part
            if node in case.grams
            else case.blocks[node][rows] @ part
            for node, part in zip(case.nodes, parts, strict=True)
        )
        found = case.engine.predict(case.nodes, np.concatenate(parts), rows, support)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert n > 3


def test_other_weights_copy_nothing(case):
    other = case.engine.weighted(np.arange(1.0, case.engine.n_rows + 1))
    assert other._columns is case.engine._columns
    assert other.row_weights[-1] > other.row_weights[0]
    np.testing.assert_allclose(case.engine.row_weights, case.omega)


@pytest.mark.parametrize("most", [0, 2 * 2**2])
def test_subsets_copy_small_gram_matrices_only(monkeypatch, most):
    monkeypatch.setattr(node_kernels, "_COPIED_NUMBERS", most)
    case = Case("float32")
    part = case.engine.subset(np.array([1, 4]))
    shared = part._grams["g"]._matrix is case.engine._grams["g"]._matrix
    assert shared == (most == 0)
    again = part.subset(np.array([1]))
    np.testing.assert_allclose(again._grams["g"].diagonal(), case.grams["g"][[4], [4]])
    three = case.engine.subset(np.array([1, 4, 5]))
    assert three._grams["g"]._matrix is case.engine._grams["g"]._matrix


@pytest.mark.parametrize("kind", ["block", "gram"])
def test_scores_rounded_up_are_no_less_than_exact(kind):
    rng = np.random.default_rng(0)
    n = 40
    # Large means and a vector of sum zero: nearly all digits cancel.
    features = rng.standard_normal((n, 2)) + 1e6
    vector = rng.standard_normal(n)
    vector -= vector.mean()
    exact_v = [Fraction(float(x)) for x in vector]
    if kind == "block":
        engine = BlockEngine({"a": features}, {}, np.ones(n))
        exact = sum(
            sum(Fraction(float(x)) * u for x, u in zip(column, exact_v, strict=True)) ** 2
            for column in features.T
        )
    else:
        gram = features @ features.T
        engine = BlockEngine({}, {"a": DenseGram(gram)}, np.ones(n))
        exact = sum(
            Fraction(float(gram[i, k])) * exact_v[i] * exact_v[k]
            for i in range(n)
            for k in range(n)
        )
    above = float(engine.score_squares(["a"], vector, rounded_up=True)[0])
    assert Fraction(above) >= exact


def test_float32_products_are_in_double_precision():
    rng = np.random.default_rng(0)
    gram = (rng.random((200, 200)) + 1.0).astype(np.float32)
    gram = gram + gram.T
    vector = rng.standard_normal(200)
    exact = gram.astype(float) @ vector
    np.testing.assert_allclose(DenseGram(gram).apply(vector), exact, rtol=1e-12)
    out = np.zeros((200, 200))
    DenseGram(gram).add_to(out, 0.3)
    np.testing.assert_allclose(out, 0.3 * gram.astype(float), rtol=1e-14)


def test_a_block_is_the_gram_matrix_of_its_features():
    rng = np.random.default_rng(1)
    features = rng.standard_normal((9, 3))
    block, gram = BlockKernel(features), DenseGram(features @ features.T)
    u, v = rng.standard_normal((2, 9))
    np.testing.assert_allclose(block.apply(u), gram.apply(u))
    np.testing.assert_allclose(block.diagonal(), gram.diagonal())
    assert block.size_bound(np.abs(u)) == pytest.approx(gram.size_bound(np.abs(u)))
    for a in (block, gram):
        assert a.square(a.coordinates(u)) == pytest.approx(u @ features @ features.T @ u)
        assert a.inner(a.coordinates(u), a.coordinates(v)) == pytest.approx(
            u @ features @ features.T @ v
        )
    bound = np.abs(u) @ np.abs(features @ features.T) @ np.abs(u)
    assert gram.size_bound(np.abs(u)) >= bound
    pair = KernelOperator([block, gram], 9)
    np.testing.assert_allclose(pair.weighted_sum(np.array([1.0, 2.0])), 3.0 * features @ features.T)


def test_memory_is_planned(monkeypatch):
    case = Case("blocks")
    monkeypatch.setattr(machine, "available_bytes", lambda: 100)
    with pytest.raises(MemoryPlanError, match="Storing 6 feature columns of 3 nodes for 17 rows"):
        BlockEngine(case.blocks, {}, case.weights)
    with pytest.raises(MemoryPlanError, match="The features of 3 nodes for 17 rows"):
        case.engine.features(case.nodes)
