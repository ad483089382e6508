"""What the gradient cache saves in memory and costs in time, and that it trains the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard import attempt
from models import bert
from resume import compared
from setting import Setting, write_pairs
from training import SHAPES, fit_once, rates


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield memory and speed without and with it, and how far the weights are apart."""
    size = setting.pick(256, 8)
    pairs = write_pairs(setting, size * setting.pick(16, 6), SHAPES["long"])
    runs: list[Any] = []

    def train(cached: bool) -> dict[str, Any]:
        values = {
            "loss": "papers",
            "precision": "bf16",
            "batch_size": size,
            "chunk_size": setting.pick(64, 4),
        }
        values |= {"gradient_cache": cached, "learning_rate": setting.pick(5e-5, 5e-3)}
        fitted, clock = fit_once(setting, f"cache-{cached}", bert(setting), pairs, values)
        runs.append(fitted)
        return rates(clock, bert(setting), pairs, size)

    yield attempt("without", lambda: train(False))
    yield attempt("with", lambda: train(True))
    if len(runs) == 2:
        yield attempt("with against without", lambda: compared(*runs))
