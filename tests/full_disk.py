"""A full disk, met for real: the system's limit on the size of a file stands in for it."""

import resource
from contextlib import contextmanager, nullcontext

import pytest


@contextmanager
def files_of_at_most(size):
    """Whatever writes a larger file fails; leave it within the test, for pytest may print to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def models_of_at_most(size):
    """Saving a model fails if a file of it is larger; what is saved to go on from it does not."""
    from sentence_transformers import SentenceTransformer

    saving = SentenceTransformer.save_pretrained

    def save(model, path, *given, **options):
        with files_of_at_most(size) if "checkpoint" not in path else nullcontext():
            saving(model, path, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceTransformer, "save_pretrained", save)
        yield
