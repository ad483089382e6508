"""What test_encoding runs as a program: the same training steps in one process and in two, over gloo.

`python two_processes.py MODEL OUT` writes the results of every scenario to OUT/{single,rank0,rank1}.pt. It is
one program that forks, because importing the libraries takes longer than everything else.
"""

import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from letter_model import batch_of, papers
from process_runs import in_processes
from sentence_transformers import SentenceTransformer
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from angle_train.objective.loss import CombinedLoss
from angle_train.recipe import ObjectiveConfig

PROCESSES = 2
SYNCHRONISED = []
PAIRS = [
    ("disk full", "no space left on the volume", 1.0),
    ("disk full", "the disk was replaced by an empty one", 0.0),
    ("node rebooted", "the host was restarted", 1.0),
    ("node rebooted", "disk full", 0.0),
    ("the pod was evicted", "kubernetes removed a container", 0.9),
    ("certificate expired", "tls handshake fails", 0.6),
    ("node rebooted", "machine came back after a restart", 1.0),
    ("database is slow", "queries take long", 1.0),
    ("database is slow", "database is fast", 0.0),
    ("Disk  full", "queries take long", 0.0),
    ("latency rose", "requests take longer", 0.9),
    ("latency rose", "latency fell", 0.0),
    ("pod restarted", "pod restarted", 1.0),
]
ROWS = [{"text1": a, "text2": b, "score": score} for a, b, score in PAIRS]
# 9, 10, 3 and 1 texts: at the end of an epoch the processes have unequally much to do, or nothing.
BATCHES = [ROWS[:6], ROWS[5:11], ROWS[10:12], ROWS[12:]]


# Two scales and their low end.
SCALED = [[row | {"scale": number % 3} for number, row in enumerate(batch)] for batch in BATCHES]


@dataclass
class Scenario:
    """How to train."""

    objective: ObjectiveConfig
    gradient_cache: bool = False
    batches: list = field(default_factory=lambda: BATCHES[:3])
    accumulation: int = 1
    clip: float | None = None  # hides whether the gradient has the right length


EVERYTHING = papers(matryoshka_dims=(16,), transitive=True, angle_mode="published")
SCENARIOS = {
    "plain": Scenario(papers()),
    "everything": Scenario(EVERYTHING),
    "cached": Scenario(EVERYTHING, gradient_cache=True),
    "accumulated": Scenario(EVERYTHING, gradient_cache=True, batches=BATCHES, accumulation=2, clip=1.0),
    "several scales": Scenario(EVERYTHING, batches=SCALED[:3]),
    "fewer texts than processes": Scenario(papers(), batches=[BATCHES[3], *BATCHES]),
}


def collate(model, rows, scenario, rank, processes, step):
    """Chunks and labels as the trainer hands them to the loss."""
    options = {"transitive": scenario.objective.transitive, "process": rank, "processes": processes}
    return batch_of(rows, model.preprocess, chunk_size=4, swap=True, seed=step, **options)


def wrap(model, processes):
    """The model as a data-parallel trainer holds it."""
    if processes == 1:
        return model
    wrapped = DistributedDataParallel(model, broadcast_buffers=False, find_unused_parameters=True)
    wrapped.register_comm_hook(None, counted_allreduce)
    return wrapped


def counted_allreduce(state, bucket):
    """What a data-parallel model does to synchronise some gradients, counted."""
    SYNCHRONISED.append(1)
    return allreduce_hook(state, bucket)


def train(directory, scenario, rank, processes):
    """Terms and texts of every batch and the parameters in the end; without dropout, which would differ."""
    model = SentenceTransformer(directory, device="cpu").eval()
    wrapped = wrap(model, processes)
    SYNCHRONISED.clear()
    terms, texts = [], []
    loss = CombinedLoss(wrapped, scenario.objective, scenario.gradient_cache)
    rate = 0.02 if scenario.clip else 5e-4
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for step, rows in enumerate(scenario.batches, start=1):
        chunks, labels = collate(model, rows, scenario, rank, processes, step)
        texts.append(sum(len(chunk["input_ids"]) for chunk in chunks))
        last = step % scenario.accumulation == 0 or step == len(scenario.batches)
        later = isinstance(wrapped, DistributedDataParallel) and not last
        with wrapped.no_sync() if later else nullcontext():
            found = loss(chunks, labels)
            terms.append([value.item() for value in found.values()])
            total = torch.stack(list(found.values())).sum()
            (total / scenario.accumulation).backward()
        if last:
            if scenario.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), scenario.clip)
            optimiser.step()
            optimiser.zero_grad()
    return {
        "terms": terms,
        "texts": texts,
        "synchronised": len(SYNCHRONISED),
        "parameters": {name: value.detach().clone() for name, value in model.named_parameters()},
    }


def refusal(directory):
    """What the loss says to a batch that was not made for several processes."""
    model = SentenceTransformer(directory, device="cpu").eval()
    scenario = SCENARIOS["plain"]
    try:
        CombinedLoss(model, scenario.objective)(*collate(model, ROWS[:6], scenario, 0, 1, 1))
    except ValueError as error:
        return str(error)


def single(directory, out):
    """All scenarios in one process."""
    torch.set_num_threads(1)
    torch.save(
        {name: train(directory, scenario, 0, 1) for name, scenario in SCENARIOS.items()}, out / "single.pt"
    )


def one_of_two(directory, out, rank):
    """All scenarios, and the refusal, in one of two processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = {name: train(directory, scenario, rank, PROCESSES) for name, scenario in SCENARIOS.items()}
    found["refusal"] = refusal(directory)
    dist.destroy_process_group()
    torch.save(found, out / f"rank{rank}.pt")


if __name__ == "__main__":
    model, out = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore", FutureWarning)  # newer torch has another name for broadcast_buffers
    codes = in_processes(1, lambda rank: single(model, out))
    codes += in_processes(PROCESSES, lambda rank: one_of_two(model, out, rank))
    if any(codes):
        raise SystemExit(f"processes ended with {codes}")
