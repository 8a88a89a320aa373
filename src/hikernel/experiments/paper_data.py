"""The data of the tables and the figure: from a folder, from OpenML, or generated.

The repository contains no data. If a file is missing, the error message says what the data set is,
where it comes from and how to name the folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.datasets import make_ringnorm, make_twonorm
from hikernel.engines.protocol import FloatArray
from hikernel.errors import UsageError
from hikernel.experiments.paper_numbers import PAPER
from hikernel.experiments.settings import FIGURE, NORM_ROWS, NORM_SEED, FigureSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CLASSIFICATION",
    "FOLDER_VARIABLE",
    "REGRESSION",
    "DataError",
    "Dataset",
    "FigureData",
    "data_folder",
    "draw_figure_data",
    "load",
    "source_of",
]

Task = Literal["regression", "classification"]

FOLDER_VARIABLE: Final = "HIKERNEL_DATA"

REGRESSION: Final = (
    "abalone",
    "bank-32fh",
    "bank-32fm",
    "bank-32nh",
    "bank-32nm",
    "boston",
    "pumadyn-32fh",
    "pumadyn-32fm",
    "pumadyn-32nh",
    "pumadyn-32nm",
)
CLASSIFICATION: Final = ("mushrooms", "ringnorm", "spambase", "twonorm", "magic04")
GENERATED: Final = {"twonorm": make_twonorm, "ringnorm": make_ringnorm}

_SOURCES: Final = {
    "abalone": "UCI Machine Learning Repository, Abalone: 4,177 rows, 8 columns; rings",
    "boston": "StatLib / UCI, Housing: 506 rows, 13 columns; MEDV",
    "mushrooms": "UCI, Mushroom: 8,124 rows, 22 categories; e or p",
    "spambase": "UCI, Spambase: 4,601 rows, 57 columns; 1 = spam",
    "magic04": "UCI, MAGIC Gamma Telescope: 19,020 rows, 10 columns; g or h",
    "twonorm": "Delve / KEEL, twonorm: 7,400 rows, 20 columns; 0 or 1",
    "ringnorm": "Delve / KEEL, ringnorm: 7,400 rows, 20 columns; 0 or 1",
} | {
    f"{family}-32{kind}": f"Delve archive, {family}-32{kind}: 8,192 rows, 32 columns"
    for family in ("bank", "pumadyn")
    for kind in ("fh", "fm", "nh", "nm")
}

_OPENML: Final = {
    # Names and versions on OpenML. It has only two of the Delve data sets, bank-32nh and
    # pumadyn-32nm (called puma32H there).
    "abalone": ("abalone", 1),
    "boston": ("boston", 1),
    "bank-32nh": ("bank32nh", 1),
    "pumadyn-32nm": ("puma32H", 1),
    "mushrooms": ("mushroom", 1),
    "spambase": ("spambase", 1),
    "magic04": ("MagicTelescope", 1),
    "twonorm": ("twonorm", 1),
    "ringnorm": ("ringnorm", 1),
}

_FIGURE_NAME = re.compile(r"synthetic-(plain|rotated)-(\d+)")


class DataError(UsageError, FileNotFoundError):
    """A data set was not found; the message says how to provide it."""


@dataclass(frozen=True)
class Dataset:
    """A table with a target.

    Attributes
    ----------
    name : str
        Name in the paper.
    task : {"regression", "classification"}
        Kind of target.
    frame : pandas.DataFrame of shape (n, columns)
        The input columns as read.
    X : ndarray of shape (n, p)
        The same inputs as numbers, with one indicator column per category; p as in the paper.
    y : ndarray of shape (n,)
        The target: numbers, or labels 0 and 1.
    n_train : int or None
        The first n_train rows are for training; None if the protocol draws the training rows.
    source : {"file", "openml", "formula", "generated"}
        Where the rows come from.
    """

    name: str
    task: Task
    frame: pd.DataFrame
    X: FloatArray
    y: NDArray[np.float64]
    n_train: int | None = None
    source: str = "file"

    @classmethod
    def from_frame(
        cls, name: str, task: Task, frame: pd.DataFrame, source: str = "file"
    ) -> Dataset:
        """Build a data set: split off the column ``target``, turn categories into indicators."""
        import pandas as pd

        target = frame["target"].to_numpy()
        frame = frame.drop(columns="target")
        if task == "classification":
            labels = np.unique(target)
            if len(labels) != 2:
                raise UsageError(f"{name} has {len(labels)} classes, the tables have two.")
            target = target == labels[1]
        numbers = pd.get_dummies(frame).to_numpy(dtype=np.float64)
        return cls(name, task, frame, numbers, target.astype(np.float64), source=source)


def data_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder given, else that of the variable HIKERNEL_DATA, else None."""
    chosen = given if given is not None else os.environ.get(FOLDER_VARIABLE)
    return None if not chosen else Path(chosen)


