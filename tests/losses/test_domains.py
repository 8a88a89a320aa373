"""Targets and parameters outside a loss's domain, and names of losses that are none."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import every_case

from hikernel.losses import (
    CLASSIFICATION,
    REGRESSION,
    EpsilonInsensitive,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredHinge,
    make_loss,
)


@every_case
def test_targets_of_its_kind_are_accepted(case):
    case.loss.check_target(case.sample()[0])


@pytest.mark.parametrize("loss", [LogLoss(), Hinge(), SquaredHinge()], ids=lambda loss: loss.name)
def test_margins_need_both_signs(loss):
    with pytest.raises(ValueError, match=f"{loss.name} needs labels -1 and 1"):
        loss.check_target(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="needs two classes"):
        loss.check_target(np.ones(4))
    with pytest.raises(ValueError, match="needs two classes"):
        loss.check_target(np.array([[1.0, -1.0], [-1.0, -1.0]]))


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.array([1.0, 0.0]), "one class per row"),
        (np.array([[1.0, 1.0], [0.0, 1.0]]), "one class per row"),
        (np.array([[0.5, 0.5], [0.0, 1.0]]), "one class per row"),
        (np.array([[1.0, 0.0], [1.0, 0.0]]), "Every class needs a row"),
    ],
)
def test_the_multinomial_loss_needs_one_class_per_row(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        Multinomial().check_target(y)


def test_counts_are_not_negative_and_not_all_zero():
    with pytest.raises(ValueError, match="zero or positive, but some values are negative"):
        Poisson().check_target(np.array([1.0, -1e-9]))
    with pytest.raises(ValueError, match="needs some y above zero"):
        Poisson().check_target(np.zeros(3))
    Poisson().check_target(np.array([0.0, 0.5]))


@pytest.mark.parametrize(
    ("make", "value", "sentence"),
    [
        (Huber, 0.0, "delta of the Huber loss must be positive, got 0.0"),
        (Huber, -1.0, "must be positive"),
        (Huber, np.inf, "must be positive"),
        (Huber, np.nan, "must be positive"),
        (Quantile, 0.0, "level of the quantile loss must be between 0 and 1, got 0.0"),
        (Quantile, 1.0, "between 0 and 1"),
        (Quantile, np.nan, "between 0 and 1"),
        (EpsilonInsensitive, -0.1, "zero or positive, got -0.1"),
        (EpsilonInsensitive, np.nan, "zero or positive"),
        (EpsilonInsensitive, np.inf, "zero or positive"),
    ],
)
def test_bad_parameters_are_refused(make, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(value)


@pytest.mark.parametrize("spec", ["hinge", "squared", "", None, 3, Hinge(), Hinge, Multinomial()])
def test_what_is_no_regression_loss_is_refused_with_a_list(spec):
    with pytest.raises(ValueError, match=r"'squared_error', 'huber', .*'poisson'.*got"):
        make_loss(spec, REGRESSION)


@pytest.mark.parametrize("spec", ["quantile", Quantile(0.9), Multinomial(), ["hinge"]])
def test_what_is_no_classification_loss_is_refused_with_a_list(spec):
    with pytest.raises(ValueError, match=r"'log_loss', 'hinge', 'squared_hinge'.*got"):
        make_loss(spec, CLASSIFICATION)


def test_the_mean_of_counts_is_the_exponential():
    np.testing.assert_allclose(Poisson().predict_mean(np.array([0.0, 1.0])), [1.0, np.e])
    np.testing.assert_array_equal(Huber().predict_mean(np.array([0.0, 1.0])), [0.0, 1.0])
