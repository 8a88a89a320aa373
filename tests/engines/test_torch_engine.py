"""The torch engine beside the NumPy engine: names, devices, memory, splits of products."""

from __future__ import annotations

import importlib.util
import itertools
import pickle

import numpy as np
import pytest
import torch
from engines.cases import make_engine

from hikernel.engines import (
    NumpyEngine,
    choose_engine,
    engine_for_prediction,
    torch_device,
    torch_split,
)
from hikernel.engines.torch_device import TorchDevice, TorchType, gpu_pays
from hikernel.engines.torch_split import SplitPlan
from hikernel.engines.torch_stacks import FactorStack
from hikernel.errors import MemoryPlanError
from hikernel.graphs import Grid, geometric_weights

CPU = TorchType("torch:cpu")


def gpus(monkeypatch, count, free=2**40):
    """Pretend that torch sees some GPUs with so many free bytes."""
    monkeypatch.setattr(torch_device, "_n_gpus", lambda: count)
    monkeypatch.setattr(torch_device, "_gpu_is_likely", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda name: (free, 2 * free))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda name: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda name: 0)


def test_a_device_is_chosen_or_named(monkeypatch):
    gpus(monkeypatch, 0)
    assert TorchType("torch").device() == TorchDevice("cpu")
    assert TorchType("torch:cpu").device() == TorchDevice("cpu")
    gpus(monkeypatch, 2)
    assert TorchType("torch").device() == TorchDevice("cuda")
    assert TorchType("torch:cpu").device() == TorchDevice("cpu")
    assert choose_engine("torch:cuda:1") == TorchType("torch:cuda:1")
    with pytest.raises(
        ValueError, match=r"torch:cuda:2.*it sees cuda:0 to cuda:1\).*engine=\"torch"
    ):
        choose_engine("torch:cuda:2")
    gpus(monkeypatch, 0)
    for name in ("torch:cuda", "torch:cuda:0"):
        with pytest.raises(ValueError, match=r"does not see here \(it sees none\)"):
            choose_engine(name)
    for name in ("torch:tpu", "torch:", "torch:cuda:", "torch:cpu:0", "cuda"):
        with pytest.raises(ValueError, match="engine must be one of"):
            choose_engine(name)


def without_torch(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )


def test_a_missing_torch_is_said_with_the_remedy(monkeypatch):
    without_torch(monkeypatch)
    for name in ("torch", "torch:cuda:1"):
        with pytest.raises(ImportError, match=r"pip install 'hikernel\[gpu\]'"):
            choose_engine(name)
        assert engine_for_prediction(name) is NumpyEngine


def test_new_rows_are_computed_where_the_engine_is_missing(monkeypatch):
    gpus(monkeypatch, 0)
    assert engine_for_prediction("torch:cuda") is NumpyEngine
    assert engine_for_prediction("auto") is NumpyEngine
    assert engine_for_prediction("torch") == TorchType("torch")
    with pytest.raises(ValueError, match="engine must be one of"):
        engine_for_prediction("trch")


def test_auto_takes_a_gpu_where_it_pays(monkeypatch):
    least = torch_device.LEAST_NUMBERS
    gpus(monkeypatch, 1)
    assert choose_engine("auto", least) == TorchType("torch")
    assert choose_engine("auto", least - 1) is NumpyEngine
    assert not gpu_pays(least - 1)
    gpus(monkeypatch, 1, free=8 * least)  # room for the levels, none to work
    assert choose_engine("auto", least) is NumpyEngine
    gpus(monkeypatch, 0)
    assert choose_engine("auto", least) is NumpyEngine


def test_auto_does_not_look_for_a_gpu_without_a_driver(monkeypatch, tmp_path):
    def import_torch():
        raise AssertionError("torch is imported")

    monkeypatch.setattr(torch_device, "_n_gpus", import_torch)
    monkeypatch.setattr(torch_device, "_SIGNS_OF_A_GPU", (tmp_path / "none",))
    torch_device._gpu_is_likely.cache_clear()
    try:
        assert not gpu_pays(2**40)
        torch_device._gpu_is_likely.cache_clear()
        monkeypatch.setattr(torch_device, "_SIGNS_OF_A_GPU", (tmp_path,))
        with pytest.raises(AssertionError, match="torch is imported"):
            gpu_pays(2**40)
    finally:
        torch_device._gpu_is_likely.cache_clear()


