"""The parameters of the estimators and of ``hkl_path``: declared once, documented once.

An estimator is a dataclass that inherits its parameters from here, so that ``__init__`` is made of
them. ``documented`` writes their descriptions into a docstring, in place of ``{parameters}``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["OF_COLUMNS", "ChoiceParameters", "ModelParameters", "documented", "same_parameters"]

T = TypeVar("T")

OF_COLUMNS = (
    "basis",
    "categorical",
    "degree",
    "max_order",
    "weight_base",
    "root_weight",
    "engine",
    "search",
)
"""Parameters that speak of the columns of a table and have no meaning with ``graph=``."""


@dataclass(eq=False, repr=False, kw_only=True)
class ModelParameters:
    """What every estimator has besides its penalty, its loss and its refit."""

    graph: Any = None
    basis: Any = "auto"
    categorical: Any = None
    degree: int = 4
    max_order: int | None = None
    weight_base: float = 2.0
    root_weight: float = 1.0
    engine: str = "auto"
    search: str = "lookahead"
    max_kernels: int = 600
    tol: float = 1e-3
    certify: str = "auto"
    time_budget: float | None = None
    random_state: Any = 0
    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class ChoiceParameters(ModelParameters):
    """What the estimators have that choose alpha and refit by cross-validation."""

    alphas: Any = None
    n_alphas: int = 20
    eps: float = 1e-5
    cv: Any = 5
    scoring: Any = None
    rule: str = "best"
    refit: str | None = "auto"
    n_jobs: int | None = None


DESCRIPTIONS: dict[str, str] = {
    "alpha": """float
    Regularisation strength: smaller values select more terms. It does not depend on the scale of
    y, except with the Poisson loss.""",
    "alphas": """sequence of float, optional
    Regularisation strengths, in any order. By default ``n_alphas`` values, evenly spaced in
    the logarithm from where the first term is about to enter down to ``eps`` times that.""",
    "n_alphas": """int
    Length of the automatic grid.""",
    "eps": """float
    Last over first alpha of the automatic grid.""",
    "class_weight": """dict, "balanced" or None
    Weights of the classes, which multiply ``sample_weight``; "balanced" gives every class the
    same total.""",
    "cv": """int, splitter or iterable
    Folds. A number means that many shuffled folds; for classes, stratified ones, in which a class
    too rare for them is trained on in every fold.""",
    "scoring": """str, callable or None
    What is maximised; None is minus the mean loss.""",
    "rule": """{"best", "one_se"}
    Take the best mean score, or the largest alpha within one standard error of it.""",
    "graph": """KernelGraph or another graph of :mod:`hikernel.graphs`, optional
    A directed acyclic graph of kernels in place of the columns and their bases: flat multiple
    kernel learning, trees, strings, point clouds, anything with kernels. ``X`` is then what the
    graph takes, every node can be scored and the certificate is exact; ``basis`` to ``search``
    below are left at their defaults.""",
    "basis": """str, Basis, or mapping
    One-variable decomposition of the columns of numbers. "auto" looks at each of them:
    "orthonormal" (orthonormal polynomials), "asinh" (the same of asinh x) where it is skewed or
    heavy-tailed, "rank" (bounded polynomials of the rank) where it is mostly one value or has two
    of them. These three stay constant outside the range of the training data. Also
    "polynomial", "hermite", "gaussian", "kernel_pca", "anova", "spline", "categorical" (one block
    of centred indicators), an object from :mod:`hikernel.bases`, or a mapping from column names
    or positions to these. Columns of categories get "categorical", and booleans and the marks of
    missing values one bounded level, unless a mapping names them; ``bases_`` shows what each
    column got and why. By name, "gaussian" and "kernel_pca" have a constant level 0, so that an
    absent variable is absent; ``Gaussian()`` is the paper's kernel, in which level 0 is a bump and
    every term contains every variable.""",
    "categorical": """list of str or int, optional
    Names or positions of columns whose numbers are categories, or a mask of booleans, one per
    column. Text, and columns of the category types of pandas and polars, are categories anyway.""",
    "degree": """int
    Highest level of a variable, for bases given by name that have one.""",
    "max_order": """int, optional
    How many variables may interact in a term; any number by default. With it the proof works for
    thousands of variables.""",
    "weight_base": """float
    Weight d_v of a term is the product over its variables of weight_base^level. Below 1 deeper
    terms are cheaper, which makes large graphs hard to search and to prove.""",
    "root_weight": """float
    Weight of the root, the term without variables.""",
    "engine": """str
    What computes with the rows: a name of ``hikernel.engines.ENGINES``, or "auto".""",
    "search": """{"lookahead", "paper"}
    How the graph is searched. "lookahead" scores whole levels around the hull and lets deep terms
    in with their ancestors, then proves the result by branch and bound without adding to the
    model; "paper" is the rule of Bach (2008), which looks one step ahead and adds to the hull
    whatever its proof needs.""",
    "max_kernels": """int
    Largest hull that is solved.""",
    "tol": """float
    Duality gap to reach, relative to the objective, over the whole graph.""",
    "certify": """{"auto", "exact", "statistical", "none"}
    How all kernels outside the hull are bounded. "exact" costs time quadratic in the number of
    rows. "statistical" is linear: random signs estimate the sums, and the bound holds with 95 %
    confidence over these draws; it is looser, and needs the look-ahead search. "auto" is exact up
    to about 6,500 rows with 32 variables (11,000 with 10), statistical above. With "none" nothing
    is proven. A :class:`~hikernel.errors.CertificateWarning` says when a proof was wanted and not
    reached.""",
    "refit": """{None, "ridge", "unpenalised", "variables", "auto"}
    How the selected terms are estimated: None keeps the (shrunken) coefficients of the convex
    problem, "ridge" fits the selected terms again with a penalty of its own (chosen by
    leave-one-out), "unpenalised" without one, "variables" fits them and all products of the
    selected variables up to total degree ``degree + 2``, while these are a dozen at most (bases
    given as objects keep their own degree). "auto", with cross-validation only, compares None,
    "ridge" and "variables" there. Refits need a smooth loss. ``terms_`` and ``coef_`` are those
    of the refit, which predicts; the certificate, ``hull_`` and ``dual_coef_`` speak of the
    convex problem. Leave-one-out leaves a row out with all its weight, so that with a refit a row
    of weight two is not quite two rows.""",
    "time_budget": """float, optional
    Seconds after which the look-ahead search ends with the model and the bound it has. With
    cross-validation: seconds for the proof at the end, by default a quarter of what everything
    before took, and five seconds at least. In ``hkl_path``: seconds for the whole path.""",
    "n_jobs": """int, optional
    Processes for the folds, through joblib.""",
    "random_state": """int, RandomState or None
    Seed of the draws behind statistical bounds, on which the model does not depend, and of
    shuffled folds.""",
    "verbose": """int or bool
    1 or True shows a progress bar.""",
}
"""What each parameter means, without its default."""


def documented(target: T) -> T:
    """Write the parameters of a class or function into its docstring, at ``{parameters}``.

    Those that the docstring describes itself keep that description, and stand where they stand.
    """
    doc = inspect.getdoc(target)
    assert doc is not None
    lines = []
    for name, parameter in inspect.signature(target).parameters.items():  # type: ignore[arg-type]
        if name in DESCRIPTIONS and f"\n{name} : " not in doc:
            kind, *rest = DESCRIPTIONS[name].split("\n")
            default = "" if kind.endswith("optional") else f", default={parameter.default!r}"
            lines.append("\n".join([f"{name} : {kind}{default}", *rest]))
    target.__doc__ = doc.replace("{parameters}", "\n".join(lines))
    return target


def same_parameters(cls: type[Any]) -> Callable[[T], T]:
    """Give a function that takes ``**parameters`` the signature of a class's parameters."""

    def decorate(function: T) -> T:
        own = inspect.signature(function)  # type: ignore[arg-type]
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
            for f in dataclasses.fields(cls)
        ]
        function.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        return function

    return decorate
