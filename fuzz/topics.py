"""The topics by name."""

from fuzz import estimators

TOPICS = {"estimators": estimators.run}
