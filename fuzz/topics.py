"""The topics by name."""

from fuzz import commands, estimators, graph_builders

TOPICS = {
    "estimators": estimators.run,
    "graphs": graph_builders.run,
    "commands": commands.run,
}
