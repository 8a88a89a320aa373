"""Explanations of a fitted model: effects of its terms, functional ANOVA, formula as text.

All results are data, computed from a model and its design. Nothing is plotted, nothing is fitted.
"""

from hikernel.explain.decomposition import FunctionalANOVA, functional_anova
from hikernel.explain.effects import (
    effects_frame,
    effects_summary,
    term_effects,
    terms_frame,
)
from hikernel.explain.formula import FormulaTerms, formula, formula_terms

__all__ = [
    "FormulaTerms",
    "FunctionalANOVA",
    "effects_frame",
    "effects_summary",
    "formula",
    "formula_terms",
    "functional_anova",
    "term_effects",
    "terms_frame",
]
