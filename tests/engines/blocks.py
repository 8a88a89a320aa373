"""Engines over blocks of rows that are made of given levels, to stand beside those in memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hikernel.engines import NumpyEngine
from hikernel.engines.row_block_engine import RowBlockEngine
from hikernel.engines.row_blocks import HeldBlocks


@dataclass(frozen=True)
class LevelMaker:
    """Engines of rows of blocks that hold the levels themselves."""

    widths: tuple
    constant: tuple

    def __call__(self, block, rows, highest):
        count = len(np.arange(len(block[0][0]))[rows])
        widths = [
            w if highest is None else w[: highest.get(m, 0) + 1] for m, w in enumerate(self.widths)
        ]
        levels = [[level[rows] for level in variable] for variable in block]
        levels = [levels[m][: len(w)] for m, w in enumerate(widths)]
        return NumpyEngine(widths, levels, np.ones(count), self.constant)


def in_blocks(cuts):
    """A constructor of engines, like that of ``NumpyEngine``, over blocks that end at ``cuts``."""

    def make(widths, levels, row_weights, constant_levels):
        levels = [list(variable) for variable in levels]
        ends = [0, *(cut for cut in cuts if cut < len(row_weights)), len(row_weights)]
        blocks = [
            [[level[start:stop] for level in variable] for variable in levels]
            for start, stop in pairwise(ends)
        ]
        maker = LevelMaker(tuple(map(tuple, widths)), tuple(constant_levels))
        layout = maker(blocks[0], slice(0, 1), None)
        sizes = np.diff(ends).tolist()
        every = [None] * len(sizes)
        return RowBlockEngine(HeldBlocks(blocks), sizes, every, maker, layout, row_weights)

    make.__name__ = "RowBlockEngine"
    return make
