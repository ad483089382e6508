"""Where the `angle-data` program starts, also as `python -m angle_data`.

Loading the program takes about half a second. A Ctrl-C in that time ends it with one line, like any later
one, because `main` does the importing.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Load and run the program."""
    try:
        from angle_data.cli import main as program
    except KeyboardInterrupt:
        sys.stderr.write("angle-data: interrupted\n")
        sys.exit(130)
    program()


if __name__ == "__main__":
    main()
