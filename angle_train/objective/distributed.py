"""One objective over several processes: each encodes its share of a batch, all see all embeddings.

Works on the batches that `batching.PairCollator` makes for several processes: every process has the labels
of the whole batch, so groups and pairs are those of one process. Knows nothing of the objective.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


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
        labels: `counts` (processes,) and `rows` (N,), see `batching.PairCollator`; without them, or with
            another number of processes, the batch was not made for these processes.

    Raises:
        ValueError: The batch was not made for these processes.
    """
    if "counts" not in labels or len(labels["counts"]) != world_size():
        raise ValueError(
            f"the batch is not shared out among {world_size()} processes: give every process all its rows "
            "and build PairCollator with process=rank, processes=world size"
        )
    counts: list[int] = labels["counts"].tolist()
    if len(own) != counts[dist.get_rank()]:
        raise ValueError(f"this process encoded {len(own)} texts instead of {counts[dist.get_rank()]}")
    gathered: Tensor = _Gather.apply(own, counts)  # type: ignore[no-untyped-call]
    return gathered[labels["rows"]]


def check_same_batch(labels: dict[str, Tensor]) -> None:
    """Check that all processes hold the same batch: with a sharded data loader each would have its own.

    Raises:
        ValueError: They do not.
    """
    columns = [labels[name].double().flatten() for name in ("first", "second", "score", "weight")]
    values = torch.cat(columns)
    places = torch.arange(1, len(values) + 1, dtype=values.dtype, device=values.device)
    own = torch.stack([places[-1], values @ places, values @ places.sqrt()])
    sums = [torch.empty_like(own) for _ in range(world_size())]
    dist.all_gather(sums, own)
    if any(not torch.equal(other, own) for other in sums):
        raise ValueError(
            "the processes have different batches: each must get the rows of the whole batch, in the same "
            "order and with the same swaps, not a share of its own"
        )


class _Gather(torch.autograd.Function):
    """Embeddings of all processes, one process after the other; see `gather_embeddings` for the gradient."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, counts: list[int]) -> Tensor:
        # Collectives want equal shapes.
        padded = own.new_zeros(max(counts), own.shape[1])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        start = sum(counts[: dist.get_rank()])
        ctx.share = slice(start, start + len(own))
        ctx.processes = len(counts)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient[ctx.share] * ctx.processes, None
