"""Random attacks on hikernel: bad input, damaged model files, and bounds that should hold.

A case is a topic, a seed and a number, and always the same one. ``python -m fuzz TOPIC`` runs many
and says how to run a failure alone; ``tests/fuzz`` runs a few hundred.
"""
