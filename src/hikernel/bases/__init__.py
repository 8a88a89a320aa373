"""One-variable decompositions: each turns a column into levels of features.

A new basis is one file and one line in `BASES`; it then joins the shared tests. Products over
variables, the graph and the penalty are none of this package's business.
"""

from __future__ import annotations

import difflib
import inspect

from hikernel.bases.anova import Anova
from hikernel.bases.asinh import AsinhPolynomial
from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.categorical import Categorical
from hikernel.bases.column import Standardizer
from hikernel.bases.gaussian import Gaussian
from hikernel.bases.hermite import Hermite
from hikernel.bases.kernel_pca import KernelPCA
from hikernel.bases.lowrank import LowRankMap, LowRankWarning, pivoted_cholesky
from hikernel.bases.orthonormal import OrthonormalPolynomial
from hikernel.bases.polynomial import Polynomial
from hikernel.bases.rank import RankPolynomial
from hikernel.bases.spline import Spline

__all__ = [
    "BASES",
    "Anova",
    "AsinhPolynomial",
    "Basis",
    "Categorical",
    "FittedBasis",
    "Gaussian",
    "Hermite",
    "KernelPCA",
    "LowRankMap",
    "LowRankWarning",
    "OrthonormalPolynomial",
    "Polynomial",
    "RankPolynomial",
    "Spline",
    "Standardizer",
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
        Categorical,
    )
}


def make_basis(spec: str | Basis, degree: int | None = None) -> Basis:
    """Return the basis that ``spec`` names, or ``spec`` itself when it is one already.

    Parameters
    ----------
    spec : str or Basis
        A key of `BASES`, or a basis.
    degree : int, optional
        Highest level, for a name whose class has a ``degree``; None keeps the default of the
        class. A basis object has its own degree and keeps it. A name also means
        ``constant_level=True`` where the class has that: absent variables are absent.

    Returns
    -------
    Basis

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
        # Without a constant level every term contains every variable, if only as a bump. That is
        # the paper's kernel, to be had from the class; by name, absent means absent.
        settings["constant_level"] = True
    return cls(**settings)
