"""Values go to a file and come back as they were."""

import dataclasses
from enum import Enum

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from persistence.files import same

from hikernel.persistence import load_state, save_state
from hikernel.persistence.arrays import ArrayReader
from hikernel.persistence.codec import Decoder, Encoder
from hikernel.persistence.content import ContentError, conforms
from hikernel.persistence.registry import CLASSES, FIELD_TYPES
from hikernel.reduced import Status

DTYPES = ["?", "i1", "<i4", ">i8", "u2", "f2", "<f4", "f8", ">f8", "c16", "<U1", "U7"]


def through(value):
    encoder = Encoder()
    tree = encoder.encode(value)
    arrays = ArrayReader(encoder.arrays.members())
    out = Decoder(arrays).decode(tree)
    arrays.finish()
    return out


numbers = st.integers() | st.floats(width=64) | st.booleans()
leaves = (
    st.none()
    | numbers
    | st.text()
    | st.sampled_from(Status)
    | st.floats(width=32).map(np.float32)
    | st.floats().map(np.float64)
    | st.integers(-128, 127).map(np.int8)
    | st.booleans().map(np.bool_)
    | st.text().map(np.str_)
    | hnp.arrays(st.sampled_from(["f8", "i4", "?", "U3", "c8"]), hnp.array_shapes(min_dims=0))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_everything_comes_back_as_it_was(value):
    assert same(through(value), value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (0, 4), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_type_and_layout(dtype, shape, order):
    rng = np.random.default_rng(0)
    array = np.asarray(rng.integers(0, 2, size=shape).astype(dtype), order=order)
    again = through(array)
    assert again.flags.writeable
    assert again.dtype.isnative
    assert same(again, array.astype(array.dtype.newbyteorder("="), order="K"))


def test_views_and_bits_of_nan():
    bits = np.array([0x7FF8000000000001, 0xFFF0000000000123, 2**63], dtype=np.uint64)
    array = bits.view(np.float64)
    assert through(array).tobytes() == array.tobytes()
    assert through(array[::-1]).tobytes() == array[::-1].tobytes()
    for value in (*array.tolist(), float("inf"), -0.0, 5e-324):
        assert same(through(value), value)


def test_big_integers():
    for value in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 5**20000, -(5**20000)):
        assert through(value) == value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        {1, 2},
        1j,
        b"bytes",
        np.datetime64("2024-01-01"),
        np.array(["2024-01-01"], dtype="M8[D]"),
        np.array([object()]),
        np.array([[1], None], dtype=object),
        np.zeros(2, dtype=[("a", "f8")]),
        np.ma.masked_array([1.0]),
        np.longdouble(1),
        Enum("Foreign", "A").A,
        CLASSES["Polynomial"],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match=r"cannot hold"):
        Encoder().encode({"a": [value]})


def test_cycles_are_refused():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="nested too deeply"):
        Encoder().encode(cycle)


def test_wrong_fields_are_found_when_saving():
    with pytest.raises(ValueError, match="mean of Standardizer is a str"):
        Encoder().encode(CLASSES["Standardizer"](0, "0", 1.0, False))


def test_states_in_files(tmp_path):
    state = {"a": np.arange(3.0), "b": (1, [None]), "c": {"d": Status.STALLED}}
    save_state(tmp_path / "state", state, "anything")
    kind, again = load_state(tmp_path / "state")
    assert kind == "anything"
    assert same(again, state)


def test_the_registry_is_of_frozen_data():
    for cls in CLASSES.values():
        if dataclasses.is_dataclass(cls):
            assert cls.__dataclass_params__.frozen, cls
            assert list(FIELD_TYPES[cls]) == [field.name for field in dataclasses.fields(cls)]
            assert all(field.init for field in dataclasses.fields(cls))
        elif not issubclass(cls, Enum):
            assert vars(cls()) == {}


def test_every_basis_and_loss_is_registered():
    from hikernel.bases import BASES
    from hikernel.bases.basis import FittedBasis
    from hikernel.losses import CLASSIFICATION, REGRESSION

    fitted = [cls for cls in FittedBasis.__subclasses__() if cls.__module__.startswith("hikernel.")]
    known = set(CLASSES.values())
    for cls in [*BASES.values(), *REGRESSION.values(), *CLASSIFICATION.values(), *fitted]:
        assert cls in known, f"{cls} needs a line in hikernel.persistence.registry"


GOOD = {"object": ["Standardizer", {"exponent": 1, "mean": 0.5, "std": 1.0, "constant": False}]}


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"tuple": [], "dict": []},
        {"pickle": "gASVAAAAAA=="},
        {"tuple": 3},
        {"dict": [[1]]},
        {"dict": [["a", 1], ["a", 2]]},
        {"dict": [[{"tuple": []}, 1]]},
        {"dict": [[[], 1]]},
        {"int": 3},
        {"int": "zz"},
        {"float": "00"},
        {"float": None},
        {"array": ["float64", [1], "C"]},
        {"array": ["object", [1], "C"]},
        {"array": None},
        {"objects": [[2], ["a"]]},
        {"objects": [[-1], ["a"]]},
        {"objects": [[1], [[]]]},
        {"objects": [[2**70, 0], []]},
        {"objects": 1},
        {"scalar": ["float64", "00"]},
        {"scalar": ["bool", "02"]},
        {"scalar": ["str96", "00"]},
        {"scalar": ["O", "00"]},
        {"scalar": 3},
        {"enum": ["Status", "sentence"]},
        {"enum": ["Standardizer", "fit"]},
        {"enum": [[], "fit"]},
        {"object": ["Status", {}]},
        {"object": ["os.system", {}]},
        {"object": [["x"], {}]},
        {"object": ["Standardizer", {}]},
        {"object": ["Standardizer", {**GOOD["object"][1], "extra": 1}]},
        {"object": ["Standardizer", {**GOOD["object"][1], "exponent": 1.5}]},
        {"object": ["Standardizer", {**GOOD["object"][1], "exponent": True}]},
        {"object": ["Standardizer", {**GOOD["object"][1], "constant": 0}]},
        {"object": ["Huber", {"delta": -1.0}]},
        {"object": ["KernelPCA", {}]},
    ],
    ids=str,
)
def test_trees_that_stand_for_nothing(tree):
    assert Decoder(ArrayReader({})).decode(GOOD).mean == 0.5
    with pytest.raises(ContentError):
        Decoder(ArrayReader({})).decode({"tuple": [tree]})


def test_deep_trees_are_refused():
    tree = []
    for _ in range(100):
        tree = [tree]
    with pytest.raises(ContentError, match="nested"):
        Decoder(ArrayReader({})).decode(tree)


def test_types():
    assert conforms(np.float64(1.0), np.ndarray) is False
    assert conforms(None, int | None)
    assert not conforms("a", int | None)
    assert conforms({"a": 1}, dict[str, int])
    assert not conforms({"a": "b"}, dict[str, int])
    assert not conforms((1, 2, 3), tuple[int, int])
    assert not conforms({1}, set[int])
