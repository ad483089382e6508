"""What test_angle_loss runs as a program: steps by AngleLoss in one process, and in two that gather.

`python loss_in_processes.py MODEL OUT` writes loss and weights to OUT/{single,rank0,rank1}.pt.
"""

import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from process_runs import in_processes
from sentence_transformers import SentenceTransformer
from torch.nn.parallel import DistributedDataParallel

from angle_train.objective.angle_loss import AngleLoss

# The first two rows are in one process and the others in the second: equal texts stand in both.
ROWS = [
    ("disk full", "no space left", 1.0),
    ("node rebooted", "the host restarted", 0.9),
    ("disk full", "volume at its limit", 1.0),
    ("latency rose", "node rebooted", 0.0),
]
CASES = {
    "plain": {},
    "all terms": {"weights": {"cosine": 1, "in_batch": 1, "angle": 1}},
    "cached": {"mini_batch_size": 1},
}


def steps(directory, case, rank, processes):
    """The last loss and the weights after three steps; without dropout, which would differ."""
    model = SentenceTransformer(directory, device="cpu").eval()
    wrapped = model if processes == 1 else DistributedDataParallel(model, find_unused_parameters=True)
    loss = AngleLoss(model, gather_across_devices=processes > 1, **CASES[case])
    loss.model = wrapped
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    size = len(ROWS) // processes
    first, second, scores = zip(*ROWS[rank * size : (rank + 1) * size], strict=True)
    for _ in range(3):
        optimiser.zero_grad()
        features = [dict(model.preprocess(list(column))) for column in (first, second)]
        value = loss(features, torch.tensor(scores))
        value.backward()
        optimiser.step()
    return value.item(), torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def write(directory, out, name, rank, processes):
    """Every case, in one of the processes."""
    torch.set_num_threads(1)
    if processes > 1:
        dist.init_process_group("gloo")
    torch.save({case: steps(directory, case, rank, processes) for case in CASES}, out / f"{name}.pt")
    if processes > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    model, out = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore", FutureWarning)
    codes = in_processes(1, lambda rank: write(model, out, "single", 0, 1))
    codes += in_processes(2, lambda rank: write(model, out, f"rank{rank}", rank, 2))
    if any(codes):
        raise SystemExit(f"processes ended with {codes}")
