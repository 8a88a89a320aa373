"""Progress bars over the steps of a search and over a path."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from hikernel.search import SearchStep
from hikernel.selection import PathPoint

__all__ = ["PathProgress", "SearchProgress"]


class _Bar:
    """A tqdm progress bar as a context manager."""

    def __init__(self, total: int, desc: str, unit: str) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, desc=desc, unit=unit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()


class SearchProgress(_Bar):
    """Shows the size of the hull, the objective and the gap of every step.

    Parameters
    ----------
    max_kernels : int
        Length of the bar.
    """

    def __init__(self, max_kernels: int) -> None:
        super().__init__(max_kernels, "search", "kernel")

    def __call__(self, step: SearchStep) -> None:
        """Move the bar to a new step."""
        proven = step.certificate.kind != "none"
        self._bar.set_postfix(
            objective=f"{step.certificate.objective:.4g}",
            gap=f"{step.certificate.relative_gap:.1e}" if proven else "?",
            refresh=False,
        )
        self._bar.update(len(step.nodes) - self._bar.n)


class PathProgress(_Bar):
    """Shows alpha, terms, unexplained share of the loss and gap of every point of a path.

    Parameters
    ----------
    n_alphas : int
        Length of the bar.
    """

    def __init__(self, n_alphas: int) -> None:
        super().__init__(n_alphas, "path", "alpha")

    def __call__(self, point: PathPoint) -> None:
        """Move the bar by one alpha."""
        certificate = point.model.certificate
        self._bar.set_postfix(
            alpha=f"{point.model.lam:.2g}",
            terms=point.model.n_terms,
            error=f"{1.0 - point.explained:.3f}",
            gap="?" if certificate.kind == "none" else f"{certificate.relative_gap:.1e}",
            refresh=False,
        )
        self._bar.update(1)
