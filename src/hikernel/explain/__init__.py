"""A fitted model taken apart: effects of its terms, functional ANOVA, formula as text.

Everything here is data made from a model and its bases; nothing draws, and nothing is fitted.
"""

from hikernel.explain.anova import Purified, purified
from hikernel.explain.effects import effects_frame, kept_terms, term_effects, terms_frame
from hikernel.explain.formula import FormulaTerms, formula, formula_terms

__all__ = [
    "FormulaTerms",
    "Purified",
    "effects_frame",
    "formula",
    "formula_terms",
    "kept_terms",
    "purified",
    "term_effects",
    "terms_frame",
]
