"""The topics by name."""

from fuzz import estimators, graph_builders

TOPICS = {"estimators": estimators.run, "graphs": graph_builders.run}
