"""Explanations of a fitted model: effects, functional ANOVA, formula, reasons, words.

All results are data and text, computed from a model and its design. Nothing is plotted, nothing is
fitted.
"""

from hikernel.explain.decomposition import FunctionalANOVA, functional_anova
from hikernel.explain.effects import (
    effects_frame,
    effects_summary,
    term_effects,
    terms_frame,
)
from hikernel.explain.formula import FormulaTerms, formula, formula_terms
from hikernel.explain.reasons import Explanation, Reason

__all__ = [
    "Explanation",
    "FormulaTerms",
    "FunctionalANOVA",
    "Reason",
    "effects_frame",
    "effects_summary",
    "formula",
    "formula_terms",
    "functional_anova",
    "term_effects",
    "terms_frame",
]
