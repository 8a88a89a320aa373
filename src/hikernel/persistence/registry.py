"""The complete list of the classes that a model file may contain.

To register a class, add one line to ``CLASSES``. The class must be an Enum, a frozen dataclass
whose fields are plain data, arrays and other registered classes, or a class without any state.
Names are part of the file format: a class that is renamed keeps its old name here.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any, get_type_hints

from hikernel.bases import (
    Anova,
    AsinhPolynomial,
    Gaussian,
    Hermite,
    KernelPCA,
    LowRankMap,
    OrthonormalPolynomial,
    Periodic,
    Polynomial,
    RankPolynomial,
    Spline,
    Standardizer,
)
from hikernel.bases.anova import FittedAnova
from hikernel.bases.asinh import FittedAsinhPolynomial
from hikernel.bases.basis import FittedConstant
from hikernel.bases.branches import Branches, FittedBranches
from hikernel.bases.categorical import Categorical, FittedCategorical
from hikernel.bases.gaussian import FittedGaussian
from hikernel.bases.hermite import FittedHermite
from hikernel.bases.kernel_pca import FittedKernelPCA
from hikernel.bases.kernels import CubicSplineKernel, GaussianKernel, LaplaceKernel
from hikernel.bases.mehler import MehlerSeries
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial
from hikernel.bases.periodic import FittedPeriodic
from hikernel.bases.polynomial import FittedPolynomial
from hikernel.bases.rank import FittedRankPolynomial
from hikernel.bases.spline import FittedSpline
from hikernel.bases.steps import FittedSteps, Steps
from hikernel.columns import ColumnTable
from hikernel.columns.kinds import DateColumn
from hikernel.columns.shared_bases import SharedBases
from hikernel.graphs import Grid
from hikernel.graphs.restriction import Restriction
from hikernel.losses import (
    Cox,
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from hikernel.losses.breslow import BreslowBaseline
from hikernel.reduced import Status
from hikernel.search import Certificate, StopReason
from hikernel.selection import FitRecord, SimplerModels, TermModel
from hikernel.selection.conformal import Calibration
from hikernel.selection.posterior import Posterior
from hikernel.selection.record import ColumnStatistics, PathRecord

__all__ = ["CLASSES", "FIELD_TYPES", "NAMES"]

CLASSES: dict[str, type] = {
    # Bases, as parameters.
    "Anova": Anova,
    "AsinhPolynomial": AsinhPolynomial,
    "Branches": Branches,
    "Categorical": Categorical,
    "Gaussian": Gaussian,
    "Hermite": Hermite,
    "KernelPCA": KernelPCA,
    "OrthonormalPolynomial": OrthonormalPolynomial,
    "Periodic": Periodic,
    "Polynomial": Polynomial,
    "RankPolynomial": RankPolynomial,
    "Spline": Spline,
    "Steps": Steps,
    # Fitted bases and what they are made of.
    "FittedAnova": FittedAnova,
    "FittedAsinhPolynomial": FittedAsinhPolynomial,
    "FittedBranches": FittedBranches,
    "FittedCategorical": FittedCategorical,
    "FittedConstant": FittedConstant,
    "FittedGaussian": FittedGaussian,
    "FittedHermite": FittedHermite,
    "FittedKernelPCA": FittedKernelPCA,
    "FittedOrthonormalPolynomial": FittedOrthonormalPolynomial,
    "FittedPeriodic": FittedPeriodic,
    "FittedPolynomial": FittedPolynomial,
    "FittedRankPolynomial": FittedRankPolynomial,
    "FittedSpline": FittedSpline,
    "FittedSteps": FittedSteps,
    "CubicSplineKernel": CubicSplineKernel,
    "GaussianKernel": GaussianKernel,
    "LaplaceKernel": LaplaceKernel,
    "LowRankMap": LowRankMap,
    "MehlerSeries": MehlerSeries,
    "Standardizer": Standardizer,
    # Losses.
    "BreslowBaseline": BreslowBaseline,
    "Cox": Cox,
    "EpsilonInsensitive": EpsilonInsensitive,
    "Gamma": Gamma,
    "Hinge": Hinge,
    "Huber": Huber,
    "LogLoss": LogLoss,
    "Multinomial": Multinomial,
    "Poisson": Poisson,
    "Quantile": Quantile,
    "SquaredError": SquaredError,
    "SquaredHinge": SquaredHinge,
    "Tweedie": Tweedie,
    # Models, and what is known of their fit.
    "Calibration": Calibration,
    "Certificate": Certificate,
    "ColumnStatistics": ColumnStatistics,
    "ColumnTable": ColumnTable,
    "DateColumn": DateColumn,
    "SharedBases": SharedBases,
    "FitRecord": FitRecord,
    "Grid": Grid,
    "PathRecord": PathRecord,
    "Posterior": Posterior,
    "Restriction": Restriction,
    "SimplerModels": SimplerModels,
    "Status": Status,
    "StopReason": StopReason,
    "TermModel": TermModel,
}
"""Classes by the name they have in a file."""

NAMES: dict[type, str] = {cls: name for name, cls in CLASSES.items()}
"""The name of each class in a file, the inverse of ``CLASSES``."""


def _field_types(cls: type) -> dict[str, Any]:
    if issubclass(cls, Enum) or not dataclasses.is_dataclass(cls):
        return {}
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


FIELD_TYPES: dict[type, dict[str, Any]] = {cls: _field_types(cls) for cls in NAMES}
"""Fields of every class with their annotated types; empty for an Enum or a class without state."""
