"""Lines of the log that are said once, though a run loads its backbone several times."""

from __future__ import annotations

import logging
from functools import cache

log = logging.getLogger("angle.backbones")


@cache
def say_once(line: str, level: int = logging.INFO) -> None:
    """Log a line, but not again in this process."""
    log.log(level, "%s", line)
