"""Devices of the torch engine: their names, their memory, and when "auto" takes a GPU.

torch is imported by the functions that need it, so that naming an engine costs nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from hikernel.engines.machine import available_bytes, n_threads, require_memory
from hikernel.engines.protocol import FloatArray, GridEngine
from hikernel.errors import MemoryPlanError

__all__ = ["TorchDevice", "TorchType", "gpu_pays", "on_device"]

LEAST_NUMBERS = 2**19
"""Rows times stored columns from which on "auto" takes a GPU: 4,096 rows of 32 variables with four
levels each. Below, a fit consists of small steps that no GPU makes shorter."""

_SPARE = 4
"""Memory that must be free for "auto" to take a GPU, relative to the stored columns."""

_NAME = re.compile(r"torch(:cpu|:cuda(:[0-9]+)?)?")

_SIGNS_OF_A_GPU = (
    Path("/dev/nvidiactl"),
    Path("/dev/dxg"),
    Path(os.environ.get("SYSTEMROOT", "/"), "System32", "nvcuda.dll"),
)
"""A file that the driver makes, on Linux, in Linux on Windows, and on Windows."""

_CPU_NUMBERS = 2**23
"""Numbers of one step of the work on a CPU: 64 MiB."""

_GPU_NUMBERS = 2**30
"""Largest number of numbers of one step of the work on a GPU: 8 GiB. Starting the work of a step
takes tens of microseconds, so steps of many pairs of rows must be large."""

_GPU_SHARE = 4
"""A step of the work takes at most this part of the free memory of a GPU: a fourth."""

Verb = TypeVar("Verb", bound=Callable[..., Any])


@dataclass(frozen=True)
class TorchDevice:
    """A device of torch.

    Attributes
    ----------
    name : str
        "cpu", "cuda" or "cuda:1", as torch has it.
    """

    name: str

    @property
    def is_cpu(self) -> bool:
        """Whether the device is the CPU, with the memory of this process."""
        return self.name == "cpu"

    def free_bytes(self) -> int | None:
        """Return the bytes that can still be taken, or None if that is unknown."""
        if self.is_cpu:
            return available_bytes()
        import torch

        free, _ = torch.cuda.mem_get_info(self.name)
        # torch keeps memory that it no longer needs, and hands it out again.
        kept = torch.cuda.memory_reserved(self.name) - torch.cuda.memory_allocated(self.name)
        return int(free) + int(kept)

    def require_memory(self, n_numbers: int, what: str, remedy: str) -> None:
        """Raise :class:`MemoryPlanError` unless ``n_numbers`` doubles fit into the device."""
        if self.is_cpu:
            require_memory(n_numbers, what, remedy)
            return
        free, needed = self.free_bytes(), 8 * n_numbers
        if free is not None and needed > free:
            raise MemoryPlanError(
                f"{what} would take {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free "
                f'on the device {self.name}. {remedy} Or use engine="numpy".'
            )

    def step_numbers(self) -> int:
        """Return how many float64 numbers one step of the work may take."""
        if self.is_cpu:
            return _CPU_NUMBERS
        free = self.free_bytes()
        return _GPU_NUMBERS if free is None else max(1, min(_GPU_NUMBERS, free // 8 // _GPU_SHARE))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Make the device the current one, within the user's limit on threads.

        If its memory is taken meanwhile, that is said in a sentence.
        """
        import torch

        before = torch.get_num_threads()
        # Without a number the device is the current one; Triton computes on none but that.
        numbered = ":" in self.name
        try:
            if self.is_cpu:
                torch.set_num_threads(min(before, n_threads()))
            with torch.cuda.device(self.name) if numbered else nullcontext():
                yield
        except torch.OutOfMemoryError as error:
            raise MemoryPlanError(
                f"The memory of the device {self.name} is taken, by this or another program. Free "
                'it, use fewer rows or lower max_kernels, or use engine="numpy".'
            ) from error
        finally:
            if self.is_cpu:
                torch.set_num_threads(before)


def on_device(verb: Verb) -> Verb:
    """Make a method of an engine run within ``working`` of its ``device``."""

    @wraps(verb)
    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        with self.device.working():
            return verb(self, *arguments, **named)

    return cast(Verb, run)


@dataclass(frozen=True)
class TorchType:
    """Constructor of the torch engine on a device; torch is imported when the first one is made.

    Attributes
    ----------
    name : str
        "torch" for a GPU if there is one, else the CPU; or "torch:cpu", "torch:cuda",
        "torch:cuda:1".
    """

    name: str = "torch"

    __name__ = "TorchEngine"

    def __call__(
        self,
        widths: Sequence[tuple[int, ...]],
        levels: Iterable[Sequence[FloatArray]],
        row_weights: FloatArray,
        constant_levels: Sequence[bool],
    ) -> GridEngine:
        """Create an engine over some rows; the arguments are those of ``GridEngineType``."""
        device = self.device()
        from hikernel.engines.torch_engine import TorchEngine

        return TorchEngine(widths, levels, row_weights, constant_levels, device)

    @staticmethod
    def is_name(name: object) -> bool:
        """Return whether ``name`` is that of a torch engine, whatever is installed here.

        >>> TorchType.is_name("torch:cuda:1"), TorchType.is_name("torch:tpu")
        (True, False)
        """
        return isinstance(name, str) and _NAME.fullmatch(name) is not None

    def device(self) -> TorchDevice:
        """Return the device.

        Raises
        ------
        ImportError
            If torch is not installed.
        ValueError
            If the device is not there.
        """
        if importlib.util.find_spec("torch") is None:
            raise ImportError(
                f"engine={self.name!r} needs torch: pip install 'hikernel[gpu]', or use "
                'engine="numpy".'
            )
        _, _, named = self.name.partition(":")
        if named == "cpu":
            return TorchDevice(named)
        n_gpus = _n_gpus()
        if not named:
            return TorchDevice("cuda" if n_gpus else "cpu")
        if int(named.removeprefix("cuda").removeprefix(":") or 0) >= n_gpus:
            there = "none" if n_gpus == 0 else f"cuda:0 to cuda:{n_gpus - 1}"
            raise ValueError(
                f"engine={self.name!r} names a CUDA GPU that torch does not see here (it sees "
                f'{there}). Use engine="torch", which takes what there is, or install a torch '
                "with CUDA and a driver for it."
            )
        return TorchDevice(named)


def _n_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


@cache
def _gpu_is_likely() -> bool:
    """Return whether torch is installed and a driver is there; it takes microseconds to know."""
    there = any(sign.exists() for sign in _SIGNS_OF_A_GPU)
    return there and importlib.util.find_spec("torch") is not None


def gpu_pays(n_numbers: int) -> bool:
    """Return whether "auto" takes a GPU for an engine that stores so many numbers.

    It does from ``LEAST_NUMBERS`` on, if torch is installed, and a GPU is there with room to work.
    torch is imported only if all the rest says yes.
    """
    if n_numbers < LEAST_NUMBERS or not _gpu_is_likely() or _n_gpus() == 0:
        return False
    free = TorchDevice("cuda").free_bytes()
    return free is not None and free >= 8 * _SPARE * n_numbers
