"""A full disk, met for real: the system's limit on the size of a file stands in for it."""

import resource
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size):
    """Whatever writes a larger file fails; leave it within the test, for pytest may print to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
