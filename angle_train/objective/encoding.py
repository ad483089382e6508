"""From the chunks of a batch to its embeddings: with little memory, or shared among several processes.

Works on the batches of `batches.PairCollator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from sentence_transformers.util import all_gather
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def encode(model: nn.Module, chunk: Mapping[str, Any]) -> Tensor:
    """Return the embeddings (n, D) of a chunk of n texts; the chunk itself stays as it is."""
    # A copy: models leave their token embeddings in what they get.
    embeddings: Tensor = model(dict(chunk))["sentence_embedding"]
    return embeddings


def encode_cached(model: nn.Module, chunks: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the embeddings (N, D) of all chunks, holding the activations of one chunk at a time.

    Every chunk but the last is encoded again in the backward pass, with the same draws of dropout and in the
    same precision, which costs one more forward pass; the gradients are those of the plain step. Of a
    data-parallel model the last chunk goes through the wrapper, which prepares its one synchronisation.

    Args:
        model: Turns a chunk into `sentence_embedding`.
        chunks: Model inputs; at least one.
    """
    bare = model.module if isinstance(model, DistributedDataParallel) else model
    parts = [checkpoint(encode, bare, chunk, use_reentrant=False) for chunk in chunks[:-1]]
    return torch.cat([*parts, encode(model, chunks[-1])])


def world_size() -> int:
    """Return how many processes train together; 1 where torch.distributed is not initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def gather_embeddings(own: Tensor, labels: dict[str, Tensor]) -> Tensor:
    """Return the embeddings (N, D) of a whole batch in the order of its labels, in every process.

    All processes then compute the same loss. A process passes back the gradient of its own embeddings times
    the number of processes, since data-parallel training takes the mean over processes: the mean is the
    gradient that one process would get from the whole batch.

    Args:
        own: What this process encoded (counts[rank], D).
        labels: `counts` (processes,) and `rows` (N,), see `batches.PairCollator`.

    Raises:
        ValueError: The batch was not made for these processes.
    """
    if "counts" not in labels or len(labels["counts"]) != world_size():
        raise ValueError(
            f"the batch is not divided among {world_size()} processes: give every process all its rows "
            "and build PairCollator with process=rank, processes=world size"
        )
    counts: list[int] = labels["counts"].tolist()
    most = max(counts)  # collectives want equal shapes
    padded = nn.functional.pad(own, (0, 0, 0, most - len(own)))
    if padded.requires_grad:
        padded.register_hook(lambda gradient: gradient * len(counts))  # type: ignore[no-untyped-call]
    parts = all_gather(padded).reshape(len(counts), most, -1)  # this process's own is in the graph
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])[labels["rows"]]


@contextmanager
def sparse_lookups(model: SentenceTransformer) -> Iterator[None]:
    """Let the token embeddings of `model` collect sparse gradients; `.grad` is dense as ever afterwards.

    The gradient of a lookup is as large as the vocabulary, and nearly all zeros. With many small chunks in a
    batch, filling and adding those zeros takes a tenth of the time of a small encoder on a CPU. Here each
    chunk gives only the rows that it looked up. The sums are the same up to the order of additions.

    For training in one process. Does nothing where the token embeddings are frozen or no `nn.Embedding`.
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