def test_memory_of_a_device_is_planned_before_it_is_taken(monkeypatch):
    gpus(monkeypatch, 1, free=2**30)
    device = TorchDevice("cuda")
    device.require_memory(2**27, "A cube", "Use less.")
    with pytest.raises(MemoryPlanError, match=r"A cube would take 2\.0 GiB and 1\.0 GiB are"):
        device.require_memory(2**28, "A cube", "Use less.")
    assert device.step_numbers() == 2**25
    gpus(monkeypatch, 1, free=2**10)
    with pytest.raises(MemoryPlanError, match=r"device cuda.*lower degree.*engine=\"numpy\""):
        TorchType("torch")([(1, 1)], iter(()), np.ones(2**7), [True])


def test_memory_that_runs_out_is_said_in_a_sentence():
    device = TorchDevice("cuda")
    taken = pytest.raises(MemoryPlanError, match="The memory of the device cuda is taken")
    with taken, device.working():
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_the_limit_on_threads_holds_for_torch(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(torch_device, "n_threads", lambda: 1)
    with TorchDevice("cpu").working():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("constant", [(True, True, True), (False, True, False)])
def test_numbers_are_those_of_the_numpy_engine(chunked, constant):
    engines = [make_engine(kind, n=60, constant=constant)[0] for kind in (NumpyEngine, CPU)]
    nodes = [(), ((0, 1),), ((1, 2),), ((0, 2), (1, 2)), ((0, 1), (2, 1))]
    vector = np.random.default_rng(3).standard_normal((60, 2))
    for ours, theirs in itertools.pairwise(
        [
            engine.features(nodes),
            engine.score_bounds(nodes, vector),
            engine.score_squares(nodes, vector, rounded_up=True),
            engine.gram_diagonal(nodes, engine.means(nodes)),
            engine.level_squares(vector[:, 0]),
            engine.extension_squares(nodes, vector, rounded_up=True),
        ]
        for engine in engines
    ):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_a_subset_has_the_rows_and_their_weights():
    rows = np.array([3, 1, 40, 7], dtype=np.intp)
    a, b = (make_engine(kind, n=60)[0].subset(rows) for kind in (NumpyEngine, CPU))
    nodes = [((0, 1), (1, 2)), ((2, 1),)]
    np.testing.assert_array_equal(a.features(nodes), b.features(nodes))
    np.testing.assert_array_equal(a.row_weights, b.row_weights)
    again = np.array([2, 0], dtype=np.intp)
    np.testing.assert_array_equal(a.subset(again).features(nodes), b.subset(again).features(nodes))


def test_an_engine_goes_to_another_process():
    engine = make_engine(CPU, n=30)[0]
    nodes = [((0, 1), (1, 2)), ((2, 1),)]
    again = pickle.loads(pickle.dumps(engine))
    np.testing.assert_array_equal(again.features(nodes), engine.features(nodes))


def test_tails_of_more_rows_than_a_step_are_those_of_the_numpy_engine(chunked):
    engines = [make_engine(kind, n=300)[0] for kind in (NumpyEngine, CPU)]
    grid = make_engine(NumpyEngine)[3]
    alpha = np.random.default_rng(1).standard_normal((300, 2))
    nodes = [((0, 1),), ((1, 2),), ((0, 1), (2, 1))]
    for max_order in (None, 1, 2):
        asked = [v for v in nodes if max_order is None or len(v) <= max_order]
        a, b = (e.tail_draws(asked, alpha, grid.tail_scales(), max_order, 7, 5) for e in engines)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        a, b = (e.tail_diagonal(asked, alpha, grid.tail_scales(), max_order) for e in engines)
        np.testing.assert_allclose(a, b, rtol=1e-12)
        a, b = (e.tail_sums(asked, alpha, grid.tail_scales(), max_order) for e in engines)
        np.testing.assert_allclose(a, b, rtol=1e-7)


@pytest.fixture(scope="module")
def wide_problem():
    rng = np.random.default_rng(0)
    n, p = 150, 8
    X = rng.uniform(-1.0, 1.0, (n, p))
    levels = [[np.ones((n, 1)), X[:, [m]], X[:, [m]] ** 2 - 1 / 3] for m in range(p)]
    grid = Grid(geometric_weights([2] * p, 2.0))
    engines = [kind([(1, 1, 1)] * p, levels, np.ones(n), [True] * p) for kind in (NumpyEngine, CPU)]
    return engines, grid, rng.standard_normal(n)


@pytest.mark.parametrize("element", [1e-9, 256, 1e9], ids=["few products", "default", "few rows"])
def test_sums_do_not_depend_on_how_nodes_are_split(wide_problem, monkeypatch, element):
    monkeypatch.setattr(torch_split, "_ELEMENT", element)
    monkeypatch.setattr(torch_split, "_LEFTS", 5)
    (numpy_engine, engine), grid, alpha = wide_problem
    sets = [s for k in (0, 1, 2, 4, 5) for s in itertools.combinations(range(8), k)]
    nodes = [tuple((m, 1 + m % 2) for m in s) for s in sets]
    random = np.random.default_rng(1).permutation(len(nodes))
    mixed = [nodes[i] for i in random]
    expected = numpy_engine.tail_sums(mixed, alpha, grid.tail_scales())
    found = engine.tail_sums(mixed, alpha, grid.tail_scales())
    np.testing.assert_allclose(found, expected, rtol=1e-7)  # margins differ
    longest = [node for node in nodes if len(node) == 5]
    plan = SplitPlan.of(longest, range(8))
    assert plan.rights.shape[1] in ((1, 4) if element < 1.0 else (2,))
    assert plan.lefts.shape[1] + plan.rights.shape[1] == 5
    assert sum(len(where) for _, _, where in plan.blocks(5)) == len(longest)


def test_a_level_zero_that_vanishes_does_not_change_other_sums():
    # All products but one have S_{m,0} = 0 for half of the pairs, in up to eight variables at once.
    rng = np.random.default_rng(0)
    n, p = 24, 8
    X = rng.choice([-2.0, 2.0], size=(n, p))
    levels = [[np.ones((n, 1)), X[:, [m]]] for m in range(p)]
    grid = Grid(geometric_weights([1] * p, 1.0))
    engines = [kind([(1, 1)] * p, levels, np.ones(n), [True] * p) for kind in (NumpyEngine, CPU)]
    alpha = rng.standard_normal(n)
    nodes = [tuple((m, 1) for m in range(k)) for k in range(p + 1)]
    a, b = (engine.tail_sums(nodes, alpha, grid.tail_scales()) for engine in engines)
    np.testing.assert_allclose(b, a, rtol=1e-9)


def test_kernels_of_many_widths_keep_their_places():
    rng = np.random.default_rng(0)
    factors = [torch.from_numpy(rng.standard_normal((r, 9))) for r in (3, 1, 2, 1, 0, 3, 2)]
    stack = FactorStack(factors, n_first=3, n_padded=16)
    assert sorted(stack.place[:3]) == [0, 1, 2]
    found = stack.pairs(slice(0, 16), slice(0, 16)).view(7, 16, 16)
    diagonal = stack.diagonal()
    for k, factor in enumerate(factors):
        expected = np.zeros((16, 16))
        expected[:9, :9] = (factor.T @ factor).numpy()
        np.testing.assert_allclose(found[stack.place[k]].numpy(), expected, atol=1e-14)
        np.testing.assert_allclose(diagonal[stack.place[k]], np.diag(expected)[:9], atol=1e-14)


def test_arrays_that_must_not_be_written_to_are_read():
    levels = [[np.ones((9, 1)), np.arange(9.0)[:, None]]]
    vector = np.arange(9.0)
    for array in (*levels[0], vector):
        array.setflags(write=False)
    engine = CPU([(1, 1)], levels, np.ones(9), [True])
    np.testing.assert_allclose(engine.correlate([((0, 1),)], vector), [vector @ vector])
