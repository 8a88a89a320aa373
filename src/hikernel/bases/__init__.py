"""One-variable decompositions: each turns a column into levels of features.

To add a basis, write one file and add its class to `BASES`. The tests then require a case for it in
``tests/bases/cases.py``. Products over variables, the graph and the penalty are handled elsewhere.
"""

from __future__ import annotations

import difflib
import inspect

from hikernel.bases.anova import Anova
from hikernel.bases.asinh import AsinhPolynomial
from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.branches import Branches
from hikernel.bases.categorical import Categorical
from hikernel.bases.column import Standardizer
from hikernel.bases.gaussian import Gaussian
from hikernel.bases.hermite import Hermite
from hikernel.bases.kernel_pca import KernelPCA
from hikernel.bases.lowrank import LowRankMap, LowRankWarning, pivoted_cholesky
from hikernel.bases.orthonormal import OrthonormalPolynomial
from hikernel.bases.periodic import Periodic
from hikernel.bases.polynomial import Polynomial
from hikernel.bases.rank import RankPolynomial
from hikernel.bases.spline import Spline
from hikernel.bases.steps import Steps

__all__ = [
    "BASES",
    "Anova",
    "AsinhPolynomial",
    "Basis",
    "Branches",
    "Categorical",
    "FittedBasis",
    "Gaussian",
    "Hermite",
    "KernelPCA",
    "LowRankMap",
    "LowRankWarning",
    "OrthonormalPolynomial",
    "Periodic",
    "Polynomial",
    "RankPolynomial",
    "Spline",
    "Standardizer",
    "Steps",
    "make_basis",
    "pivoted_cholesky",
]

#: Basis classes by name.
BASES: dict[str, type[Basis]] = {
    cls.name: cls
    for cls in (
        Polynomial,
        OrthonormalPolynomial,
        AsinhPolynomial,
        RankPolynomial,
        Hermite,
        Gaussian,
        KernelPCA,
        Anova,
        Spline,
        Steps,
        Categorical,
    )
}


def make_basis(spec: str | Basis, degree: int | None = None) -> Basis:
    """Return the basis that ``spec`` names, or ``spec`` itself if it is a basis.

    Parameters
    ----------
    spec : str or Basis
        A key of `BASES`, or a basis.
    degree : int, optional
        Highest level of a basis given by name, if its class has a ``degree``; None keeps the
        default of the class. A basis object keeps its own degree.

    Returns
    -------
    Basis
        A basis given by name has ``constant_level=True`` if its class has this parameter, so that
        terms do not depend on their absent variables.

    Examples
    --------
    >>> make_basis("polynomial", degree=3)
    Polynomial(degree=3)
    >>> make_basis("anova", degree=3)
    Anova(b=0.5, tol=1e-10, max_rank=None, first_pivot=None)
    """
    if isinstance(spec, Basis):
        return spec
    if not isinstance(spec, str):
        raise ValueError(
            f"basis must be a name or a basis object such as Polynomial(degree=4), got {spec!r}."
        )
    cls = BASES.get(spec)
    if cls is None:
        close = difflib.get_close_matches(spec.lower(), BASES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"basis {spec!r} is not known; choose one of {', '.join(sorted(BASES))}, or auto.{hint}"
        )
    known = inspect.signature(cls).parameters
    settings: dict[str, object] = {}
    if degree is not None and "degree" in known:
        settings["degree"] = degree
    if "constant_level" in known:
        # Without a constant level, level 0 is a bump and every term depends on every variable.
        # That is the kernel of the paper; to get it, pass an object of the class.
        settings["constant_level"] = True
    return cls(**settings)
