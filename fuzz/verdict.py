"""What a case may end in: a sound result, or one clear sentence.

A *clear sentence* is the message of an error that a check raises on purpose (``raise`` in hikernel,
or in scikit-learn's validation of arrays), that is no bare message of NumPy, SciPy or pandas, and
that names something that the user knows: a parameter, X, y, a column, a row, a file. A warning is
expected where it is a ``UserWarning`` with such a sentence; one of rounding or overflow is a fault.
"""

from __future__ import annotations

import dis
import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV
from hikernel.graphs import KernelGraph, PrecomputedGrid

__all__ = [
    "FuzzError",
    "Outcome",
    "attempt",
    "check_certificate",
    "check_clear",
    "check_words",
    "require",
]

CLEAR = (ValueError, TypeError, MemoryError, OSError, ImportError)
"""Types of errors that users expect; MemoryError is one that was foreseen, with a message."""
_LONGEST = 1500
_FOREIGN = re.compile(
    r"broadcast|SVD|[Ss]ingular matrix|leading minor|positive definite|ufunc|not subscriptable|"
    r"object has no attribute|index out of (range|bounds)|is out of bounds for axis|unhashable|"
    r"not supported between|truth value|cannot convert float|invalid literal|must be real number|"
    r"setting an array element|shapes? .* not aligned|did not converge|object is not|"
    r"unsupported operand|zero-size array|math domain|too large to convert|unorderable|"
    r"Cannot (cast|interpret)|cannot (reindex|join|concatenate)|positional argument"
)
"""Messages that speak of computations, not of what the user gave."""
_PARAMETERS = {
    name
    for cls in (HKLRegressor, HKLRegressorCV, HKLClassifier, KernelGraph, PrecomputedGrid)
    for name in inspect.signature(cls).parameters
}
_KNOWN = re.compile(
    r"\b(X|y|rows?|columns?|samples?|features?|class(es)?|labels?|targets?|categor\w+|weights?|"
    r"values?|nodes?|kernels?|Gram|edges?|levels|models?|files?|folders?|memory|data|dates?|"
    r"numbers?|strings?|clouds?|points|matri(x|ces)|parents?|arrays?|times?|events?|folds?|"
    r"letters?|vertices|depth|" + "|".join(sorted(_PARAMETERS)) + r")\b|--[a-z]|\w+_\w+|ending of|"
    r"'[^']+' (is|has|cannot)",
    re.IGNORECASE,
)
"""Words for what a user gives."""


class FuzzError(AssertionError):
    """A case that ended in neither a sound result nor a clear sentence."""


@dataclass
class Outcome:
    """How a case ended.

    Attributes
    ----------
    kind : str
        "model", "refused", or another word of the topic.
    sentence : str
        The message of the error, if there was one.
    warnings : list of str
        What was warned of.
    """

    kind: str = "model"
    sentence: str = ""
    warnings: list[str] = field(default_factory=list)


def require(condition: object, text: str) -> None:
    """Raise a FuzzError with a text unless a condition holds."""
    if not condition:
        raise FuzzError(text)


@contextmanager
def attempt(outcome: Outcome) -> Iterator[None]:
    """Run a step: a clear error is a refusal, any other error or warning a fault."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except FuzzError:
            raise
        except Exception as error:
            if any("The function of node" in note for note in getattr(error, "__notes__", ())):
                text = error.__notes__[-1]  # the user's own function raised it, and that is said
            elif isinstance(error, CLEAR):
                check_clear(error)
                text = str(error)
            else:
                raise FuzzError(f"{type(error).__name__}: {error}") from error
            outcome.kind, outcome.sentence = "refused", text
    for warning in caught:
        check_warning(warning)
        outcome.warnings.append(str(warning.message))


def check_clear(error: BaseException) -> None:
    """Raise a FuzzError unless an error has a clear sentence."""
    text = str(error)
    where = f"{type(error).__name__}: {text}"
    if isinstance(error, OSError) and error.errno is not None:
        return  # the words of the system, and the name of the file
    if isinstance(error, (KeyError, IndexError, np.linalg.LinAlgError, UnicodeError)):
        raise FuzzError(f"not a type for users: {where}") from error
    if not _is_raised_on_purpose(error):
        raise FuzzError(f"not raised by a check: {where}") from error
    try:
        check_words(text)
    except FuzzError as fault:
        raise FuzzError(f"{type(error).__name__}: {fault}") from error


def check_words(text: str) -> None:
    """Raise a FuzzError unless a text is about what the user gave."""
    require(not _FOREIGN.search(_without_quotes(text)), f"speaks of computations: {text}")
    clear = 12 <= len(text) <= _LONGEST and _KNOWN.search(text)
    require(clear, f"no clear sentence: {text}")


def check_warning(warning: warnings.WarningMessage) -> None:
    """Raise a FuzzError unless a warning is for users, with a clear sentence."""
    text = str(warning.message)
    where = f"{warning.category.__name__}: {text} ({warning.filename}:{warning.lineno})"
    if not issubclass(warning.category, UserWarning):
        raise FuzzError(f"unexpected warning: {where}")
    if not _KNOWN.search(text) or _FOREIGN.search(_without_quotes(text)):
        raise FuzzError(f"no clear warning: {where}")


def _without_quotes(text: str) -> str:
    """Leave out what a message quotes, such as the names and values of the user."""
    before = None
    while text != before:  # parentheses may hold parentheses
        before, text = text, re.sub(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^][]*\]", "", text)
    return text


def _is_raised_on_purpose(error: BaseException) -> bool:
    """Return whether a statement ``raise`` of hikernel or of scikit-learn's checks raised it."""
    last = error.__traceback__
    if last is None:
        return False
    while last.tb_next is not None:
        last = last.tb_next
    module = str(last.tb_frame.f_globals.get("__name__", ""))
    raised = last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and module.startswith(("hikernel", "sklearn.utils", "sklearn.model_selection"))


def check_certificate(certificate) -> None:
    """Raise a FuzzError unless a certificate is sound in itself."""
    objective, bound = certificate.objective, certificate.dual_bound
    require(np.isfinite(objective) and objective >= 0.0, f"objective {objective}")
    require(np.isfinite(bound) and bound >= 0.0, f"dual bound {bound}")
    require(
        bound <= objective * (1.0 + 1e-9) + 1e-290,
        f"dual bound {bound!r} above the objective {objective!r}",
    )
    require(0.0 <= certificate.relative_gap <= 1.0, f"relative gap {certificate.relative_gap}")
    require(certificate.kind in ("exact", "statistical", "none"), certificate.kind)
    require(certificate.explain(), "no words")
