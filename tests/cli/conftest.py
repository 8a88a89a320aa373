"""Tables, models and a runner that the tests of the commands share."""

from __future__ import annotations

from functools import partial

import pytest
from cli.houses import QUICK, ROOMS, SIZE, TOWN, make_houses
from click.testing import CliRunner

from hikernel import HKLClassifier, HKLRegressor
from hikernel.cli import fit_command
from hikernel.cli.application import application


@pytest.fixture
def houses():
    return make_houses()


@pytest.fixture
def folder(tmp_path, monkeypatch, houses):
    """The current folder, with houses.csv and new.csv."""
    monkeypatch.chdir(tmp_path)
    houses.to_csv("houses.csv", index=False)
    houses.drop(columns=["price", "sold"]).head(5).to_csv("new.csv", index=False)
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """Fits take a tenth of a second: few alphas, few folds, low degrees."""
    known = fit_command._estimator
    monkeypatch.setattr(fit_command, "_estimator", lambda task: partial(known(task), **QUICK))


@pytest.fixture
def run():
    """Run a command; the result has exit_code, stdout and stderr."""

    def invoke(*words, stdin=None):
        return CliRunner().invoke(application, [str(word) for word in words], input=stdin)

    return invoke


@pytest.fixture(scope="session")
def regressor():
    houses = make_houses()
    return HKLRegressor(0.01).fit(houses[[SIZE, TOWN, ROOMS]], houses["price"])


@pytest.fixture(scope="session")
def classifier():
    houses = make_houses()
    return HKLClassifier(0.01).fit(houses[[SIZE, TOWN]], houses["sold"])


@pytest.fixture
def models(folder, regressor, classifier):
    """The current folder, with price.hik and sold.hik as well."""
    regressor.save("price.hik")
    classifier.save("sold.hik")
    return folder
