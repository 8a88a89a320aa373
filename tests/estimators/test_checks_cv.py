"""scikit-learn's own checks of the cross-validated estimators.

With few alphas and folds, a small graph and no proof, since these checks fit some hundred models
each.
scikit-learn warns where a class has fewer rows than there are folds.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hikernel import HKLClassifierCV, HKLRegressorCV

pytestmark = pytest.mark.slow

SMALL = {"degree": 2, "basis": {}, "max_kernels": 30, "certify": "none"}
FEW = {"n_alphas": 2, "eps": 1e-4, "cv": 2, **SMALL}


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest that was tried")
@parametrize_with_checks([HKLRegressorCV(**FEW), HKLClassifierCV(**FEW)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