def load(name: str, folder: Path | None = None, *, seed: int = 0, openml: bool = False) -> Dataset:
    """Return a data set by its name in the paper.

    Parameters
    ----------
    name : str
        One of `REGRESSION` or `CLASSIFICATION`, or a name such as ``synthetic-plain-16`` for the
        figure.
    folder : Path, optional
        Folder with the file ``<name>.csv.gz``: a header row, the last column called ``target``.
    seed : int
        Seed of the data of the figure.
    openml : bool
        Whether to fetch a data set that the folder lacks from OpenML, over the network.

    Raises
    ------
    DataError
        If the data set is not available. The message says what it is and how to provide it.
    """
    drawn = _FIGURE_NAME.fullmatch(name)
    if drawn:
        return _figure_data(name, drawn.group(1) == "rotated", int(drawn.group(2)), seed)
    if name not in _SOURCES:
        raise ValueError(f"{name!r} is not a data set of the paper: {', '.join(sorted(_SOURCES))}.")
    task: Task = "regression" if name in REGRESSION else "classification"
    source = source_of(name, folder, openml=openml)
    if source == "file":
        import pandas as pd

        frame = pd.read_csv(_file(name, folder))
    elif source == "openml":
        frame = _fetch(name)
    elif source == "formula":
        frame = GENERATED[name](NORM_ROWS, seed=NORM_SEED)
    else:
        raise DataError(_missing(name, folder))
    data = Dataset.from_frame(name, task, frame, source)
    if source == "openml":
        _check_size(data)
    return data


def source_of(name: str, folder: Path | None = None, *, openml: bool = False) -> str:
    """Return the source from which :func:`load` would take a data set.

    "generated" for the figure, "file", "openml", or "formula" for twonorm and ringnorm. An empty
    string if the data set is not available.
    """
    if _FIGURE_NAME.fullmatch(name):
        return "generated"
    if folder is not None and _file(name, folder).is_file():
        return "file"
    if openml and name in _OPENML:
        return "openml"
    return "formula" if name in GENERATED else ""


def _file(name: str, folder: Path | None) -> Path:
    return (folder or Path()) / f"{name}.csv.gz"


def _missing(name: str, folder: Path | None) -> str:
    where = "No folder of data was named" if folder is None else f"{folder} has no {name}.csv.gz"
    online = "--openml fetches it" if name in _OPENML else "OpenML has no complete copy"
    return (
        f"{where}. It is the set {_SOURCES[name]}; save it as a gzip-compressed CSV with a header "
        f"row and the target as the last column, called target ({online}). Name the folder with "
        f"--data DIR or in the environment variable {FOLDER_VARIABLE}."
    )


def _fetch(name: str) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    label, version = _OPENML[name]
    bunch = fetch_openml(label, version=version, as_frame=True, parser="auto")
    frame: pd.DataFrame = bunch.data
    if name == "mushrooms":
        # A missing value is a category of its own among the paper's 117 indicators.
        frame = frame.astype(object).where(frame.notna(), "?")
    elif name != "abalone":
        # OpenML gives numeric columns with few values, such as RAD of boston, as categories.
        frame = frame.astype(np.float64)
    return frame.assign(target=bunch.target.to_numpy())


def _check_size(data: Dataset) -> None:
    """Raise UsageError if a fetched data set does not have the size given in the paper."""
    printed = next(row for t in PAPER.values() for (n, _), row in t.items() if n == data.name)
    # The n in the second table of the paper is that of a split, not of the data set.
    rows = printed.n if data.task == "regression" else len(data.y)
    if data.X.shape != (rows, printed.p):
        raise UsageError(
            f"OpenML's {data.name} has {len(data.y)} rows and {data.X.shape[1]} columns "
            f"(categories as indicators), the paper's {rows} and {printed.p}. Save the set as "
            f"{data.name}.csv.gz and name its folder with --data DIR."
        )


def _figure_data(name: str, rotated: bool, p: int, seed: int) -> Dataset:
    import pandas as pd

    drawn = draw_figure_data(p, seed, rotated=rotated)
    frame = pd.DataFrame(drawn.X, columns=[f"x{m}" for m in range(p)])
    return Dataset(name, "regression", frame, drawn.X, drawn.y, drawn.n_train, "generated")


@dataclass(frozen=True)
class FigureData:
    """One replication of the synthetic figure.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Normal inputs with a random covariance, rotated or not.
    y : ndarray of shape (n,)
        A sparse polynomial of the inputs before rotation, plus noise.
    n_train : int
        The first n_train rows are for training.
    """

    X: FloatArray
    y: FloatArray
    n_train: int


def draw_figure_data(
    p: int, seed: int, *, rotated: bool, settings: FigureSettings = FIGURE
) -> FigureData:
    """Draw y = sum_k c_k prod_m x_m^(a_km) + noise, sum_m a_km <= 4.

    The covariance of the inputs is drawn from a Wishart distribution with p degrees of freedom and
    scaled to unit variances. The degree of a monomial is drawn from 1..4, its variables with
    replacement. Each monomial is scaled to variance one and gets a normal coefficient. Plain and
    rotated data of the same seed have the same y.

    Parameters
    ----------
    p : int
        Number of variables.
    seed : int
        Seed of the replication.
    rotated : bool
        Whether to multiply the inputs by a random orthogonal matrix.
    settings : FigureSettings
        Numbers of rows and monomials, largest degree, noise.
    """
    rng = np.random.default_rng([seed, p])
    n = settings.n_train + settings.n_test
    factor = rng.standard_normal((p, p))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    X = rng.standard_normal((n, p)) @ factor.T
    signal = np.zeros(n)
    for _ in range(settings.n_monomials):
        degree = int(rng.integers(1, settings.max_degree + 1))
        monomial = np.prod(X[:, rng.integers(p, size=degree)], axis=1)
        signal += rng.standard_normal() * monomial / np.std(monomial)
    y = signal + settings.noise * np.std(signal) * rng.standard_normal(n)
    if rotated:
        Q, R = np.linalg.qr(rng.standard_normal((p, p)))
        X = X @ (Q * np.sign(np.diag(R)))
    return FigureData(X, y, settings.n_train)
