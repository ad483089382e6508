"""`angle-train encode` beside `SentenceTransformer.encode`, both with the loading of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from guard import attempt
from models import bert
from setting import Setting, made_up_texts, synchronise, write_rows

_BATCHES = (32, 256)


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield texts a second, of distinct texts and of 360 that are repeated."""
    count = setting.pick(20_000, 40)
    texts = {"distinct": made_up_texts(count)}
    texts["repeated"] = [texts["distinct"][number % setting.pick(360, 4)] for number in range(count)]
    import angle_train.encode  # noqa: F401 - what is imported on first use is not timed

    for kind, own in texts.items():
        file = write_rows(setting.work / "texts" / f"{kind}.jsonl", [{"text": text} for text in own])
        for batch in _BATCHES[: setting.pick(None, 1)]:
            ways: dict[str, Callable[..., None]] = {
                f"{kind}, encode, batches of {batch}": lambda f=file, b=batch: _ours(setting, f, b),
                f"{kind}, SentenceTransformer, batches of {batch}": lambda o=own, b=batch: _theirs(
                    setting, o, b, "float32"
                ),
            }
            if batch == _BATCHES[-1]:
                ways[f"{kind}, SentenceTransformer in bf16, batches of {batch}"] = lambda o=own, b=batch: (
                    _theirs(setting, o, b, "bfloat16")
                )
            for what, way in ways.items():
                yield attempt(what, lambda w=way: _timed(setting, w, count))


def _timed(setting: Setting, way: Callable[[], None], count: int) -> dict[str, Any]:
    synchronise(setting.device)
    started = time.perf_counter()
    way()
    synchronise(setting.device)
    seconds = time.perf_counter() - started
    return {"texts_per_s": count / seconds, "seconds": seconds}


def _ours(setting: Setting, texts: Path, batch: int) -> None:
    from angle_train.encode import encode_file
    from angle_train.options import EncodeConfig

    out = setting.folder("encoded.npy")
    encode_file(EncodeConfig(str(bert(setting)), texts, out, batch_size=batch, device=setting.device))


def _theirs(setting: Setting, texts: list[str], batch: int, dtype: str) -> None:
    import numpy as np
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bert(setting)), device=setting.device, model_kwargs={"dtype": dtype})
    np.save(setting.folder("theirs.npy"), model.encode(texts, batch_size=batch, show_progress_bar=False))
