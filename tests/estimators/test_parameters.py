"""Parameters: the same everywhere, documented once, checked before work starts."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path, load
from hikernel.engines import ENGINES, NumpyEngine
from hikernel.errors import ModelFileError

ESTIMATORS = [HKLRegressor, HKLClassifier, HKLRegressorCV, HKLClassifierCV]
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 3))
Y = X[:, 0] + X[:, 1] * X[:, 2]


def described(documented):
    """The entries of the section on parameters, with their texts."""
    text = inspect.getdoc(documented)
    section = text.split("Parameters\n----------\n")[1]
    section = re.split(r"\n\w+\n-{3,}\n", section)[0]
    parts = re.split(r"^(\w+(?:, \w+)*) : ", section, flags=re.MULTILINE)
    names = [name for group in parts[1::2] for name in group.split(", ")]
    return names, dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_parameter_is_described_once(cls):
    names, texts = described(cls)
    assert sorted(names) == sorted(cls().get_params())
    assert len(names) == len(set(names))
    for text in texts.values():
        kind, *rest = text.strip().split("\n")
        assert kind
        assert len(" ".join(rest)) > 15
    assert "{parameters}" not in inspect.getdoc(cls)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_the_defaults_that_are_said_are_the_defaults(cls):
    said = {
        name: default
        for group, text in described(cls)[1].items()
        for name in group.split(", ")
        for default in re.findall(r"default=(\S+)$", text.split("\n")[0])
    }
    assert len(said) > 10
    params = cls().get_params()
    for name, default in said.items():
        assert eval(default, {"np": np}) == params[name], name  # the text is ours


def test_the_path_has_the_parameters_of_the_estimators():
    names, _ = described(hkl_path)
    assert sorted(names) == sorted(inspect.signature(hkl_path).parameters)
    of_refits = {"refit", "monotone"}
    shared = set(HKLRegressor().get_params()) - {"alpha", "warm_start", *of_refits}
    assert shared <= set(names)
    ours = inspect.signature(hkl_path).parameters
    for name, value in HKLRegressor().get_params().items():
        if name in shared - {"certify"}:  # a proof for every alpha would take too long
            assert ours[name].default == value, name


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_only_the_first_parameter_may_go_without_its_name(cls):
    kinds = [p.kind for p in inspect.signature(cls).parameters.values()]
    positional = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert positional == (0 if cls.__name__.endswith("CV") else 1)
    assert set(kinds[positional:]) == {inspect.Parameter.KEYWORD_ONLY}


def test_engines_are_chosen_by_name(tmp_path):
    usual = HKLRegressor(0.01).fit(X, Y)
    for name in ENGINES:
        model = HKLRegressor(0.01, engine=name).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), usual.predict(X), atol=1e-8)
        assert clone(model).engine == name
        model.save(tmp_path / "model.hik")
        assert load(tmp_path / "model.hik").engine == name


def test_a_loaded_model_computes_with_its_engine(tmp_path, monkeypatch):
    made = []

    class Counting(NumpyEngine):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setitem(ENGINES, "counting", Counting)
    model = HKLRegressor(0.01, engine="counting").fit(X, Y)
    model.save(tmp_path / "model.hik")
    loaded = load(tmp_path / "model.hik")
    made.clear()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert len(made) == 2
    monkeypatch.delitem(ENGINES, "counting")
    with pytest.raises(ModelFileError, match=r"engine 'counting' is not in hikernel\.engines"):
        load(tmp_path / "model.hik")


@pytest.mark.parametrize("engine", ["nupmy", None, 3, ["numpy"]])
def test_unknown_engines_are_refused_before_work(engine):
    for fit in (
        lambda: HKLRegressor(engine=engine).fit(X, Y),
        lambda: HKLRegressorCV(engine=engine).fit(X, Y),
        lambda: hkl_path(X, Y, engine=engine),
    ):
        with pytest.raises(
            ValueError, match="engine must be one of 'auto', 'numpy', 'torch', 'torch:cpu'"
        ):
            fit()
