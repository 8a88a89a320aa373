"""scikit-learn's own checks of the cross-validated estimators.

With few alphas and folds, since these checks fit some hundred models each. Some of their data
(15 rows, 30 columns of noise) leave no proof within the budget, which is said in a warning, as
scikit-learn says it where a class has fewer rows than there are folds.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hikernel import HKLClassifierCV, HKLRegressorCV

FEW = {"n_alphas": 5, "cv": 2, "max_kernels": 60, "time_budget": 1.0}


@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@parametrize_with_checks([HKLRegressorCV(**FEW), HKLClassifierCV(**FEW)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
