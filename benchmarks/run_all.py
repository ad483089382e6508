"""Run every benchmark in turn: `make bench`. Hours on a CPU; finished runs are not repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS = [
    ["llm_supervised.py", "cloud-ops"],
    ["llm_supervised.py", "stsb"],
    ["stsb_supervised.py"],
]

if __name__ == "__main__":
    for command in COMMANDS:
        print("\n$ python benchmarks/" + " ".join([*command, *sys.argv[1:]]), flush=True)
        subprocess.run([sys.executable, str(HERE / command[0]), *command[1:], *sys.argv[1:]], check=True)
