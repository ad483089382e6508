"""What the gradient cache saves in memory and costs in time, and that it trains the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard import attempt
from models import bert
from resume import difference
from setting import Setting, write_pairs
from training import SHAPES, fit_once, rates


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield memory and speed without and with it, and how far the weights are apart."""
    size = setting.pick(256, 8)
    pairs = write_pairs(setting, size * setting.pick(16, 3), SHAPES["long"])
    folders = []

    def train(cached: bool) -> dict[str, Any]:
        values = {
            "loss": "papers",
            "precision": "bf16",
            "batch_size": size,
            "chunk_size": setting.pick(64, 4),
        }
        values |= {"gradient_cache": cached, "learning_rate": setting.pick(5e-5, 1e-2)}
        fitted, clock = fit_once(setting, f"cache-{cached}", bert(setting), pairs, values)
        folders.append(fitted.path)
        return rates(clock, bert(setting), pairs, size)

    yield attempt("without", lambda: train(False))
    yield attempt("with", lambda: train(True))
    if len(folders) == 2:
        yield attempt("with against without", lambda: difference(*folders))
