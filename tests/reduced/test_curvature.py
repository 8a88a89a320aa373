"""The curvature of wide nodes, computed without the inverse of M."""

import numpy as np
import pytest

from hikernel.engines.features import Blocks
from hikernel.reduced.forms import DualForm, PrimalForm


@pytest.mark.parametrize("widths", [[40, 1, 30], [60], [1, 1, 1, 2], [8, 8, 8]])
@pytest.mark.parametrize("lam", [1e-1, 1e-4])
def test_it_is_what_the_formula_and_the_dual_form_give(widths, lam):
    rng = np.random.default_rng(0)
    blocks = Blocks(widths)
    features = rng.normal(size=(90, blocks.n_columns)) / 10
    y = rng.normal(size=90)
    gram = features.T @ features
    zeta = rng.uniform(0.1, 1.0, size=len(widths))
    found = PrimalForm(gram, features.T @ y, float(y @ y), blocks).evaluate(zeta, lam)
    root = np.sqrt(blocks.spread(zeta))
    u = found.coef / root
    inverse = np.linalg.inv(lam * np.eye(len(root)) + root[:, None] * gram * root)
    whole = lam**2 * np.outer(u, u) * inverse
    expected = blocks.sum(blocks.sum(whole), axis=1)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.curvature(), expected, atol=1e-10 * size)
    dual = DualForm(features, y, blocks).evaluate(zeta, lam)
    np.testing.assert_allclose(dual.curvature(), expected, atol=1e-7 * size)
