"""Several checks of which none hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from angle_data.errors import AngleError


def errors_of(checks: Iterable[Callable[[], object]]) -> list[AngleError]:
    """Return what checks raise, in their order; what two of them say is there once."""
    found = dict[str, AngleError]()
    for check in checks:
        try:
            check()
        except AngleError as error:
            found.setdefault(str(error), error)
    return [*found.values()]
