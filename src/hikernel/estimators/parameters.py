"""The parameters of the estimators and of ``hkl_path``: declared once, documented once.

An estimator is a dataclass that inherits its parameters from a class of this module, so that its
``__init__`` is generated from them. ``documented`` writes their descriptions into a docstring, in
place of ``{parameters}``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np

from hikernel.graphs import GraphSource

__all__ = [
    "OF_COLUMNS",
    "ChoiceParameters",
    "ModelOptions",
    "ModelParameters",
    "check_graph",
    "documented",
    "same_parameters",
]

T = TypeVar("T")

OF_COLUMNS = (
    "basis",
    "categorical",
    "ordered",
    "degree",
    "max_order",
    "interactions",
    "weight_base",
    "root_weight",
    "engine",
    "search",
)
"""Parameters that refer to the columns of a table and have no meaning with ``graph=``."""


@dataclass(eq=False, repr=False, kw_only=True)
class ModelParameters:
    """Parameters of every estimator, apart from its penalty, its loss and its refit."""

    graph: Any = None
    basis: Any = "auto"
    categorical: Any = None
    ordered: Any = None
    degree: int = 4
    max_order: int | None = None
    interactions: Any = None
    weight_base: float | Literal["auto"] = "auto"
    root_weight: float = 1.0
    engine: str = "auto"
    search: str = "lookahead"
    max_kernels: int = 2000
    tol: float = 1e-2
    certify: str = "auto"
    proof_effort: float = 1.0
    time_budget: float | None = None
    max_memory: int | str | None = None
    on_interrupt: str = "raise"
    random_state: Any = 0
    verbose: int = 0


class ModelOptions(TypedDict, total=False):
    """The types of ``ModelParameters``, for functions that take them as keyword arguments."""

    graph: Any
    basis: Any
    categorical: Any
    ordered: Any
    degree: int
    max_order: int | None
    interactions: Any
    weight_base: float | Literal["auto"]
    root_weight: float
    engine: str
    search: str
    max_kernels: int
    tol: float
    certify: str
    proof_effort: float
    time_budget: float | None
    max_memory: int | str | None
    on_interrupt: str
    random_state: Any
    verbose: int


@dataclass(eq=False, repr=False, kw_only=True)
class ChoiceParameters(ModelParameters):
    """Parameters of the estimators that choose alpha and refit by cross-validation."""

    alphas: Any = None
    n_alphas: int = 40
    eps: float | None = None
    cv: Any = 5
    scoring: Any = None
    rule: str = "sparse"
    refit: str | None = "auto"
    monotone: Any = None
    n_jobs: int | None = None


DESCRIPTIONS: dict[str, str] = {
    "alpha": """float or "auto"
    Regularisation strength: smaller values select more terms. It does not depend on the scale of
    y, except with the Poisson and Tweedie losses. "auto" solves a path and takes the alpha with
    the least estimated error (``docs/method.md``), at the cost of about one fold of
    :class:`~hikernel.HKLRegressorCV`; ``alpha_`` is the result.""",
    "alphas": """sequence of float, optional
    Regularisation strengths, in any order. The default is a grid that is evenly spaced on a
    logarithmic scale. It starts where the first term is about to enter the model.""",
    "n_alphas": """int
    Largest number of values in the automatic grid.""",
    "eps": """float, optional
    Ratio of the last alpha of the automatic grid to the first; all ``n_alphas`` values are then
    solved. By default there are four values to a power of ten, and the path goes on until the
    estimated error has turned (cross-validated where there are folds) or the fit saturates.""",
    "class_weight": """dict, "balanced" or None
    Weights of the classes, which multiply ``sample_weight``. "balanced" gives every class the
    same total weight.""",
    "cv": """int, splitter or iterable
    Folds. An integer gives that many shuffled folds, stratified for classifiers. If the training
    rows of a stratified fold lack a rare class, its test rows are moved to the training rows.""",
    "scoring": """str, callable or None
    The score to maximise; None is minus the mean loss.""",
    "rule": """{"sparse", "best", "one_se"}
    How alpha and refit are chosen. "sparse" takes the pair with the fewest effects among those
    that are about as good as the best: an error that is larger by at most 0.5 %, or by at most 2 %
    and one standard error of the difference. An effect is a set of variables with a term. The
    refit "variables" must beat the others by two standard errors to take part.
    "best" takes the pair with the best mean score. "one_se" keeps that refit and takes the largest
    alpha with a score within one standard error of the best.""",
    "graph": """KernelGraph or another graph of :mod:`hikernel.graphs`, optional
    A directed acyclic graph of kernels, in place of the columns and their bases: flat multiple
    kernel learning, trees, strings, point clouds, anything with kernels. ``X`` is then whatever
    the graph takes. Certificates are exact, never statistical. The parameters ``basis`` to
    ``search`` below have no meaning and must keep their defaults.""",
    "basis": """str, Basis, or mapping
    One-variable decomposition of the numeric columns. "auto" chooses by the distribution of each
    column: "orthonormal" (orthonormal polynomials) for most, "asinh" (orthonormal polynomials of
    asinh x) if it is skewed or heavy-tailed, "rank" (bounded polynomials of the rank) if it is
    mostly one value, has very heavy tails, or has only two values. These three are constant
    outside the range of the training data. "auto+steps" adds steps to these, as a second branch of
    levels, with cuts where y jumps; the cross-validated estimators try them with "auto" too, and
    keep them where they pay (not with a mapping, be it empty). Other names are
    "polynomial", "hermite", "gaussian", "kernel_pca", "anova", "spline", "steps" and
    "categorical" (centred indicators; more than 32 from frequent to rare).
    Also possible are an object from :mod:`hikernel.bases`, and a mapping from column names or
    positions to names or objects. Unless a mapping names them, columns of categories get
    "categorical", booleans and indicators of missing values get one bounded level, and parts of
    dates that come back, such as the hour, get waves. ``bases_``
    shows the basis of each column and the reason for it. Given by name, "gaussian" and
    "kernel_pca" have a constant level 0, so that a term depends only on its own variables. The
    object ``Gaussian()`` is the kernel of the paper: its level 0 is a bump function, and every
    term depends on every variable.""",
    "categorical": """list of str or int, optional
    Names or positions of numeric columns to treat as categories, or a boolean mask with one entry
    per column. Text and the category types of pandas and polars are always categories. Where the
    names of a pandas frame are integers, an integer is a name; tuples name columns of a
    MultiIndex. Both hold for ``basis``, too, and so do names of parts of dates ("sold (year)").
    A column of dates that is named has a category for every date.""",
    "ordered": """mapping or list of columns, optional
    Columns whose categories have an order, with all categories from the lowest to the highest:
    ``{"quality": ["low", "fair", "good"]}``. In a list of columns, each has the order of its
    numbers, or of its enumeration (polars). Ordered categoricals of pandas need not be named. An
    ordered column has steps in its order beside the indicators of its categories.""",
    "degree": """int
    Highest level of a variable, for bases given by name that have a degree.""",
    "max_order": """int, optional
    Largest number of variables in a term; unlimited by default. With a limit, the proof works for
    thousands of variables. For a sparse X it is 1 or 2, and 2 by default.""",
    "interactions": """None, "none", list of groups of columns, or mapping, optional
    Which columns may be in a term together; None for any. A list of groups (``[("age", "sex"),
    ("size", "age", "year")]``) allows the interactions within each group. A mapping has groups to
    "allow", to "forbid", or both; "*" stands for any one column: ``{"allow": [("age", "*")]}`` for
    pairs with age, ``{"forbid": [("region", "*")]}`` for a region that acts alone, ``{"forbid":
    [("age", "sex")]}`` for no term with both. "none" allows no interactions. Columns are named as
    in ``categorical``. Every column may act alone, and an indicator of missing values follows its
    column. Search and proof are about the terms that may enter.""",
    "weight_base": """float or "auto"
    The weight d_v of a term is a product over its variables. With "auto" it follows from the data
    (``docs/method.md``): the base is as small as a budget on the sum of all kernels allows, and
    levels that are large on few rows pay for that. With a number, it is weight_base^level, as in
    Bach (2008). Below 1, deeper terms are penalised less, which makes large graphs hard to search
    and to certify.""",
    "root_weight": """float
    Weight of the root, which is the term without variables.""",
    "engine": """str
    What computes with the rows: "numpy" (this machine's processor), "torch" (a GPU if there is one;
    "torch:cuda:1" or "torch:cpu" name a device; needs ``hikernel[gpu]``), another key of
    ``hikernel.engines.ENGINES``, or "auto": NumPy, or a GPU from half a million numbers (rows times
    levels) on where torch and a GPU are there. Models agree to rounding (``docs/gpu.md``).""",
    "search": """{"lookahead", "paper"}
    How the graph is searched. "lookahead" scores the products of nodes near the hull with all
    levels of other variables, and adds deep terms together with their ancestors. It then proves
    the result by branch and bound, without adding terms to the model. "paper" is the rule of Bach
    (2008): it looks one step ahead, and adds to the hull whatever its proof needs.""",
    "max_kernels": """int
    Largest number of nodes in a hull that is solved. Products of many categories have many columns
    each. They also end a search before a hull has more columns than this, and than about 2,000.""",
    "tol": """float
    Duality gap to prove on the whole graph, relative to the objective. The look-ahead search for
    terms goes to 1/1000 if tol is larger.""",
    "certify": """{"auto", "exact", "statistical", "none"}
    How all kernels outside the hull are bounded. "exact" takes time quadratic in the number of
    rows. "statistical" takes linear time: random signs estimate the sums, and the bound holds
    with 95 % confidence over these draws. It is looser, and needs the look-ahead search. "auto" is
    exact up to about 6,500 rows with 32 variables (11,000 with 10), statistical above, and "none"
    above about 600,000 rows with 32 variables. With "none", nothing is proven. If a proof was
    asked for and not reached, there is a :class:`~hikernel.errors.CertificateWarning`.""",
    "proof_effort": """float
    Factor on what a proof may do: 1 is counted work of about a minute on two cores (in
    cross-validation, twice that of the search), and a million kernels that are looked at. Where
    that does not suffice, a warning says so, and the certificate has the bound that was reached. It
    does not change the model, but for terms that only the proof finds.""",
    "refit": """{None, "ridge", "sparse", "unpenalised", "variables", "auto"}
    How the coefficients of the selected terms are estimated. None keeps the (shrunken)
    coefficients of the convex problem. "ridge" fits the selected terms again with a ridge penalty,
    chosen by leave-one-out; "unpenalised" does so without a penalty. "sparse" then drops the
    effects of small share that leave-one-out does not miss, and fits again. "variables" is such a
    fit in two passes of the selected terms and all products of the selected variables up to total
    degree ``degree + 2``, or a lower one if there are too many products; it needs fewer than about
    a dozen selected variables (bases given as objects keep their own degree). "auto" is for
    cross-validation only, which then compares all but "unpenalised". Refits need a smooth
    loss. After a refit, predictions, ``terms_`` and ``coef_`` are those of the refit; the
    certificate, ``hull_`` and ``dual_coef_`` are about the convex problem. Leave-one-out omits a
    row with all its weight, so that with a refit a row of weight two is not quite equivalent to
    two rows.""",
    "monotone": """mapping, optional
    Columns in which f may only rise or only fall, by name or position: ``{"age": 1}`` or
    ``{"age": "increasing"}``, -1 or "decreasing" for the other direction. It holds for all values
    of the column, between and beyond the training rows, whatever the other columns are. Such a
    column takes part in no interaction. Its direction is a constraint on the refit, which then
    cannot be None ("ridge" takes its place); the convex problem that selects the terms has no such
    constraint, and the certificate says so. The basis of the column must be "orthonormal", "asinh",
    "rank" or "steps", as "auto" chooses; categories must have an order. What a missing value
    contributes is not constrained. Directions need a smooth loss with one output.""",
    "warm_start": """bool
    Whether a fit keeps its features and solutions for the next one. A fit of the same X, y and
    weights with another alpha, refit or tolerance then starts at the nearest alpha that was solved,
    or takes the path of alpha="auto" as it is, and has only its own search and proof to do; the
    model is the same within ``tol``. Other data, or other parameters of the graph, start anew.
    The training rows stay in memory, but not in pickles and files.""",
    "time_budget": """float, optional
    Seconds for the whole fit, cross-validation included. When they are spent, the fit ends within
    about two seconds with what it has; a warning says whether the model or only its proof was cut
    short. By default nothing is timed: search and proof are limited by counted work, so that the
    same data give the same model and the same certificate on every machine.""",
    "max_memory": """int or str, optional
    Memory that a fit may take beyond what is in use when it begins: bytes, or a size such as
    "4GB". What it needs is counted from the shapes of its arrays. A fit that cannot do with it
    ends before it starts, and says what to change. Otherwise hulls and refits have as many columns
    as there is room for; where that cuts a search short, a warning says so. By default the limit is
    the memory that is free, and hulls are limited by ``max_kernels`` alone.""",
    "on_interrupt": """{"raise", "keep"}
    What Ctrl-C does during a fit. "raise" raises KeyboardInterrupt, and leaves the estimator
    unfitted, whether it was fitted before or not. "keep" ends the fit within about two seconds
    with the best model so far, as a spent ``time_budget`` does; a warning and the certificate say
    what was cut short, and a second Ctrl-C raises. It works in the main thread, where Python hears
    of Ctrl-C, unless the program has a handler of its own for it.""",
    "n_jobs": """int, optional
    Number of joblib workers for the folds.""",
    "random_state": """int, RandomState or None
    Seed of shuffled folds, and of the random draws of statistical bounds. The model does not
    depend on these draws.""",
    "verbose": """int or bool
    0 is silent. 1 or True shows the stages of the fit on standard error, with a running count: as
    bars in a terminal or a notebook, as a line per stage in a file. 2 also writes the log records
    of the stages (level INFO of the logger "hikernel"): bases, path, scores of the folds, what was
    chosen, proof. 3 and more write all records. Warnings and the model are the same at all
    levels.""",
}
"""Type and description of each parameter, without its default."""


def documented(target: T) -> T:
    """Write the parameters of a class or function into its docstring, at ``{parameters}``.

    A parameter that the docstring already describes is not added again.
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
    """Return a decorator that puts the fields of a dataclass into the signature of a function.

    They replace the ``**parameters`` that the function takes.
    """

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


def check_graph(graph: Any, chosen: dict[str, Any]) -> GraphSource:
    """Return ``graph``; raise if it is not a graph, or if a parameter of columns is not default."""
    usable = callable(getattr(graph, "read", None)) and callable(getattr(graph, "fit", None))
    if not usable or isinstance(graph, type):
        got = f"the class {graph.__name__}" if isinstance(graph, type) else type(graph).__name__
        raise ValueError(
            f"graph must be a KernelGraph or another graph of hikernel.graphs, got {got}; "
            "KernelGraph(edges, kernels=...) makes one from edges, a mapping or a networkx graph."
        )
    defaults = {field.name: field.default for field in dataclasses.fields(ModelParameters)}
    for name, value in chosen.items():
        if isinstance(value, np.ndarray) or value != defaults[name]:
            raise ValueError(
                f"{name}={value!r} applies to a grid of columns and has no meaning with graph=; "
                "leave it out (weights and depth belong to the graph itself)."
            )
    source: GraphSource = graph
    return source
