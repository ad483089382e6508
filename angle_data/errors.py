"""The errors a user can meet, each with one line that says what to do about it.

Anything else that escapes is a defect and keeps its traceback.
"""

from __future__ import annotations

from angle_data.resources import install_command


class AngleError(Exception):
    """Base of every error that is reported as one line; `exit_code` is the process's exit status."""

    exit_code = 1


class InputError(AngleError):
    """A file, line, value or option that cannot be used; the message names it and the fix."""


class MissingExtraError(AngleError):
    """An optional dependency is missing; the message is built to hold the exact install command."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs the "{extra}" extra: {install_command(extra)}')


class AnnotatorError(AngleError):
    """An annotator cannot go on (unreachable server, unknown model, repeated rejections)."""


class CredentialsError(AnnotatorError):
    """The service rejected the API key, or no key was given; the message names the variable to set."""


class StoppedError(AngleError):
    """A limit was reached; everything so far is kept and the same command goes on from there."""

    exit_code = 75
