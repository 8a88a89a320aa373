"""A progress bar over the steps of a search."""

from __future__ import annotations

from types import TracebackType

from hikernel.search import SearchStep

__all__ = ["SearchProgress"]


class SearchProgress:
    """Shows the size of the hull, the objective and the gap of every step.

    Parameters
    ----------
    max_kernels : int
        Length of the bar.
    enabled : bool
        Whether to show anything.
    """

    def __init__(self, max_kernels: int, *, enabled: bool) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=max_kernels, desc="search", unit="kernel", disable=not enabled)

    def __enter__(self) -> SearchProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def __call__(self, step: SearchStep) -> None:
        """Move the bar to a new step."""
        proven = step.certificate.kind != "none"
        self._bar.set_postfix(
            objective=f"{step.certificate.objective:.4g}",
            gap=f"{step.certificate.relative_gap:.1e}" if proven else "?",
            refresh=False,
        )
        self._bar.update(len(step.nodes) - self._bar.n)
