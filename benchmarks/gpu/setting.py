"""What every part is given, and what parts share: made-up texts and pairs, the clock of a training."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30
_SORTS = 6  # of words in made-up texts


@dataclass(frozen=True)
class Setting:
    """How the parts run.

    Attributes:
        device: `cuda`, or `cpu`.
        tiny: Small models and few steps, to see that everything runs.
        work: Folder for models and runs, shared by the parts.
        minilm: Folder of all-MiniLM-L6-v2, if there is one.
        llama_layers: Layers of the model of LLaMA-7B shape, which has 32.
    """

    device: str
    tiny: bool
    work: Path
    minilm: Path | None = None
    llama_layers: int = 8

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device == "cuda"

    def pick(self, large: Any, tiny: Any) -> Any:
        """Return the first value, or with `tiny` the second."""
        return tiny if self.tiny else large

    def folder(self, name: str) -> Path:
        """Return a new place for a run; nothing is there yet."""
        path = self.work / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def made_up_texts(count: int, mean: float = 2.6, deviation: float = 0.6, seed: int = 0) -> list[str]:
    """Return texts of random words of the demo's texts; the number of words is lognormal, at least 2.

    The n-th text has only words of the sort n mod 6, for `write_pairs`.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    words = sorted({word for word in " ".join(demo_texts()).split() if word.isalpha()})
    lengths = np.maximum(2, rng.lognormal(mean, deviation, size=count).round().astype(int))
    return [
        " ".join(rng.choice(words[n % _SORTS :: _SORTS], size=length)) for n, length in enumerate(lengths)
    ]


def demo_texts() -> list[str]:
    """Return the 360 sentences of the demo."""
    lines = (ROOT / "examples" / "cloud-ops" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_pairs(setting: Setting, count: int, mean: float = 2.6, seed: int = 0) -> Path:
    """Write pairs of made-up texts with scores 0, 0.2 … 1; the same arguments, the same file.

    The nearer the sorts of their words, the higher the score of two texts. Which word is of which sort is
    arbitrary: an untrained model hardly knows, and one that trains learns it at once.
    """
    path = setting.work / "pairs" / f"{count}-{mean}-{seed}.jsonl"
    if not path.exists():
        texts = made_up_texts(_SORTS * count, mean, seed=seed)
        rows = []
        for number in range(count):
            one, other = number % _SORTS, (number // _SORTS) % _SORTS
            own = texts[_SORTS * number : _SORTS * (number + 1)]
            second = own[other] if other != one else texts[(_SORTS * (number + 1) + one) % len(texts)]
            score = 1 - abs(one - other) / (_SORTS - 1)
            rows.append({"text1": own[one], "text2": second, "score": score})
        write_rows(path, rows)
    return path


def read_pairs(path: Path) -> dict[str, list[Any]]:
    """Return the columns `text1`, `text2` and `score` of a file of `write_pairs`."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {name: [row[name] for row in rows] for name in ("text1", "text2", "score")}


def synchronise(device: str) -> None:
    """Wait until the device has done all it was given; what it is given returns at once."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def seconds_of(function: Any, device: str, *, repeat: int, warm_up: int = 3) -> float:
    """Return the median seconds of a call, of `repeat` after `warm_up` that do not count."""
    import statistics

    taken = []
    for number in range(warm_up + repeat):
        synchronise(device)
        started = time.perf_counter()
        function()
        synchronise(device)
        if number >= warm_up:
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


@dataclass
class StepClock:
    """What `watch_steps` saw: optimiser steps, and time and memory between the first that count and the last.

    Attributes:
        steps: All optimiser steps.
        measured: Steps in `seconds`.
        seconds: Their time; 0 where there were too few.
        peak: Bytes of device memory that tensors took at most, up to the last step; 0 on a CPU.
    """

    steps: int = 0
    measured: int = 0
    seconds: float = 0.0
    peak: int = 0

    def figures(self) -> dict[str, float]:
        """Return them as figures of the table, without those that are unknown."""
        found: dict[str, float] = {"steps": self.steps}
        if self.measured:
            found["steps_per_s"] = self.measured / self.seconds
        if self.peak:
            found["peak_gib"] = self.peak / GIB
        return found


@contextmanager
def watch_steps(device: str, warm_up: int = 5) -> Iterator[StepClock]:
    """Time the optimiser steps inside the block, whoever takes them: the first `warm_up` do not count.

    Every optimiser of torch tells its hook. On a GPU each step leaves an event behind, so that nothing waits
    for the device; loading, measuring and saving are outside of what is timed. A step that a gradient scaler
    skips is none.
    """
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    clock, marks = StepClock(), []
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()

    def stepped(*_: Any) -> None:
        clock.steps += 1
        if device == "cuda":
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
            marks.append(mark)
            clock.peak = torch.cuda.max_memory_allocated()
        else:
            marks.append(time.perf_counter())

    handle = register_optimizer_step_post_hook(stepped)
    try:
        yield clock
    finally:
        handle.remove()
    first = min(warm_up, max(0, len(marks) - 2))
    if len(marks) < 2:
        return
    synchronise(device)
    clock.measured = len(marks) - 1 - first
    start, end = marks[first], marks[-1]
    clock.seconds = start.elapsed_time(end) / 1000 if device == "cuda" else end - start
