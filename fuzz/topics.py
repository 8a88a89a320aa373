"""The topics by name."""

from fuzz import certificates, commands, estimators, graph_builders, model_files

TOPICS = {
    "estimators": estimators.run,
    "graphs": graph_builders.run,
    "commands": commands.run,
    "files": model_files.run,
    "certificates": certificates.run,
}
