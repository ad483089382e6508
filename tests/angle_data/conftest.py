"""Lets the tests of angle_data import the servers that lie beside them in tests/."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
