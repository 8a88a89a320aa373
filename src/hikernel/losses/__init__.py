"""Losses: pure functions of the target y and the prediction f."""

from hikernel.losses.squared import SquaredError

__all__ = ["SquaredError"]
