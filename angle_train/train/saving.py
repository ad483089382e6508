"""A disk that cannot take a model: one line instead of the libraries' tracebacks.

Knows how torch and safetensors report that a write failed, and nothing of what is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from angle_data.errors import InputError

# torch's zip writer raises a plain RuntimeError and drops the system's reason.
_TORCH_WRITER = ("inline_container", "PytorchStreamWriter")


@contextmanager
def disk_errors_in_one_line(directory: Path) -> Iterator[None]:
    """Turn what torch, safetensors and Python raise when `directory` takes no more into one line.

    Raises:
        InputError: A file could not be written; names the directory and, where it is known, the reason.
    """
    from safetensors import SafetensorError

    try:
        yield
    except ConnectionError:
        raise  # a reader that went away (a broken pipe) is no disk
    except OSError as error:
        reason = error.strerror or str(error)
    except SafetensorError as error:
        if "I/O error" not in str(error):
            raise
        reason = str(error).split("I/O error: ")[-1].split(" (os error")[0]
    except RuntimeError as error:
        if not any(mark in str(error) for mark in _TORCH_WRITER) or "Reader" in str(error):
            raise
        reason = "a write failed; the disk may be full"
    else:
        return
    raise InputError(
        f"{directory}: cannot be written ({reason}); free space or give another --out, and run again"
    )
