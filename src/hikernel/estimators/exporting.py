"""A fitted estimator as a file for programs that know nothing of hikernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from hikernel.estimators.typed_bases import BaseEstimator

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Exporting"]


class Exporting(BaseEstimator):
    """Mixin of the method that writes the model that predicts in another language."""

    def export(
        self,
        path: str | PathLike[str] | None = None,
        *,
        format: str | None = None,
        **options: Any,
    ) -> str | None:
        """Write the model as Python that needs NumPy alone, as SQL, or as JSON.

        All formats give the predictions of the model up to rounding, also for missing values and
        categories that were not seen in ``fit``.

        Parameters
        ----------
        path : str or path-like, optional
            File to write; an existing one is replaced. Without it the text is returned.
        format : {"python", "sql", "json"}, optional
            By default that of the extension of the path: ".py", ".sql" or ".json".
        **options
            For SQL: ``table``, the name of the table (default "data"), or a list such as
            ["schema", "name"]; ``keys``, names of columns that the result has, too; and
            ``dialect``, one of "sqlite" (default), "duckdb", "postgresql" and "ansi".

        Returns
        -------
        str or None
            The text if there is no path.

        Raises
        ------
        ValueError
            If the format or an option is wrong, or the model has no columns, or a basis or kernel
            is not one of this package.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import numpy as np
        >>> from hikernel import HKLRegressor
        >>> X = np.random.default_rng(0).uniform(size=(100, 2))
        >>> model = HKLRegressor(alpha=0.01).fit(X, X[:, 0])
        >>> text = model.export(format="python")
        >>> "def predict(X" in text, "import hikernel" in text
        (True, False)
        """
        from hikernel.export.exported_file import export_model  # imported only when needed

        check_is_fitted(self)
        return export_model(self.summary, path, format, options)  # type: ignore[attr-defined]
