"""Versions, in one place."""

__version__ = "0.1.0"

SUMMARY_SCHEMA = 1
"""Version of the dict of ``summary()``; a change that breaks its readers raises it."""
