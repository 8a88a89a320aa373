"""Input that makes no sense is refused with a sentence that says why."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.consistency import consistency_conditions, estimate_conditions
from hikernel.graphs import Dag

CHAIN = Dag({"a": [], "b": ["a"], "c": ["b"]}, weight_base=1.0)
EYE = np.eye(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hull": "b"}, "not a hull: it contains 'b' but not its ancestor 'a'"),
        ({"hull": "abc"}, "'c' is in the hull but neither it nor a descendant"),
        ({"hull": "a"}, "'b' has a nonzero coefficient but is not in the hull"),
        ({"hull": "abx"}, "'x' is in the hull but is not a node"),
        ({"nodes": "bc", "covariance": np.eye(2)}, "its ancestor 'a' is not"),
        ({"nodes": "aab"}, "distinct"),
        ({"nodes": ""}, "at least one node"),
        ({"widths": [1, 1]}, "3 nodes but 2 widths"),
        ({"widths": [1, 0, 2]}, "at least one column"),
        ({"widths": [1, 2, 1]}, r"shape \(4, 4\)"),
        ({"covariance": np.eye(2)}, r"shape \(3, 3\).*got \(2, 2\)"),
        ({"covariance": EYE + np.eye(3, k=1)}, "symmetric"),
        ({"covariance": EYE * np.nan}, "finite"),
        ({"covariance": -EYE}, "negative variance"),
        ({"covariance": EYE + 2 * (1 - EYE)}, "semidefinite"),
        ({"covariance": np.diag([1.0, 0.0, 1.0])}, "variance zero has a nonzero coefficient"),
        ({"coefficients": {"b": 0.0}}, "All coefficients are zero"),
        ({"coefficients": {"x": 1.0}}, "'x', which is not a node"),
        ({"coefficients": {"b": [1.0, 2.0]}}, r"1 column\(s\) but coefficients of shape \(2,\)"),
        ({"coefficients": {"b": np.inf}}, "finite"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_population(change, message):
    given = {"nodes": "abc", "covariance": EYE, "coefficients": {"b": 1.0}} | change
    with pytest.raises(ValueError, match=message):
        consistency_conditions(CHAIN, **given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": {"a": [0, 1], "b": [1, 2, 4]}}, "same number of rows"),
        ({"features": {"a": [1.0], "b": [2.0]}}, "two rows"),
        ({"features": {"a": [0, np.nan], "b": [1, 2]}}, "features of 'a' must be finite"),
        ({"features": {"a": np.ones((2, 2, 2))}}, "one or two dimensions"),
        ({"features": {}}, "at least one node"),
        ({"sample_weight": [1.0]}, "weights of shape"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "nonnegative"),
    ],
)
def test_data(change, message):
    given = {"features": {"a": [0, 1, 3], "b": [1, 0, 1]}, "coefficients": {"a": 1.0}} | change
    with pytest.raises(ValueError, match=message):
        estimate_conditions(CHAIN, **given)


def test_graphs():
    class Proper:
        def ancestors(self, node):
            return []

        def weights(self, nodes):
            return np.ones(len(nodes))

    with pytest.raises(ValueError, match="must contain 'a' itself"):
        consistency_conditions(Proper(), "a", [[1]], {"a": 1})
