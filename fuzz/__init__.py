"""Random attacks on hikernel: bad input, damaged model files, and bounds that should hold.

A case is a topic, a seed and a number, and always the same one. ``python -m fuzz TOPIC`` runs many
and says how to run a failure alone; ``tests/test_fuzz.py`` runs a few hundred. The oracles are
those of the tests.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
