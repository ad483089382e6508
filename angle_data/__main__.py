"""Where the `angle-data` program starts, also as `python -m angle_data`."""

from __future__ import annotations

import sys


def main() -> None:
    """Load and run the program; a Ctrl-C while it loads ends it with one line, like any later one."""
    try:
        from angle_data.cli import main as program
    except KeyboardInterrupt:
        sys.stderr.write("angle-data: interrupted\n")
        sys.exit(130)
    program()


if __name__ == "__main__":
    main()
