"""Adds up the gradient of the token embeddings once per batch instead of once per chunk.

The gradient of a lookup is as large as the vocabulary, and nearly all zeros. With many small chunks in a
batch, filling and adding those zeros takes a tenth of the time of a small encoder on a CPU. Here each chunk
gives the rows that it looked up, and their sum becomes an ordinary gradient before anyone reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@contextmanager
def sparse_lookups(model: SentenceTransformer) -> Iterator[None]:
    """Let the token embeddings of `model` collect sparse gradients; what is left in `.grad` is dense as ever.

    For training in one process: others would have to be told. Does nothing where the token embeddings are
    frozen or no `nn.Embedding`. The sums are the same up to the order of additions.
    """
    transformer = model.transformers_model
    embeddings = transformer.get_input_embeddings() if transformer is not None else None
    if not isinstance(embeddings, nn.Embedding) or embeddings.sparse or not embeddings.weight.requires_grad:
        yield
        return
    embeddings.sparse = True
    hook = embeddings.weight.register_post_accumulate_grad_hook(_make_dense)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hook.remove()
        embeddings.sparse = False


def _make_dense(weight: Tensor) -> None:
    if weight.grad is not None and weight.grad.is_sparse:
        weight.grad = weight.grad.to_dense()
