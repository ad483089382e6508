"""A machine without enough memory for a run: one line of advice instead of the libraries' tracebacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from angle_data.errors import InputError

# torch raises a plain RuntimeError where the processor's memory is exhausted.
_ON_THE_PROCESSOR = ("DefaultCPUAllocator", "not enough memory", "can't allocate memory", "std::bad_alloc")
_ADVICE = (
    "lower chunk_size, batch_size or max_seq_length (--set KEY=VALUE), or set gradient_cache or "
    "gradient_checkpointing to true; other batch_size or max_seq_length need another --out or --overwrite"
)


@contextmanager
def memory_errors_in_one_line() -> Iterator[None]:
    """Turn what torch and Python raise when memory does not suffice into one line.

    Raises:
        InputError: It did not; says whose memory, and what needs less of it.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        place = "the GPU"
    except MemoryError:
        place = "the machine"
    except RuntimeError as error:
        if not any(mark in str(error) for mark in _ON_THE_PROCESSOR):
            raise
        place = "the machine"
    else:
        return
    raise InputError(f"{place} has not enough memory for this run: {_ADVICE}")
