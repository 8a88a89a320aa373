"""The base classes of scikit-learn, with types.

scikit-learn has no type hints. A class that derives from an unknown one accepts every argument and
has every attribute in the eyes of a type checker, so that it would not see a misspelled parameter.
For the checker, these classes have the methods that scikit-learn gives to an estimator; at run time
they are scikit-learn's own.
"""

# ruff: noqa: D102 (scikit-learn documents these methods)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin"]

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters and metadata requests of an estimator."""

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def set_predict_request(self, **requests: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]: ...

    class ClassifierMixin:
        """Score of a classifier: the accuracy."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin:
        """Score of a regressor: R^2."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin:
        """Fit and transform in one call, and the type of what ``transform`` returns."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
