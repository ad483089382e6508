"""Where the `angle-train` program starts, also as `python -m angle_train`; loads it and runs it.

The program takes about half a second to load. A Ctrl-C in that time ends it in one line, like any later one;
for that nothing is imported before `main` but what Python has loaded already.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Load and run the program."""
    try:
        from angle_train.cli import main as program
    except KeyboardInterrupt:
        sys.stderr.write("angle-train: interrupted; everything so far is kept\n")
        sys.stderr.flush()
        # Not `sys.exit`: where the signal met code from a string, as dataclasses are made of, Python would
        # end itself with the signal all the same.
        os._exit(130)
    program()


if __name__ == "__main__":
    main()
