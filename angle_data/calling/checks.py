"""Several checks of which none hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from angle_data.errors import AngleError, InputError


def errors_of(checks: Iterable[Callable[[], object]]) -> list[AngleError]:
    """Return what checks raise, in their order; what two of them say is there once."""
    found = dict[str, AngleError]()
    for check in checks:
        try:
            check()
        except AngleError as error:
            found.setdefault(str(error), error)
        except OSError as error:  # such as a name that is too long
            named = error.filename and error.strerror
            said = f"{error.filename}: {error.strerror}" if named else str(error)
            found.setdefault(said, InputError(said))
    return [*found.values()]
