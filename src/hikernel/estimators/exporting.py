"""A fitted estimator as a file: for hikernel itself, and for programs that know nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from hikernel.estimators.typed_bases import BaseEstimator

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Exporting"]


class Exporting(BaseEstimator):
    """Mixin of the methods that write the model, as it is or in another language."""

    def save(
        self, path: str | PathLike[str], *, dual_coef: bool = True, error_bars: bool = True
    ) -> None:
        """Write the fitted model to one file without pickle; ``hikernel.load`` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write, with any name and extension.
        dual_coef : bool, default=True
            Whether to save ``dual_coef_``. It has one number per training row and output, and is
            not needed for predictions.
        error_bars : bool, default=True
            Whether to save what the error bars of a refit need: 8 bytes times the square of the
            number of coefficients, 0.3 MB for 200.

        Notes
        -----
        The file holds all that predictions and explanations need, but not the ``path_`` of a
        cross-validated model. A ``cv`` or ``scoring`` that is an object is not saved: there is a
        warning, and the loaded model has the default. Parameters that are arrays become lists.
        """
        from hikernel.estimators.saving import save  # imported only when needed

        save(self, path, dual_coef=dual_coef, error_bars=error_bars)

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
